//! The messages to a server: one conversation that touches every requirement.

use mcproof_protocol::Era;
use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";

/// One step of a conversation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A message; if it is a request, the script waits for its response.
    Send(Value),
    /// Bytes that are not a message.
    Raw(Vec<u8>),
    /// Parallel requests; the script waits for all responses.
    Together(Vec<Value>),
    /// A request, and its cancellation when it has begun, at an arbitrary progress.
    Cancelled(Value),
    /// A subscription, which gets no response.
    Listen(Value),
}

impl Step {
    /// The ids (as JSON) and the methods of its requests.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        let messages = match self {
            Self::Send(message) | Self::Cancelled(message) | Self::Listen(message) => std::slice::from_ref(message),
            Self::Together(messages) => messages,
            Self::Raw(_) => &[],
        };
        let asked = messages.iter().filter(|message| message.get("id").is_some());
        asked.map(|message| (message["id"].to_string(), message["method"].as_str().unwrap_or_default().to_owned())).collect()
    }
}

/// Whether this tells how far a cancelled call had come.
pub(crate) fn is_chance(line: &str) -> bool {
    line.contains("\"progressToken\":\"cancelled\"") || line.contains("of 6\"")
}

pub(crate) fn era(version: &str) -> Era {
    if version == MODERN { Era::Modern } else { Era::Legacy }
}

/// A call of a tool that is not there, in characters of several bytes.
pub(crate) fn wide_call(version: &str) -> Value {
    let mut params = json!({ "name": "no-such-道具", "arguments": {} });
    if version == MODERN {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({ "jsonrpc": "2.0", "id": "wide", "method": "tools/call", "params": params })
}

/// The conversation in that revision.
pub(crate) fn main(version: &str) -> Vec<Step> {
    let modern = version == MODERN;
    let mut steps = Vec::new();
    let mut id = 0;
    let mut request = |method: &str, mut params: Value| {
        id += 1;
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    };
    let notification = |method: &str, params: Value| Step::Send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    if modern {
        steps.push(Step::Send(request("tools/list", json!({}))));
        steps.push(Step::Send(request("server/discover", json!({}))));
    } else {
        let client = json!({ "name": "look", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": { "roots": {} }, "clientInfo": client });
        steps.push(Step::Send(request("initialize", params)));
        steps.push(notification("notifications/initialized", json!({})));
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({ "level": "loud" })),
            ("logging/setLevel", json!({ "level": "emergency" })),
            ("logging/setLevel", json!({ "level": "info" })),
            ("resources/subscribe", json!({ "uri": "zoo://notes" })),
            ("resources/subscribe", json!({ "uri": "zoo://notes" })),
            ("resources/subscribe", json!({ "uri": "zoo://nowhere" })),
        ] {
            steps.push(Step::Send(request(method, params)));
        }
    }
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "tools-5" })),
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "bogus" })),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "zoo://gate/rules" })),
        ("resources/read", json!({ "uri": "zoo://gate/logo" })),
        ("resources/read", json!({ "uri": "zoo://animals/okapi" })),
        ("resources/read", json!({ "uri": "zoo://animals/../okapi" })),
        ("resources/read", json!({ "uri": "zoo://nowhere" })),
        ("prompts/get", json!({ "name": "feed", "arguments": { "animal": "gnu" } })),
        ("prompts/get", json!({ "name": "feed" })),
        ("prompts/get", json!({ "name": "tour" })),
        ("prompts/get", json!({ "name": "nothing" })),
        ("completion/complete", completion("feed")),
        ("completion/complete", completion("nothing")),
        ("completion/complete", completion_of_template()),
        ("mcproof/no-such-method", json!({})),
    ] {
        steps.push(Step::Send(request(method, params)));
    }
    let mut named = request("prompts/list", json!({}));
    named["id"] = json!("a name");
    steps.push(Step::Send(named));
    for id in ["a name of more than 32 characters: Anna", "Größe 🦒", " between blanks "] {
        let mut named = request("prompts/list", json!({}));
        named["id"] = json!(id);
        steps.push(Step::Send(named));
    }
    for (tool, arguments) in [
        ("echo", json!({ "text": "a" })),
        ("echo", json!({ "text": 1 })),
        ("echo", json!({})),
        ("echo", json!({ "text": "Grüße 🦒" })),
        ("echo", json!({ "text": "" })),
        ("echo", json!({ "text": null })),
        ("echo", json!({ "text": "a", "more": true })),
        ("echo", json!({ "text": "a".repeat(100_000) })),
        ("add", json!({ "a": 1, "b": 2 })),
        ("add", json!({ "a": 1e300, "b": 1e15 })),
        ("add", json!({ "a": -1, "b": -2 })),
        ("find_animals", json!({ "region": "africa" })),
        ("draw", json!({})),
        ("read_note", json!({ "name": "hay" })),
        ("read_note", json!({ "name": "nothing" })),
        ("write_note", json!({ "name": "straw", "text": "none" })),
        ("write_note", json!({ "name": "straw", "text": "none" })),
        ("no_such_tool", json!({})),
    ] {
        steps.push(Step::Send(request("tools/call", json!({ "name": tool, "arguments": arguments }))));
    }
    steps.push(Step::Send(request("resources/read", json!({ "uri": "zoo://notes" }))));
    steps.push(Step::Send(request("tools/call", json!({}))));
    steps.push(Step::Send(request("tools/call", json!({ "name": "draw" }))));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    steps.push(Step::Send(request("prompts/list", json!({ "_meta": { "traceparent": parent } }))));
    let patrol = |steps: u8| json!({ "name": "patrol", "arguments": { "steps": steps }, "_meta": { "progressToken": "p" } });
    steps.push(Step::Send(request("tools/call", patrol(2))));
    for token in [json!(0), json!("Größe")] {
        let mut other = patrol(1);
        other["_meta"]["progressToken"] = token;
        steps.push(Step::Send(request("tools/call", other)));
    }
    let echo = |text: &str| json!({ "name": "echo", "arguments": { "text": text } });
    steps.push(Step::Together(vec![request("tools/call", echo("first")), request("tools/call", echo("second"))]));
    let mut cancelled = patrol(6);
    cancelled["_meta"]["progressToken"] = json!("cancelled");
    steps.push(Step::Cancelled(request("tools/call", cancelled)));
    if modern {
        steps.push(Step::Listen(request("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": ["zoo://notes"] } }))));
        steps.push(Step::Listen(request("subscriptions/listen", json!({ "notifications": { "promptsListChanged": true } }))));
        for method in ["ping", "initialize", "logging/setLevel", "resources/subscribe"] {
            steps.push(Step::Send(request(method, json!({}))));
        }
        for (key, value) in
            [("protocolVersion", json!("1999-01-01")), ("protocolVersion", Value::Null), ("clientCapabilities", Value::Null)]
        {
            let mut odd = request("tools/list", json!({}));
            let meta = odd["params"]["_meta"].as_object_mut().unwrap();
            let key = format!("io.modelcontextprotocol/{key}");
            match value {
                Value::Null => drop(meta.remove(&key)),
                value => drop(meta.insert(key, value)),
            }
            steps.push(Step::Send(odd));
        }
        for (method, params) in
            [("tools/list", json!({})), ("tools/call", echo("bare")), ("initialize", json!({ "protocolVersion": "2025-11-25" }))]
        {
            let mut bare = request(method, json!({}));
            bare["params"] = params;
            steps.push(Step::Send(bare));
        }
        let mut unable = request("resources/read", json!({ "uri": "zoo://gate/rules" }));
        unable["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
        steps.push(Step::Send(unable));
        let mut able = request("tools/call", echo("able"));
        able["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        steps.push(Step::Send(able));
        let mut future = request("tools/call", echo("later"));
        future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
        steps.push(Step::Send(future));
        steps.push(Step::Send(request("tools/list", json!({}))));
    } else {
        let as_task = json!({ "name": "echo", "arguments": { "text": "a" }, "task": { "ttl": 1000 } });
        steps.push(Step::Send(request("tools/call", as_task)));
        steps.push(Step::Send(request("server/discover", json!({}))));
        steps.push(Step::Send(request("resources/unsubscribe", json!({ "uri": "zoo://notes" }))));
        steps.push(Step::Send(json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {} })));
        steps.push(Step::Send(json!({ "jsonrpc": "2.0", "id": "without params", "method": "tools/list" })));
        steps.push(Step::Send(json!({ "jsonrpc": "2.0", "id": "prompts without params", "method": "prompts/list" })));
        steps.push(Step::Send(request("tools/list", json!({ "_meta": { "progressToken": "list" } }))));
    }
    steps.push(notification("notifications/cancelled", json!({ "requestId": "mcproof-never-asked" })));
    steps.push(notification("notifications/zoo/unknown", json!({})));
    steps.push(Step::Raw(b"[]".to_vec()));
    steps.push(Step::Raw(b"{ no JSON".to_vec()));
    steps.push(Step::Raw(b"\"\xff\"".to_vec()));
    steps.push(Step::Raw(Vec::new()));
    let mut huge = notification("notifications/zoo/unknown", json!({ "text": "a".repeat(3 << 20) }));
    if let Step::Send(message) = &mut huge {
        message["method"] = json!("notifications/initialized");
    }
    steps.push(huge);
    let mut again = request("prompts/list", json!({}));
    again["id"] = json!("a name");
    steps.push(Step::Send(again));
    steps
}

/// What a server is asked that has just started, each in a process of its own; only the legacy era has that.
pub(crate) fn beginnings() -> [Step; 3] {
    let ask = |method: &str, params: Value| Step::Send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    let initialize = |version: &str| {
        let client = json!({ "name": "look", "version": "1" });
        ask("initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }))
    };
    [initialize("1999-01-01"), initialize("2025-06-18"), ask("tools/list", json!({}))]
}

fn completion_of_template() -> Value {
    json!({ "ref": { "type": "ref/resource", "uri": "zoo://animals/{species}" }, "argument": { "name": "species", "value": "" } })
}

fn completion(prompt: &str) -> Value {
    json!({ "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": "animal", "value": "g" } })
}
