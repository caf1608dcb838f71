//! How long each part of a probe took, read from the transcript and from what the transport noted. Knows no methods.

use mcproof_client::{ConnectionTiming, Tap, Target};
use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, Phase, ProbePhase};
use std::time::Duration;

/// When what was over, since the transcript began.
#[derive(Default)]
pub(super) struct PhaseTimes {
    pub(super) handshake: Option<Duration>,
    /// Begin and end.
    pub(super) list: Option<(Duration, Duration)>,
    /// When there was nothing more to wait for, because something had failed.
    pub(super) failed: Option<Duration>,
    /// Of it, what was a wait for a response that never came, to a question that clients of the server do not ask.
    pub(super) lost: Duration,
}

/// The phases that were completed, and the time of all that happened.
pub(super) fn of(target: &Target, tap: &Tap, course: &PhaseTimes) -> (Vec<ProbePhase>, Duration) {
    tap.look(|frames| of_frames(target, &frames.collect::<Vec<_>>(), &tap.connections(), course))
}

fn of_frames(target: &Target, frames: &[&Frame], connections: &[ConnectionTiming], course: &PhaseTimes) -> (Vec<ProbePhase>, Duration) {
    let mut phases = Vec::new();
    let mut add = |phase, duration: Option<Duration>| phases.extend(duration.map(|duration| ProbePhase { phase, duration }));
    let (asked, answered) = match target {
        Target::Stdio(_) => {
            let spawned = at(frames, |frame| matches!(frame.body, FrameBody::Spawned { .. }));
            add(Phase::Spawn, spawned);
            let asked = spawned.map(|spawned| spawned + course.lost);
            let is_line = |frame: &Frame| frame.direction == Direction::FromServer && matches!(frame.body, FrameBody::Line { .. });
            (asked, at(frames, |frame| is_line(frame) && frame.at >= course.lost))
        }
        Target::Http { .. } => {
            let spawned = at(frames, |frame| matches!(frame.body, FrameBody::Spawned { .. }));
            add(Phase::Spawn, spawned);
            // Of those that came to nothing the one that came farthest.
            let dialed = connections.iter().find(|dialed| dialed.ready.is_some()).or_else(|| connections.iter().max_by_key(reached));
            add(Phase::Listen, between(spawned, dialed.map(|dialed| dialed.began)));
            add(Phase::Dns, dialed.and_then(|dialed| dialed.name));
            add(Phase::Connect, dialed.and_then(|dialed| dialed.tcp));
            add(Phase::Tunnel, dialed.and_then(|dialed| dialed.tunnel));
            add(Phase::Tls, dialed.and_then(|dialed| dialed.tls));
            let response = frames.iter().find_map(|frame| match frame.body {
                FrameBody::HttpResponse { exchange, .. } => Some((exchange, frame.at)),
                _ => None,
            });
            let asked = response.and_then(|(exchange, _)| asked_at(frames, exchange));
            (asked.max(dialed.and_then(|dialed| dialed.ready)), response.map(|(_, at)| at))
        }
    };
    add(Phase::FirstByte, between(asked, answered));
    add(Phase::Handshake, between(answered, course.handshake));
    add(Phase::List, course.list.map(|(began, ended)| ended.saturating_sub(began)));
    let end = course.failed.or(course.list.map(|(_, ended)| ended)).or(course.handshake);
    (phases, end.unwrap_or_default().saturating_sub(course.lost))
}

/// Where the rest of the conversation was over long before.
pub(super) fn of_list(course: &PhaseTimes) -> (Vec<ProbePhase>, Duration) {
    let duration = course.list.map(|(began, ended)| ended.saturating_sub(began));
    (duration.map(|duration| ProbePhase { phase: Phase::List, duration }).into_iter().collect(), duration.unwrap_or_default())
}

fn reached(dialed: &&ConnectionTiming) -> usize {
    [dialed.name, dialed.tcp, dialed.tunnel, dialed.tls].iter().flatten().count()
}

fn at(frames: &[&Frame], is_it: impl Fn(&Frame) -> bool) -> Option<Duration> {
    frames.iter().find(|frame| is_it(frame)).map(|frame| frame.at)
}

/// When the request of an exchange was written down, which is before it had a connection.
fn asked_at(frames: &[&Frame], wanted: ExchangeId) -> Option<Duration> {
    at(frames, |frame| matches!(frame.body, FrameBody::HttpRequest { exchange, .. } if exchange == wanted))
}

fn between(from: Option<Duration>, to: Option<Duration>) -> Option<Duration> {
    Some(to?.saturating_sub(from?))
}
