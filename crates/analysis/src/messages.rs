//! Whether a message of a server matches the schema of its revision: the envelope, and for each method its params, its
//! result or its error. Knows no transcript and no verdict.

use mcproof_protocol::{error_code, methods};

mod check;
mod shape;
mod table;
#[cfg(test)]
mod tests;

use self::check::{Check, Focus, Place, shown};
use self::shape::{Kind, Presence};
use self::table::{
    CACHE_HINTS, CACHED_RESULTS, ERROR, ERROR_DATA, INPUT_METHODS, INPUT_REQUIRED, NOTIFICATION, NOTIFICATIONS, REQUEST, REQUESTS, RESULT,
    RESULTS, SAMPLING_RESULT, TASK_EXTENSION, TASK_RESULT,
};
use mcproof_protocol::Revision;
use serde_json::{Map, Value};

/// What is known about a message besides its own content.
#[derive(Clone, Copy, Debug, Default)]
pub enum About<'a> {
    /// The response to this request of the client. Unknown params count as if they declared everything.
    Response { method: &'a str, params: Option<&'a Value> },
    /// Nothing: a notification, a request, or a response without a request.
    #[default]
    Itself,
}

/// One thing that is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFlaw {
    /// The place in the message (RFC 6901): of the wrong value, or of what is missing.
    pub pointer: String,
    /// A sentence without its period. It quotes the server, so it has to be escaped before it is displayed.
    pub message: String,
    /// What the sentence says of the place, without its name: the same words for the same flaw of several items.
    pub predicate: String,
}

/// What is wrong with the shape of one message; of a batch, each message is one. Reports at most the first hundred flaws.
///
/// An unknown `revision` counts as the newest that is not after it. `initialize` is always judged as a method of the legacy
/// era, and `server/discover` as one of the modern era, because a client sends them before a revision is negotiated.
pub fn flaws(message: &Value, about: About<'_>, revision: &str) -> Vec<MessageFlaw> {
    judge(message, about, revision, Focus::Shape)
}

/// What is wrong with the shape of the result of a request alone: pointers begin with `/result`.
pub fn result_flaws(result: &Value, method: &str, revision: &str) -> Vec<MessageFlaw> {
    let about = About::Response { method, params: None };
    let revision = spoken(about, Revision::at(revision));
    let mut check = Check::new(revision, Focus::Shape);
    judge_result(&mut check, result, about, revision);
    check.into_flaws()
}

/// What is wrong with what a client returns for `sampling/createMessage`: pointers begin with `/result`.
pub fn sampling_result_flaws(result: &Value) -> Vec<MessageFlaw> {
    let mut check = Check::new(Revision::MODERN, Focus::Shape);
    let place = Place::MESSAGE.member("result");
    check.value(&OF_SAMPLING, result, &place);
    check.into_flaws()
}

/// A member that is called `name` but for underscores, hyphens and capitals, in place of that one: `is_error` for `isError`.
pub fn misspelt<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    let object = object.as_object().filter(|object| !object.contains_key(name))?;
    object.keys().map(String::as_str).find(|key| is_misspelt(key, name))
}

/// Members whose absence says something else than what the server meant. The schema allows members of its own besides them.
const TELLING: [&str; 4] = ["isError", "structuredContent", "nextCursor", "outputSchema"];

fn is_misspelt(key: &str, name: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|character| !matches!(character, '_' | '-')).collect::<String>().to_lowercase();
    TELLING.contains(&name) && key != name && plain(key) == plain(name)
}

/// Whether any revision has a notification of a server with this method.
pub fn is_notification(method: &str) -> bool {
    NOTIFICATIONS.iter().any(|known| known.name == method)
}

/// Whether this revision has one.
pub fn has_notification(method: &str, revision: &str) -> bool {
    let revision = Revision::at(revision);
    NOTIFICATIONS.iter().any(|known| known.name == method && known.span.has(revision))
}

/// Whether this revision has a request of a server with this method.
pub fn has_request(method: &str, revision: &str) -> bool {
    let revision = Revision::at(revision);
    REQUESTS.iter().any(|known| known.name == method && known.span.has(revision))
}

/// The members of content that have to be base64 and are not (`data` of images and audio, `blob` of resources).
pub fn base64_flaws(message: &Value, about: About<'_>, revision: &str) -> Vec<MessageFlaw> {
    judge(message, about, revision, Focus::Base64)
}

fn judge(message: &Value, about: About<'_>, revision: &str, focus: Focus) -> Vec<MessageFlaw> {
    let revision = spoken(about, Revision::at(revision));
    let mut check = Check::new(revision, focus);
    let place = Place::MESSAGE;
    let Some(message) = message.as_object() else {
        check.flaw(&place, &format!("is {}; it has to be an object", shown(message)));
        return check.into_flaws();
    };
    match message.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        Some(other) => check.flaw(&place.member("jsonrpc"), &format!("is {}; it has to be \"2.0\"", shown(other))),
        None => check.missing(&place.member("jsonrpc"), "\"2.0\""),
    }
    match message.get("method") {
        Some(Value::String(method)) => initiative(&mut check, method, message),
        Some(other) => check.flaw(&place.member("method"), &format!("is {}; it has to be a string", shown(other))),
        None => answer(&mut check, message, about, revision),
    }
    check.into_flaws()
}

fn spoken(about: About<'_>, revision: Revision) -> Revision {
    match about {
        About::Response { method: methods::INITIALIZE, .. } => revision.min(Revision::V2025_11_25),
        About::Response { method: methods::SERVER_DISCOVER, .. } => revision.max(Revision::V2026_07_28),
        _ => revision,
    }
}

/// A notification or a request: nothing else has a method.
fn initiative(check: &mut Check, method: &str, message: &Map<String, Value>) {
    let place = Place::MESSAGE;
    let (id, id_place) = (message.get("id"), place.member("id"));
    let request = check.known(REQUESTS, method);
    let (known, any) = match id {
        _ if method.starts_with("notifications/") => {
            if let Some(id) = id {
                check.flaw(&id_place, &format!("is {}; a notification must not have it", shown(id)));
            }
            (check.known(NOTIFICATIONS, method), &ANY_NOTIFICATION)
        }
        Some(id) => {
            check.value(&ID, id, &id_place);
            (request, &ANY_REQUEST)
        }
        None => {
            if request.is_some() {
                check.missing(&id_place, &format!("there, because `{method}` is a request"));
            }
            (request, &ANY_NOTIFICATION)
        }
    };
    let place = place.member("params");
    match message.get("params") {
        Some(params) => {
            check.value(any, params, &place);
            if let Some(known) = known {
                check.value(&known.kind, params, &place);
            }
        }
        None if known.is_some_and(|known| known.presence == Presence::Required) => check.missing(&place, "an object"),
        None => {}
    }
}

fn answer(check: &mut Check, message: &Map<String, Value>, about: About<'_>, revision: Revision) {
    let place = Place::MESSAGE;
    let id_place = place.member("id");
    match (message.get("id"), message.contains_key("result")) {
        (Some(id), true) => check.value(&ID, id, &id_place),
        // JSON-RPC requires null where the id could not be read. Since 2025-11-25, MCP allows leaving it out.
        (Some(id), false) if !id.is_null() => check.value(&ID, id, &id_place),
        (None, answered) if answered || revision < Revision::V2025_11_25 => check.missing(&id_place, "the id of the request"),
        _ => {}
    }
    match (message.get("result"), message.get("error")) {
        (None, None) => check.flaw(&place, "has neither `method` nor `result` nor `error`"),
        (Some(result), error) => {
            if error.is_some() {
                check.flaw(&place.member("error"), "stands beside a `result`; a response has one of them");
            }
            judge_result(check, result, about, revision);
        }
        (None, Some(error)) => judge_error(check, error, revision),
    }
}

fn judge_result(check: &mut Check, result: &Value, about: About<'_>, revision: Revision) {
    let place = Place::MESSAGE.member("result");
    check.value(&ANY_RESULT, result, &place);
    let Some(object) = result.as_object() else { return };
    let (method, params) = match about {
        About::Response { method, params } => (method, params),
        About::Itself => ("", None),
    };
    if revision >= Revision::V2026_07_28 {
        match result_type(check, object, method, params) {
            ResultType::Complete if CACHED_RESULTS.contains(&method) => check.shape(&CACHE_HINTS, object, &place),
            ResultType::Complete => {}
            ResultType::InputRequired => {
                check.shape(&INPUT_REQUIRED, object, &place);
                if !object.contains_key("inputRequests") && !object.contains_key("requestState") {
                    check.flaw(&place, "has neither `inputRequests` nor `requestState`");
                }
                return;
            }
            ResultType::Task => return check.shape(&TASK_RESULT, object, &place),
            ResultType::Other => return,
        }
    } else if revision == Revision::V2025_11_25
        && method == methods::TOOLS_CALL
        && object.contains_key("task")
        && params.is_none_or(|params| params.get("task").is_some())
    {
        return check.shape(&TASK_RESULT, object, &place);
    }
    if let Some(known) = check.known(RESULTS, method) {
        check.value(&known.kind, result, &place);
    }
}

/// The type that a result of 2026-07-28 states (basic/index, result type).
enum ResultType {
    Complete,
    InputRequired,
    Task,
    /// A type whose shape is unknown, or which is not allowed here.
    Other,
}

fn result_type(check: &mut Check, result: &Map<String, Value>, method: &str, params: Option<&Value>) -> ResultType {
    let place = Place::MESSAGE.member("result");
    let place = place.member("resultType");
    let Some(found) = result.get("resultType") else {
        check.missing(&place, "\"complete\", or what else the result is");
        return ResultType::Complete;
    };
    let Some(name) = found.as_str() else {
        check.flaw(&place, &format!("is {}; it has to be a string", shown(found)));
        return ResultType::Complete;
    };
    let extensions = params.map(|params| params.pointer(EXTENSIONS).and_then(Value::as_object));
    let declares = |wanted: &dyn Fn(&str) -> bool| {
        extensions.is_none_or(|extensions| extensions.is_some_and(|extensions| extensions.keys().any(|name| wanted(name))))
    };
    let (kind, why_not) = match name {
        "complete" => (ResultType::Complete, None),
        "input_required" if INPUT_METHODS.contains(&method) || method.is_empty() => (ResultType::InputRequired, None),
        "input_required" => (ResultType::Other, Some(format!("is only allowed in a response to {}", INPUT_METHODS.join(", ")))),
        "task" if method != methods::TOOLS_CALL && !method.is_empty() => {
            (ResultType::Other, Some("is only allowed in a response to tools/call".to_owned()))
        }
        "task" if declares(&|name| name == TASK_EXTENSION) => (ResultType::Task, None),
        "task" => (ResultType::Other, Some(format!("needs a request that declares the extension `{TASK_EXTENSION}`"))),
        _ if declares(&|name| name != TASK_EXTENSION) => (ResultType::Other, None),
        _ => (ResultType::Other, Some("is defined neither by MCP nor by an extension that the request declares".to_owned())),
    };
    if let Some(why_not) = why_not {
        check.flaw(&place, &format!("is {}, which {why_not}", shown(found)));
    }
    kind
}

fn judge_error(check: &mut Check, error: &Value, revision: Revision) {
    let place = Place::MESSAGE.member("error");
    check.value(&ANY_ERROR, error, &place);
    let Some((object, code)) = error.as_object().and_then(|object| Some((object, object.get("code")?.as_i64()?))) else { return };
    let known = ERROR_DATA.iter().find(|(known, data)| *known == code && check.knows(data));
    if let Some((_, data)) = known {
        check.member(data, object, &place);
    } else if revision >= Revision::V2026_07_28 {
        // 2026-07-28, basic/index, error codes.
        let why = match code {
            error_code::RESOURCE_NOT_FOUND => "this revision replaced by -32602",
            -32042 => "only 2025-11-25 has",
            -32099..=-32020 => "is reserved and means nothing yet",
            _ => return,
        };
        check.flaw(&place.member("code"), &format!("is {code}, which {why}"));
    }
}

const EXTENSIONS: &str = "/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";

static ID: Kind = Kind::Id;
static OF_SAMPLING: Kind = Kind::Object(&SAMPLING_RESULT);
static ANY_RESULT: Kind = Kind::Object(&RESULT);
static ANY_ERROR: Kind = Kind::Object(&ERROR);
static ANY_NOTIFICATION: Kind = Kind::Object(&NOTIFICATION);
static ANY_REQUEST: Kind = Kind::Object(&REQUEST);
