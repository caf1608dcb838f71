//! One start of the server as a desktop host does it, which leaves a mark. What a host passes to servers is known by whoever asks for it.

use super::CheckOptions;
use super::explorer::Explorer;
use mcproof_analysis::diagnosis::sentence;
use mcproof_analysis::probes::HOST_START;
use mcproof_client::{Launch, Target};
use mcproof_protocol::{Era, EraChoice, Revision};
use mcproof_record::{Conversation, FrameId, Opened, ProbeOutcome, Probed, Transcript};

/// The start of a server in the surroundings of a desktop host.
#[derive(Clone, Debug)]
pub struct HostStart {
    /// What a host starts, or why it finds nothing to start: a lowercase fragment without a final dot.
    pub launch: Result<Launch, String>,
    /// What is probably wrong if it does not start, likewise.
    pub hint: Option<String>,
    /// The variables of this environment that a host does not pass to servers.
    pub left_out: Vec<String>,
}

/// Lines of stderr that are searched for the names of variables.
const SEARCHED: usize = 40;

/// Marks one conversation with what came of the start. A server that does not start here either tells nothing of hosts.
pub(super) async fn mark(check_options: &CheckOptions, conversations: &mut [Conversation]) {
    let Some(start) = &check_options.host_start else { return };
    let Some(conversation) = conversations.iter_mut().find(|conversation| conversation.opened == Opened::Yes) else { return };
    let era = match Revision::at(&conversation.revision).era() {
        Era::Legacy => EraChoice::Legacy,
        Era::Modern => EraChoice::Modern,
    };
    let (subject, outcome) = match &start.launch {
        Err(why) => (Some(why.clone()), ProbeOutcome::Gone),
        Ok(launch) => try_to_start(check_options, start, launch, era).await,
    };
    // How it was started here; what came last is of this start, not of that.
    let at = conversation.transcript.frames.first().map_or(FrameId(0), |frame| frame.id);
    conversation.probes.push(Probed { probe: HOST_START.into(), subject, first: at, end: at, outcome });
}

async fn try_to_start(check_options: &CheckOptions, start: &HostStart, launch: &Launch, era: EraChoice) -> (Option<String>, ProbeOutcome) {
    let as_host = CheckOptions { target: Target::Stdio(launch.clone()), ..check_options.clone() };
    match Explorer::open_in(&as_host, "desktop host", era).await {
        Ok(explorer) => {
            explorer.with_brief_shutdown().end().await;
            (None, ProbeOutcome::Done)
        }
        Err(_) if check_options.budget.left().is_zero() => (None, ProbeOutcome::Silent),
        Err(failed) => {
            let (conversation, failure) = *failed;
            let mut why = format!(
                "in the environment of a desktop host, the server does not start: {}",
                sentence(&failure, &conversation.transcript)
            );
            for more in start.hint.clone().into_iter().chain(needed(&conversation.transcript, &start.left_out)) {
                why = format!("{why}; {more}");
            }
            (Some(why), ProbeOutcome::Gone)
        }
    }
}

/// Which of the variables that a host does not pass the server names in its last words, or else these words.
fn needed(transcript: &Transcript, left_out: &[String]) -> Option<String> {
    let lines = transcript.tail(0, SEARCHED).stderr;
    let is_named = |name: &&String| {
        lines.iter().any(|line| line.split(|at: char| !(at.is_ascii_alphanumeric() || at == '_')).any(|word| word == name.as_str()))
    };
    let named: Vec<String> = left_out.iter().filter(is_named).map(|name| format!("`{name}`")).collect();
    if !named.is_empty() {
        return Some(format!("its stderr names {}, which hosts do not pass to servers", named.join(" and ")));
    }
    lines.iter().rev().find(|line| !line.trim().is_empty()).map(|line| format!("its stderr ends with: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Direction, Frame, FrameBody};
    use std::time::Duration;

    #[test]
    fn variables_that_stderr_names_are_told() {
        let said = |text: &str| {
            let body = FrameBody::Stderr { bytes: text.into() };
            let frame = Frame { id: FrameId(0), at: Duration::ZERO, direction: Direction::FromServer, body };
            needed(&Transcript { frames: vec![frame], dropped: 0 }, &["SHOP_KEY".to_owned(), "EDITOR".to_owned()])
        };
        assert_eq!(said("set SHOP_KEY=…"), Some("its stderr names `SHOP_KEY`, which hosts do not pass to servers".to_owned()));
        assert_eq!(said("set MY_SHOP_KEY"), Some("its stderr ends with: set MY_SHOP_KEY".to_owned()));
        assert_eq!(said(" "), None);
    }
}
