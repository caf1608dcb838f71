//! Plays what happens for a request: waits, notifies, asks and answers, with the ids and tokens of the client at hand.
//! Knows messages and outlets, no transport.

use super::answers::{Miss, MissReason, Script};
use super::era;
use super::matching;
use super::recording::{Outcome, Question, Step, TimedStep};
use super::server::{Call, LOG_LEVEL, Mock, Paused, Plan, ResponseCheck};
use super::session::{Outgoing, Outlet, Session, acknowledgement, notification};
use mcproof_protocol::Era;
use serde_json::{Map, Value, json};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a person may take to respond to a question.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a response waits for those that were recorded before it, of requests that were sent later.
const LONGEST_TURN: Duration = Duration::from_millis(250);

/// How a request ended.
enum Played {
    /// With these steps still to come, which belong to the session.
    Answered(Vec<TimedStep>),
    /// The client is to send it again, or has gone.
    Over,
}

/// A request that was begun, so that it can be canceled from then on.
pub(crate) struct Started {
    call: Call,
    plan: Plan,
    number: u64,
    canceled: watch::Receiver<bool>,
}

impl Started {
    pub(crate) fn of(mock: &Mock, call: Call) -> Self {
        let plan = mock.plan(&call);
        let (number, canceled) = call.session.begin(&call.id);
        Self { call, plan, number, canceled }
    }

    pub(crate) fn era(&self) -> Era {
        self.call.era
    }

    /// Plays it to its end, or until the client cancels it or has gone.
    pub(crate) async fn play(self, mock: &Arc<Mock>, outlet: Outlet) {
        let Self { call, plan, number, mut canceled } = self;
        let played = tokio::select! {
            played = run(mock, &call, number, plan, &outlet) => played,
            _ = canceled.wait_for(|canceled| *canceled) => Played::Over,
            () = outlet.closed() => Played::Over,
        };
        call.session.finish(number);
        // Over HTTP, this ends the response.
        drop(outlet);
        if let Played::Answered(after) = played {
            play_after(mock, &call.session, after).await;
        }
    }
}

async fn run(mock: &Arc<Mock>, call: &Call, number: u64, plan: Plan, outlet: &Outlet) -> Played {
    match plan {
        Plan::Refuse { error, status } => refuse(call, error, status, outlet).await,
        Plan::Listen { honored } => {
            if !outlet.message(acknowledgement(&call.id, &honored)).await {
                return Played::Over;
            }
            if !call.session.listen(number, &call.id, &honored, outlet) {
                mock.note("a client has too many subscriptions; this one will be silent");
            }
            // It ends when the client cancels it.
            pending().await
        }
        Plan::Play { script, from } => play(mock, call, script, from, outlet).await,
        Plan::Resume { paused, responses } => {
            let Paused { script, step, .. } = *paused;
            let script = match &script.steps[step].step {
                Step::Ask(questions) => {
                    let keys = keys(questions);
                    if keys.iter().any(|key| responses.get(key).is_none()) {
                        // "the server SHOULD respond with a new InputRequiredResult" for what is missing.
                        return play(mock, call, script, step, outlet).await;
                    }
                    let given: Vec<Value> = keys.iter().map(|key| json!({ "result": responses[key] })).collect();
                    match chosen(mock, call, script, step, &given) {
                        Ok(script) => script,
                        Err(error) => return refuse(call, error, None, outlet).await,
                    }
                }
                Step::Notify { .. } | Step::Announce { .. } => script,
            };
            play(mock, call, script, step + 1, outlet).await
        }
    }
}

async fn refuse(call: &Call, error: Value, status: Option<u16>, outlet: &Outlet) -> Played {
    let message = json!({ "jsonrpc": "2.0", "id": call.id, "error": error });
    outlet.send(Outgoing::Message { message, status }).await;
    Played::Answered(Vec::new())
}

async fn play(mock: &Arc<Mock>, call: &Call, script: Script, from: usize, outlet: &Outlet) -> Played {
    let mut script = script;
    let mut place = from;
    while let Some(TimedStep { delay, step }) = script.steps.get(place).cloned() {
        wait(mock, delay).await;
        match step {
            Step::Notify { method, params } => {
                if let Some(params) = rebound(call, &method, params)
                    && !outlet.message(notification(&method, params)).await
                {
                    return Played::Over;
                }
            }
            Step::Announce { method, params } => call.session.announce(&method, &params).await,
            Step::Ask(questions) => {
                let questions = askable(call, questions);
                let capabilities = call.capabilities();
                let lacks = |question: &&Question| era::needed(&question.method).is_some_and(|needed| capabilities.get(needed).is_none());
                if let Some(question) = questions.iter().find(lacks) {
                    let other = unasked(&script, place, &capabilities).filter(|_| mock.options.responses == ResponseCheck::Told);
                    if let Some(other) = other {
                        mock.go_on(call, &other);
                        script = other;
                        continue;
                    }
                    let reason = MissReason::CannotAsk { question: question.method.clone() };
                    let error = mock.missed(Miss::new(&call.method, &call.params, reason));
                    return refuse(call, error, None, outlet).await;
                }
                match call.era {
                    Era::Modern if questions.is_empty() => {}
                    Era::Modern => {
                        let result = input_required(mock, call, &script, place, &questions);
                        outlet.message(json!({ "jsonrpc": "2.0", "id": call.id, "result": result })).await;
                        return Played::Over;
                    }
                    Era::Legacy => {
                        let Some(responses) = ask(mock, &call.session, &questions, Some(outlet)).await else { return Played::Over };
                        script = match chosen(mock, call, script, place, &responses) {
                            Ok(script) => script,
                            Err(error) => return refuse(call, error, None, outlet).await,
                        };
                    }
                }
            }
        }
        place += 1;
    }
    wait(mock, script.delay).await;
    if mock.options.speed.is_none() && !script.overtaken_by.is_empty() {
        // A client that sends one after the other waits for this response first.
        let _ = timeout(LONGEST_TURN, call.session.until_answered(&script.overtaken_by)).await;
    }
    let outgoing = match script.outcome {
        Outcome::Result(result) => {
            let result = match script.era {
                Some(era) if era == call.era => result,
                _ => era::adapted(result, &call.method, call.era, &mock.facts_again(call)),
            };
            Outgoing::Message { message: json!({ "jsonrpc": "2.0", "id": call.id, "result": result }), status: None }
        }
        Outcome::Error { error, status } => {
            Outgoing::Message { message: json!({ "jsonrpc": "2.0", "id": call.id, "error": error }), status }
        }
        Outcome::Http { status, headers, body } => Outgoing::Http { id: call.id.clone(), status, headers, body },
        Outcome::Silence => {
            mock.note(format!("`{}` has no response in the recording; the client waits for one in vain", call.method));
            return pending().await;
        }
        Outcome::Gone => {
            mock.note(format!("the recorded server was gone at this point of `{}`: the connection is closed", call.method));
            Outgoing::Break
        }
    };
    let was_sent = outlet.send(outgoing).await;
    if let Some(place) = script.place {
        call.session.answered(place);
    }
    if was_sent { Played::Answered(script.after) } else { Played::Over }
}

/// What belongs to the session after a request or a notification.
pub(crate) async fn play_after(mock: &Arc<Mock>, session: &Arc<Session>, steps: Vec<TimedStep>) {
    for TimedStep { delay, step } in steps {
        let goes_on = async {
            wait(mock, delay).await;
            match step {
                Step::Notify { method, params } | Step::Announce { method, params } => session.announce(&method, &params).await,
                Step::Ask(questions) => {
                    let capabilities = session.capabilities();
                    let can = |question: &Question| era::needed(&question.method).is_none_or(|needed| capabilities.get(needed).is_some());
                    let (asked, skipped): (Vec<_>, Vec<_>) = questions.into_iter().partition(can);
                    for question in skipped {
                        mock.note(format!("`{}` of the server is left out: this client does not declare to support it", question.method));
                    }
                    ask(mock, session, &asked, None).await;
                }
            }
        };
        tokio::select! {
            () = goes_on => {}
            () = session.until_end() => return,
        }
    }
}

/// Sends requests of the server and waits for the responses, `result` or `error` of each; `None` if the client has gone or is
/// silent for too long.
async fn ask(mock: &Arc<Mock>, session: &Session, questions: &[Question], outlet: Option<&Outlet>) -> Option<Vec<Value>> {
    let mut waiting = Vec::new();
    for question in questions {
        let (id, response) = session.ask();
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": question.method });
        if question.params.as_object().is_some_and(|params| !params.is_empty()) {
            message["params"] = question.params.clone();
        }
        let sent = match outlet {
            Some(outlet) => outlet.message(message).await,
            None => session.push(message).await,
        };
        if !sent {
            session.forget(&id);
            return None;
        }
        waiting.push((question, id, response));
    }
    let mut responses = Vec::new();
    for (question, id, response) in waiting {
        match timeout(PATIENCE, response).await {
            Ok(Ok(message)) => responses.push(said(&message)),
            Ok(Err(_)) => return None,
            Err(_) => {
                session.forget(&id);
                mock.note(format!("no response to `{}` within {} s", question.method, PATIENCE.as_secs()));
                return None;
            }
        }
    }
    Some(responses)
}

/// Of a response only what it says.
fn said(message: &Value) -> Value {
    let members = ["result", "error"].into_iter().find_map(|key| Some((key.to_owned(), message.get(key)?.clone())));
    Value::Object(Map::from_iter(members))
}

/// The recording that goes on as the client has responded. If there is none, the one at hand goes on.
fn chosen(mock: &Mock, call: &Call, script: Script, place: usize, responses: &[Value]) -> Result<Script, Value> {
    let fits = |script: &Script| match script.steps.get(place).map(|timed| &timed.step) {
        Some(Step::Ask(questions)) => {
            let asked = askable(call, questions.clone());
            asked.len() == responses.len() && asked.iter().zip(responses).all(|(question, response)| is_as_recorded(question, response))
        }
        _ => false,
    };
    if fits(&script) {
        return Ok(script);
    }
    if let Some(other) = script.alternatives.iter().position(fits) {
        let mut script = script;
        let other = script.alternatives.swap_remove(other);
        mock.go_on(call, &other);
        return Ok(Script { alternatives: script.alternatives, ..other });
    }
    let Some(Step::Ask(questions)) = script.steps.get(place).map(|timed| &timed.step) else { return Ok(script) };
    let question = questions.iter().zip(responses).find(|(question, response)| !is_as_recorded(question, response));
    let question = question.map_or_else(|| "a question".to_owned(), |(question, _)| question.method.clone());
    let miss = Miss::new(&call.method, &call.params, MissReason::OtherResponse { question });
    match mock.options.responses {
        ResponseCheck::Miss => Err(mock.missed(miss)),
        ResponseCheck::Told => {
            mock.note(format!("{miss}; the recorded response to it is sent nevertheless"));
            Ok(script)
        }
    }
}

/// A recording with a client that was not asked either, where this one has not been asked anything so far.
fn unasked(script: &Script, place: usize, capabilities: &Value) -> Option<Script> {
    let can = |question: &Question| era::needed(&question.method).is_none_or(|needed| capabilities.get(needed).is_some());
    let asks = |step: &TimedStep| matches!(&step.step, Step::Ask(questions) if !questions.iter().all(can));
    let was_asked = script.steps[..place].iter().any(|timed| matches!(timed.step, Step::Ask(_)));
    script.alternatives.iter().find(|other| !was_asked && !other.steps.iter().any(asks)).cloned()
}

fn is_as_recorded(question: &Question, response: &Value) -> bool {
    question.response.as_ref().is_none_or(|recorded| {
        let wrap = |value: &Value| value.get("result").cloned().unwrap_or_else(|| json!({ "error": value["error"]["code"] }));
        matching::difference(&wrap(recorded), &wrap(response), &matching::Ignored::default()).is_none()
    })
}

/// The questions that a client of this era can be asked.
fn askable(call: &Call, questions: Vec<Question>) -> Vec<Question> {
    match call.era {
        Era::Legacy => questions,
        // A ping, for one, does not exist here.
        Era::Modern => questions.into_iter().filter(|question| era::needed(&question.method).is_some()).collect(),
    }
}

/// The keys of questions in `inputRequests`.
fn keys(questions: &[Question]) -> Vec<String> {
    let key = |(place, question): (usize, &Question)| question.key.clone().unwrap_or_else(|| format!("input-{}", place + 1));
    questions.iter().enumerate().map(key).collect()
}

fn input_required(mock: &Mock, call: &Call, script: &Script, place: usize, questions: &[Question]) -> Value {
    let ask = |(key, question): (String, &Question)| (key, json!({ "method": question.method, "params": question.params }));
    let requests: Map<String, Value> = keys(questions).into_iter().zip(questions).map(ask).collect();
    let state = mock.pause(call, script.clone(), place);
    let result = json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state });
    let adapted = era::adapted(result, "", Era::Modern, &mock.facts_again(call));
    // What a result says of itself goes before the usual.
    let mut adapted = adapted;
    adapted["resultType"] = json!("input_required");
    adapted
}

/// The params of a notification about a request, with the token of the client at hand; `None` if it did not ask for any.
fn rebound(call: &Call, method: &str, mut params: Value) -> Option<Value> {
    match method {
        "notifications/progress" => {
            params["progressToken"] = call.meta("progressToken")?.clone();
        }
        "notifications/message" if call.era == Era::Modern => {
            let wanted = call.meta(LOG_LEVEL)?.as_str().and_then(era::log_rank)?;
            if era::log_rank(params.get("level").and_then(Value::as_str).unwrap_or_default()).is_some_and(|level| level < wanted) {
                return None;
            }
        }
        "notifications/cancelled" => return None,
        _ => {}
    }
    Some(params)
}

/// Without `speed`, a message follows the last one after this time at most. Some clients take a message that comes in one piece with
/// the response of its request for late, and drop it.
const SHORTEST: Duration = Duration::from_millis(5);

/// Waits as long as was recorded, or a part of it, or for a moment.
async fn wait(mock: &Mock, delay: Duration) {
    let delay = match mock.options.speed {
        Some(speed) => delay.div_f64(speed),
        None => delay.min(SHORTEST),
    };
    if !delay.is_zero() {
        sleep(delay).await;
    }
}
