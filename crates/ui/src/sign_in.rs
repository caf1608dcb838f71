//! Authorization step by step, as the page shows it: what was done, and the click that the next request waits for. Knows no OAuth.

use crate::hub::{Hub, HubFailure, State};
use mcproof_client::auth::{Approval, FlowControl, FlowEvent, FlowRequest, FlowStep};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// The user of the page, who signs in where a server requires it.
#[derive(Clone)]
pub struct SignIn {
    pub control: Arc<dyn FlowControl>,
    /// Stored tokens of the server are discarded first.
    pub anew: bool,
}

/// A flow that goes on, or the last one that has ended.
pub(crate) struct Flow {
    /// The session whose request was refused, and the exchange of that request.
    session: u64,
    refused: u64,
    operation: String,
    steps: Vec<Step>,
    pace: Pace,
    /// Lets the last step go on.
    gate: Option<oneshot::Sender<Decision>>,
    /// The page that the user is to open.
    page: Option<String>,
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    kind: &'static str,
    state: StepState,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// What is requested; where the user came back, that URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// By which its frames are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum StepState {
    /// For a click.
    Waiting,
    Running,
    Done,
    /// Nothing had to be done.
    Unneeded,
    Failed,
}

enum Outcome {
    None,
    Authorized,
    Failed(String),
}

/// How a flow goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// With a click for each request.
    ByClick,
    /// By itself, until the user has to sign in.
    Freely,
}

/// What the user decides about a request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Decision {
    Next,
    All,
    Stop,
}

const STOPPED: &str = "stopped on the page";

impl Flow {
    pub(crate) fn shown(&self) -> Value {
        let (state, failure) = match &self.outcome {
            Outcome::Authorized => ("authorized", None),
            Outcome::Failed(why) => ("failed", Some(why)),
            Outcome::None if self.page.is_some() => ("page", None),
            Outcome::None if self.gate.is_some() => ("waiting", None),
            Outcome::None => ("running", None),
        };
        json!({
            "session": self.session,
            "refused": self.refused,
            "operation": self.operation,
            "state": state,
            "failure": failure,
            "page": self.page,
            "steps": self.steps,
        })
    }

    /// Nobody waits for it any more.
    pub(crate) fn abandon(&mut self) {
        if matches!(self.outcome, Outcome::None) {
            self.end(Outcome::Failed("the connection was closed".to_owned()));
        }
    }

    fn end(&mut self, outcome: Outcome) {
        (self.gate, self.page) = (None, None);
        if let Some(step) = self.steps.last_mut().filter(|step| matches!(step.state, StepState::Waiting | StepState::Running)) {
            step.state = StepState::Failed;
        }
        // What was done and did not serve is where it ended.
        if let (Outcome::Failed(_), Some(step)) = (&outcome, self.steps.last_mut()) {
            step.state = StepState::Failed;
        }
        self.outcome = outcome;
    }
}

fn name(step: FlowStep) -> &'static str {
    match step {
        FlowStep::ResourceMetadata => "resource-metadata",
        FlowStep::ServerMetadata => "server-metadata",
        FlowStep::Registration => "registration",
        FlowStep::Consent => "consent",
        FlowStep::Assertion => "assertion",
        FlowStep::Token => "token",
        FlowStep::Renewal => "renewal",
    }
}

/// Puts the flows of a connection before the user.
pub(crate) fn control(hub: &Arc<Hub>, connection: u64) -> Arc<dyn FlowControl> {
    Arc::new(Control { hub: Arc::downgrade(hub), connection })
}

struct Control {
    hub: Weak<Hub>,
    connection: u64,
}

impl Control {
    fn change<T>(&self, change: impl FnOnce(&mut Flow) -> T) -> Option<T> {
        let hub = self.hub.upgrade()?;
        hub.change(|state| flow(state, self.connection).map(change))
    }
}

fn flow(state: &mut State, connection: u64) -> Option<&mut Flow> {
    state.connection(connection)?.flow.as_mut()
}

impl FlowControl for Control {
    fn approve<'a>(&'a self, request: FlowRequest<'a>) -> Approval<'a> {
        Box::pin(async move {
            let FlowRequest { step, method, url } = request;
            let (go, going) = oneshot::channel();
            let waits = self.change(|flow| {
                let waits = flow.pace == Pace::ByClick && step != FlowStep::Renewal;
                flow.gate = waits.then_some(go);
                flow.steps.push(Step {
                    kind: name(step),
                    state: if waits { StepState::Waiting } else { StepState::Running },
                    method: Some(method.to_owned()),
                    url: Some(url.to_string()),
                    exchange: None,
                    about: None,
                });
                waits
            });
            // Without a flow, nobody looks: a token is renewed before any request is refused.
            if waits != Some(true) {
                return Ok(());
            }
            match going.await {
                Ok(Decision::Next | Decision::All) => Ok(()),
                Ok(Decision::Stop) | Err(_) => Err(STOPPED.to_owned()),
            }
        })
    }

    fn tell(&self, event: FlowEvent<'_>) {
        if let FlowEvent::Refused { exchange, operation } = event {
            let Some(hub) = self.hub.upgrade() else { return };
            hub.change(|state| {
                let connection = state.connection(self.connection)?;
                let session = connection.sessions.last()?.id;
                connection.flow = Some(Flow {
                    session,
                    refused: exchange.0,
                    operation: operation.to_owned(),
                    steps: Vec::new(),
                    pace: Pace::ByClick,
                    gate: None,
                    page: None,
                    outcome: Outcome::None,
                });
                Some(())
            });
            return;
        }
        self.change(|flow| {
            let told = |kind, state, url: Option<String>, about| Step { kind, state, method: None, url, exchange: None, about };
            let last = flow.steps.last_mut();
            match event {
                FlowEvent::Refused { .. } => {}
                FlowEvent::Sent { exchange } => {
                    if let Some(step) = last {
                        (step.state, step.exchange) = (StepState::Running, Some(exchange.0));
                    }
                }
                FlowEvent::Answered { status } => {
                    if let Some(step) = last {
                        (step.state, step.about) = (StepState::Done, Some(format!("HTTP {status}")));
                    }
                }
                FlowEvent::Unanswered { reason } => {
                    if let Some(step) = last {
                        (step.state, step.about) = (StepState::Failed, Some(reason.to_owned()));
                    }
                }
                FlowEvent::Unneeded { step, reason } => {
                    flow.steps.push(told(name(step), StepState::Unneeded, None, Some(reason.to_owned())));
                }
                FlowEvent::Page { url } => {
                    flow.page = Some(url.to_string());
                    flow.steps.push(told("consent", StepState::Running, Some(url.to_string()), None));
                    // What comes after the user's part is theirs to look at again.
                    flow.pace = Pace::ByClick;
                }
                FlowEvent::Returned { url } => {
                    flow.page = None;
                    if let Some(step) = last {
                        step.state = StepState::Done;
                    }
                    flow.steps.push(told("callback", StepState::Done, Some(url.to_owned()), None));
                }
                FlowEvent::Ended { failure } => flow.end(failure.map_or(Outcome::Authorized, |why| Outcome::Failed(why.to_string()))),
            }
        });
    }
}

/// Gives the user's decision to the request that waits. False if none does.
pub(crate) fn go_on(hub: &Hub, connection: u64, decision: Decision) -> Result<bool, HubFailure> {
    hub.change(|state| {
        let known = state.connection(connection).ok_or(HubFailure::NoConnection)?;
        let Some(flow) = known.flow.as_mut() else { return Ok(false) };
        let Some(gate) = flow.gate.take() else { return Ok(false) };
        if decision == Decision::All {
            flow.pace = Pace::Freely;
        }
        Ok(gate.send(decision).is_ok())
    })
}
