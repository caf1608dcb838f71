//! What a server promises, and the laws that it keeps, as assertions.

use crate::client::Client;
use crate::failure::{Failure, rendered};
use mcproof_check::{CheckOptions, Explored, explore, take_of};
use mcproof_client::{ConnectOptions, TapBounds, Target};
use mcproof_contract::{self as contract, CaptureFailure};
use mcproof_record::{Conversation, Diagnostic, Severity};
use mcproof_report::{Style, check, contract as shown};
use mcproof_rules::{self as rules, Strictness};
use std::path::Path;
use tokio::sync::oneshot;

/// Bytes.
const STACK: usize = 64 << 20;

impl Client {
    /// Asserts that the server still promises what a lock file says. Of the contracts with clients of the same era the
    /// one counts that comes closest.
    ///
    /// # Errors
    /// The file cannot be read, or a list did not come.
    ///
    /// # Panics
    /// Anything but the server's own version changed, or a part could not be compared because a server did not return it; shows all changes.
    pub async fn assert_contract(&self, lock: impl AsRef<Path>) -> Result<(), Failure> {
        let shown_path = lock.as_ref().display().to_string();
        let wrong = |reason: String| {
            Failure::new(Diagnostic::error("bad-lock", format!("{shown_path} {reason}")).hint("create it with `mcproof lock`"))
        };
        let text = std::fs::read_to_string(&lock).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let promised = contract::parse(&text).map_err(|failure| wrong(failure.to_string()))?.contracts;
        let found = match contract::of_session(self, self.timeout()).await {
            Ok(found) => found,
            Err(CaptureFailure::List { method, failure }) => return Err(self.no_list(&failure, method).await),
            Err(failure) => return Err(Failure::new(Diagnostic::error("unstable-lists", failure.to_string()))),
        };
        let Some(diff) = contract::kept(&promised, &shown_path, &found, "the server") else {
            return Err(wrong("has no contract with a client of this era".into()));
        };
        assert!(!diff.is_drift(), "the server breaks the contract {shown_path}\n{}", shown::terminal(&diff, &Style::default()));
        assert!(!diff.inconclusive, "the contract {shown_path} cannot be compared\n{}", shown::terminal(&diff, &Style::default()));
        Ok(())
    }

    /// Asserts that what was on the wire so far breaks no rule. What was not exercised is not judged: [`assert_check`] tries it.
    ///
    /// # Panics
    /// A law was broken; shows the frames that did it.
    #[track_caller]
    pub fn assert_rules(&self) {
        judge(vec![take_of(self)], &self.handshake().transport.to_string());
    }
}

/// Explores a server like all kinds of clients, as `mcproof check` does, and asserts that it breaks no rule. Tools are called only if
/// they say that they change nothing.
///
/// # Errors
/// The server could not be started or reached.
///
/// # Panics
/// A law was broken; shows the frames that did it.
pub async fn assert_check(target: Target, options: ConnectOptions) -> Result<(), Failure> {
    let secrets = target.secrets();
    let name = target.command().map_or_else(|| "the server".to_owned(), |command| command.join(" "));
    let timeout = std::time::Duration::from_secs(30);
    let check_options = CheckOptions::new(target, options, secrets, TapBounds::default(), timeout);
    let of_thread = check_options.clone();
    let (sender, explored) = oneshot::channel();
    // The thread of a test has a small stack, on which the many conversations of a check do not find room.
    let started = std::thread::Builder::new().name("check".into()).stack_size(STACK).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Nobody waits any more if the test has failed meanwhile.
        let _ = sender.send(runtime.map(|runtime| runtime.block_on(explore(&of_thread))));
    });
    let resources = |error: String| Failure::new(Diagnostic::error("no-resources", format!("no system resources: {error}")));
    started.map_err(|error| resources(error.to_string()))?;
    let explored = explored.await.map_err(|error| resources(error.to_string()))?;
    let Explored { conversations, unreachable } = explored.map_err(|error| resources(error.to_string()))?;
    if let Some(failure) = unreachable {
        let transcript = conversations.into_iter().next().map(|take| take.transcript).unwrap_or_default();
        let audience = mcproof_analysis::diagnosis::Audience::Suite;
        return Err(Failure::new(mcproof_analysis::diagnosis::of_connect_failure(&failure, &check_options.target, &transcript, audience)));
    }
    judge(conversations, &name);
    Ok(())
}

#[track_caller]
fn judge(conversations: Vec<Conversation>, target: &str) {
    let rules = rules::select(&[], &[]).expect("no rule was named");
    let report = rules::report(target.to_owned(), &rules, conversations, Strictness::Tolerant);
    let broken: Vec<String> = report
        .findings()
        .filter(|(_, finding)| finding.severity >= Severity::Error)
        .map(|(ruling, finding)| rendered(&check::diagnosed(&report, ruling, finding)))
        .collect();
    assert!(broken.is_empty(), "{target} breaks rules\n{}", broken.join("\n"));
    let gaps: Vec<String> = report.gaps.iter().map(|gap| rendered(&check::missing(&report, gap))).collect();
    assert!(gaps.is_empty(), "{target} could not be judged\n{}", gaps.join("\n"));
}
