//! What earlier versions of mcproof wrote with `--trace` and `--reporter json`, as the lines of a trace.

use super::TraceError;
use super::lines::Lines;
use crate::line::{Mark, MarkBody, Omitted, TraceLine, TracedFrame};
use crate::manifest::{Manifest, SessionInfo, SessionKey, TRACE_FORMAT};
use mcproof_record::{CasePlan, CheckReport, Event, FORMAT_VERSION, Frame, FrameBody, ProbeReport, Transcript};
use serde_json::Value;
use std::time::Duration;

/// Documents and events are read as a whole.
const LARGEST_DOCUMENT: u64 = 512 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Older {
    /// One JSON document: a transcript, a check, or the evidence of an incident.
    Document,
    /// The events of a test run, one a line.
    Events,
}

/// What a text with this first line is, unless it is a trace of lines.
pub(super) fn kind_of(first: &[u8]) -> Option<Older> {
    let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(first) else { return Some(Older::Document) };
    match members.keys().next().map(String::as_str) {
        Some("trace" | "session" | "frame" | "mark" | "attachment" | "omitted" | "end") if members.len() == 1 => None,
        _ if members.contains_key("event") => Some(Older::Events),
        _ => Some(Older::Document),
    }
}

pub(super) fn read(kind: Older, first: &[u8], rest: Lines) -> Result<(Manifest, Vec<TraceLine>), TraceError> {
    let mut gathered = Gathered::default();
    match kind {
        Older::Document => gathered.document(&rest.rest(first.to_vec(), LARGEST_DOCUMENT)?)?,
        Older::Events => gathered.events(first, rest)?,
    }
    Ok((Manifest { format: TRACE_FORMAT, mcproof: "unknown".into(), ..Manifest::default() }, gathered.lines))
}

#[derive(Default)]
struct Gathered {
    lines: Vec<TraceLine>,
    sessions: u32,
}

impl Gathered {
    fn document(&mut self, text: &[u8]) -> Result<(), TraceError> {
        let document: Value = serde_json::from_slice(text).map_err(|error| {
            TraceError::NotATrace(match text.first() {
                Some(b'{') => format!("invalid JSON: {error}"),
                _ => "neither a zip nor JSON".into(),
            })
        })?;
        let version = document.get("version").or_else(|| document.pointer("/report/version")).and_then(Value::as_u64);
        if let Some(found) = version.filter(|found| *found > u64::from(FORMAT_VERSION)) {
            return Err(TraceError::TooNew { found });
        }
        let wrong = |error: serde_json::Error| TraceError::NotATrace(error.to_string());
        if document.get("conversations").is_some() {
            self.check(serde_json::from_value(document).map_err(wrong)?);
        } else if let Some(transcript) = document.get("transcript") {
            let report = document.get("report").filter(|report| !report.is_null());
            let report: Option<ProbeReport> = report.map(|report| serde_json::from_value(report.clone())).transpose().map_err(wrong)?;
            let server = report.map_or_else(String::new, |report| report.target);
            self.session(SessionInfo { server, ..SessionInfo::default() }, serde_json::from_value(transcript.clone()).map_err(wrong)?);
        } else if document.get("frames").is_some() {
            self.session(SessionInfo::default(), serde_json::from_value(document).map_err(wrong)?);
        } else {
            return Err(TraceError::NotATrace("JSON without frames".into()));
        }
        Ok(())
    }

    fn check(&mut self, report: CheckReport) {
        let target = report.target.clone();
        let found: Vec<_> = report.findings().map(|(rule, finding)| (rule.rule.clone(), finding.clone())).collect();
        for (place, talk) in report.conversations.into_iter().enumerate() {
            let info = SessionInfo {
                server: target.clone(),
                transport: talk.transport,
                revision: Some(talk.revision),
                client: Some(talk.name),
                ..SessionInfo::default()
            };
            let times: Vec<_> = talk.transcript.frames.iter().map(|frame| (frame.id, frame.at)).collect();
            let session = self.session(info, talk.transcript);
            for (rule, finding) in found.iter().filter(|(_, finding)| finding.conversation == place) {
                let frame = finding.frames.first().copied();
                let at = times.iter().find(|(id, _)| Some(*id) == frame).map_or(Duration::ZERO, |(_, at)| *at);
                let body = MarkBody::Finding { rule: rule.clone(), severity: finding.severity, message: finding.message.clone(), frame };
                self.lines.push(TraceLine::Mark(Mark { session, at, body }));
            }
        }
    }

    fn events(&mut self, first: &[u8], mut rest: Lines) -> Result<(), TraceError> {
        let mut cases: Vec<CasePlan> = Vec::new();
        let mut next = Some(first.to_vec());
        while let Some(text) = next {
            match serde_json::from_slice(&text) {
                Ok(Event::RunStarted { version, .. }) if version > FORMAT_VERSION => {
                    return Err(TraceError::TooNew { found: u64::from(version) });
                }
                Ok(Event::RunStarted { cases: planned, .. }) => cases = planned,
                Ok(Event::CaseFinished(outcome)) => {
                    let case = cases.iter().find(|case| case.id == outcome.id);
                    for held in outcome.transcripts {
                        let proof = outcome.proof.iter().find(|proof| proof.server == held.server);
                        let info = SessionInfo {
                            server: held.server,
                            transport: case.map_or_else(String::new, |case| case.transport.clone()),
                            era: proof.map(|proof| proof.era.clone()),
                            revision: proof.map(|proof| proof.protocol_version.clone()),
                            test: case.map(|case| case.name.clone()),
                            ..SessionInfo::default()
                        };
                        self.session(info, held.transcript);
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(TraceError::NotATrace(error.to_string())),
            }
            next = rest.next_text()?;
            if rest.unpacked() > LARGEST_DOCUMENT {
                return Err(TraceError::TooLarge { most: LARGEST_DOCUMENT, unit: "bytes" });
            }
        }
        Ok(())
    }

    fn session(&mut self, info: SessionInfo, transcript: Transcript) -> SessionKey {
        self.sessions += 1;
        let key = SessionKey(self.sessions);
        let transport = if info.transport.is_empty() { transport_of(&transcript.frames).to_owned() } else { info.transport };
        self.lines.push(TraceLine::Session(SessionInfo { key, transport, ..info }));
        let frames = transcript.frames.into_iter().map(|frame| TraceLine::Frame(TracedFrame::new(key, frame)));
        self.lines.extend(frames);
        if transcript.dropped > 0 {
            let reason = "the limit of the transcript was reached".to_owned();
            self.lines.push(TraceLine::Omitted(Omitted { session: key, frames: transcript.dropped, reason }));
        }
        key
    }
}

/// The transport of a session, where only its frames tell: `unknown` if they do not.
pub fn transport_of(frames: &[Frame]) -> &'static str {
    let has = |is: fn(&FrameBody) -> bool| frames.iter().any(|frame| is(&frame.body));
    if has(|body| matches!(body, FrameBody::SseEvent { event: Some(event), .. } if event == "endpoint")) {
        "sse"
    } else if has(|body| matches!(body, FrameBody::HttpRequest { .. })) {
        "http"
    } else if has(|body| matches!(body, FrameBody::Line { .. })) {
        "stdio"
    } else {
        "unknown"
    }
}
