//! Judges recorded traffic of a client that is not ours by the rules of `check`. What cannot be judged is never a pass.

use crate::exit::Exit;
use crate::{output, settings};
use mcproof_client::transport::{DELAY_NOTE, FAULT_NOTE};
use mcproof_record::{Conversation, Diagnostic, Direction, Finding, Frame, FrameBody, FrameId, Judged, Opened, Severity, Transcript};
use mcproof_relay::clients::frames_of_clients;
use mcproof_relay::proxy::{CLIENT_LEFT, UNREAD_NOTE};
use mcproof_report::diagnostic;
use mcproof_rules::{self as rules, Strictness};
use mcproof_trace::SessionKey;
use mcproof_trace::calls::CallTracker;

/// From which severity on a finding fails the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Never,
}

/// Findings that are printed.
const MOST_SHOWN: usize = 20;

pub(super) fn judge(transcripts: &[Transcript], transport: &str, fail_on: FailOn) -> Exit {
    let inconclusive = |why: &str| {
        tell(&Diagnostic::error("inconclusive", format!("the traffic was not judged: {why}")));
        Exit::Failed
    };
    if transcripts.iter().any(|transcript| transcript.dropped > 0) {
        return inconclusive("it exceeds --max-transcript, so its beginning is missing");
    }
    let unread =
        |frame: &Frame| if let FrameBody::Note { text } = &frame.body { text.strip_prefix(UNREAD_NOTE).map(str::to_owned) } else { None };
    if let Some(why) = transcripts.iter().flat_map(|transcript| &transcript.frames).find_map(unread) {
        return inconclusive(&format!("the content of a body could not be read: {why}"));
    }
    let conversations: Vec<Conversation> = transcripts
        .iter()
        .flat_map(|transcript| frames_of_clients(&transcript.frames))
        .filter_map(|frames| conversation(frames, transport))
        .collect();
    if conversations.is_empty() {
        return inconclusive("no client completed a handshake");
    }
    let all = rules::select(&[], &[]).unwrap_or_default();
    let first_faults: Vec<Option<FrameId>> = conversations.iter().map(first_fault).collect();
    let report = rules::report("proxy".into(), &all, conversations, Strictness::Tolerant);
    let mut failed = false;
    let mut shown = 0;
    let mut count = 0;
    let mut left_out = 0;
    // Whatever a client sees after a fault may follow from it.
    let may_follow = |finding: &Finding| {
        let fault = first_faults.get(finding.conversation).copied().flatten();
        fault.is_some_and(|fault| finding.frames.iter().max().is_none_or(|last| *last > fault))
    };
    for result in &report.rules {
        let Judged::Broken { findings } = &result.judged else { continue };
        for finding in findings.iter().filter(|finding| finding.severity > Severity::Note) {
            if may_follow(finding) {
                left_out += 1;
                continue;
            }
            failed |= finding.severity >= if fail_on == FailOn::Error { Severity::Error } else { Severity::Warning };
            count += 1;
            if shown < MOST_SHOWN {
                shown += 1;
                let new = if finding.severity == Severity::Error { Diagnostic::error } else { Diagnostic::warning };
                tell(
                    &new(&result.rule, finding.message.clone()).hint(format!("{}; see `mcproof explain {}`", finding.remedy, result.rule)),
                );
            }
        }
    }
    let is_judged = |judged: &Judged| match judged {
        Judged::Pass => true,
        Judged::Broken { findings } => !findings.iter().all(may_follow),
        _ => false,
    };
    let judged = report.rules.iter().filter(|result| is_judged(&result.judged)).count();
    let clients = report.conversations.len();
    let plural = |count: usize, noun: &str| if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") };
    let (rules, sessions, found) = (plural(judged, "rule"), plural(clients, "session"), plural(count, "finding"));
    output::talk(&format!("mcproof proxy: {rules} judged over {sessions}: {found}\n"));
    if left_out > 0 {
        let left_out = plural(left_out, "finding");
        output::talk(&format!("mcproof proxy: {left_out} left out, which may follow from the injected faults\n"));
    }
    if judged == 0 {
        return inconclusive("no rule applies to it");
    }
    if failed { Exit::Failed } else { Exit::Passed }
}

fn tell(diagnostic: &Diagnostic) {
    output::talk(&diagnostic::render(diagnostic, &settings::style()));
}

/// Where the first fault was injected that does more than delay something.
fn first_fault(conversation: &Conversation) -> Option<FrameId> {
    let is_fault = |frame: &&Frame| {
        frame.direction == Direction::Local
            && matches!(&frame.body, FrameBody::Note { text } if text.starts_with(FAULT_NOTE) && !text.starts_with(DELAY_NOTE))
    };
    conversation.transcript.frames.iter().find(is_fault).map(|frame| frame.id)
}

/// The conversation of one client; none if it has no handshake.
fn conversation(mut frames: Vec<Frame>, transport: &str) -> Option<Conversation> {
    // A client may leave whenever it wants.
    frames.retain(|frame| !matches!(&frame.body, FrameBody::HttpEnd { error: Some(error), .. } if error == CLIENT_LEFT));
    let mut tracker = CallTracker::new();
    frames.iter().for_each(|frame| drop(tracker.feed(SessionKey(1), frame)));
    let facts = tracker.facts(SessionKey(1))?.clone();
    let is_sse = frames.iter().any(|frame| matches!(&frame.body, FrameBody::SseEvent { event: Some(name), .. } if name == "endpoint"));
    Some(Conversation {
        name: "proxy".into(),
        transport: if is_sse { "sse".into() } else { transport.to_owned() },
        revision: facts.revision?,
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript: Transcript { frames, dropped: 0 },
    })
}
