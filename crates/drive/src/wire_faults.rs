//! What the server of a session sent and should not have: what the client noticed, and what breaks the rules that the traffic of suites is
//! judged by. The list only grows, so that a driver can tell what is new. Sends nothing.

use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{Fault, Tap};
use mcproof_protocol::methods;
use mcproof_record::{Conversation, Diagnostic, Direction, ExchangeId, Finding, Frame, FrameBody, FrameId, Opened, Transcript};
use mcproof_rules::{self as rules, Tester, TrafficScope, UnknownRule};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Told at once; the rest is as in `check`.
const MOST: usize = 5;
/// A session is judged as a whole while it has no more frames: each judgment looks through all of them.
const SHORT: u64 = 500;
/// Frames that are shown of each.
const SHOWN: usize = 8;

/// The faults of one session.
pub(crate) struct WireFaults {
    /// Rules that it is not judged by, as the driver names them.
    skipped: Vec<String>,
    found: RefCell<FoundFaults>,
}

#[derive(Default)]
struct FoundFaults {
    told: Vec<Diagnostic>,
    /// Those of the client that are among them.
    known: Vec<Fault>,
    /// Its handshake, once it is open.
    opening: Vec<Frame>,
    /// The number of the first frame that no rule has judged.
    since: u64,
    /// Something was sent as it stands since then, as no client does that keeps to the specification.
    is_raw: bool,
    /// The same at any time.
    was_raw: bool,
    /// The transcript was not kept whole.
    is_incomplete: bool,
}

/// How a session was spoken.
#[derive(Clone)]
pub(crate) struct Spoken {
    pub(crate) name: String,
    pub(crate) transport: String,
    pub(crate) revision: String,
}

/// Until when a session is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedUntil {
    Now,
    /// It has ended. The client that could tell of faults is gone.
    ItsEnd,
}

impl WireFaults {
    /// # Errors
    /// No rule has one of these names.
    pub(crate) fn new(skipped: Vec<String>) -> Result<Self, UnknownRule> {
        let names: Vec<&str> = skipped.iter().map(String::as_str).collect();
        rules::of_traffic(true, &names)?;
        Ok(Self { skipped, found: RefCell::default() })
    }

    /// The session is open.
    pub(crate) fn opened(&self, tap: &Tap) {
        self.found.borrow_mut().opening = tap.transcript().frames;
    }

    /// Something is sent as it stands.
    pub(crate) fn sends_raw(&self) {
        let mut found = self.found.borrow_mut();
        found.is_raw = true;
        found.was_raw = true;
    }

    /// Adds what a request has shown, unless the rule that says the same is left out.
    pub(crate) fn notice(&self, rule: &str, diagnostic: Diagnostic) {
        if rules::select(&[rule.to_owned()], &self.skipped).is_ok_and(|left| !left.is_empty()) {
            self.found.borrow_mut().told.push(diagnostic);
        }
    }

    /// All that is known so far.
    pub(crate) fn told(&self) -> Vec<Diagnostic> {
        self.found.borrow().told.clone()
    }

    /// Adds what is new: `faults` are all that the client noticed. That rules could not be applied is one as well, once.
    pub(crate) fn judge(&self, tap: &Tap, spoken: &Spoken, faults: Vec<Fault>, until: JudgedUntil) {
        let mut found = self.found.borrow_mut();
        let new: Vec<Fault> = faults.into_iter().filter(|fault| !found.known.contains(fault)).collect();
        if !new.is_empty() {
            let transcript = tap.transcript();
            let told = new.iter().map(|fault| diagnosis::of_fault(fault, &transcript, Audience::Driver));
            found.told.extend(told.map(|diagnostic| diagnostic.map_text(|text| tap.redacted(text))));
            found.known.extend(new);
        }
        let (since, mark) = (FrameId(found.since), tap.mark());
        if mark == since {
            return;
        }
        found.since = mark.0;
        if std::mem::take(&mut found.is_raw) {
            return;
        }
        let newest = tap.transcript_since(since);
        if newest.dropped == 0 && !newest.frames.iter().any(is_message) {
            return;
        }
        let whole = (mark.0 <= SHORT && !found.was_raw).then(|| tap.transcript_since(FrameId(0))).filter(|whole| whole.dropped == 0);
        let is_whole = whole.is_some();
        let Transcript { frames, dropped } = whole.unwrap_or(newest);
        if dropped > 0 {
            if !std::mem::replace(&mut found.is_incomplete, true) {
                found.told.push(not_judged(dropped));
            }
            return;
        }
        // Of the whole, what was found before is found again, and hides what is like it: that is seen in the newest part.
        let part = (since > FrameId(0)).then(|| {
            let lists = if is_whole { of_lists(&frames) } else { BTreeSet::new() };
            let earlier = found.opening.iter().filter(|frame| frame.id < since);
            let frames = earlier.chain(frames.iter().filter(|frame| frame.id >= since || lists.contains(&frame.id))).cloned().collect();
            conversation(spoken, Transcript { frames, dropped })
        });
        let whole = (is_whole || part.is_none()).then(|| conversation(spoken, Transcript { frames, dropped }));
        let is_over = until == JudgedUntil::ItsEnd;
        // Until its end, the client has told what it noticed itself.
        let told: BTreeSet<String> = match until {
            JudgedUntil::Now => found.told.iter().map(|diagnostic| diagnostic.code.clone()).collect(),
            JudgedUntil::ItsEnd => BTreeSet::new(),
        };
        let skipped: Vec<&str> = self.skipped.iter().map(String::as_str).collect();
        let judge = |conversation: &Conversation, is_whole: bool| {
            let scope = TrafficScope { is_whole, is_over, since, skipped: &skipped, told: &told, tester: Tester::Library };
            let errors = rules::errors_of_traffic(conversation, &scope).expect("unknown rules were refused");
            let shown = |(rule, finding): (String, Finding)| (finding.frames.is_empty(), shown(rule, finding, &conversation.transcript));
            errors.into_iter().map(shown).collect::<Vec<(bool, Diagnostic)>>()
        };
        let mut errors = whole.map(|whole| judge(&whole, is_whole)).unwrap_or_default();
        for (is_without_frames, error) in part.map(|part| judge(&part, false)).into_iter().flatten() {
            if errors.iter().all(|(_, known)| known.code != error.code) {
                errors.push((is_without_frames, error));
            }
        }
        // What no frame shows is found each time.
        let is_known = |(is_without_frames, error): &(bool, Diagnostic)| {
            *is_without_frames && found.told.iter().any(|known| known.code == error.code && known.message == error.message)
        };
        let errors: Vec<Diagnostic> = errors.into_iter().filter(|error| !is_known(error)).take(MOST).map(|(_, error)| error).collect();
        found.told.extend(errors.into_iter().map(|diagnostic| diagnostic.map_text(|text| tap.redacted(text))));
    }
}

/// That rules could not be applied to a part of a session.
fn not_judged(dropped: u64) -> Diagnostic {
    let message = format!("not judged: {dropped} frames of this session were not kept, because they exceed the transcript limit");
    let hint = "use several clients, each for a part of the traffic, or the client's option `allow_faults` (Node.js: `allowFaults`)";
    Diagnostic::error("not-judged", message).hint(hint)
}

/// Whether a frame brings something of the server.
fn is_message(frame: &Frame) -> bool {
    match &frame.body {
        FrameBody::Line { .. } | FrameBody::SseEvent { .. } => frame.direction == Direction::FromServer,
        FrameBody::HttpBody { bytes, .. } => !bytes.as_bytes().is_empty(),
        _ => false,
    }
}

/// The frames of lists of tools, which tell what results have to be.
fn of_lists(frames: &[Frame]) -> BTreeSet<FrameId> {
    let message = |frame: &Frame| match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } => serde_json::from_slice::<Value>(bytes.as_bytes()).ok(),
        _ => None,
    };
    let read: Vec<(&Frame, Option<Value>)> = frames.iter().map(|frame| (frame, message(frame))).collect();
    let is_request = |message: &Value| message["method"] == methods::TOOLS_LIST;
    let requests = || read.iter().filter_map(|(frame, message)| Some((frame, message.as_ref().filter(|message| is_request(message))?)));
    let ids: Vec<&Value> = requests().map(|(_, message)| &message["id"]).collect();
    let exchanges: Vec<ExchangeId> = requests().filter_map(|(frame, _)| frame.body.exchange()).collect();
    let is_of_list = |(frame, message): &&(&Frame, Option<Value>)| match (frame.body.exchange(), message) {
        (Some(exchange), _) => exchanges.contains(&exchange),
        (None, Some(message)) => is_request(message) || message.get("method").is_none() && ids.contains(&&message["id"]),
        (None, None) => false,
    };
    read.iter().filter(is_of_list).map(|(frame, _)| frame.id).collect()
}

fn shown(rule: String, finding: Finding, transcript: &Transcript) -> Diagnostic {
    let Finding { message, remedy, frames, .. } = finding;
    let hint =
        format!("{remedy}; see `mcproof explain {rule}`, or leave it out with the client's option `skip_rules` (Node.js: `skipRules`)");
    Diagnostic::error(rule, message).hint(hint).evidence(transcript.around(frames.into_iter().max(), SHOWN, 0))
}

fn conversation(spoken: &Spoken, transcript: Transcript) -> Conversation {
    let Spoken { name, transport, revision } = spoken.clone();
    Conversation { name, transport, revision, opened: Opened::Yes, probes: Vec::new(), ending: None, sdks: Vec::new(), transcript }
}
