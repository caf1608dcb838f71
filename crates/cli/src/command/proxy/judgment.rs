//! Judges recorded traffic of a client that is not ours by the rules of `check`. What cannot be judged is never a pass.

use super::live_judgment::Told;
use crate::exit::Exit;
use crate::{output, settings};
use mcproof_analysis::read_json;
use mcproof_analysis::stdout_lines::is_blank;
use mcproof_analysis::wording::excerpt;
use mcproof_client::transport::{DELAY_NOTE, FAULT_NOTE};
use mcproof_record::clients::frames_of_clients;
use mcproof_record::{
    Conversation, Diagnostic, Direction, Finding, Frame, FrameBody, FrameId, Judged, Opened, Severity, Transcript, counted,
};
use mcproof_relay::proxy::{CLIENT_LEFT, UNREAD_NOTE};
use mcproof_report::diagnostic;
use mcproof_rules::{self as rules, Strictness};
use mcproof_trace::SessionKey;
use mcproof_trace::calls::{Call, CallKind, CallStatus, CallTracker, Update};
use std::time::Duration;

/// From which severity on a finding fails the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Never,
}

/// How long a client waits for a response that may be missing when it leaves.
const PATIENCE: Duration = Duration::from_secs(1);

/// Findings that are printed.
const MOST_SHOWN: usize = 20;
/// Lines on stdout that are printed where there is no session.
const MOST_LINES: usize = 5;

/// `told` was printed when it happened.
pub(super) fn judge(transcripts: &[Transcript], transport: &str, fail_on: FailOn, told: &Told) -> Exit {
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
    let clients: Vec<Client> = transcripts
        .iter()
        .flat_map(|transcript| frames_of_clients(&transcript.frames))
        .map(|frames| Client::of(frames, transport))
        .collect();
    let unjudged: Vec<String> = clients.iter().filter_map(Client::unjudged).collect();
    let conversations: Vec<Conversation> = clients.into_iter().filter_map(|client| client.conversation).collect();
    if conversations.is_empty() {
        transcripts.iter().flat_map(|transcript| &transcript.frames).filter_map(stray_line).take(MOST_LINES).for_each(|line| tell(&line));
        return inconclusive("no client completed a handshake");
    }
    let all = rules::select(&[], &[]).unwrap_or_default();
    let first_faults: Vec<Option<FrameId>> =
        conversations.iter().map(|conversation| first_fault(&conversation.transcript.frames)).collect();
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
            if shown < MOST_SHOWN && !told.contains(&(result.rule.clone(), finding.message.clone())) {
                shown += 1;
                tell_finding(&result.rule, finding);
            }
        }
    }
    let is_judged = |judged: &Judged| match judged {
        Judged::Pass => true,
        Judged::Broken { findings } => !findings.iter().all(may_follow),
        _ => false,
    };
    let judged = report.rules.iter().filter(|result| is_judged(&result.judged)).count();
    let (rules, sessions, found) = (counted(judged, "rule"), counted(report.conversations.len(), "session"), counted(count, "finding"));
    output::talk(&format!("mcproof proxy: {rules} judged over {sessions}: {found}\n"));
    if left_out > 0 {
        let left_out = counted(left_out, "finding");
        output::talk(&format!("mcproof proxy: {left_out} left out, which may follow from the injected faults\n"));
    }
    if judged == 0 {
        return inconclusive("no rule applies to it");
    }
    if let Some(first) = unjudged.first() {
        let more = unjudged.len() - 1;
        let also = if more == 0 { String::new() } else { format!("; and {} more", counted(more, "case")) };
        return inconclusive(&format!("{first}{also}"));
    }
    if failed { Exit::Failed } else { Exit::Passed }
}

/// Prints a finding.
pub(super) fn tell_finding(rule: &str, finding: &Finding) {
    let new = if finding.severity == Severity::Error { Diagnostic::error } else { Diagnostic::warning };
    tell(&new(rule, finding.message.clone()).hint(format!("{}; see `mcproof explain {rule}`", finding.remedy)));
}

/// What a server wrote to stdout in the place of a message: of a server that greets there, and then waits, nothing else is known.
fn stray_line(frame: &Frame) -> Option<Diagnostic> {
    let FrameBody::Line { bytes, .. } = &frame.body else { return None };
    let is_stray = frame.direction == Direction::FromServer && !is_blank(bytes.as_bytes()) && read_json(bytes.as_bytes()).is_err();
    let message = || format!("a line on stdout is not a message: `{}`", excerpt(bytes.as_bytes()));
    is_stray.then(|| Diagnostic::error("stdio-only-messages-on-stdout", message()).hint("write logs to stderr"))
}

fn tell(diagnostic: &Diagnostic) {
    output::talk(&diagnostic::render(diagnostic, &settings::style()));
}

/// Where the first fault was injected that does more than delay something.
fn first_fault(frames: &[Frame]) -> Option<FrameId> {
    let is_fault = |frame: &&Frame| {
        frame.direction == Direction::Local
            && matches!(&frame.body, FrameBody::Note { text } if text.starts_with(FAULT_NOTE) && !text.starts_with(DELAY_NOTE))
    };
    frames.iter().find(is_fault).map(|frame| frame.id)
}

/// One client, as the server saw it.
struct Client {
    /// Requests that were served.
    served: Vec<String>,
    /// Requests that the client waited for in vain, with how and how long.
    missing: Vec<String>,
    /// None without a handshake.
    conversation: Option<Conversation>,
}

impl Client {
    fn of(mut frames: Vec<Frame>, transport: &str) -> Self {
        let mut tracker = CallTracker::new();
        let mut updates: Vec<Update> = frames.iter().flat_map(|frame| tracker.feed(SessionKey(1), frame)).collect();
        updates.extend(tracker.finish());
        let ended = updates.into_iter().filter_map(|update| if let Update::Ended(call) = update { Some(*call) } else { None });
        let calls: Vec<Call> = ended.filter(|call| call.kind == CallKind::Request && call.direction == Direction::ToServer).collect();
        let is_served = |call: &&Call| matches!(call.status, CallStatus::Ok | CallStatus::ToolError);
        let served = calls.iter().filter(is_served).map(title).collect();
        let facts = tracker.facts(SessionKey(1));
        let is_modern = facts.and_then(|facts| facts.era()) == Some("modern");
        let moments = Moments::of(&frames, is_modern);
        let missing = calls.iter().filter_map(|call| moments.without_response(call)).collect();
        // A client may leave whenever it wants.
        frames.retain(|frame| !matches!(&frame.body, FrameBody::HttpEnd { error: Some(error), .. } if error == CLIENT_LEFT));
        let is_sse = frames.iter().any(|frame| matches!(&frame.body, FrameBody::SseEvent { event: Some(name), .. } if name == "endpoint"));
        let revision = facts.and_then(|facts| facts.revision.clone());
        let conversation = revision.map(|revision| Conversation {
            name: "proxy".into(),
            transport: if is_sse { "sse".into() } else { transport.to_owned() },
            revision,
            opened: Opened::Yes,
            probes: Vec::new(),
            ending: None,
            sdks: Vec::new(),
            transcript: Transcript { frames, dropped: 0 },
        });
        Self { served, missing, conversation }
    }

    /// What the rules know nothing of.
    fn unjudged(&self) -> Option<String> {
        match &self.conversation {
            Some(_) => self.missing.first().cloned(),
            None => self.served.first().map(|served| format!("a client without a handshake was served ({served})")),
        }
    }
}

/// What decides how long a client has waited.
struct Moments<'a> {
    /// In the order of their ids.
    frames: &'a [Frame],
    is_modern: bool,
    fault: Option<FrameId>,
    /// When the client closed the stdin of the server.
    left: Option<Duration>,
    ended: Option<Duration>,
}

impl<'a> Moments<'a> {
    fn of(frames: &'a [Frame], is_modern: bool) -> Self {
        let time_of = |is_it: fn(&FrameBody) -> bool| frames.iter().find(|frame| is_it(&frame.body)).map(|frame| frame.at);
        let left = time_of(|body| matches!(body, FrameBody::Closed { pipe } if pipe == "stdin"));
        let ended = time_of(|body| matches!(body, FrameBody::Exited { .. }));
        Self { frames, is_modern, fault: first_fault(frames), left, ended }
    }

    /// What is said of a request without a response, unless the client left at once, or canceled it, or a fault came before.
    fn without_response(&self, call: &Call) -> Option<String> {
        // A subscription has its response when it ends.
        if call.status != CallStatus::NoResponse || call.method == "subscriptions/listen" {
            return None;
        }
        if self.fault.is_some_and(|fault| call.frames.first().is_none_or(|first| *first > fault)) {
            return None;
        }
        let has_left = call.message.as_deref() == Some(CLIENT_LEFT);
        if has_left && self.is_modern {
            // Since 2026-07-28 this is how a request is canceled over HTTP.
            return None;
        }
        let left = if has_left { call.frames.last().and_then(|id| self.time_of(*id)) } else { self.left };
        let has_ended = self.ended.is_some_and(|ended| left.is_none_or(|left| ended < left));
        let until = [call.end, left, self.ended].into_iter().flatten().min()?;
        let waited = until.saturating_sub(call.start);
        let is_missing = has_ended || waited >= PATIENCE;
        let why = if has_ended { ", because the server ended" } else { "" };
        is_missing.then(|| format!("{} has no response after {:.1} s{why}", title(call), waited.as_secs_f64()))
    }

    fn time_of(&self, id: FrameId) -> Option<Duration> {
        self.frames.binary_search_by_key(&id, |frame| frame.id).ok().map(|at| self.frames[at].at)
    }
}

fn title(call: &Call) -> String {
    call.target.as_ref().map_or_else(|| call.method.clone(), |target| format!("{} {target}", call.method))
}
