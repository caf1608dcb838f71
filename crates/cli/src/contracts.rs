//! Captures contracts from a running server, one client kind after the other, and reads contracts from lock files and traces. Knows
//! sessions and files, not the use of a contract.

use crate::command::trace;
use crate::conversation::{self, Interrupts, Watching};
use crate::diagnosis;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities;
use crate::output;
use crate::recording::Recording;
use crate::shown_contract;
use crate::status::Status;
use crate::target::{Resolved, TargetArgs};
use mcproof_analysis::diagnosis::of_list_failure;
use mcproof_client::{CallFailure, ConnectFailure, Session, ShutdownTimeouts, Tap, Unanswered, is_secret, open_session, url_holds_secret};
use mcproof_contract::{self as contract, CaptureFailure, Captured, Extent, Profile, Saved, Side, Visitor};
use mcproof_protocol::{Era, EraChoice, Transport};
use mcproof_record::{Contract, ContractChange, ContractLock, Diagnostic};
use mcproof_trace::{CallStream, Trace, TraceError, is_zip};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) type Contracts = BTreeMap<String, Contract>;

/// The flags that select the client kinds.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Clients")]
pub(crate) struct ClientArgs {
    /// Client kinds: legacy, modern, full, minimal, roots, sampling, elicitation, or a combination such as legacy/minimal; separate with
    /// commas [default: full, in each era of the server]
    #[arg(long = "as", value_name = "CLIENTS", value_delimiter = ',', value_parser = parse_visitors)]
    pub(crate) clients: Vec<ClientKinds>,
    /// Name of the credentials in use; the contract of each identity is locked separately
    #[arg(long, value_name = "NAME", value_parser = parse_identity, hide_short_help = true)]
    pub(crate) identity: Option<String>,
}

/// The kinds of clients that one word names.
#[derive(Clone, Debug)]
pub(crate) struct ClientKinds(Vec<Visitor>);

/// How much of the contract is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureExtent {
    /// Everything, each legacy revision in a session of its own.
    Whole,
    /// The same, of kinds of clients that were all let in before. Where one of them gets no answer now, that tells nothing of
    /// what the server promises: it may be slow today.
    Again,
    /// The lists, of the first kind of client that is let in.
    FirstLists,
    /// Everything, of the first kind of client that is let in.
    FirstWhole,
    /// The lists once more: what else there is to say of the server was said before.
    ListsAgain,
}

/// What a live server showed.
pub(crate) struct CapturedContracts {
    pub(crate) contracts: Contracts,
    pub(crate) transport: Transport,
}

fn parse_visitors(word: &str) -> Result<ClientKinds, String> {
    Profile::visitors(word.trim()).map(ClientKinds).map_err(|error| error.to_string())
}

fn parse_identity(name: &str) -> Result<String, String> {
    let is_plain = !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || "-_.@/".contains(character));
    if is_plain { Ok(name.to_owned()) } else { Err("expected letters, digits and - _ . @ /".into()) }
}

impl ClientArgs {
    /// The kinds of clients to be, within what the other flags leave.
    pub(crate) fn visitors(&self, target: &TargetArgs) -> Result<Vec<Visitor>, Failure> {
        let mut visitors: Vec<Visitor> = self.clients.iter().flat_map(|ClientKinds(visitors)| visitors.clone()).collect();
        if visitors.is_empty() {
            visitors = Profile::default_visitors();
            if target.capabilities.is_some() {
                visitors.iter_mut().for_each(|visitor| visitor.profile = Profile::Own);
            }
        } else if target.capabilities.is_some() {
            return Err(Failure::bad_input("two-clients", "`--as` cannot be used with `--capabilities`"));
        }
        let pinned = pinned_era(target);
        visitors.retain(|visitor| pinned.is_none_or(|era| visitor.era == era));
        let mut once = Vec::new();
        visitors.into_iter().for_each(|visitor| {
            if !once.contains(&visitor) {
                once.push(visitor)
            }
        });
        match once.is_empty() {
            true => Err(Failure::bad_input("no-client", "no client kind is left: `--as` selects none of this era")),
            false => Ok(once),
        }
    }
}

/// The only era in which a server may be spoken to, by the flags for it.
pub(crate) fn pinned_era(target: &TargetArgs) -> Option<Era> {
    match target.era {
        EraChoice::Auto => target.protocol_version.as_deref().and_then(Era::of),
        EraChoice::Legacy => Some(Era::Legacy),
        EraChoice::Modern => Some(Era::Modern),
    }
}

/// Visits a server as each kind of client. Those of an era that it does not speak are left out, unless it speaks none.
pub(crate) fn take(
    resolved: &Resolved,
    visitors: &[Visitor],
    identity: Option<&str>,
    effort: CaptureExtent,
    watching: Watching,
) -> Result<Result<CapturedContracts, Exit>, Failure> {
    let recording = resolved.trace.as_deref().map(|path| Recording::create(path, resolved)).transpose()?;
    let shared = recording.as_ref().map(|recording| recorded_tap(resolved, Some(recording), watching));
    let outcome = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let visits = visit_all(resolved, visitors, identity, effort, || shared.clone().unwrap_or_else(|| fresh_tap(resolved, watching)));
        let reading = Status::new(watching).during("reading tools, prompts and resources", visits);
        interrupts.or_end(&resolved.options.guardian, reading).await.map_or_else(|exit| Ok(Err(exit)), |taken| taken.map(Ok))
    })?;
    if let (Some(recording), Some(tap)) = (recording, shared) {
        recording.finish(&tap)?;
    }
    outcome
}

/// The same for whoever shows elsewhere than in the terminal what goes on, and waits for the end: on a runtime of its own, without a trace.
#[cfg(feature = "ui")]
pub(crate) fn take_unseen(resolved: &Resolved, visitors: &[Visitor], effort: CaptureExtent) -> Result<CapturedContracts, Failure> {
    conversation::run(visit_all(resolved, visitors, None, effort, || fresh_tap(resolved, Watching::Off)))?
}

/// A warning about a contract that another session does not show: whoever locks it meets changes that nobody made.
/// `lock`: its text.
pub(crate) fn unstable(
    resolved: Resolved,
    taken: &Contracts,
    lock: &str,
    watching: Watching,
) -> Result<Result<Option<Diagnostic>, Exit>, Failure> {
    /// Two larger contracts are not to be in memory at the same time.
    const LARGEST: usize = 4 << 20;
    if lock.len() > LARGEST {
        output::talk("the contract is too large to be compared with that of another session\n");
        return Ok(Ok(None));
    }
    let Some((key, before)) = taken.first_key_value() else { return Ok(Ok(None)) };
    let Ok((visitor, identity)) = Visitor::of_key(key) else { return Ok(Ok(None)) };
    // The trace is that of the first visit.
    let resolved = Resolved { trace: None, ..resolved };
    let mut again = match take(&resolved, &[visitor], identity, CaptureExtent::ListsAgain, watching)? {
        Ok(again) => again.contracts,
        Err(exit) => return Ok(Err(exit)),
    };
    again.values_mut().for_each(|contract| contract.protocol_versions.clone_from(&before.protocol_versions));
    let first = BTreeMap::from([(key.clone(), before.clone())]);
    let side = |name, contracts| Side { name, contracts, extent: Extent::Whole };
    let found = contract::diff(side("one session", &first), side("the next one", &again));
    Ok(Ok(found.changes.first().map(|ContractChange { subject, reason, .. }| {
        let message = format!("the contract is not the same in each session: {subject}: {reason}");
        Diagnostic::warning("unstable-contract", message)
            .hint("sort what comes from a map or a set, and leave out what depends on the moment: `lock --verify` fails otherwise")
    })))
}

fn fresh_tap(resolved: &Resolved, watching: Watching) -> Tap {
    recorded_tap(resolved, None, watching)
}

fn recorded_tap(resolved: &Resolved, recording: Option<&Recording>, watching: Watching) -> Tap {
    Tap::with(resolved.tap, resolved.secrets.clone(), Recording::observer(recording, watching))
}

async fn visit_all(
    resolved: &Resolved,
    visitors: &[Visitor],
    identity: Option<&str>,
    effort: CaptureExtent,
    tap: impl Fn() -> Tap,
) -> Result<CapturedContracts, Failure> {
    let mut contracts = Contracts::new();
    let mut transport = None;
    let mut versions: BTreeMap<Era, Vec<String>> = BTreeMap::new();
    let mut refused: Vec<(Era, Failure)> = Vec::new();
    for visitor in visitors {
        let options = visitor.options(&resolved.options);
        let tap = &tap;
        let of_session = tap();
        let session = match open_session(&resolved.target, &options, &of_session).await {
            Ok(session) => session,
            Err(failure) => {
                let told = diagnosis::of_connect_failure(&failure, &of_session, resolved);
                if is_final(&failure) || (effort == CaptureExtent::Again && is_silence(&failure)) {
                    return Err(told);
                }
                refused.push((visitor.era, told));
                continue;
            }
        };
        let has_versions = !matches!(effort, CaptureExtent::FirstLists | CaptureExtent::ListsAgain);
        if has_versions && !versions.contains_key(&visitor.era) {
            let spoken = match resolved.options.protocol_version {
                Some(_) => vec![session.handshake().protocol_version.clone()],
                None => contract::versions(&resolved.target, &options, visitor.era, session.handshake(), tap)
                    .await
                    .map_err(|failure| diagnosis::of_connect_failure(&failure, &of_session, resolved))?,
            };
            versions.insert(visitor.era, spoken);
        }
        let spoken = versions.get(&visitor.era).map(Vec::as_slice).unwrap_or_default();
        let captured = captured(&session, spoken, resolved).await.map_err(|failure| failure.redacted(&of_session));
        // Told once: it is the same server for all kinds of clients.
        if contracts.is_empty() && captured.is_ok() && effort != CaptureExtent::ListsAgain {
            oddities::warn(&session);
        }
        let conforms = oddities::judge(&session, resolved.oddities);
        session.close_within(ShutdownTimeouts::default()).await;
        let Captured { contract, transport: kind } = captured?;
        conforms?;
        transport = Some(kind);
        contracts.insert(visitor.key(identity), contract);
        if matches!(effort, CaptureExtent::FirstLists | CaptureExtent::FirstWhole) {
            break;
        }
    }
    let spoken = |era: Era| contracts.keys().any(|key| Visitor::of_key(key).is_ok_and(|(visitor, _)| visitor.era == era));
    let is_failure = |(era, _): &(Era, Failure)| contracts.is_empty() || spoken(*era);
    // What the legacy era says is the better story: every server that is none of the modern one refuses that.
    match refused.into_iter().rev().find(is_failure) {
        Some((_, failure)) => Err(failure),
        None => Ok(CapturedContracts { contracts, transport: transport.expect("one session was open") }),
    }
}

/// Whether a failure says that there is no server, rather than that it does not speak an era.
fn is_final(failure: &ConnectFailure) -> bool {
    matches!(
        failure,
        ConnectFailure::Start(_) | ConnectFailure::Address(_) | ConnectFailure::Unauthorized { .. } | ConnectFailure::WrongPath { .. }
    )
}

/// Whether the server said nothing at all.
fn is_silence(failure: &ConnectFailure) -> bool {
    use ConnectFailure as F;
    match failure {
        F::Unanswered { failure, .. } => {
            matches!(failure, CallFailure::TimedOut { .. } | CallFailure::Unanswered(Unanswered::Unreachable(_)))
        }
        other => matches!(
            other,
            F::NotListening { .. } | F::NotLocated { .. } | F::AddressTaken { .. } | F::OtherListens { .. } | F::SseTimedOut { .. }
        ),
    }
}

async fn captured(session: &Session, versions: &[String], resolved: &Resolved) -> Result<Captured, Failure> {
    match contract::capture(session, versions, resolved.timeout).await {
        Ok(captured) => Ok(captured),
        Err(CaptureFailure::List { method, failure }) => {
            let scene = diagnosis::scene(session).await;
            Err(Failure::new(Exit::Failed, of_list_failure(&failure, method, &scene)))
        }
        Err(failure @ CaptureFailure::Unstable) => {
            let diagnostic = Diagnostic::error("unstable-lists", failure.to_string());
            Err(Failure::new(Exit::Failed, diagnostic.hint("inspect the list_changed notifications with --verbose")))
        }
    }
}

/// Reads a lock file, a trace, or a check.
pub(crate) fn read(path: &Path) -> Result<Saved, Failure> {
    if is_zip(path) {
        let unreadable = |error: TraceError| trace::unreadable(path, &error);
        let mut stream = CallStream::new(Trace::open(path).map_err(unreadable)?);
        let shown = shown_contract::of_stream(&mut stream, None).map_err(unreadable)?;
        return shown.map(|(lock, _)| Saved::Trace(lock.contracts)).map_err(|failure| {
            let failure = Failure::bad_input("bad-trace", format!("trace {} {failure}", path.display()));
            failure.hint("save one of `mcproof tools TARGET --trace FILE`")
        });
    }
    let text = mcproof_suite::bounds::read_text(path).map_err(|error| contract::unreadable(path.display(), &error));
    let saved = text.and_then(|text| contract::read_saved(path.display(), &text));
    saved.map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic))
}

/// Reads the text of a lock file.
pub(crate) fn read_lock(path: &Path, text: &str) -> Result<ContractLock, Failure> {
    contract::read_lock(path.display(), text).map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic))
}

/// Whether these words, taken as flags and their values, hold a credential.
pub(crate) fn hold_secret(words: &[String]) -> bool {
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    let flags = words.windows(2).filter(|two| two[0].starts_with('-')).map(|two| (two[0].as_str(), two[1].as_str()));
    pairs.chain(flags).any(|(name, value)| is_secret(name, value))
        || words.iter().any(|word| word.contains("://") && text_holds_secret(word))
}

/// Whether an address holds a credential.
pub(crate) fn text_holds_secret(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| url_holds_secret(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_credentials_are_known() {
        let check = |words: &[&str], expected| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(hold_secret(&words), expected, "{words:?}");
        };
        check(&["node", "server.js", "--port", "80"], false);
        check(&["server", "--api-key", "abc"], true);
        check(&["server", "--token=abc"], true);
        check(&["psql-server", "postgres://me:word@host/db"], true);
        check(&["server", "https://host/?access_token=x"], true);
        check(&["server", "https://host/?page=2"], false);
    }
}
