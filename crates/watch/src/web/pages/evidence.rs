//! What a probe saw: its report and the wire, as a page and as a file.

use super::{Chrome, Fault, html};
use crate::web::State;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html};
use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use mcproof_record::{ProbeReport, Severity, Transcript};
use mcproof_report::html::{Wire, wire};
use mcproof_trace::{Manifest, Mark, MarkBody, PROBE, SessionInfo, trace_in_memory, transport_of};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io;
use std::time::Duration;

/// As the store keeps it.
#[derive(Deserialize)]
struct Body {
    report: ProbeReport,
    #[serde(default)]
    transcript: Transcript,
}

/// What is wrong, as the probe said it.
pub(super) struct Diagnosis {
    pub(super) class: &'static str,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) stderr: Vec<String>,
}

/// The wire, and where it comes from.
pub(super) struct Proof {
    pub(super) wire: Wire,
    pub(super) handshake: Option<String>,
    /// The name that the file has when it is saved.
    pub(super) file: String,
}

impl Proof {
    /// None if it cannot be read.
    pub(super) fn read(id: &str, body: &RawValue) -> Option<(Vec<Diagnosis>, Self)> {
        let Body { report, transcript } = serde_json::from_str(body.get()).ok()?;
        let diagnoses = report.diagnostics.iter().map(|diagnostic| Diagnosis {
            class: match diagnostic.severity {
                Severity::Error => "bad",
                Severity::Warning => "warn",
                Severity::Note => "idle",
            },
            code: shown::plain(&diagnostic.code),
            message: mcproof_report::escape_block(&diagnostic.message).chars().take(4_000).collect(),
            hint: diagnostic.hint.as_deref().map(shown::plain).unwrap_or_default(),
            stderr: diagnostic.evidence.iter().flat_map(|evidence| &evidence.stderr).take(40).map(|line| shown::plain(line)).collect(),
        });
        let handshake = report.handshake.as_ref().map(|handshake| {
            let server = handshake.server.as_deref().map(|server| format!(", {server}")).unwrap_or_default();
            shown::plain(&format!("{}, {} era, protocol {}{server}", handshake.transport, handshake.era, handshake.protocol_version))
        });
        let proof = Self { wire: wire(&transcript), handshake, file: file_name(id, "mcptrace") };
        Some((diagnoses.collect(), proof))
    }
}

#[derive(Template)]
#[template(path = "evidence.html")]
struct Page {
    chrome: Chrome,
    id: String,
    target: String,
    link: String,
    at: Html,
    diagnoses: Vec<Diagnosis>,
    proof: Proof,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Fault> {
    const GONE: Fault = Fault::NotFound("transcript any more: it is kept as long as raw results are");
    let (target, at, body) = state.evidence(&id).await?.ok_or(GONE)?;
    match query.as_deref() {
        Some("download=trace") => {
            let body: Body = serde_json::from_str(body.get()).map_err(|_| GONE)?;
            let written = trace(body, at.to_string())
                .map_err(|error| Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, format!("the trace cannot be written: {error}")))?;
            return Ok(download("application/octet-stream", file_name(&id, "mcptrace"), written));
        }
        Some(query) if query.starts_with("download") => {
            return Ok(download("application/json", file_name(&id, "json"), body.get().to_owned()));
        }
        _ => {}
    }
    let (diagnoses, proof) = Proof::read(&id, &body).ok_or(GONE)?;
    let page = Page {
        chrome: Chrome::new(&state, &identity, "overview", format!("Wire of {}", shown::plain(&target))),
        id: shown::segment(&id),
        link: shown::segment(&target),
        target: shown::plain(&target),
        at: shown::at(at),
        diagnoses,
        proof,
    };
    Ok(html(&page))
}

fn download(kind: &'static str, file: String, content: impl Into<axum::body::Body>) -> Response {
    let name = format!("attachment; filename=\"{file}\"");
    ([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, name)], content.into()).into_response()
}

/// What a probe recorded, as the bytes of a trace: its session, what it found as marks at its end, and its report.
fn trace(Body { report, transcript }: Body, at: String) -> io::Result<Vec<u8>> {
    let manifest = Manifest { mcproof: env!("CARGO_PKG_VERSION").to_owned(), started_at: Some(at), ..Manifest::default() };
    let text = serde_json::to_vec_pretty(&report)?;
    let shaken = report.handshake;
    let session = SessionInfo {
        server: report.target,
        transport: shaken.as_ref().map_or_else(|| transport_of(&transcript.frames).to_owned(), |shaken| shaken.transport.clone()),
        era: shaken.as_ref().map(|shaken| shaken.era.clone()),
        revision: shaken.map(|shaken| shaken.protocol_version),
        client: Some("mcproof".to_owned()),
        ..SessionInfo::default()
    };
    trace_in_memory(manifest, |writer| {
        let session = writer.begin_session(session);
        transcript.frames.iter().for_each(|frame| writer.frame(session, frame));
        writer.omit(session, transcript.dropped, "the limit of the transcript was reached");
        let at = transcript.frames.last().map_or(Duration::ZERO, |frame| frame.at);
        for diagnostic in report.diagnostics {
            let body = MarkBody::Finding { rule: diagnostic.code, severity: diagnostic.severity, message: diagnostic.message, frame: None };
            writer.mark(Mark { session, at, body });
        }
        writer.attach(PROBE, &text);
    })
}

fn file_name(id: &str, end: &str) -> String {
    let safe: String = id.chars().filter(|character| character.is_ascii_alphanumeric() || *character == '-').take(64).collect();
    format!("probe-{safe}.{end}")
}

/// Since the transcript began.
pub(super) fn time(micros: &u64) -> String {
    let seconds = *micros as f64 / 1e6;
    format!("+{seconds:.3} s")
}

pub(super) fn arrow(direction: &str) -> &'static str {
    match direction {
        "out" => "→",
        "in" => "←",
        _ => "•",
    }
}

pub(super) fn direction(direction: &str) -> &'static str {
    match direction {
        "out" => "to the server",
        "in" => "from the server",
        _ => "a fact",
    }
}
