//! What a server would say for the tests of a suite to pass: made from their expectations, and judged as in a run. Sends nothing.

use super::act::{Answer, ErrorResponse, shape};
use super::counted;
use super::judge::{judge, save};
use super::request::{Request, request};
use crate::judge::{Payload, Selector};
use crate::plan::{Action, ExpectedFailure, Isolation, Listing, Spanned, Step, Suite};
use mcproof_client::jsonrpc::RpcError;
use mcproof_protocol::{Era, Revision, methods};
use mcproof_record::Place;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Runs of a step with `times` that are rehearsed; a mock repeats the last response.
const MOST_RUNS: u32 = 1_000;

/// A request of a suite, and its response.
#[derive(Clone, Debug)]
pub struct MadeExchange {
    pub method: &'static str,
    pub params: Map<String, Value>,
    /// The result, or the `error` of a JSON-RPC error.
    pub response: Result<Value, Value>,
    place: Place,
    /// What the step does.
    title: String,
}

impl MadeExchange {
    /// Whether another one begins in the same way, and goes on in another.
    fn contradicts(&self, other: &Self) -> bool {
        self.method == other.method && self.params == other.params && self.response != other.response
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
    /// One for each test, or for all tests that share a server.
    pub sessions: Vec<Vec<MadeExchange>>,
    /// The results of the lists that have something, by their methods.
    pub lists: BTreeMap<&'static str, Value>,
    pub unmade: Vec<UnmadeStep>,
}

/// Makes the responses that the tests of a suite expect.
pub fn rehearse(suite: &Suite) -> Rehearsal {
    let mut making = Making::default();
    let (mut sessions, mut of_all, mut shared) = (Vec::<Vec<MadeExchange>>::new(), Vec::new(), Map::new());
    making.steps(&suite.shared.setup, &mut shared, &mut of_all);
    for case in &suite.cases {
        let mut made = Vec::new();
        let mut scope = case.variables.clone();
        if case.isolation == Isolation::File {
            scope.extend(shared.clone());
        }
        for steps in [&case.hooks.setup, &case.steps, &case.hooks.teardown] {
            making.steps(steps, &mut scope, &mut made);
        }
        match case.isolation {
            Isolation::File => of_all.extend(made),
            Isolation::Test => {
                // A mock learns from the requests which test it is in.
                let first =
                    made.first().filter(|first| sessions.iter().filter_map(|known| known.first()).any(|known| first.contradicts(known)));
                making.unmade.extend(first.map(|first| UnmadeStep {
                    place: first.place.clone(),
                    title: first.title.clone(),
                    why: "an earlier test begins with the same request, and expects another response".to_owned(),
                }));
                sessions.push(made);
            }
        }
    }
    making.steps(&suite.shared.teardown, &mut shared, &mut of_all);
    sessions.push(of_all);
    sessions.retain(|session| !session.is_empty());
    let lists = making.lists();
    Rehearsal { sessions, lists, unmade: making.unmade }
}

/// An exchange, and what the step saves of it.
type Made = (MadeExchange, Map<String, Value>);

#[derive(Default)]
struct Making<'a> {
    /// By method, the items by their names.
    items: BTreeMap<&'static str, BTreeMap<String, Map<String, Value>>>,
    /// Steps that list something, which are judged when all names are known.
    listings: Vec<(&'a Step, Listing, Map<String, Value>)>,
    /// Numbers the values that are made up to be saved.
    saved: u32,
    unmade: Vec<UnmadeStep>,
}

impl<'a> Making<'a> {
    fn steps(&mut self, steps: &'a [Step], scope: &mut Map<String, Value>, made: &mut Vec<MadeExchange>) {
        for step in steps.iter().flat_map(Step::leaves) {
            let runs = step.repeat.as_ref().map_or(1, |repeat| repeat.times.min(MOST_RUNS));
            for n in 1..=runs {
                let of_run = if step.repeat.is_some() { counted(scope, n) } else { scope.clone() };
                match self.exchange(step, &of_run) {
                    Ok(Some((exchange, saved))) => {
                        made.push(exchange);
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

    /// The request of a step with its response, and what it saves of that; nothing if it is none that a mock has to be told about.
    fn exchange(&mut self, step: &'a Step, scope: &Map<String, Value>) -> Result<Option<Made>, String> {
        match &step.action {
            Action::Call { .. } | Action::Read { .. } | Action::Prompt { .. } | Action::Complete { .. } => {}
            Action::List(listing) => {
                self.listings.push((step, *listing, scope.clone()));
                return Ok(None);
            }
            Action::Ping | Action::Restart | Action::CloseStdin | Action::Signal(_) | Action::Run(_) => return Ok(None),
            _ => return Err("a mock serves only calls, reads, prompts, completions and lists of a suite".to_owned()),
        }
        if step.task.is_some() {
            return Err("a suite does not describe how a task proceeds".to_owned());
        }
        if step.expect.notifications.is_some() {
            return Err("a mock of a suite sends no notifications".to_owned());
        }
        let asked = request(step, Era::Legacy, scope).map_err(|problem| problem.message)?.ok_or("it sends no request")?;
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
                    let (place, title) = (step.place.clone(), step.action.title());
                    return Ok(Some((MadeExchange { method: asked.method, params: asked.params, response, place, title }, saved)));
                }
                Some(problem) => why = problem.message,
            }
        }
        Err(why)
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
        let Some(target) = asked.target.clone().filter(|_| response.is_ok()) else { return };
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
