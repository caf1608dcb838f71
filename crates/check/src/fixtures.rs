//! A client that knows the tools, resources and prompts by which the official conformance suite tests servers: one that has
//! them is asked what that suite asks, in both eras. Knows what to ask, not what is right.

mod rounds;
mod tasks;

use super::calls;
use super::explorer::{Explorer, ParallelRequest};
use super::{CheckOptions, DetectedServer};
use mcproof_analysis::ConversationView;
use mcproof_analysis::probes::fixtures::{EMBEDDED, ENTERED, OF_TEMPLATE, PROMPTED, SAMPLED, TEMPLATE};
use mcproof_client::{Answers, ConnectOptions, Elicitation, Sampling, Session};
use mcproof_protocol::{EraChoice, Transport, methods};
use mcproof_record::Conversation;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Whoever has all of these is there to be tested: nobody has just these names by accident.
const WHOLE_SET: [&str; 6] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
];

/// Tools of every era that are called as they are. The last ones say something while they work; what comes after them gives
/// that the time to arrive.
const CALLS: [&str; 8] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
];

/// Of the modern era: diagnostic tools that must stay silent about something.
const SILENT_CALLS: [&str; 2] = ["test_logging_tool", "test_streaming_elicitation"];

const RESOURCES: [&str; 2] = ["test://static-text", "test://static-binary"];
const WATCHED: &str = "test://watched-resource";

/// Closes its stream in the middle of the call.
const RECONNECTS: &str = "test_reconnection";
/// How long that may take: servers like to be left alone for five seconds.
const RECONNECTION: Duration = Duration::from_secs(7);

/// How long a change of a list may take to be told.
const CHANGE: Duration = Duration::from_secs(3);

/// Conversations with a server that has fixtures; none with any other.
pub(super) async fn explore(check_options: &CheckOptions, found: DetectedServer, conversations: &[Conversation]) -> Vec<Conversation> {
    if !conversations.iter().any(has_fixtures) {
        return Vec::new();
    }
    let legacy = async { if found.is_legacy { Some(in_era(check_options, EraChoice::Legacy).await) } else { None } };
    let modern = async { if found.is_modern { Some(in_era(check_options, EraChoice::Modern).await) } else { None } };
    let (legacy, modern) = match found.kind {
        Transport::Stdio | Transport::InMemory => tokio::join!(legacy, modern),
        Transport::Http | Transport::Sse => (legacy.await, modern.await),
    };
    [legacy, modern].into_iter().flatten().collect()
}

fn has_fixtures(take: &Conversation) -> bool {
    let conversation = ConversationView::new(take);
    let is_fixture = |item: &Value| {
        let name = ["name", "uri", "uriTemplate"].iter().filter_map(|key| item.get(key)?.as_str());
        name.into_iter().any(|name| name.starts_with("test_") || name.starts_with("test://") || tasks::TOOLS.contains(&name))
    };
    let lists = [
        (methods::TOOLS_LIST, "tools"),
        (methods::RESOURCES_LIST, "resources"),
        (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
        (methods::PROMPTS_LIST, "prompts"),
    ];
    lists.into_iter().any(|(method, key)| conversation.listed(method, key).any(|(items, _)| items.iter().any(is_fixture)))
}

async fn in_era(check_options: &CheckOptions, era: EraChoice) -> Conversation {
    // A legacy server is told at the handshake what it may ask later.
    let options = ConnectOptions { era, later_answers: every_answer(), ..check_options.options.clone() };
    let mut explorer = match Explorer::open(check_options, "fixtures", options).await {
        Ok(explorer) => explorer,
        Err(failed) => return failed.0,
    };
    let offered = Offered::by(&mut explorer).await;
    if explorer.is_modern() {
        modern(&mut explorer, &offered).await;
    } else {
        legacy(&mut explorer, &offered).await;
    }
    explorer.end().await
}

/// What a server lists, and may be asked for.
struct Offered {
    tools: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
    prompts: Vec<String>,
}

impl Offered {
    async fn by(explorer: &mut Explorer<'_>) -> Self {
        let tools = calls::list(explorer).await;
        let is_whole = |set: &[&str]| set.iter().all(|name| tools.iter().any(|tool| tool["name"] == *name));
        let (is_fixture, has_tasks) = (is_whole(&WHOLE_SET), is_whole(&tasks::TOOLS));
        let permission = &explorer.check_options.calls;
        let may_call = |tool: &&Value| {
            let name = tool["name"].as_str().unwrap_or_default();
            let is_known = is_fixture && name.starts_with("test_") || has_tasks && tasks::TOOLS.contains(&name);
            permission.allows(tool) || (is_known && tool.pointer("/annotations/destructiveHint") != Some(&Value::Bool(true)))
        };
        let tools = names(&tools.iter().filter(may_call).cloned().collect::<Vec<_>>(), "name");
        Self {
            tools,
            resources: list(explorer, "resources", methods::RESOURCES_LIST, "resources", "uri").await,
            templates: list(explorer, "resources", methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "uriTemplate").await,
            prompts: list(explorer, "prompts", methods::PROMPTS_LIST, "prompts", "name").await,
        }
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|known| known == name)
    }
}

fn names(items: &[Value], key: &str) -> Vec<String> {
    items.iter().filter_map(|item| item.get(key)?.as_str().map(str::to_owned)).collect()
}

async fn list(explorer: &mut Explorer<'_>, capability: &str, method: &str, key: &str, name: &str) -> Vec<String> {
    if !explorer.declares(capability) {
        return Vec::new();
    }
    let list = async |session: &Session, deadline: Duration| session.list(method, key, deadline).await;
    let listed = explorer.together("list-for-fixtures", list).await;
    listed.map(|listed| names(&listed.items, name)).unwrap_or_default()
}

/// Answers to everything that a server can ask.
fn every_answer() -> Answers {
    Answers {
        roots: Some(vec!["file:///mcproof".into()]),
        elicitation: Some(Elicitation::Accept(Map::new())),
        sampling: Some(Sampling::Text(SAMPLED.into())),
        tasks: None,
        ..Answers::default()
    }
}

async fn legacy(explorer: &mut Explorer<'_>, offered: &Offered) {
    if explorer.declares("logging") {
        explorer.send_request("fixture-log-level", Some("debug"), methods::LOGGING_SET_LEVEL, json!({ "level": "debug" })).await;
    }
    plain(explorer, offered).await;
    for (tool, arguments, values) in asking_tools() {
        explorer.session().set_client_responses(Answers { elicitation: Some(Elicitation::Accept(object(values))), ..every_answer() });
        call(explorer, offered, "fixture", tool, arguments).await;
    }
    if explorer.declares("resources/subscribe") && offered.resources.iter().any(|uri| uri == WATCHED) {
        explorer.send_request("subscribe", Some(WATCHED), methods::RESOURCES_SUBSCRIBE, json!({ "uri": WATCHED })).await;
        explorer.send_request("unsubscribe", Some(WATCHED), methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": WATCHED })).await;
    }
    if offered.has_tool(RECONNECTS) && !explorer.is_over() {
        let params = json!({ "name": RECONNECTS, "arguments": {} });
        let request = ParallelRequest { probe: "fixture", subject: RECONNECTS.into(), method: methods::TOOLS_CALL, params };
        explorer.request_in_parallel(&[request], RECONNECTION, Instant::now() + RECONNECTION).await;
    }
}

/// Tools that ask something of the client: their arguments, and what the user enters.
fn asking_tools() -> [(&'static str, Value, Value); 4] {
    let form = json!({ "username": ENTERED, "email": "mcproof@example.com", "response": ENTERED });
    let choices = json!({
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    });
    [
        ("test_sampling", json!({ "prompt": "What does mcproof say?" }), json!({})),
        ("test_elicitation", json!({ "message": "Who are you?" }), form),
        ("test_elicitation_sep1034_defaults", json!({}), json!({})),
        ("test_elicitation_sep1330_enums", json!({}), choices),
    ]
}

async fn modern(explorer: &mut Explorer<'_>, offered: &Offered) {
    plain(explorer, offered).await;
    call(explorer, offered, "fixture-without-capability", "test_missing_capability", json!({})).await;
    explorer.session().set_client_responses(every_answer());
    for tool in SILENT_CALLS {
        call(explorer, offered, "fixture-silent", tool, json!({})).await;
    }
    rounds::take(explorer, offered).await;
    for (tool, kind, method) in [
        ("test_trigger_tool_change", "tools", methods::notifications::TOOLS_LIST_CHANGED),
        ("test_trigger_prompt_change", "prompts", methods::notifications::PROMPTS_LIST_CHANGED),
    ] {
        if offered.has_tool(tool) && explorer.declares(&format!("{kind}/listChanged")) && !explorer.is_over() {
            change_a_list(explorer, tool, kind, method).await;
        }
    }
    tasks::take(explorer, offered).await;
}

/// What is asked for in the same way in every era.
async fn plain(explorer: &mut Explorer<'_>, offered: &Offered) {
    for tool in CALLS {
        call(explorer, offered, "fixture", tool, json!({})).await;
    }
    for uri in RESOURCES.into_iter().filter(|uri| offered.resources.iter().any(|known| known == uri)) {
        explorer.send_request("fixture", Some(uri), methods::RESOURCES_READ, json!({ "uri": uri })).await;
    }
    if offered.templates.iter().any(|known| known == TEMPLATE) {
        explorer.send_request("fixture", Some(TEMPLATE), methods::RESOURCES_READ, json!({ "uri": OF_TEMPLATE })).await;
    }
    let [first, second] = PROMPTED;
    for (prompt, arguments) in [
        ("test_simple_prompt", None),
        ("test_prompt_with_arguments", Some(json!({ "arg1": first, "arg2": second }))),
        ("test_prompt_with_embedded_resource", Some(json!({ "resourceUri": EMBEDDED }))),
        ("test_prompt_with_image", None),
    ] {
        if !offered.prompts.iter().any(|known| known == prompt) {
            continue;
        }
        let mut params = json!({ "name": prompt });
        if let Some(arguments) = arguments {
            params["arguments"] = arguments;
        }
        explorer.send_request("fixture", Some(prompt), methods::PROMPTS_GET, params).await;
    }
}

/// Calls a tool, if it is there and may be called.
async fn call(explorer: &mut Explorer<'_>, offered: &Offered, probe: &str, tool: &str, arguments: Value) {
    if offered.has_tool(tool) && !explorer.is_over() {
        let meta = json!({ "progressToken": format!("mcproof-{tool}") });
        explorer.send_request(probe, Some(tool), methods::TOOLS_CALL, json!({ "name": tool, "arguments": arguments, "_meta": meta })).await;
    }
}

/// Listens, calls a tool that changes a list, and waits until that is told.
async fn change_a_list(explorer: &mut Explorer<'_>, tool: &str, kind: &str, method: &str) {
    let filter = Map::from_iter([(format!("{kind}ListChanged"), Value::Bool(true))]);
    explorer
        .together_on("fixture-change", Some(tool), async |session, deadline| {
            // Why it was not acknowledged, or not told, shows in the transcript.
            let Ok(mut subscription) = session.listen(filter, deadline).await else { return };
            let params = json!({ "name": tool, "arguments": {} });
            let _ = session.request(methods::TOOLS_CALL, params.as_object().cloned(), deadline).await;
            while subscription.next(CHANGE).await.is_ok_and(|told| told.method != method) {}
            subscription.close();
        })
        .await;
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
