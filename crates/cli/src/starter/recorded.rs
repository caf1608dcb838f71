//! A suite out of recorded sessions: each session is a test, with the requests of its client as steps. Values that a response brought and
//! a later request sends are saved; what will be another value next time is matched by its type. Knows no files.

use super::expectation::{self, Known};
use super::now::Now;
use super::saved::{Saved, escaped};
use super::{BaseEnvironment, fleeting, yaml};
use crate::recording::with_port;
use mcproof_client::redaction::REDACTED;
use mcproof_client::{Elicitation, Sampling};
use mcproof_record::Direction;
use mcproof_suite::judge::{Payload, looks_like_a_pattern};
use mcproof_suite::{Environment, load};
use mcproof_trace::calls::{Call, CallKey, CallKind, CallStatus};
use mcproof_trace::diff::canonical;
use mcproof_trace::{SessionInfo, SessionKey};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use url::Url;

/// A recorded session and how its server was reached.
pub(crate) struct RecordedSession {
    pub info: SessionInfo,
    /// What the messages say of the era, if they do.
    pub era: Option<String>,
    /// The command that started the server.
    pub command: Option<Vec<String>>,
    /// The endpoint, over HTTP.
    pub url: Option<String>,
    /// Headers of the first request whose values were credentials, with what is known of these.
    pub credentials: Vec<(String, String)>,
    /// In the order in which they began.
    pub calls: Vec<Call>,
}

/// A suite as text, and what of the recording is not in it.
pub(crate) struct RecordedSuite {
    pub text: String,
    pub tests: usize,
    pub steps: usize,
    /// Requests that became no step, by why.
    pub left_out: BTreeMap<String, usize>,
    /// What of a response no step compares as a whole: the name of the test, the step, and the places.
    pub uncompared: Vec<String>,
    /// What a step sends as it was recorded although it came from the text of an earlier response: the test, the step, and the values.
    pub stale: Vec<String>,
}

/// Characters of the text of an error that are expected.
const LONGEST_ERROR: usize = 100;

pub(crate) fn write(sessions: &[RecordedSession], folder: Option<&str>, surroundings: &BaseEnvironment) -> RecordedSuite {
    let now = Now::of(surroundings.now);
    let (mut left_out, mut uncompared, mut stale) = (BTreeMap::new(), Vec::new(), Vec::new());
    let Some(first) = sessions.first() else {
        return RecordedSuite { text: String::new(), tests: 0, steps: 0, left_out, uncompared, stale };
    };
    let era = sessions.iter().filter(|session| session.calls.iter().any(is_request)).find_map(|session| session.era.as_deref());
    let head = head(first, era, folder);
    let (mut tests, mut steps, mut names) = (Vec::new(), 0, BTreeSet::new());
    let samples = Samples::of(sessions);
    for session in sessions {
        let context = Context { now: &now, surroundings, samples: &samples };
        if let (Some(era), Some(other)) = (era, session.era.as_deref().filter(|other| Some(*other) != era)) {
            let requests = session.calls.iter().filter(|call| is_request(call)).count();
            if requests > 0 {
                *left_out.entry(format!("of a client of the {other} era, where the suite tests the {era} one")).or_default() += requests;
            }
            continue;
        }
        let drafted = draft(session, &context, &mut left_out);
        // A step that no reader of suites takes is left out, so that what is written is a suite.
        let (good, bad): (Vec<_>, Vec<_>) = drafted
            .into_iter()
            .partition(|step| step.saves_or_uses || is_flawless(&render(&head, &[("a test".into(), &Map::new(), vec![step])])));
        if !bad.is_empty() {
            *left_out.entry("cannot be written in a suite".to_owned()).or_default() += bad.len();
        }
        if good.is_empty() {
            continue;
        }
        steps += good.len();
        let name = session.info.test.clone().unwrap_or_else(|| format!("recorded session {}", session.info.key));
        let name = if names.insert(name.clone()) { name } else { format!("{name} (session {})", session.info.key) };
        let told = |step: &Step, what: &[String]| format!("{name}: {} {}: {}", step.action, target(&step.object), listed(what));
        uncompared.extend(good.iter().filter(|step| !step.uncompared.is_empty()).map(|step| told(step, &step.uncompared)));
        stale.extend(good.iter().filter(|step| !step.stale.is_empty()).map(|step| told(step, &step.stale)));
        let answers = Client::of(session).answers_beside(&good);
        tests.push((name, answers, good));
    }
    let borrowed: Vec<_> = tests.iter().map(|(name, answers, steps)| (name.clone(), answers, steps.iter().collect())).collect();
    let told = stale.iter().map(|what| format!("# review: sent as recorded, from an earlier response: {}\n", one_line(what)));
    let head = told.collect::<String>() + &head;
    RecordedSuite { text: render(&head, &borrowed), tests: tests.len(), steps, left_out, uncompared, stale }
}

/// What a step is about, in a message.
fn target(object: &Value) -> String {
    object.as_str().map_or_else(|| yaml::flow(object), str::to_owned)
}

/// Some of the places in a response, in a message.
fn listed(places: &[String]) -> String {
    const MOST: usize = 5;
    let shown: Vec<&str> = places.iter().take(MOST).map(|place| if place.is_empty() { "the response" } else { place.as_str() }).collect();
    match places.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A text as a comment takes it.
fn one_line(text: &str) -> String {
    text.chars().map(|symbol| if symbol.is_control() { ' ' } else { symbol }).collect()
}

/// One step: an action, and the keys beside it.
struct Step {
    action: &'static str,
    object: Value,
    rest: Vec<(&'static str, Value)>,
    saves_or_uses: bool,
    /// Places of the response that are not compared, or by their type or a part only.
    uncompared: Vec<String>,
    /// Values that it sends as they were recorded, and that the server has made anew by then.
    stale: Vec<String>,
}

impl Step {
    fn new(action: &'static str, object: Value, rest: Vec<(&'static str, Value)>) -> Self {
        Self { action, object, rest, saves_or_uses: false, uncompared: Vec::new(), stale: Vec::new() }
    }
}

fn head(session: &RecordedSession, era: Option<&str>, folder: Option<&str>) -> String {
    let mut way = Map::new();
    // What is started again listens where nothing else does.
    let url = session.url.as_deref().and_then(|url| Url::parse(url).ok());
    let port = url.and_then(|url| url.port()).filter(|_| session.command.is_some());
    let written = |text: &String| {
        let text = text.replace("${", "$${");
        port.map_or_else(|| text.clone(), |port| with_port(&text, port))
    };
    if let Some(command) = &session.command {
        way.insert("command".into(), json!(command.iter().map(written).collect::<Vec<_>>()));
        if !session.info.env.is_empty() {
            way.insert("env".into(), json!(session.info.env));
        }
        way.extend(session.info.cwd.as_deref().or(folder).map(|folder| ("cwd".to_owned(), json!(folder))));
    }
    way.extend(session.url.as_ref().map(|url| ("url".to_owned(), json!(written(url)))));
    if !session.credentials.is_empty() {
        let from_environment = |(name, value): &(String, String)| {
            let variable = name.to_ascii_uppercase().replace('-', "_");
            (name.clone(), json!(value.replace("${", "$${").replace(REDACTED, &format!("${{env.{variable}}}"))))
        };
        way.insert("headers".into(), Value::Object(session.credentials.iter().map(from_environment).collect()));
    }
    let transport = match session.info.transport.as_str() {
        "http" | "sse" => session.info.transport.as_str(),
        _ => "stdio",
    };
    let mut text = String::from("# Written by `mcproof trace export --suite` from a recording.\n");
    if session.command.iter().flatten().chain(&session.url).any(|word| word.contains("[redacted]")) {
        text += "# review: secrets of the command are not in the recording; put `${env.NAME}` where it says [redacted]\n";
    }
    text += "server:\n";
    yaml::entry(&mut text, 2, transport, &Value::Object(way), None);
    // Some clients and servers speak the modern era over HTTP+SSE, which it does not have.
    if let Some(era) = era.filter(|_| transport != "sse") {
        yaml::entry(&mut text, 2, "era", &json!(era), None);
    }
    text
}

fn render(head: &str, tests: &[(String, &Map<String, Value>, Vec<&Step>)]) -> String {
    let mut text = format!("{head}\ntests:\n");
    for (name, answers, steps) in tests {
        text += &format!("  - name: {}\n", yaml::scalar(&name.replace("${", "$${")));
        if !answers.is_empty() {
            yaml::entry(&mut text, 4, "answers", &Value::Object((*answers).clone()), None);
        }
        text += "    steps:\n";
        for step in steps {
            let mut lines = String::new();
            match &step.object {
                Value::Null => lines += &format!("        {}:\n", step.action),
                object => yaml::entry(&mut lines, 8, step.action, object, None),
            }
            step.rest.iter().for_each(|(key, value)| yaml::entry(&mut lines, 8, key, value, None));
            text += &format!("      - {}", &lines[8..]);
        }
    }
    text
}

fn is_flawless(text: &str) -> bool {
    // What the suite takes from the environment is there when it runs.
    let names = text.split("${env.").skip(1).filter_map(|rest| rest.split_once('}'));
    let variables = names.map(|(name, _)| (name.to_owned(), "a value".to_owned())).collect();
    load("recorded", text, Path::new("."), &Environment { variables, ..Environment::default() }).is_ok()
}

fn draft(session: &RecordedSession, context: &Context<'_>, left_out: &mut BTreeMap<String, usize>) -> Vec<Step> {
    let calls: Vec<&Call> = session.calls.iter().filter(|call| is_request(call)).collect();
    let drafting = Drafting { session, calls: &calls, offered: Client::of(session).offered(), context };
    // A response of which there is no step brings nothing, and of a task, the step has the result only.
    let nothing = Saved::nothing();
    let drafted = drafting.steps(&nothing).map(|step| step.is_some_and(|step| step.is_ok()));
    let is_saved: Vec<bool> = drafted.zip(&calls).map(|(is_step, call)| is_step && may_be_saved(call) && task_of(call).is_none()).collect();
    let saved = Saved::find(&calls, &is_saved);
    let mut steps = Vec::new();
    for step in drafting.steps(&saved).flatten() {
        match step {
            Ok((step, more)) => {
                if more > 0 {
                    *left_out.entry("further answers of the client, where it answered the same differently".to_owned()).or_default() +=
                        more;
                }
                steps.push(step);
            }
            Err(why) => *left_out.entry(why).or_default() += 1,
        }
    }
    steps
}

/// What steps are made of.
struct Drafting<'a> {
    session: &'a RecordedSession,
    calls: &'a [&'a Call],
    offered: Offered,
    context: &'a Context<'a>,
}

/// A step and how many answers of the client it has no room for, or why there is none.
type Drafted = Result<(Step, usize), String>;

impl Drafting<'_> {
    /// For each request its step; none where it needs none.
    fn steps(&self, saved: &Saved) -> impl Iterator<Item = Option<Drafted>> {
        let mut lists = BTreeSet::new();
        self.calls.iter().enumerate().map(move |(index, call)| {
            let is_later_list = is_list(call) && !lists.insert(call.method.as_str());
            if is_later_list { None } else { self.step(index, call, saved) }
        })
    }

    fn step(&self, index: usize, call: &Call, saved: &Saved) -> Option<Drafted> {
        let Self { session, calls, offered, context } = *self;
        let alone = |step: Result<Step, &'static str>| step.map(|step| (step, 0)).map_err(str::to_owned);
        Some(match call.method.as_str() {
            "initialize" | "server/discover" | "ping" => return None,
            // The step that calls the tool as a task waits for its end.
            "tasks/get" | "tasks/result" | "tasks/update" => return None,
            "tools/call" | "resources/read" | "prompts/get" => {
                let step = match task_of(call) {
                    Some(task) => as_task(call, index, &outcome_of_task(&task, &calls[index..]), saved, context),
                    None => one(call, index, saved, context),
                };
                step.map(|step| with_answers(step, call, session)).map_err(str::to_owned)
            }
            _ if is_list(call) => alone(list(&calls[index..], offered, index, saved)),
            "completion/complete" => alone(completion(call, index, saved, context)),
            "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => alone(setting(call, index, saved, context)),
            method => Err(format!("`{method}` does not become a step")),
        })
    }
}

fn is_list(call: &Call) -> bool {
    matches!(call.method.as_str(), "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list")
}

/// Whether the step of a call may save parts of its response.
fn may_be_saved(call: &Call) -> bool {
    is_list(call) || matches!(call.method.as_str(), "tools/call" | "resources/read" | "prompts/get" | "completion/complete")
}

fn is_request(call: &Call) -> bool {
    call.kind == CallKind::Request && call.direction == Direction::ToServer
}

/// What each session got for the same request: what differs from one to the other differs next time as well.
#[derive(Default)]
struct Samples {
    of_request: HashMap<String, Vec<(SessionKey, Value)>>,
    requests: HashMap<CallKey, String>,
}

/// Results of one request that are kept.
const MOST_SAMPLES: usize = 20;

impl Samples {
    fn of(sessions: &[RecordedSession]) -> Self {
        let mut samples = Self::default();
        for session in sessions.iter().filter(|_| sessions.len() > 1) {
            // Of the calls so far: a result may depend on what the session did before, and is another one only where that was the same.
            let mut before = DefaultHasher::new();
            for call in session.calls.iter().filter(|call| is_request(call)) {
                let name = format!("{}\0{}\0{}", call.method, call.target.as_deref().unwrap_or_default(), canonical(&call.arguments()));
                let request = format!("{}\0{name}", before.finish());
                if matches!(call.method.as_str(), "tools/call" | "resources/read" | "prompts/get") {
                    name.hash(&mut before);
                }
                let Some(result) = result_of(call).filter(|_| call.status == CallStatus::Ok) else { continue };
                samples.requests.insert(call.key, request.clone());
                let known = samples.of_request.entry(request).or_default();
                if known.len() < MOST_SAMPLES {
                    known.push((session.info.key, result));
                }
            }
        }
        samples
    }

    /// `changed`, with what other sessions got otherwise.
    fn overlaid(&self, call: &Call, first: &Value, changed: Value) -> Value {
        let known = self.requests.get(&call.key).and_then(|request| self.of_request.get(request));
        let others = known.into_iter().flatten().filter(|(session, _)| *session != call.session);
        others.fold(changed, |changed, (_, sample)| overlaid(first, sample, changed))
    }
}

/// `changed`, with everything in it in which `sample` differs from `first`.
fn overlaid(first: &Value, sample: &Value, changed: Value) -> Value {
    match (first, sample, changed) {
        (first, sample, changed) if first == sample => changed,
        (Value::Object(first), Value::Object(sample), Value::Object(mut changed)) => {
            changed.retain(|name, _| sample.contains_key(name));
            let merged = changed.into_iter().map(|(name, value)| match (first.get(&name), sample.get(&name)) {
                (Some(first), Some(sample)) => {
                    let value = overlaid(first, sample, value);
                    (name, value)
                }
                _ => (name, value),
            });
            Value::Object(merged.collect())
        }
        (Value::Array(first), Value::Array(sample), Value::Array(changed))
            if first.len() == sample.len() && first.len() == changed.len() =>
        {
            first.iter().zip(sample).zip(changed).map(|((first, sample), changed)| overlaid(first, sample, changed)).collect()
        }
        (_, sample, _) => sample.clone(),
    }
}

struct Context<'a> {
    now: &'a Now,
    surroundings: &'a BaseEnvironment,
    samples: &'a Samples,
}

impl Context<'_> {
    /// What of the text of an error will be the same next time: its first line, or the form of it, if something in it is about this run.
    fn error_text(&self, text: &str, saved: &[&Value]) -> Option<ErrorText> {
        let line: String = text.lines().map(str::trim).find(|line| !line.is_empty())?.chars().take(LONGEST_ERROR).collect();
        let line = line.trim().to_owned();
        let is_steady = fleeting::changed(&json!(line), "", saved) == json!(line) && !self.now.is_in(&json!(line));
        if is_steady && !looks_like_a_pattern(&line) && !expectation::is_private(&line, self.surroundings) {
            return Some(ErrorText::Line(line));
        }
        let another = match fleeting::another(&line, saved) {
            same if same == line => fleeting::varied(&line),
            another => another,
        };
        let form = fleeting::common_form(&line, &another)?;
        // The line is found wherever it stands in the text.
        let form = form.strip_prefix('^')?.strip_suffix('$')?.to_owned();
        let is_shown = expectation::is_private(&form.replace('\\', ""), self.surroundings);
        (!is_shown && Regex::new(&form).is_ok_and(|form| form.is_match(&line))).then_some(ErrorText::Form(form))
    }
}

/// What is expected of the text of an error.
#[derive(Debug, PartialEq, Eq)]
enum ErrorText {
    /// This text, somewhere in it.
    Line(String),
    /// What this regular expression finds in it.
    Form(String),
}

/// What a list of the suite is to the recorded one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    /// The client of the suite declares what the recorded one did.
    Same,
    /// It declares more, for which a server may offer more.
    AtLeast,
}

/// What the recorded client declared to support, and how it responded to the server.
struct Client {
    capabilities: Value,
    answers: Map<String, Value>,
}

impl Client {
    fn of(session: &RecordedSession) -> Self {
        let declared = session.calls.iter().filter(|call| call.direction == Direction::ToServer).find_map(|call| {
            let request = call.request_json()?;
            let meta = request.pointer("/params/_meta/io.modelcontextprotocol~1clientCapabilities");
            meta.or_else(|| (call.method == "initialize").then(|| request.pointer("/params/capabilities")).flatten()).cloned()
        });
        let asked = session.calls.iter().filter(|call| call.direction == Direction::FromServer && call.kind == CallKind::Request);
        let mut answers = Map::new();
        for call in asked.filter(|call| call.status == CallStatus::Ok) {
            let Some(result) = result_of(call) else { continue };
            let mut given = Map::new();
            answer(&call.method, &result, &mut given);
            // Where it responds differently, the first response stands for what belongs to no step.
            for (name, value) in given {
                answers.entry(name).or_insert(value);
            }
        }
        Self { capabilities: declared.unwrap_or_default(), answers }
    }

    /// A suite that answers an elicitation declares forms and URLs.
    fn offered(&self) -> Offered {
        let elicitation = self.capabilities.get("elicitation");
        match elicitation.is_some_and(|modes| modes.get("url").is_none()) {
            true => Offered::AtLeast,
            false => Offered::Same,
        }
    }

    /// Answers that no step has, so that the suite declares what the client did. A server may also ask when nothing was called.
    fn answers_beside(&self, steps: &[Step]) -> Map<String, Value> {
        let given = |name: &str| {
            let mut answers = steps.iter().flat_map(|step| &step.rest).filter(|(key, _)| *key == "answers");
            answers.any(|(_, answers)| answers.get(name).is_some())
        };
        let idle = [("roots", json!([])), ("elicitation", json!("decline")), ("sampling", json!("reject"))];
        let missing = idle.into_iter().filter(|(name, _)| {
            let is_known = self.answers.contains_key(*name);
            is_known && *name == "roots" || self.capabilities.get(*name).is_some() && !given(name)
        });
        missing.map(|(name, idle)| (name.to_owned(), self.answers.get(name).cloned().unwrap_or(idle))).collect()
    }
}

/// `calls` begin with the one for the first page.
fn list(calls: &[&Call], mut offered: Offered, index: usize, saved: &Saved) -> Result<Step, &'static str> {
    let Some((call, later)) = calls.split_first() else { return Err("no request") };
    if call.arguments().get("cursor").is_some() {
        return Err("a list whose first page is not in the recording");
    }
    let (action, member, key) = match call.method.as_str() {
        "tools/list" => ("tools", "tools", "name"),
        "prompts/list" => ("prompts", "prompts", "name"),
        "resources/list" => ("resources", "resources", "uri"),
        _ => ("templates", "resourceTemplates", "uriTemplate"),
    };
    let mut page = result_of(call).ok_or("no result")?;
    let mut items = Vec::new();
    let mut later = later.iter().filter(|other| other.method == call.method);
    loop {
        items.extend(page.get(member).and_then(Value::as_array).ok_or("no result")?.iter().cloned());
        let Some(cursor) = page.get("nextCursor").filter(|cursor| !cursor.is_null()) else { break };
        // A client may stop early; a suite reads all pages.
        let Some(next) = later.find(|other| other.arguments().get("cursor") == Some(cursor)) else {
            offered = Offered::AtLeast;
            break;
        };
        page = result_of(next).ok_or("no result")?;
    }
    let names: Vec<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
    if names.iter().collect::<BTreeSet<_>>().len() != items.len() {
        return Err("a list in which an item has no name of its own");
    }
    if names.is_empty() && offered == Offered::Same {
        let nothing = json!({ "$type": "object", "$len": 0 });
        return Ok(Step::new(action, Value::Null, vec![("expect", nothing)]));
    }
    if names.is_empty() {
        return Err("an empty list, which may have more for another client");
    }
    // An id that the server made up is another one next time.
    let known = saved.values_at(index);
    let is_saved = |name: &str| known.iter().any(|value| value.as_str().is_some_and(|value| name.contains(value)));
    let is_steady = |name: &&str| !fleeting::is_made_up(name) && !is_saved(name);
    let (steady, others): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(is_steady);
    let mut step = match offered {
        Offered::Same if others.is_empty() => Step::new(action, escaped(&json!(names)), Vec::new()),
        Offered::Same if steady.is_empty() => {
            let all = json!({ "$type": "object", "$len": others.len() });
            Step::new(action, Value::Null, vec![("expect", all)])
        }
        _ if steady.is_empty() => {
            let some = json!({ "$type": "object", "$len": { "$gte": 1 } });
            Step::new(action, Value::Null, vec![("expect", some)])
        }
        Offered::Same | Offered::AtLeast => {
            let each = steady.iter().map(|name| ((*name).to_owned(), json!({ "$type": "object" }))).collect();
            Step::new(action, Value::Null, vec![("expect", escaped(&Value::Object(each)))])
        }
    };
    step.uncompared = others.iter().map(|name| (*name).to_owned()).collect();
    Ok(saving(step, index, saved))
}

fn completion(call: &Call, index: usize, saved: &Saved, context: &Context<'_>) -> Result<Step, &'static str> {
    let sent = call.arguments();
    let text = |path: &str| sent.pointer(path).filter(|value| value.is_string());
    let (key, target) = match (text("/ref/name"), text("/ref/uri")) {
        (Some(name), _) => ("prompt", name),
        (None, Some(uri)) => ("resource", uri),
        (None, None) => return Err("a completion of what is neither a prompt nor a resource"),
    };
    let (Some(argument), Some(value)) = (text("/argument/name"), text("/argument/value")) else {
        return Err("a completion without an argument");
    };
    let mut object = json!({ key: target, "argument": argument, "value": value });
    if let Some(others) = sent.pointer("/context/arguments") {
        object["context"] = others.clone();
    }
    let (mut rest, mut uncompared) = (Vec::new(), Vec::new());
    match call.status {
        CallStatus::Ok => {
            let first = result_of(call).and_then(|mut result| result.get_mut("completion").map(Value::take)).ok_or("no result")?;
            let second = fleeting::changed(&first, "", &saved.values_at(index));
            let known =
                Known { arguments: &sent, now: context.now, surroundings: context.surroundings, is_open: false, was_repeated: false };
            let expected = expectation::of_values(&first, &second, &known);
            uncompared = expectation::uncompared(&expected, &first);
            rest.push(("expect", escaped(&json!({ "completion": expected }))));
        }
        CallStatus::RpcError => rest.push(rpc_error(call, context, &saved.values_at(index))),
        _ => return Err("no response"),
    }
    let (object, saves_or_uses) = saved.filled(&object, index);
    let step = Step { uncompared, saves_or_uses, stale: saved.stale_at(index), ..Step::new("complete", object, rest) };
    Ok(saving(step, index, saved))
}

/// What changes how the server treats the session.
fn setting(call: &Call, index: usize, saved: &Saved, context: &Context<'_>) -> Result<Step, &'static str> {
    let sent = call.arguments();
    let (action, object) = match call.method.as_str() {
        "logging/setLevel" => ("raw", json!({ "jsonrpc": "2.0", "id": format!("step-{index}"), "method": call.method, "params": sent })),
        method => {
            let uri = sent.get("uri").filter(|uri| uri.is_string()).ok_or("no URI")?;
            (if method == "resources/subscribe" { "subscribe" } else { "unsubscribe" }, uri.clone())
        }
    };
    let rest = match call.status {
        CallStatus::Ok => Vec::new(),
        CallStatus::RpcError => vec![rpc_error(call, context, &saved.values_at(index))],
        _ => return Err("no response"),
    };
    let (object, uses) = saved.filled(&object, index);
    Ok(Step { saves_or_uses: uses, stale: saved.stale_at(index), ..Step::new(action, object, rest) })
}

fn rpc_error(call: &Call, context: &Context<'_>, saved: &[&Value]) -> (&'static str, Value) {
    let Some(code) = call.code else { return ("rpc_error", json!(true)) };
    let mut expected = json!({ "code": code });
    let text = call.message.as_deref().and_then(|message| Some((message, context.error_text(message, saved)?)));
    match text {
        None => {}
        Some((message, ErrorText::Line(line))) if line == message => expected["message"] = json!(line),
        // A text is compared as a whole, and only its first line is expected.
        Some((_, ErrorText::Line(line))) => expected["message"] = json!({ "$regex": regex::escape(&line) }),
        Some((_, ErrorText::Form(form))) => expected["message"] = json!({ "$regex": form }),
    }
    ("rpc_error", escaped(&expected))
}

/// A task that a call became, by its id.
fn task_of(call: &Call) -> Option<String> {
    let result = result_of(call).filter(|_| call.method == "tools/call")?;
    let is_task = result["resultType"] == "task";
    let id = result.pointer("/task/taskId").or_else(|| result.get("taskId").filter(|_| is_task))?;
    id.as_str().map(str::to_owned)
}

/// How a task ended in the recording.
enum TaskOutcome {
    Result(Value),
    Canceled,
    /// The client did not ask for the result, or there was none.
    Unknown,
}

/// `calls` begin with the one that became the task.
fn outcome_of_task(task: &str, calls: &[&Call]) -> TaskOutcome {
    let about = |call: &&&Call| call.arguments().get("taskId").and_then(Value::as_str) == Some(task);
    let of_task: Vec<&&Call> = calls.iter().filter(about).collect();
    // Up to 2025-11-25 the result has a request of its own; later, it comes with the state of the task.
    let mut results = of_task.iter().filter(|call| call.status != CallStatus::Pending).filter_map(|call| match call.method.as_str() {
        "tasks/result" => result_of(call),
        "tasks/get" => result_of(call)?.get_mut("result").map(Value::take),
        _ => None,
    });
    match results.rfind(Value::is_object) {
        Some(result) => TaskOutcome::Result(result),
        None if of_task.iter().any(|call| call.method == "tasks/cancel") => TaskOutcome::Canceled,
        None => TaskOutcome::Unknown,
    }
}

/// A call that became a task: the step waits for its end, and its result is what is expected.
fn as_task(call: &Call, index: usize, outcome: &TaskOutcome, saved: &Saved, context: &Context<'_>) -> Result<Step, &'static str> {
    let (mut step, arguments) = asking(call, index, saved)?;
    step.rest.push(("task", json!(true)));
    match outcome {
        TaskOutcome::Canceled => return Err("a task that was canceled"),
        TaskOutcome::Unknown => step.uncompared.push("the result of the task, which is not in the recording".to_owned()),
        TaskOutcome::Result(result) if result["isError"] == true => {
            expect_tool_error(&mut step, call.target.as_deref().unwrap_or_default(), Some(result), index, saved, context);
        }
        TaskOutcome::Result(first) => {
            let second = fleeting::changed(first, "", &saved.values_at(index));
            expect(&mut step, first, &second, &arguments, index, saved, context)?;
        }
    }
    Ok(saving(step, index, saved))
}

/// The step as far as the client decides: what it asks for, with which arguments.
fn asking(call: &Call, index: usize, saved: &Saved) -> Result<(Step, Value), &'static str> {
    let target = call.target.as_deref().ok_or("no name")?;
    let action = match call.method.as_str() {
        "tools/call" => "call",
        "resources/read" => "read",
        _ => "prompt",
    };
    let arguments = call.arguments();
    let (mut sent, mut uses) = saved.filled(&arguments, index);
    take_from_environment(&mut sent, "");
    let mut rest = Vec::new();
    if action != "read" && sent.as_object().is_some_and(|members| !members.is_empty()) {
        rest.push(("with", sent));
    }
    let mut object = escaped(&json!(target));
    if action == "read" {
        (object, uses) = saved.filled_text(target, index);
    }
    let stale = saved.stale_at(index);
    Ok((Step { saves_or_uses: uses, stale, ..Step::new(action, object, rest) }, arguments))
}

/// What was redacted is a variable of the environment, by the name of its argument.
fn take_from_environment(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text.contains(REDACTED) => {
            let plain = |symbol: char| if symbol.is_ascii_alphanumeric() { symbol.to_ascii_uppercase() } else { '_' };
            let variable: String = name.chars().map(plain).collect();
            let begins = variable.starts_with(|first: char| first.is_ascii_alphabetic());
            *text = text.replace(REDACTED, &format!("${{env.{}{variable}}}", if begins { "" } else { "SECRET_" }));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_from_environment(item, name)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| take_from_environment(value, name)),
        _ => {}
    }
}

/// What the step saves for later ones.
fn saving(mut step: Step, index: usize, saved: &Saved) -> Step {
    let saves = saved.of(index);
    if !saves.is_empty() {
        step.saves_or_uses = true;
        step.rest.push(("save", Value::Object(saves)));
    }
    step
}

/// Adds the error that the next result has to be.
fn expect_tool_error(step: &mut Step, target: &str, result: Option<&Value>, index: usize, saved: &Saved, context: &Context<'_>) {
    let blocks = result.and_then(|result| result.get("content")?.as_array());
    let told = blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str()).find(|text| !text.trim().is_empty());
    let told = told.unwrap_or_default();
    let text = context.error_text(told, &saved.values_at(index)).map(|text| match text {
        ErrorText::Line(line) => line,
        ErrorText::Form(form) => format!("/{form}/"),
    });
    // Servers say which tool they do not have.
    let name = || (told.contains(target) && !looks_like_a_pattern(target)).then(|| target.to_owned());
    let expected = text.or_else(name).map_or(json!(true), |text| escaped(&json!(text)));
    if expected == json!(true) {
        step.uncompared.push("the text of the error".to_owned());
    }
    step.rest.push(("tool_error", expected));
}

/// Adds what the next result has to be, and what of it is not expected.
fn expect(
    step: &mut Step,
    first: &Value,
    second: &Value,
    arguments: &Value,
    index: usize,
    saved: &Saved,
    context: &Context<'_>,
) -> Result<(), &'static str> {
    let known = Known { arguments, now: context.now, surroundings: context.surroundings, is_open: false, was_repeated: false };
    let (key, expected, found) = match step.action {
        "call" => {
            let (key, expected) = expectation::of_call(first, second, &known);
            let mut found = if key == "expect" { Payload::from_call_result(first).value } else { first.clone() };
            if let Some(members) = found.as_object_mut().filter(|_| key == "result") {
                // The step itself looks at the others.
                members.retain(|name, _| matches!(name.as_str(), "content" | "structuredContent"));
            }
            (key, expected, found)
        }
        action => {
            let member = if action == "read" { "contents" } else { "messages" };
            let (first, second) = (first.get(member).ok_or("no result")?, second.get(member).ok_or("no result")?);
            ("expect", json!({ member: expectation::of_values(first, second, &known) }), json!({ member: first }))
        }
    };
    step.uncompared = expectation::uncompared(&expected, &found);
    let mut expected = escaped(&expected);
    saved.name_repeated(&mut expected, &found, arguments, index);
    step.rest.push((key, expected));
    Ok(())
}

fn one(call: &Call, index: usize, saved: &Saved, context: &Context<'_>) -> Result<Step, &'static str> {
    let (mut step, arguments) = asking(call, index, saved)?;
    let asks_for_task = call.request_json().is_some_and(|request| request.pointer("/params/task").is_some());
    if asks_for_task && call.status != CallStatus::Ok {
        step.rest.push(("task", json!(true)));
    }
    match call.status {
        CallStatus::ToolError => {
            let target = call.target.as_deref().unwrap_or_default();
            expect_tool_error(&mut step, target, result_of(call).as_ref(), index, saved, context);
        }
        CallStatus::RpcError => step.rest.push(rpc_error(call, context, &saved.values_at(index))),
        CallStatus::Ok => {
            let first = result_of(call).ok_or("no result")?;
            let second = context.samples.overlaid(call, &first, fleeting::changed(&first, "", &saved.values_at(index)));
            expect(&mut step, &first, &second, &arguments, index, saved, context)?;
        }
        CallStatus::InputRequired => return Err("a request for input, which the next request brings"),
        CallStatus::Canceled => return Err("canceled"),
        CallStatus::HttpError => return Err("an HTTP error"),
        CallStatus::NoResponse | CallStatus::Pending => return Err("no response"),
    }
    Ok(saving(step, index, saved))
}

/// What the client responded to the server meanwhile, and how many of its responses the step has no room for: it says each thing once.
fn with_answers(mut step: Step, call: &Call, session: &RecordedSession) -> (Step, usize) {
    let (mut answers, mut more) = (Map::new(), 0);
    let mut take = |method: &str, result: &Value| {
        let mut given = Map::new();
        answer(method, result, &mut given);
        for (name, value) in given {
            more += usize::from(answers.get(&name).is_some_and(|known| *known != value));
            answers.entry(name).or_insert(value);
        }
    };
    let during = session.calls.iter().filter(|other| other.direction == Direction::FromServer && other.parent == Some(call.key));
    for asked in during.filter(|other| other.kind == CallKind::Request && other.status == CallStatus::Ok) {
        let Some(result) = result_of(asked) else { continue };
        take(&asked.method, &result);
    }
    // In the modern era, a request brings what was asked for.
    let brought = call.request_json().and_then(|request| request.pointer("/params/inputResponses").cloned());
    for (_, result) in brought.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let method = if result.get("action").is_some() {
            "elicitation/create"
        } else if result.get("roots").is_some() {
            "roots/list"
        } else {
            "sampling/createMessage"
        };
        take(method, result);
    }
    if !answers.is_empty() {
        step.rest.push(("answers", Value::Object(answers)));
    }
    (step, more)
}

fn answer(method: &str, result: &Value, answers: &mut Map<String, Value>) {
    let (key, value) = match method {
        // Values alone would bring the defaults of the form, which this client may not have sent.
        "elicitation/create" => match result["action"].as_str() {
            Some(action @ ("decline" | "cancel")) if *result == json!({ "action": action }) => ("elicitation", json!(action)),
            Some(_) => ("elicitation", json!({ Elicitation::RESULT: result })),
            None => return,
        },
        "sampling/createMessage" => match result.get("content") {
            Some(content) => ("sampling", sampled_text(result, content).unwrap_or_else(|| result.clone())),
            None => return,
        },
        "roots/list" => {
            let roots = result["roots"].as_array().into_iter().flatten().filter_map(|root| {
                let (uri, name) = (root.get("uri")?, root.get("name"));
                Some(name.map_or_else(|| uri.clone(), |name| json!({ "uri": uri, "name": name })))
            });
            ("roots", Value::Array(roots.collect()))
        }
        _ => return,
    };
    answers.insert(key.to_owned(), escaped(&value));
}

/// The text that a suite says, if it becomes this very result.
fn sampled_text(result: &Value, content: &Value) -> Option<Value> {
    let text = content.get("text")?.as_str().filter(|text| *text != "reject")?;
    (Sampling::Text(text.to_owned()).result().as_ref() == Some(result)).then(|| json!(text))
}

fn result_of(call: &Call) -> Option<Value> {
    call.response_json()?.get_mut("result").map(Value::take)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_a_suite_answers_what_was_recorded() {
        let check = |method: &str, result: Value, expected: Value| {
            let mut answers = Map::new();
            answer(method, &result, &mut answers);
            assert_eq!(Value::Object(answers), expected, "{result}");
        };
        let accepted = json!({ "action": "accept", "content": { "name": "${Ann}" } });
        let exact = json!({ "action": "accept", "content": { "name": "$${Ann}" } });
        check("elicitation/create", accepted, json!({ "elicitation": { "$result": exact } }));
        check("elicitation/create", json!({ "action": "accept" }), json!({ "elicitation": { "$result": { "action": "accept" } } }));
        check("elicitation/create", json!({ "action": "decline" }), json!({ "elicitation": "decline" }));
        let odd = json!({ "action": "cancel", "content": null });
        check("elicitation/create", odd.clone(), json!({ "elicitation": { "$result": odd } }));
        let said = |text: &str| Sampling::Text(text.to_owned()).result().unwrap();
        check("sampling/createMessage", said("hi"), json!({ "sampling": "hi" }));
        check("sampling/createMessage", said("reject"), json!({ "sampling": said("reject") }));
        let mut other = said("hi");
        other["stopReason"] = json!("maxTokens");
        check("sampling/createMessage", other.clone(), json!({ "sampling": other }));
    }

    #[test]
    fn what_was_redacted_comes_from_the_environment() {
        let mut sent =
            json!({ "user": "ann", "new-secret": "[redacted]", "all": [{ "header": "Bearer [redacted]" }, 5], "1": "[redacted]" });
        take_from_environment(&mut sent, "");
        let all = json!([{ "header": "Bearer ${env.HEADER}" }, 5]);
        assert_eq!(sent, json!({ "user": "ann", "new-secret": "${env.NEW_SECRET}", "all": all, "1": "${env.SECRET_1}" }));
    }

    #[test]
    fn an_error_is_expected_by_what_it_says() {
        let surroundings = BaseEnvironment {
            now: std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_779_019_200),
            private: vec!["/home/me".to_owned()],
            environment: BTreeMap::new(),
            secrets: mcproof_client::redaction::Redactor::default(),
        };
        let now = Now::of(surroundings.now);
        let context = Context { now: &now, surroundings: &surroundings, samples: &Samples::default() };
        let check = |text: &str, expected: Option<ErrorText>| assert_eq!(context.error_text(text, &[&json!("doc-17")]), expected, "{text}");
        let form = |form: &str| Some(ErrorText::Form(form.to_owned()));
        check("\nno such id nope\nat x", Some(ErrorText::Line("no such id nope".to_owned())));
        check("no such order 3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e41", form(r"no such order \S.*"));
        check("cannot read /home/me/x.txt", form(r"cannot read \S.*"));
        check("closed on 2026-05-17", form(r"closed on \S.*"));
        check("no such document: doc-17", form(r"no such document: \S.*"));
        check("12:30:05", None);
        check("", None);
    }

    #[test]
    fn what_another_session_got_otherwise_will_be_another_value() {
        let check =
            |first: Value, sample: Value, expected: Value| assert_eq!(overlaid(&first, &sample, first.clone()), expected, "{sample}");
        check(json!({ "id": 1, "a": "x" }), json!({ "id": 1, "a": "x" }), json!({ "id": 1, "a": "x" }));
        check(json!({ "id": 1, "a": "x" }), json!({ "id": 2, "a": "x" }), json!({ "id": 2, "a": "x" }));
        check(json!({ "id": 1, "a": "x" }), json!({ "a": "x" }), json!({ "a": "x" }));
        check(json!([1, { "b": 2 }]), json!([1, { "b": 3 }]), json!([1, { "b": 3 }]));
        check(json!([1]), json!([1, 2]), json!([1, 2]));
        check(json!("a"), json!("b"), json!("b"));
    }
}
