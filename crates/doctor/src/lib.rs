//! Connects to a server step by step and names the step that fails: the command, its start, its stdout; DNS, TCP, TLS, the path, authorization;
//! the handshake, the lists, the end. Knows no flags and no rules.

mod authorization;
mod evidence;
mod steps;

pub use steps::{Examination, Step, StepId, StepState};

use evidence::Evidence;
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{
    CallFailure, ConnectFailure, ConnectOptions, Session, SseFailure, StartFailure, Tap, Target, Unanswered, ViolationKind, open_bare,
    open_session,
};
use mcproof_protocol::{Revision, Transport};
use mcproof_record::{Diagnostic, FrameId};
use serde_json::Map;
use std::path::PathBuf;
use std::time::Duration;
use steps::Steps;

/// Of each list.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The lists that are read, by the capability that declares them.
const LISTS: [(&str, &str, &str); 3] =
    [("tools", "tools/list", "tools"), ("prompts", "prompts/list", "prompts"), ("resources", "resources/list", "resources")];

/// Goes through all steps until one fails. What comes after that is skipped, never passed.
pub async fn examine(target: &Target, options: &ConnectOptions, tap: &Tap, find_program: impl Fn(&str) -> Option<PathBuf>) -> Examination {
    let mut steps = Steps::of(target);
    if let Some(command) = target.command() {
        let program = command.first().map(String::as_str).unwrap_or_default();
        match find_program(program) {
            Some(path) => steps.pass(StepId::Command, path.display().to_string(), None),
            None => {
                let hint = match program.contains('/') {
                    true => "check the path, and that the file may be executed".to_owned(),
                    false => format!("install `{program}`, or write its whole path; `command -v {program}` says where a shell finds it"),
                };
                steps.fail(StepId::Command, format!("`{program}` is not on PATH"), Some(hint), FrameId(0));
                return steps.finish(tap);
            }
        }
    }
    let began = tap.elapsed();
    let opened = open_session(target, options, tap).await;
    let took = tap.elapsed() - began;
    let evidence = Evidence::of(tap);
    match opened {
        Ok(session) => {
            evidence.connected(target, &mut steps);
            if let Some(kind) = evidence.refused_type() {
                let found =
                    if kind.is_empty() { "messages without `Content-Type`".to_owned() } else { format!("messages of the type `{kind}`") };
                let hint = "send messages as `application/json` or `text/event-stream`: official clients refuse others".to_owned();
                steps.fail(StepId::Transport, found, Some(hint), evidence.last);
            }
            steps.connected(&session, took);
            // mcproof goes on with such a session, and official clients leave it.
            if fail_handshake(&session, |kind| matches!(kind, ViolationKind::UnknownRevision(_)), &mut steps) {
                session.close().await;
                return steps.finish(tap);
            }
            let is_stdio = session.handshake().transport == Transport::Stdio;
            let patience = options.timeout.map_or(LIST_TIMEOUT, |timeout| timeout.min(LIST_TIMEOUT));
            let advice = read_lists(&session, patience, &mut steps).await;
            if !steps.has_failed() {
                fail_handshake(&session, |kind| matches!(kind, ViolationKind::NotificationRefused { .. }), &mut steps);
            }
            end(session, &mut steps).await;
            if is_stdio {
                // Only now everything has been on stdout that ever will be.
                note_noise(&Evidence::of(tap), advice, &mut steps);
            }
        }
        Err(failure) => {
            let diagnostic = diagnosis::of_connect_failure(&failure, target, &tap.transcript(), Audience::CommandLine);
            let step = failing_step(&failure, target, &evidence);
            evidence.passed_before(step, target, &mut steps);
            let hint = match step {
                _ if matches!(failure, ConnectFailure::WrongPath { .. }) => diagnostic.hint.clone(),
                StepId::Authorization => explain_authorization(target, options, tap, &evidence).await.or(diagnostic.hint.clone()),
                StepId::Stdout => diagnostic.hint.clone().or_else(|| evidence.hint(step, target)),
                StepId::Handshake if !evidence.heads.is_empty() => diagnostic.hint.clone().or_else(|| evidence.hint(step, target)),
                _ => evidence.hint(step, target).or_else(|| diagnostic.hint.clone()),
            };
            let message = evidence.message(step, target).unwrap_or_else(|| shortened(&diagnostic));
            steps.fail(step, message, hint, evidence.last);
            steps.stderr = diagnostic.evidence.map(|evidence| evidence.stderr).unwrap_or_default();
        }
    }
    steps.finish(tap)
}

/// Whether the server did something of this kind when the session was opened, which ends it for other clients.
fn fail_handshake(session: &Session, is_fatal: impl Fn(&ViolationKind) -> bool, steps: &mut Steps) -> bool {
    let faults = session.faults();
    let Some(fault) = faults.iter().find(|fault| is_fatal(&fault.kind)) else { return false };
    let diagnostic = diagnosis::of_fault(fault, &session.tap().transcript(), Audience::CommandLine);
    steps.fail(StepId::Handshake, shortened(&diagnostic), diagnostic.hint, fault.frame);
    true
}

/// A server that we started has ended with the session, and tells nothing any more: it is started again for it.
async fn explain_authorization(target: &Target, options: &ConnectOptions, tap: &Tap, evidence: &Evidence) -> Option<String> {
    if target.command().is_none() {
        return authorization::explain(target, options, tap, evidence).await;
    }
    let session = open_bare(target, Transport::Http, Revision::LATEST_LEGACY.as_str(), options, tap).await.ok()?;
    let told = authorization::explain(target, options, tap, evidence).await;
    session.close().await;
    told
}

fn shortened(diagnostic: &Diagnostic) -> String {
    const MOST_CHARACTERS: usize = 400;
    diagnostic.message.chars().take(MOST_CHARACTERS).collect()
}

/// Which step it was that did not succeed.
fn failing_step(failure: &ConnectFailure, target: &Target, evidence: &Evidence) -> StepId {
    match failure {
        ConnectFailure::Start(StartFailure::NotFound { .. } | StartFailure::NoInterpreter { .. } | StartFailure::Empty) => {
            return StepId::Command;
        }
        ConnectFailure::Start(_) => return StepId::Start,
        ConnectFailure::Address(_) => return StepId::Address,
        ConnectFailure::Unauthorized { .. } => return StepId::Authorization,
        ConnectFailure::NoModernSse => return StepId::Transport,
        ConnectFailure::NotListening { .. } => return StepId::Tcp,
        ConnectFailure::WrongPath { .. } => return StepId::Path,
        ConnectFailure::AddressTaken { .. } | ConnectFailure::OtherListens { .. } => return StepId::Start,
        // There is a connection, and what came over it was no HTTP.
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(broken)), .. }
        | ConnectFailure::Sse(SseFailure::Unreachable(broken))
            if broken.bound.is_none() && evidence.heads.is_empty() && evidence.network_step(target) == Some(StepId::Handshake) =>
        {
            return StepId::Path;
        }
        // The stream is there, but it is none of this transport.
        ConnectFailure::Sse(_) | ConnectFailure::SseTimedOut { .. } => {
            return evidence.network_step(target).filter(|step| *step != StepId::Handshake).unwrap_or(StepId::Transport);
        }
        _ => {}
    }
    if matches!(target, Target::Stdio(_)) {
        // Noise before anything else: what a client reads first is no message.
        return match failure {
            _ if evidence.noise.is_some() && !evidence.has_response => StepId::Stdout,
            // Other messages were read, but in the place of this response was something else.
            ConnectFailure::Unanswered { .. } if evidence.noise.is_some() => StepId::Stdout,
            ConnectFailure::Exited { .. } => StepId::Start,
            _ if evidence.is_over && !evidence.has_response => StepId::Start,
            _ => StepId::Handshake,
        };
    }
    if target.command().is_some() && matches!(failure, ConnectFailure::Exited { .. } | ConnectFailure::NotLocated { .. }) {
        return StepId::Start;
    }
    evidence.network_step(target).unwrap_or(StepId::Handshake)
}

/// Whether there were only messages on stdout. `advice` is what to do about a list that did not come, for which noise is the likely reason.
fn note_noise(evidence: &Evidence, advice: Option<String>, steps: &mut Steps) {
    let Some((line, frame)) = &evidence.noise else { return steps.pass(StepId::Stdout, "only messages".to_owned(), None) };
    let (message, hint) = match line.is_empty() {
        true => ("stdout has a blank line".to_owned(), "write one line feed behind each message, and nothing else"),
        false => (format!("stdout has a line that is not a message: `{line}`"), "write logs to stderr: stdout belongs to the protocol"),
    };
    steps.fail(StepId::Stdout, message, Some(advice.unwrap_or_else(|| hint.to_owned())), *frame);
}

/// Gives what to do about a list that did not come.
async fn read_lists(session: &Session, patience: Duration, steps: &mut Steps) -> Option<String> {
    let declared = session.handshake().capabilities.as_object().cloned().unwrap_or_else(Map::new);
    let began = session.tap().elapsed();
    let mut found = Vec::new();
    for (capability, method, key) in LISTS {
        if !declared.contains_key(capability) {
            continue;
        }
        match session.list(method, key, patience).await {
            Ok(listed) => found.push(match listed.items.len() {
                1 => format!("1 {}", key.trim_end_matches('s')),
                many => format!("{many} {key}"),
            }),
            Err(failure) => {
                let scene = diagnosis::Scene::of(session, session.tap(), Audience::CommandLine).await;
                let mut diagnostic = diagnosis::of_list_failure(&failure, method, &scene);
                if has_lost_session(session) {
                    diagnostic.message = format!("HTTP 404 for `{method}`: the server does not know the session that it has just opened");
                    let hint =
                        "keep sessions where every request finds them: in one process, in a store that all share, or with sticky routing";
                    diagnostic.hint = Some(hint.to_owned());
                }
                steps.fail(StepId::Lists, shortened(&diagnostic), diagnostic.hint.clone(), session.tap().mark());
                return diagnostic.hint;
            }
        }
    }
    let text = if found.is_empty() { "the server declares none".to_owned() } else { found.join(", ") };
    steps.pass(StepId::Lists, text, Some(session.tap().elapsed() - began));
    None
}

/// Whether the last response refuses a session that the handshake has opened.
fn has_lost_session(session: &Session) -> bool {
    let has_one = session.headers().iter().any(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    has_one && Evidence::of(session.tap()).heads.last().is_some_and(|head| head.status == 404)
}

async fn end(session: Session, steps: &mut Steps) {
    // How it ends with its stdin is not known of one that has ended before.
    let has_ended = session.exit().is_some();
    let is_stdio = session.handshake().transport == Transport::Stdio;
    let tap = session.tap().clone();
    let began = tap.elapsed();
    let report = session.close().await;
    let took = tap.elapsed() - began;
    if !steps.has(StepId::End) || has_ended {
        return;
    }
    if is_stdio && report.ignored_end_of_input {
        steps.fail(
            StepId::End,
            "the server keeps running after its stdin was closed".to_owned(),
            Some("end the process when reading stdin reaches its end: hosts leave it behind otherwise".to_owned()),
            tap.mark(),
        );
    } else if !report.left_behind.is_empty() {
        let count = report.left_behind.len();
        let noun = if count == 1 { "process" } else { "processes" };
        let hint = "end child processes before the server exits".to_owned();
        steps.fail(StepId::End, format!("the server leaves {count} {noun} behind"), Some(hint), tap.mark());
    } else {
        steps.pass(StepId::End, "the server ends with its stdin".to_owned(), Some(took));
    }
}
