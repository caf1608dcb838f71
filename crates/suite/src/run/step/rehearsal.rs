//! What a server would say for the tests of a suite to pass: made from their expectations, and judged as in a run. Sends nothing.

mod about;
mod notifications;
mod server_requests;
mod task;
#[cfg(test)]
mod tests;

use super::act::{Answer, ErrorResponse, shape};
use super::counted;
use super::judge::{judge, save};
use super::request::{Request, fill_text, request};
use crate::judge::{Matcher, Payload, Selector};
use crate::plan::{Action, Case, ExpectedExit, ExpectedFailure, Isolation, Listing, RetryCause, Spanned, Step, Suite, Topic};
use about::{About, View};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Answers, ProcessSignal};
use mcproof_protocol::{Era, EraChoice, Revision, error_code, meta, methods};
use mcproof_record::Place;
use notifications::Occasion;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use task::MadeRequest;

/// Runs of a step with `times` that are rehearsed; a mock repeats the last response.
const MOST_RUNS: u32 = 1_000;

/// A request of a suite, and what comes of it.
#[derive(Clone, Debug)]
pub struct MadeExchange {
    pub method: &'static str,
    pub params: Map<String, Value>,
    /// What the server says before it responds.
    pub events: Vec<MadeEvent>,
    /// The result, or the `error` of a JSON-RPC error; nothing if no response comes.
    pub response: Option<Result<Value, Value>>,
    /// The server was started anew before it.
    begins_anew: bool,
    place: Place,
    /// What the step does.
    title: String,
}

/// Something that a server says before a response.
#[derive(Clone, Debug, PartialEq)]
pub enum MadeEvent {
    Notification {
        method: String,
        params: Value,
    },
    /// A request of the server, and the `result` or `error` that the client of the suite responds with.
    Request {
        method: &'static str,
        params: Value,
        response: Result<Value, Value>,
    },
}

/// What the client of one test sends, or of all tests that share a server.
#[derive(Clone, Debug, Default)]
pub struct MadeSession {
    /// What the client declares.
    pub capabilities: Map<String, Value>,
    pub exchanges: Vec<MadeExchange>,
}

impl MadeSession {
    /// What each process of the server gets of it, of which each begins without a memory.
    fn parts(self) -> Vec<Self> {
        let mut parts = vec![Self { capabilities: self.capabilities, exchanges: Vec::new() }];
        for exchange in self.exchanges {
            if exchange.begins_anew {
                parts.push(Self { capabilities: parts[0].capabilities.clone(), exchanges: Vec::new() });
            }
            if let Some(last) = parts.last_mut() {
                last.exchanges.push(exchange);
            }
        }
        parts
    }
}

impl MadeExchange {
    /// Whether another one begins in the same way, and goes on in another, whatever the client responds.
    fn contradicts(&self, other: &Self) -> bool {
        let is_same = self.method == other.method && self.params == other.params && self.asked().eq(other.asked());
        is_same && (self.response != other.response || self.events != other.events)
    }

    /// What the server asks for.
    fn asked(&self) -> impl Iterator<Item = &MadeEvent> {
        self.events.iter().filter(|event| matches!(event, MadeEvent::Request { .. }))
    }
}

/// A step that no response was found for.
#[derive(Clone, Debug)]
pub struct UnmadeStep {
    pub place: Place,
    /// What it does, such as `call create_order`.
    pub title: String,
    /// A lowercase fragment without a final dot.
    pub why: String,
}

/// What a server of a suite says.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    pub sessions: Vec<MadeSession>,
    /// The results of the lists that have something, by their methods.
    pub lists: BTreeMap<&'static str, Value>,
    /// The result of `initialize`.
    pub about: Value,
    /// Whether a step describes the server itself.
    pub is_described: bool,
    /// The revision of the legacy era that it speaks whatever a client offers, if a step expects one.
    pub version: Option<String>,
    /// The one era that it speaks, and why; both if there is none.
    pub only: Option<(Era, String)>,
    pub unmade: Vec<UnmadeStep>,
}

/// Makes the responses that the tests of a suite expect.
pub fn rehearse(suite: &Suite) -> Rehearsal {
    let mut making = Making::of(suite);
    let (mut sessions, mut of_all, mut shared) = (Vec::<MadeSession>::new(), MadeSession::default(), Map::new());
    let are_common = suite.cases.len() > 1 && suite.cases.windows(2).all(|cases| cases[0].answers == cases[1].answers);
    making.steps(&suite.shared.setup, &mut shared, &mut of_all.exchanges);
    for case in &suite.cases {
        let mut made = MadeSession { capabilities: declared(case), exchanges: Vec::new() };
        let mut scope = case.variables.clone();
        if case.isolation == Isolation::File {
            scope.extend(shared.clone());
        }
        making.begin(case, if are_common { None } else { Some(&case.answers) });
        for steps in [&case.hooks.setup, &case.steps, &case.hooks.teardown] {
            making.steps(steps, &mut scope, &mut made.exchanges);
        }
        match case.isolation {
            Isolation::File => {
                of_all.capabilities.extend(made.capabilities);
                of_all.exchanges.extend(made.exchanges);
            }
            Isolation::Test => {
                for part in made.parts() {
                    // A mock learns from the client, its requests and its responses which test it is in.
                    let alike = sessions.iter().filter(|known| known.capabilities == part.capabilities);
                    let begun =
                        |first: &MadeExchange| alike.filter_map(|known| known.exchanges.first()).any(|known| first.contradicts(known));
                    let first = part.exchanges.first().filter(|first| begun(first));
                    making.unmade.extend(first.map(|first| UnmadeStep {
                        place: first.place.clone(),
                        title: first.title.clone(),
                        why: "an earlier test begins with the same request, and expects another response".to_owned(),
                    }));
                    sessions.push(part);
                }
            }
        }
    }
    if let Some(first) = suite.cases.first().filter(|first| are_common && server_requests::are_any(&first.answers)) {
        let why = "those of all tests do not say during which step the server sends its request: write them in that step".to_owned();
        making.unmade.push(UnmadeStep { place: first.place.clone(), title: "answers".to_owned(), why });
    }
    making.steps(&suite.shared.teardown, &mut shared, &mut of_all.exchanges);
    sessions.extend(of_all.parts());
    sessions.retain(|session| !session.exchanges.is_empty());
    let lists = making.lists();
    for method in lists.keys().copied().chain(sessions.iter().flat_map(|session| &session.exchanges).map(|exchange| exchange.method)) {
        making.declare_feature(method);
    }
    making.look_at_itself();
    let Making { about, is_looked_at, only, unmade, .. } = making;
    Rehearsal { sessions, lists, is_described: is_looked_at, version: about.version.clone(), about: about.initialized(), only, unmade }
}

/// What the client of a test declares.
fn declared(case: &Case) -> Map<String, Value> {
    let steps = [&case.hooks.setup, &case.steps, &case.hooks.teardown].into_iter().flatten();
    let of_steps = steps.filter_map(|step| step.answers.as_ref());
    of_steps.fold(Answers::default().or(&case.answers), Answers::or).capabilities()
}

/// Exchanges, and what the step saves of the last one.
type Made = (Vec<MadeExchange>, Map<String, Value>);

#[derive(Default)]
struct Making<'a> {
    /// By method, the items by their names.
    items: BTreeMap<&'static str, BTreeMap<String, Map<String, Value>>>,
    /// Steps that list something, which are judged when all names are known.
    listings: Vec<(&'a Step, Listing, Map<String, Value>)>,
    /// Steps that look at what the server says of itself, which are judged when all is known of it.
    looks: Vec<(&'a Step, View, Map<String, Value>)>,
    about: About,
    /// A step looks at what the server says of itself, or subscribes to something.
    is_looked_at: bool,
    /// The era that the suite names.
    named: Option<Era>,
    only: Option<(Era, String)>,
    /// The step during which the server asks for what the answers of its test are for.
    asking: Option<(Place, Answers)>,
    /// What the test at hand is subscribed to, by name; the last one is a resource if it is a URI.
    subscribed: Vec<String>,
    /// Faults are injected into all tests, and into the one at hand.
    is_disturbed: bool,
    has_faults: bool,
    /// The server was started anew after the last request.
    is_restarted: bool,
    /// Numbers the values that are made up to be saved.
    saved: u32,
    /// Numbers the tasks.
    tasks: u32,
    unmade: Vec<UnmadeStep>,
}

impl<'a> Making<'a> {
    fn of(suite: &Suite) -> Self {
        let server = suite.servers.values().next();
        let named = server.and_then(|server| match server.era {
            EraChoice::Auto => None,
            EraChoice::Legacy => Some(Era::Legacy),
            EraChoice::Modern => Some(Era::Modern),
        });
        let file = Path::new(&suite.file).file_name().unwrap_or_default().to_string_lossy();
        let name = file.split('.').next().unwrap_or_default().to_owned();
        let offered = server.and_then(|server| server.protocol_version.clone()).filter(|version| Era::of(version) == Some(Era::Legacy));
        let is_disturbed = server.is_some_and(|server| server.bindings.iter().any(|binding| !binding.reach.faults.is_empty()));
        Self { named, is_disturbed, about: About::new(name, offered), ..Self::default() }
    }

    /// A test begins, with the answers of its own.
    fn begin(&mut self, case: &Case, answers: Option<&Answers>) {
        self.subscribed.clear();
        self.is_restarted &= case.isolation == Isolation::File;
        self.has_faults = self.is_disturbed || !case.faults.is_empty();
        self.asking = None;
        let Some(answers) = answers.filter(|answers| server_requests::are_any(answers)) else { return };
        let steps = case.hooks.setup.iter().chain(&case.steps).flat_map(Step::leaves);
        let mut asking = steps.filter(|step| step.answers.is_none() && step.task.is_none() && may_ask(&step.action));
        match (asking.next(), asking.next()) {
            (Some(only), None) => self.asking = Some((only.place.clone(), answers.clone())),
            (None, _) => {}
            (Some(_), Some(_)) => {
                let why = "several steps of the test may be the one during which the server asks: write them beside it".to_owned();
                self.unmade.push(UnmadeStep { place: case.place.clone(), title: format!("answers of {}", case.name), why });
            }
        }
    }

    fn steps(&mut self, steps: &'a [Step], scope: &mut Map<String, Value>, made: &mut Vec<MadeExchange>) {
        for step in steps.iter().flat_map(Step::leaves) {
            if let Action::Restart = step.action {
                self.is_restarted = true;
                self.subscribed.clear();
                continue;
            }
            let runs = step.repeat.as_ref().map_or(1, |repeat| repeat.times.min(MOST_RUNS));
            // Runs at the same time have one list of notifications.
            let have_own = step.repeat.as_ref().is_some_and(|repeat| repeat.concurrency == 1);
            if step.snapshot.is_some() {
                self.leave_out_part(step, "snapshot", "a mock serves what `expect` describes");
            }
            if runs > 1 && step.repeat.as_ref().is_some_and(|repeat| repeat.distinct.is_some()) {
                self.leave_out_part(step, "distinct values", "the responses to all `times` are made in the same way");
            }
            for n in 1..=runs {
                let of_run = if step.repeat.is_some() { counted(scope, n) } else { scope.clone() };
                let notified = step.expect.notifications.as_ref().filter(|_| n == 1 || have_own);
                match self.exchanges(step, &of_run, notified) {
                    Ok(Some((mut exchanges, saved))) => {
                        if let Some(first) = exchanges.first_mut() {
                            first.begins_anew = std::mem::take(&mut self.is_restarted);
                        }
                        made.extend(exchanges);
                        scope.extend(saved);
                    }
                    Ok(None) => break,
                    Err(why) => {
                        self.leave_out(step, why);
                        break;
                    }
                }
            }
        }
    }

    fn leave_out(&mut self, step: &Step, why: String) {
        self.unmade.push(UnmadeStep { place: step.place.clone(), title: step.action.title(), why });
    }

    /// The response of the step is served, and a part of what it expects is not.
    fn leave_out_part(&mut self, step: &Step, part: &str, why: &str) {
        self.unmade.push(UnmadeStep {
            place: step.place.clone(),
            title: format!("{part} of {}", step.action.title()),
            why: why.to_owned(),
        });
    }

    /// From here on the server speaks one era only, as `what` needs it.
    fn need(&mut self, era: Era, what: &str) -> Result<(), String> {
        let known = self.settled_era();
        if known.is_some_and(|known| known != era) {
            let because = self.only.as_ref().map_or("the server of the suite", |(_, because)| because.as_str());
            return Err(format!("{what} needs the {era} era, but {because} needs the other one"));
        }
        if self.only.is_none() {
            self.only = Some((era, what.to_owned()));
        }
        Ok(())
    }

    /// A capability that what the steps do needs.
    fn declare(&mut self, capability: Value) {
        let needed = std::mem::take(&mut self.about.needed);
        self.about.needed = overlaid(needed, capability);
    }

    /// The capability that a method belongs to.
    fn declare_feature(&mut self, method: &str) {
        match method.split('/').next().unwrap_or_default() {
            feature @ ("tools" | "prompts" | "resources") => self.declare(json!({ feature: {} })),
            "completion" => self.declare(json!({ "completions": {} })),
            _ => {}
        }
    }

    /// The requests of a step with what comes of them, and what it saves of that; nothing if it is none that a mock has to be told about.
    fn exchanges(&mut self, step: &'a Step, scope: &Map<String, Value>, notified: Option<&Matcher>) -> Result<Option<Made>, String> {
        match &step.action {
            Action::Call { .. } | Action::Read { .. } | Action::Prompt { .. } | Action::Complete { .. } | Action::Cancel { .. } => {}
            Action::List(listing) => {
                self.listings.push((step, *listing, scope.clone()));
                return Self::has_nothing_beside(step, scope).map(|()| None);
            }
            Action::Handshake => return self.look(step, View::Handshake, scope).map(Some),
            Action::Discover => return self.look(step, View::Result, scope).map(Some),
            Action::Subscribe(topic) => return self.subscribe(step, topic, scope).map(|()| None),
            Action::Unsubscribe(topic) => {
                self.subscribed.retain(|known| known != topic.name());
                return self.is_empty_result(step, scope).map(|()| None);
            }
            Action::Ping => return self.is_empty_result(step, scope).map(|()| None),
            Action::CloseStdin | Action::Signal(_) => return ends_as_expected(step, scope).map(|()| None),
            Action::Run(_) => return Ok(None),
            _ => {
                return Err(
                    "a mock serves only calls, reads, prompts, completions, lists, subscriptions and the handshake of a suite".to_owned()
                );
            }
        }
        if step.expect.exit.is_some() {
            return Err("a mock does not end by itself".to_owned());
        }
        let asked = request(step, Era::Legacy, scope).map_err(|problem| problem.message)?.ok_or("it sends no request")?;
        let mut events = self.events(step, &asked, scope, notified)?;
        let exchange = |method, params, events, response| MadeExchange {
            method,
            params,
            events,
            response,
            begins_anew: false,
            place: step.place.clone(),
            title: step.action.title(),
        };
        let silent = match (&step.action, step.expect.failure.as_ref().map(|failure| &failure.value)) {
            (Action::Cancel { .. }, _) => true,
            // What is injected keeps the response from coming.
            (_, Some(ExpectedFailure::NoAnswer(_))) if self.has_faults => {
                let response = Some(Ok(result_of(&asked, None)));
                return Ok(Some((vec![exchange(asked.method, asked.params, events, response)], Map::new())));
            }
            (_, Some(ExpectedFailure::NoAnswer(causes))) if causes.contains(&RetryCause::Timeout) => true,
            (_, Some(ExpectedFailure::NoAnswer(_))) => {
                return Err("a mock breaks no connection by itself: add the failure with `faults`".to_owned());
            }
            _ => false,
        };
        if silent {
            self.learn_name(&asked);
            return Ok(Some((vec![exchange(asked.method, asked.params, events, None)], Map::new())));
        }
        let mut why = "no value was found that fits what it expects".to_owned();
        for result in self.guesses(step, &asked, scope) {
            let payload = match &result {
                Ok(result) if asked.method == methods::TOOLS_CALL => Payload::from_call_result(result),
                Ok(result) => Payload::of(result.clone()),
                Err(error) => Payload::of(error.to_value()),
            };
            let response = result.clone().map_err(|error| error.to_value());
            let answer = Answer { result: result.map_err(ErrorResponse::Rpc), payload, frame: None, elapsed: Duration::ZERO };
            let flaw = shape(&step.action, &answer, Revision::LATEST_LEGACY.as_str());
            let (saved, unsaved) = save(step, &answer);
            match flaw.into_iter().chain(judge(step, &answer, scope)).chain(unsaved).next() {
                None => {
                    self.learn(&asked, &response);
                    let made = self.with_task(step, asked, response)?;
                    // All that is said comes before the first response.
                    let all = made
                        .into_iter()
                        .map(|(method, params, response)| exchange(method, params, std::mem::take(&mut events), Some(response)));
                    return Ok(Some((all.collect(), saved)));
                }
                Some(problem) => why = problem.message,
            }
        }
        Err(why)
    }

    /// The era that is spoken, once one is settled.
    fn settled_era(&self) -> Option<Era> {
        self.named.or(self.only.as_ref().map(|(era, _)| *era))
    }

    /// What the server says before it responds: requests for the answers of the step first, then the notifications that it expects.
    fn events(
        &mut self,
        step: &Step,
        asked: &Request,
        scope: &Map<String, Value>,
        notified: Option<&Matcher>,
    ) -> Result<Vec<MadeEvent>, String> {
        let of_case = self.asking.as_ref().filter(|(place, _)| *place == step.place).map(|(_, answers)| answers);
        let mut events = match step.answers.as_ref().or(of_case) {
            Some(answers) if server_requests::are_any(answers) => {
                if step.task.is_some() || !may_ask(&step.action) {
                    return Err("a mock of a suite sends requests only during calls, reads and prompts that are no tasks".to_owned());
                }
                server_requests::of(answers)?
            }
            _ => Vec::new(),
        };
        if events.iter().any(|event| matches!(event, MadeEvent::Request { response: Err(_), .. })) {
            self.need(Era::Legacy, "an error in response to a request of the server")?;
        }
        let Some(matcher) = notified else { return Ok(events) };
        let token = asked.params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let resource = self.subscribed.iter().rev().find(|name| name.contains(':'));
        let occasion = Occasion { progress_token: token, resource: resource.map(String::as_str) };
        let made = notifications::made(matcher, occasion, scope)?;
        for notification in made {
            let method = notification.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
            let params = notification.get("params").cloned().unwrap_or_else(|| json!({}));
            self.may_notify(&method, &params, step, asked)?;
            events.push(MadeEvent::Notification { method, params });
        }
        Ok(events)
    }

    /// Whether a client gets a notification during this request, in the eras in which it does.
    fn may_notify(&mut self, method: &str, params: &Value, step: &Step, asked: &Request) -> Result<(), String> {
        use methods::notifications as told;
        let sent = |key: &str| asked.params.get("_meta").and_then(|meta| meta.get(key));
        let is_subscribed = |name: &str| self.subscribed.iter().any(|known| known == name);
        let of_list = match method {
            told::TOOLS_LIST_CHANGED => Some(("tools", is_subscribed("tools"))),
            told::PROMPTS_LIST_CHANGED => Some(("prompts", is_subscribed("prompts"))),
            told::RESOURCES_LIST_CHANGED => Some(("resources", is_subscribed("resources") || is_subscribed("resource templates"))),
            _ => None,
        };
        if let Some((feature, is_subscribed)) = of_list {
            self.declare(json!({ feature: { "listChanged": true } }));
            return if is_subscribed { Ok(()) } else { self.need(Era::Legacy, &format!("`{method}` without `subscribe: {feature}`")) };
        }
        match method {
            told::PROGRESS if sent("progressToken").is_none() && step.max_timeout.is_none() => {
                Err("progress is sent only to a request with a token: write `meta: { progressToken: … }`".to_owned())
            }
            told::MESSAGE => {
                let has_level = sent(meta::LOG_LEVEL).is_some();
                self.declare(json!({ "logging": {} }));
                if has_level { Ok(()) } else { self.need(Era::Legacy, "a log message without a level in `meta`") }
            }
            told::RESOURCES_UPDATED => {
                let is_subscribed = params.get("uri").and_then(Value::as_str).is_some_and(is_subscribed);
                self.declare(json!({ "resources": { "subscribe": true } }));
                if is_subscribed { Ok(()) } else { self.need(Era::Legacy, "`notifications/resources/updated` without `subscribe`") }
            }
            told::CANCELLED | told::ELICITATION_COMPLETE | told::TASKS | told::TASKS_STATUS | told::SUBSCRIPTIONS_ACKNOWLEDGED => {
                Err(format!("a mock of a suite sends no `{method}`"))
            }
            _ => Ok(()),
        }
    }

    /// The exchanges of a call that is to become a task, or the one of a request.
    fn with_task(&mut self, step: &Step, asked: Request, response: Result<Value, Value>) -> Result<Vec<MadeRequest>, String> {
        if step.task.is_none() {
            return Ok(vec![(asked.method, asked.params, response)]);
        }
        let era = self.settled_era().unwrap_or(Era::Legacy);
        self.need(era, "a call as a task")?;
        self.declare(task::capability(era));
        if era == Era::Legacy {
            let items = self.items.entry(methods::TOOLS_LIST).or_default();
            let item = items.entry(asked.target.clone().unwrap_or_default()).or_default();
            item.entry("execution").or_insert_with(|| json!({ "taskSupport": "optional" }));
        }
        match response {
            Err(error) => {
                let mut params = asked.params;
                if era == Era::Legacy {
                    params.insert("task".to_owned(), json!({}));
                }
                Ok(vec![(asked.method, params, Err(error))])
            }
            Ok(result) => {
                self.tasks += 1;
                Ok(task::exchanges(era, asked.params, result, self.tasks))
            }
        }
    }

    /// Of a step that a mock says nothing during but its response.
    fn has_nothing_beside(step: &Step, scope: &Map<String, Value>) -> Result<(), String> {
        if step.expect.exit.is_some() {
            return Err("a mock does not end by itself".to_owned());
        }
        if step.expect.notifications.as_ref().is_some_and(|matcher| notifications::differ(matcher, &[], scope)) {
            return Err("a mock of a suite sends notifications only during calls, reads, prompts and completions".to_owned());
        }
        if step.answers.as_ref().is_some_and(server_requests::are_any) {
            return Err("a mock of a suite sends requests only during calls, reads and prompts that are no tasks".to_owned());
        }
        Ok(())
    }

    /// Of a step whose response is an empty result.
    fn is_empty_result(&mut self, step: &Step, scope: &Map<String, Value>) -> Result<(), String> {
        Self::has_nothing_beside(step, scope)?;
        let payload = Payload::of(json!({}));
        let answer = Answer { result: Ok(json!({})), payload, frame: None, elapsed: Duration::ZERO };
        let (_, unsaved) = save(step, &answer);
        if let Some(problem) = judge(step, &answer, scope).into_iter().chain(unsaved).next() {
            return Err(format!("a mock responds to it with an empty result: {}", problem.message));
        }
        let is_judged = step.expect.payload.is_some() || step.expect.result.is_some();
        // In the other era the response is that of another request.
        if is_judged { self.need(Era::Legacy, "an empty result") } else { Ok(()) }
    }

    fn subscribe(&mut self, step: &Step, topic: &Topic, scope: &Map<String, Value>) -> Result<(), String> {
        self.is_empty_result(step, scope)?;
        let name = match topic {
            Topic::Resource(uri) => {
                let uri = fill_text(uri, scope).map_err(|problem| problem.message)?;
                self.items.entry(methods::RESOURCES_LIST).or_default().entry(uri.clone()).or_default();
                self.declare(json!({ "resources": { "subscribe": true } }));
                uri
            }
            Topic::List(listing) => {
                let feature = match listing {
                    Listing::Tools => "tools",
                    Listing::Prompts => "prompts",
                    Listing::Resources | Listing::ResourceTemplates => "resources",
                };
                self.declare(json!({ feature: { "listChanged": true } }));
                listing.noun().to_owned()
            }
        };
        self.is_looked_at = true;
        self.subscribed.push(name);
        Ok(())
    }

    /// Takes in what a step expects the server to say of itself.
    fn look(&mut self, step: &'a Step, view: View, scope: &Map<String, Value>) -> Result<Made, String> {
        Self::has_nothing_beside(step, scope)?;
        if step.expect.failure.is_some() {
            self.need(Era::Legacy, "a refused `discover`")?;
            let refusal =
                RpcError { code: error_code::METHOD_NOT_FOUND, message: "Method not found: server/discover".to_owned(), data: None };
            let payload = Payload::of(refusal.to_value());
            let answer = Answer { result: Err(ErrorResponse::Rpc(refusal)), payload, frame: None, elapsed: Duration::ZERO };
            let problem = judge(step, &answer, scope).into_iter().next();
            return problem.map_or_else(|| Ok((Vec::new(), Map::new())), |problem| Err(problem.message));
        }
        if matches!(step.action, Action::Discover) {
            self.need(Era::Modern, "`discover`")?;
        }
        for matcher in [&step.expect.payload, &step.expect.result].into_iter().flatten() {
            let described = matcher.example(scope).ok_or("no value was found that fits what it expects")?;
            if let Some(era) = self.about.learn(&described) {
                self.need(era, "the version or era that the handshake is to have")?;
            }
        }
        self.is_looked_at |= self.about.is_described();
        self.looks.push((step, view, scope.clone()));
        let era = self.settled_era().unwrap_or(Era::Legacy);
        let (saved, unsaved) = save(step, &self.seen(step, view, era, scope));
        match unsaved.into_iter().next() {
            Some(problem) => Err(problem.message),
            None => Ok((Vec::new(), saved)),
        }
    }

    /// What a step sees of the server itself, in this era.
    fn seen(&self, step: &Step, view: View, era: Era, scope: &Map<String, Value>) -> Answer {
        let described = step.expect.payload.as_ref().and_then(|matcher| matcher.example(scope)).unwrap_or_default();
        let payload = Payload::of(self.about.seen(era, view, &described));
        let result = Ok(self.about.seen(era, View::Result, &Value::Null));
        Answer { result, payload, frame: None, elapsed: Duration::ZERO }
    }

    /// Judges the steps that look at the server itself, now that all is known of it.
    fn look_at_itself(&mut self) {
        for (step, view, scope) in std::mem::take(&mut self.looks) {
            let known = self.settled_era();
            let eras = known.map_or_else(|| vec![Era::Modern, Era::Legacy], |era| vec![era]);
            let problem = |era: Era| judge(step, &self.seen(step, view, era, &scope), &scope).into_iter().next();
            let problems: Vec<_> = eras.iter().map(|era| (*era, problem(*era))).collect();
            let passing: Vec<Era> = problems.iter().filter(|(_, problem)| problem.is_none()).map(|(era, _)| *era).collect();
            let found = match passing[..] {
                [] => problems.into_iter().find_map(|(_, problem)| problem).map(|problem| problem.message),
                [era] if eras.len() > 1 => self.need(era, "what the handshake is to say").err(),
                _ => None,
            };
            if let Some(why) = found {
                self.leave_out(step, why);
            }
        }
    }

    /// Responses that may be what the step expects.
    fn guesses(&mut self, step: &Step, asked: &Request, scope: &Map<String, Value>) -> Vec<Result<Value, RpcError>> {
        let failure = step.expect.failure.as_ref().map(|Spanned { value, .. }| value);
        let wanted = match &step.expect.payload {
            None => None,
            Some(matcher) => match matcher.example(scope) {
                Some(value) => Some(value),
                None => return Vec::new(),
            },
        };
        let error = |text: String| Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": true }));
        match failure {
            Some(ExpectedFailure::NoAnswer(_)) => Vec::new(),
            Some(ExpectedFailure::Rpc(matcher)) => {
                let made = matcher.as_ref().map_or_else(|| Some(json!({})), |matcher| matcher.example(scope)).or(wanted);
                made.map(|made| Err(rpc_error(&made))).into_iter().collect()
            }
            Some(ExpectedFailure::Tool(pattern)) => {
                let texts = [pattern.as_ref().and_then(|pattern| pattern.example(scope)), wanted.as_ref().map(text_of)];
                let known = texts.into_iter().flatten().collect::<Vec<_>>();
                if known.is_empty() { vec![error("error".to_owned())] } else { known.into_iter().map(error).collect() }
            }
            Some(ExpectedFailure::Either) => vec![error(wanted.as_ref().map_or_else(|| "error".to_owned(), text_of))],
            None => {
                let wanted = self.with_saved(step, wanted, scope);
                let over = step.expect.result.as_ref().and_then(|matcher| matcher.example(scope));
                let with = |base: Value| over.clone().map_or_else(|| base.clone(), |over| overlaid(base.clone(), over));
                // What fits may have no form that a client accepts, where the usual result fits as well.
                vec![Ok(with(result_of(asked, wanted))), Ok(with(result_of(asked, None))), Ok(result_of(asked, None))]
            }
        }
    }

    /// With values for what is saved and not described.
    fn with_saved(&mut self, step: &Step, mut value: Option<Value>, scope: &Map<String, Value>) -> Option<Value> {
        for (name, Spanned { value: selector, .. }) in &step.save {
            let known = Payload::of(value.clone().unwrap_or(Value::Null));
            if selector.select(&known, &Value::Null).is_ok() {
                continue;
            }
            self.saved += 1;
            if let Some(text) = selector.example(scope) {
                value = match value {
                    None => Some(Value::String(text)),
                    Some(Value::String(known)) => Some(Value::String(format!("{known}\n{text}"))),
                    other => other,
                };
            } else if let Some(keys) = keys_of(selector) {
                let made = Value::String(format!("{name}-{}", self.saved));
                set(value.get_or_insert_with(|| json!({})), &keys, made);
            }
        }
        value
    }

    /// Whoever lists finds what was asked for.
    fn learn(&mut self, asked: &Request, response: &Result<Value, Value>) {
        if response.is_ok() {
            self.learn_name(asked);
        }
    }

    fn learn_name(&mut self, asked: &Request) {
        let Some(target) = asked.target.clone() else { return };
        let arguments: Vec<Value> = asked.arguments.keys().map(|name| json!({ "name": name })).collect();
        let (list, more) = match asked.method {
            methods::TOOLS_CALL => (Listing::Tools, Map::new()),
            methods::RESOURCES_READ => (Listing::Resources, Map::new()),
            methods::PROMPTS_GET => (Listing::Prompts, Map::from_iter([("arguments".to_owned(), Value::Array(arguments))])),
            _ => return,
        };
        self.items.entry(list.method()).or_default().entry(target).or_default().extend(more);
    }

    /// The lists, with what the steps that list expect in them.
    fn lists(&mut self) -> BTreeMap<&'static str, Value> {
        let listings = std::mem::take(&mut self.listings);
        let mut exact: BTreeMap<&'static str, BTreeSet<&String>> = BTreeMap::new();
        for (step, listing, scope) in &listings {
            let items = self.items.entry(listing.method()).or_default();
            let described = step.expect.payload.as_ref().and_then(|matcher| matcher.example(scope));
            for (name, item) in described.as_ref().and_then(Value::as_object).into_iter().flatten() {
                let known = items.entry(name.clone()).or_default();
                known.extend(item.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            }
            if let Some(Spanned { value: names, .. }) = &step.expect.names {
                for name in names {
                    items.entry(name.clone()).or_default();
                }
                exact.entry(listing.method()).or_default().extend(names);
            }
        }
        for (method, names) in exact {
            self.items.entry(method).or_default().retain(|name, _| names.contains(name));
        }
        let mut lists = BTreeMap::new();
        for listing in [Listing::Tools, Listing::Prompts, Listing::Resources, Listing::ResourceTemplates] {
            let Some(items) = self.items.get(listing.method()).filter(|items| !items.is_empty()) else { continue };
            let items: Vec<Value> = items.iter().map(|(name, item)| item_of(listing, name, item)).collect();
            lists.insert(listing.method(), list_of(listing, items));
        }
        for (step, listing, scope) in listings {
            let result = lists.get(listing.method()).cloned().unwrap_or_else(|| list_of(listing, Vec::new()));
            let items = result.get(listing.members().0).and_then(Value::as_array).into_iter().flatten();
            let by_name = items.filter_map(|item| Some((item.get(listing.members().1)?.as_str()?.to_owned(), item.clone())));
            let payload = Payload::of(Value::Object(by_name.collect()));
            let answer = Answer { result: Ok(result), payload, frame: None, elapsed: Duration::ZERO };
            let flaw = shape(&step.action, &answer, Revision::LATEST_LEGACY.as_str());
            if let Some(problem) = flaw.into_iter().chain(judge(step, &answer, &scope)).next() {
                self.leave_out(step, problem.message);
            }
        }
        lists
    }
}

/// Whether a server may ask the client for something meanwhile, in both eras.
fn may_ask(action: &Action) -> bool {
    matches!(action, Action::Call { .. } | Action::Read { .. } | Action::Prompt { .. })
}

/// A mock ends with the code 0 when it is told to.
fn ends_as_expected(step: &Step, scope: &Map<String, Value>) -> Result<(), String> {
    let Some(Spanned { value: ExpectedExit { code, signal, .. }, .. }) = &step.expect.exit else { return Ok(()) };
    let is_killed = matches!(step.action, Action::Signal(ProcessSignal::Kill));
    let is_other_code = code.as_ref().is_some_and(|code| is_killed || !code.compare(&Payload::of(json!(0)), scope).is_empty());
    let is_other_signal = signal.is_some_and(|signal| !(is_killed && signal == ProcessSignal::Kill));
    if is_other_code || is_other_signal { Err("a mock ends with the code 0 when it is told to".to_owned()) } else { Ok(()) }
}

fn list_of(listing: Listing, items: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([(listing.members().0.to_owned(), Value::Array(items))]))
}

fn item_of(listing: Listing, name: &str, described: &Map<String, Value>) -> Value {
    let mut item = Map::from_iter([("name".to_owned(), json!(name)), (listing.members().1.to_owned(), json!(name))]);
    if listing == Listing::Tools {
        item.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    overlaid(Value::Object(item), Value::Object(described.clone()))
}

/// A result of the form that the method has.
fn result_of(asked: &Request, wanted: Option<Value>) -> Value {
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    let target = asked.target.as_deref().unwrap_or_default();
    let base = match asked.method {
        methods::TOOLS_CALL => {
            return match wanted {
                None => json!({ "content": text("ok".to_owned()) }),
                Some(value @ Value::Object(_)) => json!({ "content": text(value.to_string()), "structuredContent": value }),
                Some(Value::Null) => json!({ "content": [] }),
                Some(value) => json!({ "content": text(text_of(&value)) }),
            };
        }
        methods::RESOURCES_READ => json!({ "contents": [{ "uri": target, "text": "text" }] }),
        methods::PROMPTS_GET => json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "text" } }] }),
        _ => json!({ "completion": { "values": [] } }),
    };
    wanted.map_or_else(|| base.clone(), |wanted| overlaid(base.clone(), wanted))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rpc_error(made: &Value) -> RpcError {
    let message = made.get("message").map_or_else(|| "error".to_owned(), text_of);
    RpcError { code: made.get("code").and_then(Value::as_i64).unwrap_or(-32602), message, data: made.get("data").cloned() }
}

/// What is described, and of the rest what was there before: members, and the elements of lists one by one.
fn overlaid(base: Value, described: Value) -> Value {
    match (base, described) {
        (Value::Object(mut base), Value::Object(described)) => {
            for (name, value) in described {
                let under = base.get_mut(&name).map_or(Value::Null, Value::take);
                base.insert(name, overlaid(under, value));
            }
            Value::Object(base)
        }
        (Value::Array(base), Value::Array(described)) => {
            let under = base.first().cloned().unwrap_or(Value::Null);
            let over = |(place, value): (usize, Value)| overlaid(base.get(place).unwrap_or(&under).clone(), value);
            Value::Array(described.into_iter().enumerate().map(over).collect())
        }
        (_, described) => described,
    }
}

/// The keys that lead to what is saved, if there is nothing else in its path.
fn keys_of(selector: &Selector) -> Option<Vec<String>> {
    let path = selector.path();
    let path = path.strip_prefix("$.").unwrap_or(&path);
    let is_key = |key: &&str| !key.is_empty() && key.chars().all(|symbol| symbol.is_alphanumeric() || matches!(symbol, '_' | '-'));
    let keys: Vec<&str> = path.split('.').collect();
    (keys.iter().all(is_key) && keys[0] != "result").then(|| keys.into_iter().map(str::to_owned).collect())
}

fn set(value: &mut Value, keys: &[String], made: Value) {
    let Some((first, rest)) = keys.split_first() else {
        *value = made;
        return;
    };
    if let Some(members) = value.as_object_mut() {
        set(members.entry(first.clone()).or_insert_with(|| json!({})), rest, made);
    }
}
