//! Sends one request and returns the response. Knows methods, but neither flags nor output.

use crate::arguments::{self, Argument};
use crate::diagnosis;
use crate::exit::Exit;
use crate::failure::Failure;
use mcproof_analysis::diagnosis::{of_call_failure, of_list_failure, of_task_failure};
use mcproof_analysis::{missing, missing_from};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{CallFailure, ListFailure, Session, TaskEnd};
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::Diagnostic;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// The request to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    /// Arguments of a tool, added to those in `params`; its schema may decide what they mean.
    pub(crate) arguments: Vec<Argument>,
    /// A call of a tool becomes a task, and its result is that of the task.
    pub(crate) as_task: bool,
}

/// What came back.
pub(crate) struct Response {
    /// The method that was sent.
    pub(crate) method: String,
    pub(crate) answer: Result<Value, RpcError>,
    pub(crate) elapsed: Duration,
}

/// Stands for the request by which a server of either era shows that it lives: 2026-07-28 has no `ping` any more.
pub(crate) const LIVENESS: &str = "";

/// Methods whose results come in pages, and the array in each page.
const LISTS: [(&str, &str); 4] = [
    (methods::TOOLS_LIST, "tools"),
    (methods::RESOURCES_LIST, "resources"),
    (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
    (methods::PROMPTS_LIST, "prompts"),
];

/// For what only makes an error clearer.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

impl Request {
    pub(crate) fn new(method: &str) -> Self {
        Self { method: method.to_owned(), ..Self::default() }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

/// Sends the request, after the requests that it requires, and waits for the response, which may be a JSON-RPC error.
pub(crate) async fn send(session: &Session, request: &Request, timeout: Duration) -> Result<Response, Failure> {
    let started = Instant::now();
    let handshake = session.handshake();
    let (method, answer) = match (request.method.as_str(), handshake.era) {
        (LIVENESS, era) => {
            let method = if era == Era::Modern { methods::SERVER_DISCOVER } else { methods::PING };
            (method, call(session, method, None, timeout).await?)
        }
        // The handshake was this very request.
        (methods::INITIALIZE, Era::Legacy) | (methods::SERVER_DISCOVER, Era::Modern) => {
            (request.method.as_str(), Ok(handshake.result.clone()))
        }
        (methods::INITIALIZE, Era::Modern) => (methods::INITIALIZE, Ok(as_initialized(session))),
        (method, _) => (method, by_method(session, request, timeout).await?),
    };
    Ok(Response { method: method.to_owned(), answer, elapsed: started.elapsed() })
}

/// Calls a tool as a task and follows it to its end, all within one timeout.
async fn as_task(session: &Session, params: Map<String, Value>, timeout: Duration) -> Result<Result<Value, RpcError>, Failure> {
    match session.finish_as_task(params, None, timeout).await {
        Ok(TaskEnd { reply: Some(reply), .. }) => Ok(reply.answer),
        Ok(TaskEnd { status, reply: None }) => {
            let message = format!("the task is {status}, so that it has no result");
            Err(Failure::new(Exit::Failed, Diagnostic::error("task-without-result", message)))
        }
        Err(failure) => {
            let scene = diagnosis::scene(session).await;
            Err(Failure::new(Exit::Failed, of_task_failure(&failure, methods::TOOLS_CALL, &scene)))
        }
    }
}

/// After an error: says so if the server has no tool or prompt of the name that was asked for, if the tool has no argument of a name that
/// was given, or if the server does not declare the method's capability. One list, which may fail: the error is told already.
pub(crate) async fn misspelling(session: &Session, request: &Request, timeout: Duration) -> Option<String> {
    let (list, key, noun) = match request.method.as_str() {
        methods::TOOLS_CALL => (methods::TOOLS_LIST, "tools", "tool"),
        methods::PROMPTS_GET => (methods::PROMPTS_LIST, "prompts", "prompt"),
        method => return undeclared(&session.handshake().capabilities, method),
    };
    let name = request.params.get("name")?.as_str()?;
    let listed = session.list(list, key, timeout.min(LONGEST_LOOK)).await.ok()?;
    let mut all = listed.items.iter().chain(listed.rejected.iter().map(|(tool, _)| tool));
    missing(noun, name, all.clone().filter_map(|item| item.get("name")?.as_str()))
        .or_else(|| unknown_argument(request, all.find(|item| item.get("name").and_then(Value::as_str) == Some(name))?))
}

/// What a method of this capability may be refused for. The others are not declared in each revision.
fn undeclared(capabilities: &Value, method: &str) -> Option<String> {
    let (capability, _) = method.split_once('/').filter(|(area, _)| matches!(*area, "tools" | "prompts" | "resources" | "logging"))?;
    let is_declared = capabilities.get(capability).is_some();
    (!is_declared).then(|| format!("the server does not declare the capability `{capability}`"))
}

/// The first argument that a tool does not list, unless it takes any.
fn unknown_argument(request: &Request, tool: &Value) -> Option<String> {
    let schema = tool.get("inputSchema")?;
    let takes_others = schema.get("additionalProperties").is_some_and(|others| *others != json!(false));
    if takes_others || schema.get("patternProperties").is_some() {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    let in_params = request.params.get("arguments").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut given = in_params.chain(request.arguments.iter().map(|argument| &argument.name));
    given.find_map(|name| missing_from("the tool", "argument", name, properties.keys().map(String::as_str)))
}

async fn by_method(session: &Session, request: &Request, timeout: Duration) -> Result<Result<Value, RpcError>, Failure> {
    let method = request.method.as_str();
    if let Some((_, key)) = LISTS.iter().find(|(list, _)| *list == method)
        && !request.params.contains_key("cursor")
    {
        return match session.pages(method, key, &request.params, timeout).await {
            Ok(listed) => Ok(Ok(json!({ *key: listed.items }))),
            Err(ListFailure::Rpc { error, .. }) => Ok(Err(error)),
            Err(failure) => {
                let scene = diagnosis::scene(session).await;
                Err(Failure::new(Exit::Failed, of_list_failure(&failure, method, &scene)))
            }
        };
    }
    let mut params = request.params.clone();
    let is_mirrored = method == methods::TOOLS_CALL && may_mirror_arguments(session);
    let schema = match is_mirrored || arguments::need_schema(&request.arguments) {
        true => input_schema(session, params.get("name"), timeout).await,
        false => None,
    };
    if !request.arguments.is_empty() {
        let typed = arguments::to_json(&request.arguments, schema.as_ref());
        match params.entry("arguments").or_insert_with(|| json!({})) {
            Value::Object(given) => given.extend(typed),
            other => *other = Value::Object(typed),
        }
    }
    if request.as_task {
        return as_task(session, params, timeout).await;
    }
    let params = (!params.is_empty()).then_some(params);
    call(session, method, params, timeout).await
}

async fn call(
    session: &Session,
    method: &str,
    params: Option<Map<String, Value>>,
    timeout: Duration,
) -> Result<Result<Value, RpcError>, Failure> {
    match session.request(method, params, timeout).await {
        Ok(reply) => Ok(reply.answer),
        Err(failure) => Err(silence(session, &failure, method).await),
    }
}

async fn silence(session: &Session, failure: &CallFailure, method: &str) -> Failure {
    Failure::new(Exit::Failed, of_call_failure(failure, method, &diagnosis::scene(session).await))
}

/// Whether the schema of a tool may say that arguments go into headers as well (2026-07-28, basic/transports, Streamable HTTP,
/// custom headers from tool parameters): then a client has to know it before it calls.
fn may_mirror_arguments(session: &Session) -> bool {
    let handshake = session.handshake();
    handshake.era == Era::Modern && handshake.transport == Transport::Http
}

/// The `inputSchema` of a tool; the session learns from the list which arguments go into headers. Without it arguments still
/// have a meaning, so a failure here is no failure: if the server is gone, the call itself tells.
async fn input_schema(session: &Session, name: Option<&Value>, timeout: Duration) -> Option<Value> {
    let listed = session.list(methods::TOOLS_LIST, "tools", timeout).await.ok()?;
    // A tool that other clients leave out can be called here all the same.
    let all = listed.items.into_iter().chain(listed.rejected.into_iter().map(|(tool, _)| tool));
    all.into_iter().find(|tool| tool.get("name") == name)?.get_mut("inputSchema").map(Value::take)
}

/// The description of a modern server, in the form of an `initialize` result.
fn as_initialized(session: &Session) -> Value {
    let handshake = session.handshake();
    let mut object = Map::new();
    object.extend(handshake.server_info.clone().map(|info| ("serverInfo".to_owned(), info)));
    object.insert("protocolVersion".into(), handshake.protocol_version.clone().into());
    object.insert("capabilities".into(), handshake.capabilities.clone());
    object.extend(handshake.instructions.clone().map(|text| ("instructions".to_owned(), text.into())));
    Value::Object(object)
}
