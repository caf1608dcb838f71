//! After a failure: in what state is the server now, and who has to act? Asks the server once more, within a short deadline.

use super::expand::{Work, binding};
use super::sessions::{EndedSession, Open, SessionOutcome, server_of};
use crate::plan::{Action, Step};
use mcproof_client::{Closed, ProcessSignal, Session};
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::{Aftermath, Blame, FrameBody, ServerState, Transcript};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

/// A server that was quick to answer before is not waited for much longer now.
const PATIENCE: Duration = Duration::from_secs(2);

/// One finding for each server that the case used or tried to use.
pub(super) async fn probe(work: &Work, open: &BTreeMap<String, Open>, past: &[EndedSession]) -> Vec<Aftermath> {
    let mut found: Vec<Aftermath> = past.iter().filter_map(|past| not_started(work, past)).collect();
    for (name, open) in open {
        open.injector.iter().for_each(|injector| injector.pause());
        found.push(ask_again(work, name, open).await);
        open.injector.iter().for_each(|injector| injector.resume());
    }
    found
}

/// No session could be opened.
fn not_started(work: &Work, past: &EndedSession) -> Option<Aftermath> {
    let name = &past.transcript.server;
    let is_ours = work.suite.servers.get(name).is_some_and(|server| binding(server, work.transport).launch.is_some());
    let (state, blame, message) = match (past.life, is_ours) {
        (SessionOutcome::Ended, _) => return None,
        (SessionOutcome::NeverOpenedUnderFaults, _) => {
            (ServerState::NotStarted, Blame::InjectedFault, "ended, or did not respond, before the handshake was complete")
        }
        (SessionOutcome::NeverOpened, true) => {
            (ServerState::NotStarted, Blame::Server, "ended, or did not respond, before the handshake was complete")
        }
        (SessionOutcome::NeverOpened, false) if responded(&past.transcript.transcript) => {
            (ServerState::Answers, Blame::ServerOrSuite, "responds, but no session could be opened")
        }
        (SessionOutcome::NeverOpened, false) => {
            (ServerState::Unreachable, Blame::Network, "could not be reached: the server or the network is down")
        }
    };
    Some(Aftermath { server: name.to_owned(), state, blame, message: message.to_owned() })
}

fn responded(transcript: &Transcript) -> bool {
    transcript.frames.iter().any(|frame| matches!(frame.body, FrameBody::HttpResponse { .. }))
}

async fn ask_again(work: &Work, name: &str, open: &Open) -> Aftermath {
    let (state, mut blame, mut message) = state_of(work, name, &open.session).await;
    if state == ServerState::Died
        && let Some(step) = ended_by(work, name, open)
    {
        let kills = matches!(step.action, Action::Signal(ProcessSignal::Kill));
        // Nothing survives this signal; of others, and of the end of its input, a server makes what it likes.
        blame = if kills { Blame::Suite } else { Blame::ServerOrSuite };
        let how = if kills { "by" } else { "after" };
        message += &format!(", {how} the step `{}` in line {}", step.action.title(), step.place.line);
    }
    let count = open.injected();
    if count > 0 {
        let noun = if count == 1 { "message" } else { "messages" };
        message += &format!(", and `faults` disturbed {count} {noun} of this test");
        // Pipes that a fault closed end a server in order; nothing on the wire is a reason to crash.
        let crashed = open.session.exit().is_some_and(|exit| exit.code != Some(0));
        if !crashed {
            blame = Blame::InjectedFault;
        }
    }
    Aftermath { server: name.to_owned(), state, blame, message }
}

/// The step that told a server to end: the last one, where several did.
fn ended_by<'a>(work: &'a Work, name: &str, open: &Open) -> Option<&'a Step> {
    let place = open.ended_by.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    let case = work.case();
    let tells =
        |step: &&Step| matches!(step.action, Action::Signal(_) | Action::CloseStdin) && step.server.as_deref() == Some(server_of(name));
    let steps = case.hooks.setup.iter().chain(&case.steps).flat_map(Step::leaves);
    steps.filter(tells).find(|step| step.place == place)
}

async fn state_of(work: &Work, name: &str, session: &Session) -> (ServerState, Blame, String) {
    // A response is all the evidence that is needed: only where none comes, the process may be ending, which takes it a moment.
    let lived = session.exit().is_none();
    let handshake = session.handshake();
    let method = match handshake.era {
        Era::Legacy => methods::PING,
        Era::Modern => methods::SERVER_DISCOVER,
    };
    let is_ours = work.suite.servers.get(name).is_some_and(|server| binding(server, work.transport).launch.is_some());
    if lived && session.closed_because().is_none() && session.request(method, None, PATIENCE).await.is_ok() {
        return (ServerState::Answers, Blame::ServerOrSuite, format!("still responds to `{method}`"));
    }
    session.settle().await;
    if let Some(exit) = session.exit() {
        return (ServerState::Died, Blame::Server, exit.to_string().replacen("server ", "", 1));
    }
    let closed = session.closed_because();
    let lives = if is_ours { "its process is alive" } else { "it is not ours" };
    match (closed, handshake.transport) {
        (Some(Closed::TooLong { .. }), _) => {
            (ServerState::Answers, Blame::Server, "sent more than the limits allow, so that we hung up".into())
        }
        (Some(_), Transport::Stdio) => (ServerState::Hung, Blame::Server, format!("closed its output, and {lives}")),
        (Some(_), _) => (ServerState::Unreachable, network_or(is_ours), format!("closed the connection, and {lives}")),
        (None, Transport::Http | Transport::Sse) if session.takes_connections(PATIENCE).await => {
            (ServerState::Silent, Blame::Server, format!("accepts connections, but does not respond to `{method}` within {PATIENCE:?}"))
        }
        (None, Transport::Http | Transport::Sse) => {
            (ServerState::Unreachable, network_or(is_ours), format!("takes no connections any more, and {lives}"))
        }
        (None, _) => (ServerState::Hung, Blame::Server, format!("does not respond to `{method}` within {PATIENCE:?}, and {lives}")),
    }
}

fn network_or(is_ours: bool) -> Blame {
    if is_ours { Blame::Server } else { Blame::Network }
}
