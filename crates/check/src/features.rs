//! What a client of either era does with resources, prompts, completion, subscriptions and logging: reads what is listed,
//! asks for what is not, and leaves the server as it found it.

use super::explorer::Explorer;
use super::listing::{UNKNOWN_NAME, whole};
use super::optional_members::{OTHER_LEVELS, level_form};
use mcproof_analysis::probes::{
    APP_SCHEME, COMPLETE_TYPED, EXPLORED_IN_PART, LEGAL_FORM, LISTEN_TO_UNDECLARED, READ_APP, SUBSCRIBE_AGAIN, page_of,
};
use mcproof_client::Subscription;
use mcproof_protocol::{Revision, Transport, methods};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the server listed.
pub(super) struct Catalogue<'a> {
    pub(super) tools: &'a [Value],
    pub(super) resources: &'a [Value],
    pub(super) templates: &'a [Value],
    pub(super) prompts: &'a [Value],
}

/// Items of one list that are looked at.
const MOST_ITEMS: usize = 500;
/// The time for the items of one list: whoever lists many answers quickly, or is looked at in part.
const LOOKING: Duration = Duration::from_secs(5);
/// Arguments of one list that are completed.
const MOST_COMPLETIONS: usize = 4;
/// Those of one list that are completed once more, after a user has begun to type.
const MOST_TYPED: usize = 2;

/// Changes that can be listened for, and the capability of each.
pub(super) const CHANGES: [(&str, &str); 3] = [
    ("toolsListChanged", "tools/listChanged"),
    ("promptsListChanged", "prompts/listChanged"),
    ("resourcesListChanged", "resources/listChanged"),
];
/// How long a subscription is held once it stands: what is sent without a cause comes at once.
const HOLD: Duration = Duration::from_millis(250);

/// A subscription that stands while tools are called.
const LISTEN_DURING_CALLS: &str = "listen-during-calls";
/// Resources of one subscription.
const MOST_LISTENED: usize = 50;
/// How long a notification of what a call changed may take.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// A resource that no server has.
pub(super) const NO_RESOURCE: &str = "mcproof://no/such/resource";

pub(super) async fn take(explorer: &mut Explorer<'_>, found: &Catalogue<'_>) {
    read(explorer, found.resources).await;
    read_apps(explorer, found.tools).await;
    leave(explorer, found.templates).await;
    let values = complete(explorer, found).await;
    fill_in(explorer, found.templates, &values).await;
    get(explorer, found.prompts, &values).await;
    if !explorer.is_modern() {
        subscribe(explorer, found.resources).await;
    }
}

fn texts<'a>(items: &'a [Value], key: &'static str) -> impl Iterator<Item = &'a str> {
    items.iter().filter_map(move |item| item.get(key)?.as_str())
}

async fn read(explorer: &mut Explorer<'_>, resources: &[Value]) {
    let mut read = 0;
    for uri in while_there_is_time(texts(resources, "uri")) {
        explorer.send_request("read", Some(uri), methods::RESOURCES_READ, json!({ "uri": uri })).await;
        read += 1;
    }
    tell_of_sample(explorer, read, resources.len(), "resources were read");
    if explorer.declares("resources") {
        explorer.send_request("unknown-resource", Some(NO_RESOURCE), methods::RESOURCES_READ, json!({ "uri": NO_RESOURCE })).await;
    }
}

/// As many items of a list as are looked at.
fn while_there_is_time<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let until = Instant::now() + LOOKING;
    items.take(MOST_ITEMS).take_while(move |_| Instant::now() < until)
}

/// That some of a list were left out, if so.
fn tell_of_sample(explorer: &mut Explorer<'_>, looked_at: usize, listed: usize, what: &str) {
    if looked_at < listed {
        explorer.record_observation(EXPLORED_IN_PART, &format!("{looked_at} of {listed} {what}"));
    }
}

/// The pages of MCP Apps that tools name, which need not be listed.
async fn read_apps(explorer: &mut Explorer<'_>, tools: &[Value]) {
    // What has another scheme is no page, as a rule of its own tells.
    let pages: BTreeSet<&str> = tools.iter().filter_map(|tool| page_of(tool)?.as_str()).filter(|uri| uri.starts_with(APP_SCHEME)).collect();
    let (listed, mut read) = (pages.len(), 0);
    for uri in while_there_is_time(pages.into_iter()) {
        explorer.send_request(READ_APP, Some(uri), methods::RESOURCES_READ, json!({ "uri": uri })).await;
        read += 1;
    }
    tell_of_sample(explorer, read, listed, "pages of apps were read");
}

/// Templates that are tried with a path that leads out of them.
const MOST_TEMPLATES: usize = 3;
/// Ways out, as they stand and as URL parsers do not undo them; deep enough for any folder.
const WAYS_OUT: [&str; 2] = ["../../../../../../../../../../etc/passwd", "..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd"];

/// Asks for a file of the machine that everybody may read, by way of each template.
async fn leave(explorer: &mut Explorer<'_>, templates: &[Value]) {
    // What is fetched from elsewhere is no file of the server.
    let local = texts(templates, "uriTemplate").filter(|template| !template.starts_with("http"));
    let with_variables: Vec<&str> = local.filter(|template| !variables(template).is_empty()).take(MOST_TEMPLATES).collect();
    for template in with_variables {
        for way in WAYS_OUT {
            let uri = expanded(template, way);
            explorer.send_request("template-traversal", Some(template), methods::RESOURCES_READ, json!({ "uri": uri })).await;
        }
    }
}

/// A template with `last` for its last variable, and something short for the others.
fn expanded(template: &str, last: &str) -> String {
    let (before, expression) = template.rsplit_once('{').unwrap_or((template, ""));
    let (inside, after) = expression.split_once('}').unwrap_or((expression, ""));
    let mut start = String::new();
    for (position, piece) in before.split('{').enumerate() {
        match piece.split_once('}').filter(|_| position > 0) {
            Some((_, literal)) => start += &format!("a{literal}"),
            None => start += piece,
        }
    }
    let value = match inside.chars().next() {
        Some(operator @ ('?' | '&')) => {
            let name = variables(&format!("{{{inside}}}")).pop().unwrap_or_default();
            format!("{operator}{name}={last}")
        }
        Some('/') => format!("/{last}"),
        _ => last.to_owned(),
    };
    format!("{start}{value}{after}")
}

/// A value as it stands in a URI: reserved characters stay only where a template takes them as they are (RFC 6570, 3.2.1).
fn encoded(template: &str, value: &str) -> String {
    let takes_reserved = ["{+", "{#"].iter().any(|start| template.contains(start));
    let mut text = String::new();
    for character in value.chars() {
        if is_unreserved(character) || takes_reserved && ":/?#[]@!$&'()*+,;=%".contains(character) {
            text.push(character);
        } else {
            character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text += &format!("%{byte:02X}"));
        }
    }
    text
}

fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

/// Reads what the server itself offered for a template.
async fn fill_in(explorer: &mut Explorer<'_>, templates: &[Value], offered: &Offered) {
    for template in texts(templates, "uriTemplate").take(MOST_TEMPLATES) {
        // Whether values of several variables go together is not known.
        let [variable] = &variables(template)[..] else { continue };
        if let Some(value) = offered.get(&(template.to_owned(), variable.clone())) {
            let uri = expanded(template, &encoded(template, value));
            explorer.send_request("read-template", Some(&uri), methods::RESOURCES_READ, json!({ "uri": uri })).await;
        }
    }
}

/// Values that the server offered for arguments, by the name of the prompt or the template and that of the argument.
type Offered = BTreeMap<(String, String), String>;

/// What no server offers. It may come back where the protocol wants a URI, which it is.
const MADE_UP: &str = "mcproof:made-up";

async fn get(explorer: &mut Explorer<'_>, prompts: &[Value], offered: &Offered) {
    let mut got = 0;
    for prompt in while_there_is_time(prompts.iter()) {
        got += 1;
        let Some(name) = prompt.get("name").and_then(Value::as_str) else { continue };
        let arguments = prompt.get("arguments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let required = arguments.iter().filter(|argument| argument.get("required") == Some(&Value::Bool(true)));
        let required: Vec<&str> = required.filter_map(|argument| argument.get("name")?.as_str()).collect();
        // Where there are arguments, clients send the member, be it empty.
        let bare = match arguments {
            [] => json!({ "name": name }),
            _ => json!({ "name": name, "arguments": {} }),
        };
        let value_of = |argument: &str| offered.get(&(name.to_owned(), argument.to_owned()));
        let all: Vec<(&str, Option<&String>)> = texts(arguments, "name").map(|argument| (argument, value_of(argument))).collect();
        if all.len() > required.len() && all.iter().all(|(_, value)| value.is_some()) {
            let values: Map<String, Value> = all.into_iter().map(|(argument, value)| (argument.to_owned(), json!(value))).collect();
            explorer.send_request("get-prompt", Some(name), methods::PROMPTS_GET, json!({ "name": name, "arguments": values })).await;
        }
        if required.is_empty() {
            explorer.send_request("get-prompt", Some(name), methods::PROMPTS_GET, bare).await;
            continue;
        }
        explorer.send_request("prompt-missing-argument", Some(name), methods::PROMPTS_GET, bare).await;
        let values: Map<String, Value> =
            required.iter().map(|argument| ((*argument).to_owned(), json!(value_of(argument).map_or(MADE_UP, String::as_str)))).collect();
        // What the server did not offer it may refuse.
        let is_offered = required.iter().all(|argument| value_of(argument).is_some());
        let probe = if is_offered { "get-prompt" } else { "get-prompt-made-up" };
        explorer.send_request(probe, Some(name), methods::PROMPTS_GET, json!({ "name": name, "arguments": values })).await;
    }
    tell_of_sample(explorer, got, prompts.len(), "prompts were fetched");
    if explorer.declares("prompts") {
        explorer.send_request("unknown-prompt", Some(UNKNOWN_NAME), methods::PROMPTS_GET, json!({ "name": UNKNOWN_NAME })).await;
    }
}

/// Completes arguments as if nothing had been typed yet: that is where most values are offered. What a server does once something is typed
/// is seen of a few.
async fn complete(explorer: &mut Explorer<'_>, found: &Catalogue<'_>) -> Offered {
    let of_prompts = found.prompts.iter().flat_map(|prompt| {
        let arguments = prompt.get("arguments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        texts(arguments, "name")
            .filter_map(|argument| Some((json!({ "type": "ref/prompt", "name": prompt.get("name")?.as_str()? }), argument.to_owned())))
    });
    let of_templates = texts(found.templates, "uriTemplate").flat_map(|template| {
        variables(template).into_iter().map(move |variable| (json!({ "type": "ref/resource", "uri": template }), variable))
    });
    let of_prompts = of_prompts.take(MOST_COMPLETIONS).enumerate();
    let all: Vec<(usize, (Value, String))> = of_prompts.chain(of_templates.take(MOST_COMPLETIONS).enumerate()).collect();
    let mut offered = Offered::new();
    let mut before: Option<(Value, String)> = None;
    let mut is_context_tried = false;
    let takes_context = Revision::at(explorer.revision()) >= Revision::V2025_06_18;
    for (position, (reference, argument)) in all {
        let params = json!({ "ref": reference, "argument": { "name": argument, "value": "" } });
        let completed = explorer.send_request("complete", Some(&argument), methods::COMPLETION_COMPLETE, params.clone()).await;
        let Some(Ok(result)) = completed else { continue };
        // Hosts send it although nothing is filled in yet.
        if takes_context && !std::mem::replace(&mut is_context_tried, true) {
            let mut params = params.clone();
            params["context"] = json!({ "arguments": {} });
            let message = explorer.build_request(json!("mcproof-with-context"), methods::COMPLETION_COMPLETE, params);
            explorer.send_briefly(LEGAL_FORM, "a `context` without arguments", message).await;
        }
        let values = result.pointer("/completion/values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let values = || values.iter().filter_map(Value::as_str);
        // Such a one is the same in a URI.
        let plain = values().find(|value| !value.is_empty() && value.chars().all(is_unreserved));
        let first = plain.or_else(|| values().next());
        if position < MOST_TYPED {
            let begun = first.and_then(|value| value.chars().next()).unwrap_or('a').to_string();
            let params = json!({ "ref": reference, "argument": { "name": argument, "value": begun } });
            explorer.send_request(COMPLETE_TYPED, Some(&argument), methods::COMPLETION_COMPLETE, params).await;
        }
        let of = ["name", "uri"].into_iter().find_map(|key| reference.get(key)?.as_str());
        if let (Some(value), Some(of)) = (first, of) {
            offered.insert((of.to_owned(), argument.clone()), value.to_owned());
        }
        // Both arguments have been completed alone.
        if let Some((_, earlier)) = before.take().filter(|(of_earlier, _)| *of_earlier == reference && takes_context) {
            let mut params = params;
            let value = of.and_then(|of| offered.get(&(of.to_owned(), earlier.clone()))).map_or(MADE_UP, String::as_str);
            params["context"] = json!({ "arguments": { earlier: value } });
            explorer.send_request("complete-with-context", Some(&argument), methods::COMPLETION_COMPLETE, params).await;
        }
        before = Some((reference, argument));
    }
    if explorer.declares("completions") {
        let params = json!({ "ref": { "type": "ref/prompt", "name": UNKNOWN_NAME }, "argument": { "name": "argument", "value": "" } });
        explorer.send_request("complete-unknown", Some(UNKNOWN_NAME), methods::COMPLETION_COMPLETE, params).await;
    }
    offered
}

/// The names of the variables of a URI template (RFC 6570).
fn variables(template: &str) -> Vec<String> {
    let expressions = template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let names = expressions.flat_map(|inside| inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(','));
    names.map(|name| name.trim_end_matches('*').split(':').next().unwrap_or_default().to_owned()).filter(|name| !name.is_empty()).collect()
}

async fn subscribe(explorer: &mut Explorer<'_>, resources: &[Value]) {
    let Some(uri) = texts(resources, "uri").next().filter(|_| explorer.declares("resources/subscribe")) else { return };
    let subscribed = explorer.send_request("subscribe", Some(uri), methods::RESOURCES_SUBSCRIBE, json!({ "uri": uri })).await;
    if matches!(subscribed, Some(Ok(_))) {
        sleep(HOLD).await;
        let again = explorer.send_request(SUBSCRIBE_AGAIN, Some(uri), methods::RESOURCES_SUBSCRIBE, json!({ "uri": uri })).await;
        explorer.send_request("unsubscribe", Some(uri), methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri })).await;
        // Some servers count subscriptions.
        if matches!(again, Some(Ok(_))) {
            let id = json!("mcproof-unsubscribe-again");
            let message = explorer.build_request(id, methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri }));
            explorer.send("unsubscribe-again", Some(uri), message).await;
        }
        return;
    }
    explorer.send_request("unsubscribe", Some(uri), methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri })).await;
}

/// Listens once for everything that the server declared, once for nothing, and once for what it did not declare.
pub(super) async fn listen(explorer: &mut Explorer<'_>, resources: &[Value]) {
    let mut filter = declared_changes(explorer);
    if let Some(uri) = texts(resources, "uri").next().filter(|_| explorer.declares("resources/subscribe")) {
        filter.insert("resourceSubscriptions".into(), json!([uri]));
    }
    if filter.is_empty() {
        return;
    }
    explorer.listen("listen", filter, HOLD).await;
    if !explorer.is_over() {
        explorer.listen("listen-to-nothing", Map::new(), HOLD).await;
    }
    let undeclared = CHANGES.into_iter().filter(|(_, path)| !explorer.declares(path));
    let undeclared: Map<String, Value> = undeclared.map(|(kind, _)| (kind.to_owned(), Value::Bool(true))).collect();
    if !undeclared.is_empty() && !explorer.is_over() {
        explorer.listen(LISTEN_TO_UNDECLARED, undeclared, Duration::ZERO).await;
    }
}

/// The filter for the changes that the server declares.
fn declared_changes(explorer: &Explorer<'_>) -> Map<String, Value> {
    CHANGES.into_iter().filter(|(_, path)| explorer.declares(path)).map(|(kind, _)| (kind.to_owned(), Value::Bool(true))).collect()
}

/// Opens subscriptions that stand while tools are called, which may change what they are about: one to all that the server declares, and over
/// stdio one to nothing.
pub(super) async fn open_subscriptions(explorer: &mut Explorer<'_>) -> Vec<Subscription> {
    // Where connections are in the way of one another, calls would wait for the end of the subscriptions.
    if !explorer.is_modern() || explorer.is_over() || explorer.check_options.budget.reuse().is_some() {
        return Vec::new();
    }
    let mut all = declared_changes(explorer);
    if explorer.declares("resources/subscribe") {
        let resources = whole(explorer, "list-for-subscription", methods::RESOURCES_LIST, "resources").await;
        let uris: Vec<&str> = texts(&resources, "uri").take(MOST_LISTENED).collect();
        if !uris.is_empty() {
            all.insert("resourceSubscriptions".into(), json!(uris));
        }
    }
    let mut open = Vec::new();
    let filters = match explorer.kind() {
        _ if all.is_empty() => Vec::new(),
        // What has no tag seems to belong to the last one.
        Transport::Stdio | Transport::InMemory => vec![Map::new(), all],
        // Each of them takes a connection, of which a server may serve few.
        Transport::Http | Transport::Sse => vec![all],
    };
    for filter in filters {
        open.extend(explorer.subscribe(LISTEN_DURING_CALLS, filter).await);
        if explorer.was_last_silent(LISTEN_DURING_CALLS) {
            break;
        }
    }
    open
}

/// Ends them, once what the calls changed had the time to come.
pub(super) async fn close_subscriptions(open: Vec<Subscription>) {
    if !open.is_empty() {
        sleep(ON_ITS_WAY).await;
    }
    open.into_iter().for_each(Subscription::close);
}

/// Sets each level of the log, turns it down as a legacy client does, asks for something that may be logged, and asks for a level that does not exist.
pub(super) async fn set_log_level(explorer: &mut Explorer<'_>) {
    if explorer.declares("logging") {
        for level in OTHER_LEVELS {
            let id = json!(format!("mcproof-level-{level}"));
            let message = explorer.build_request(id, methods::LOGGING_SET_LEVEL, json!({ "level": level }));
            explorer.send_briefly(LEGAL_FORM, &level_form(level), message).await;
        }
    }
    explorer.send_request("set-log-level", Some("error"), methods::LOGGING_SET_LEVEL, json!({ "level": "error" })).await;
    if explorer.declares("logging") {
        explorer.send_request("after-log-level", None, explorer.any_method(), json!({})).await;
        explorer.send_request("set-unknown-log-level", None, methods::LOGGING_SET_LEVEL, json!({ "level": "mcproof-loudest" })).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded_with_the_way_out_last() {
        let check = |template: &str, expected: &str| assert_eq!(expanded(template, "../x"), expected, "{template}");
        check("file:///{+path}", "file:///../x");
        check("demo://{kind}/{id}/text", "demo://a/../x/text");
        check("demo://docs{/path}", "demo://docs/../x");
        check("demo://docs{?first,path*}", "demo://docs?path=../x");
    }

    #[test]
    fn values_stand_in_a_uri_as_its_template_takes_them() {
        let check = |template: &str, value: &str, expected: &str| assert_eq!(encoded(template, value), expected, "{template}");
        check("demo://{id}", "a-1.b_~", "a-1.b_~");
        check("demo://{id}", "a b/ü", "a%20b%2F%C3%BC");
        check("file:///{+path}", "a b/ü?", "a%20b/%C3%BC?");
    }

    #[test]
    fn templates_name_their_variables() {
        let check = |template: &str, expected: &[&str]| assert_eq!(variables(template), expected, "{template}");
        check("demo://static", &[]);
        check("demo://text/{id}", &["id"]);
        check("file:///{+path}{?first,second*}", &["path", "first", "second"]);
        check("x://{name:3}/{", &["name"]);
        check("x://{}", &[]);
    }
}
