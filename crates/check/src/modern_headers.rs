//! A client of the modern era over HTTP whose headers do not say what its bodies say, or say it in another way. Nothing here
//! runs a tool that may not be called: where a name is needed, it is that of something to read, or of nothing.

use super::explorer::{Explorer, headers_of_post, is_declared};
use super::features::CHANGES;
use super::listing::{UNKNOWN_NAME, whole};
use super::modern::UNKNOWN_VERSION;
use base64::Engine as _;
use mcproof_client::{HeaderCase, Headers};
use mcproof_protocol::{Revision, methods};
use serde_json::{Map, Value, json};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// A name that no server has, and that no body carries.
const SOMEBODY_ELSE: &str = "mcproof-somebody-else";
/// What an argument says that a header mirrors.
const ARGUMENT: &str = "mcproof";
/// What no header may say as it stands.
const NOT_ASCII: &str = "mcproof-für-alle";

pub(super) async fn take(explorer: &mut Explorer<'_>) {
    methods_and_versions(explorer).await;
    let tools = whole(explorer, "list-for-headers", methods::TOOLS_LIST, "tools").await;
    let resources = whole(explorer, "list-for-headers", methods::RESOURCES_LIST, "resources").await;
    let prompts = whole(explorer, "list-for-headers", methods::PROMPTS_LIST, "prompts").await;
    let mut named = Vec::new();
    if !tools.is_empty() {
        named.push(Question::new(methods::TOOLS_CALL, json!({ "name": UNKNOWN_NAME, "arguments": {} })));
    }
    let first = |items: &[Value], key: &str| items.first().and_then(|item| item.get(key)).cloned();
    named.extend(first(&resources, "uri").map(|uri| Question::new(methods::RESOURCES_READ, json!({ "uri": uri }))));
    named.extend(first(&prompts, "name").map(|name| Question::new(methods::PROMPTS_GET, json!({ "name": name, "arguments": {} }))));
    names(explorer, &named).await;
    other_methods(explorer, &prompts).await;
    let permission = explorer.check_options.calls.clone();
    let mirrored: Vec<Mirrored> = tools.iter().filter(|tool| permission.allows(tool)).flat_map(Mirrored::all).collect();
    let free_text = mirrored.iter().position(|mirrored| mirrored.is_free_text);
    if let Some(text) = free_text {
        parameters(explorer, &mirrored[text]).await;
    }
    if let Some(number) = mirrored.iter().find(|mirrored| mirrored.value.is_i64()) {
        numbers(explorer, number).await;
    }
    let others = mirrored.iter().enumerate().filter(|(index, _)| Some(*index) != free_text);
    for (_, other) in others.take(MOST_MIRRORED) {
        differing(explorer, other).await;
    }
}

/// Mirrored arguments whose headers differ from them once.
const MOST_MIRRORED: usize = 8;

/// A request, and the headers that go with it.
pub(super) struct Question {
    method: &'static str,
    params: Value,
    pub(super) headers: Headers,
}

impl Question {
    pub(super) fn new(method: &'static str, params: Value) -> Self {
        let mut headers = headers_of_post();
        headers.extend([(VERSION.into(), Revision::MODERN.as_str().into()), (METHOD.into(), method.into())]);
        let name = params.get(if method.starts_with("resources/") { "uri" } else { "name" });
        headers.extend(name.and_then(Value::as_str).map(|name| (NAME.to_owned(), name.to_owned())));
        Self { method, params, headers }
    }

    fn list() -> Self {
        Self::new(methods::TOOLS_LIST, json!({}))
    }

    fn name(&self) -> &str {
        self.headers.iter().find(|(name, _)| name == NAME).map_or("", |(_, value)| value)
    }

    fn without(&self, name: &str) -> Headers {
        self.headers.iter().filter(|(known, _)| known != name).cloned().collect()
    }

    fn with(&self, name: &str, value: impl Into<String>) -> Headers {
        let mut headers = self.without(name);
        headers.push((name.to_owned(), value.into()));
        headers
    }

    /// Posts it with these headers instead of its own.
    async fn post(&self, explorer: &mut Explorer<'_>, probe: &str, subject: &str, headers: Headers) {
        let message = explorer.build_message(self.method, self.params.clone());
        explorer.post(probe, subject, &message, headers, HeaderCase::Lower).await;
    }
}

/// The same text with its first letter in the other case; nothing if it has no letters.
fn in_other_case(value: &str) -> Option<String> {
    let (at, letter) = value.char_indices().find(|(_, letter)| letter.is_ascii_alphabetic())?;
    let other = if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
    Some(format!("{}{other}{}", &value[..at], &value[at + 1..]))
}

fn encoded(value: &str) -> String {
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(value))
}

async fn methods_and_versions(explorer: &mut Explorer<'_>) {
    spellings(explorer).await;
    let list = Question::list();
    list.post(explorer, "header-version", "absent", list.without(VERSION)).await;
    let mut message = explorer.build_message(methods::TOOLS_LIST, json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(UNKNOWN_VERSION);
    explorer.post("header-version", "different", &message, list.headers.clone(), HeaderCase::Lower).await;
    list.post(explorer, "header-method", "different", list.with(METHOD, methods::PROMPTS_LIST)).await;
    list.post(explorer, "header-method", "in capitals", list.with(METHOD, "TOOLS/LIST")).await;
    list.post(explorer, "header-method", "absent", list.without(METHOD)).await;
    list.post(explorer, "header-spaces", METHOD, list.with(METHOD, "  tools/list ")).await;
}

/// The right headers, in small letters, with capitals, and in capitals.
pub(super) async fn spellings(explorer: &mut Explorer<'_>) {
    let list = Question::list();
    list.post(explorer, "headers-right", methods::TOOLS_LIST, list.headers.clone()).await;
    let message = explorer.build_message(methods::TOOLS_LIST, json!({}));
    let spelled = |spell: fn(&str) -> String| list.headers.iter().map(|(name, value)| (spell(name), value.clone())).collect();
    explorer.post("header-case", "Like-This", &message, spelled(titled), HeaderCase::Title).await;
    let message = explorer.build_message(methods::TOOLS_LIST, json!({}));
    explorer.post("header-case", "LIKE-THIS", &message, spelled(str::to_ascii_uppercase), HeaderCase::Capitals).await;
}

/// As it goes out in [`HeaderCase::Title`].
pub(super) fn titled(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    });
    words.collect::<Vec<_>>().join("-")
}

async fn names(explorer: &mut Explorer<'_>, named: &[Question]) {
    for question in named {
        question.post(explorer, "header-method", "different", question.with(METHOD, methods::PROMPTS_LIST)).await;
        question.post(explorer, "header-name", "different", question.with(NAME, SOMEBODY_ELSE)).await;
        if let Some(other) = in_other_case(question.name()) {
            question.post(explorer, "header-name", "in another case", question.with(NAME, other)).await;
        }
        question.post(explorer, "header-name", "absent", question.without(NAME)).await;
        question.post(explorer, "header-base64", "encoded", question.with(NAME, encoded(question.name()))).await;
    }
    if let Some(question) = named.first() {
        // The mark is compared with its case, so that this is the value itself.
        let marked = encoded(question.name()).replacen("base64", "BASE64", 1);
        question.post(explorer, "header-name", "marked with `=?BASE64?`", question.with(NAME, marked)).await;
        question.post(explorer, "header-spaces", NAME, question.with(NAME, format!("  {} ", question.name()))).await;
    }
    if named.first().is_some_and(|question| question.method == methods::TOOLS_CALL) {
        // Begins as an encoded value does and does not end as one: it stands for itself.
        let literal = Question::new(methods::TOOLS_CALL, json!({ "name": "=?base64?bWNwcm9vZg==", "arguments": {} }));
        literal.post(explorer, "header-base64", "half encoded", literal.headers.clone()).await;
    }
}

/// Methods without an `Mcp-Name`, where the server has them.
async fn other_methods(explorer: &mut Explorer<'_>, prompts: &[Value]) {
    let discovered = explorer.send_request("discover-for-headers", None, methods::SERVER_DISCOVER, json!({})).await;
    let Some(Ok(discovered)) = discovered else { return };
    let declares = |path: &str| discovered.get("capabilities").is_some_and(|capabilities| is_declared(capabilities, path));
    let mut others = Vec::new();
    if declares("completions") {
        let prompt = prompts.first().and_then(|prompt| prompt.get("name")).cloned().unwrap_or(json!(UNKNOWN_NAME));
        let params = json!({ "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": ARGUMENT, "value": "" } });
        others.push(Question::new(methods::COMPLETION_COMPLETE, params));
    }
    if declares("resources/subscribe") || CHANGES.iter().any(|(_, path)| declares(path)) {
        others.push(Question::new(methods::SUBSCRIPTIONS_LISTEN, json!({ "notifications": {} })));
    }
    for question in others {
        question.post(explorer, "header-method", "different", question.with(METHOD, methods::PROMPTS_LIST)).await;
    }
}

/// A tool, and one of its arguments that is mirrored.
struct Mirrored {
    name: String,
    /// A value for that argument.
    value: Value,
    /// Whether any text is one.
    is_free_text: bool,
    /// All that are required, but the one that is mirrored.
    arguments: Map<String, Value>,
    argument: String,
    /// The headers of the other arguments.
    others: Headers,
    header: String,
    is_required: bool,
}

impl Mirrored {
    fn all(tool: &Value) -> Vec<Self> {
        let properties = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
        properties.into_iter().flatten().filter_map(|(argument, _)| Self::of(tool, argument)).collect()
    }

    fn of(tool: &Value, argument: &str) -> Option<Self> {
        let properties = tool.pointer("/inputSchema/properties")?.as_object()?;
        let required: Vec<&str> =
            tool.pointer("/inputSchema/required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let header = |schema: &Value| schema.get("x-mcp-header")?.as_str().map(|name| format!("mcp-param-{}", name.to_ascii_lowercase()));
        let schema = properties.get(argument)?;
        let mirrored = header(schema)?;
        let is_bound = ["enum", "pattern", "format", "const"].iter().any(|key| schema.get(key).is_some());
        let is_free_text = !is_bound && schema.get("type") == Some(&json!("string"));
        let (mut arguments, mut others) = (Map::new(), Headers::new());
        for name in required.iter().filter(|name| **name != argument) {
            let Some(schema) = properties.get(*name) else { continue };
            let value = some_value(schema);
            if let Some(header) = header(schema) {
                others.push((header, in_header(&value)));
            }
            arguments.insert((*name).to_owned(), value);
        }
        let name = tool.get("name")?.as_str()?.to_owned();
        let is_required = required.contains(&argument);
        let (value, argument) = (some_value(schema), argument.to_owned());
        Some(Self { name, value, is_free_text, arguments, argument, others, header: mirrored, is_required })
    }

    fn call(&self, value: Option<&str>) -> Question {
        self.call_with(value.map(Value::from))
    }

    fn call_with(&self, value: Option<Value>) -> Question {
        let mut arguments = self.arguments.clone();
        arguments.extend(value.map(|value| (self.argument.clone(), value)));
        let mut question = Question::new(methods::TOOLS_CALL, json!({ "name": self.name, "arguments": arguments }));
        question.headers.extend(self.others.iter().cloned());
        question
    }
}

fn in_header(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Some value of a schema's type, or the one that it names.
fn some_value(schema: &Value) -> Value {
    let named = ["const", "default"].iter().find_map(|key| schema.get(key)).or_else(|| schema.get("enum")?.get(0));
    named.cloned().unwrap_or_else(|| match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(ARGUMENT),
    })
}

async fn parameters(explorer: &mut Explorer<'_>, tool: &Mirrored) {
    let call = tool.call(Some(ARGUMENT));
    let header = tool.header.as_str();
    call.post(explorer, "header-param-right", "plain", call.with(header, ARGUMENT)).await;
    call.post(explorer, "header-param-right", "in Base64", call.with(header, encoded(ARGUMENT))).await;
    call.post(explorer, "header-param", "different", call.with(header, SOMEBODY_ELSE)).await;
    call.post(explorer, "header-param", "broken Base64", call.with(header, "=?base64?!!!?=")).await;
    call.post(explorer, "header-param", "absent", call.headers.clone()).await;
    let raw = tool.call(Some(NOT_ASCII));
    raw.post(explorer, "header-param", "not in ASCII", raw.with(header, NOT_ASCII)).await;
    if !tool.is_required {
        let call = tool.call(None);
        call.post(explorer, "header-param-right", "absent, as the argument", call.headers.clone()).await;
    }
    let null = tool.call_with(Some(Value::Null));
    null.post(explorer, "header-param-right", "absent, as the argument is null", null.headers.clone()).await;
}

/// A whole number that a header writes in another way than its body.
async fn numbers(explorer: &mut Explorer<'_>, tool: &Mirrored) {
    let call = tool.call_with(Some(tool.value.clone()));
    call.post(explorer, "header-param-number", "with a point", call.with(&tool.header, format!("{}.0", tool.value))).await;
}

/// An argument, whatever its type, and a header that says something else, or nothing.
async fn differing(explorer: &mut Explorer<'_>, tool: &Mirrored) {
    let call = tool.call_with(Some(tool.value.clone()));
    let other = match &tool.value {
        Value::Bool(value) => (!value).to_string(),
        Value::Number(_) => "4711".to_owned(),
        _ => SOMEBODY_ELSE.to_owned(),
    };
    call.post(explorer, "header-param", "different", call.with(&tool.header, other)).await;
    call.post(explorer, "header-param", "absent", call.headers.clone()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_has_the_other_case() {
        let check = |value: &str, expected: Option<&str>| assert_eq!(in_other_case(value).as_deref(), expected, "{value}");
        check("mcproof-1", Some("Mcproof-1"));
        check("Ab", Some("ab"));
        check("ä7b", Some("ä7B"));
        check("17", None);
    }

    #[test]
    fn tools_tell_which_argument_is_mirrored() {
        let check = |schema: Value, expected: Option<(&str, &str, Value, bool)>| {
            let tools = Mirrored::all(&json!({ "name": "t", "inputSchema": schema }));
            let found = tools
                .into_iter()
                .find(|tool| tool.is_free_text)
                .map(|tool| (tool.argument, tool.header, Value::Object(tool.arguments), tool.is_required));
            let expected =
                expected.map(|(argument, header, arguments, required)| (argument.to_owned(), header.to_owned(), arguments, required));
            assert_eq!(found, expected);
        };
        let region = json!({ "type": "string", "x-mcp-header": "Region" });
        check(json!({ "type": "object" }), None);
        check(json!({ "properties": { "a": { "type": "string" } } }), None);
        check(json!({ "properties": { "a": { "type": "integer", "x-mcp-header": "A" } } }), None);
        check(json!({ "properties": { "a": region } }), Some(("a", "mcp-param-region", json!({}), false)));
        check(
            json!({ "properties": { "a": region, "b": { "type": "integer", "minimum": 3 }, "c": { "enum": ["x"] } }, "required": ["a", "b", "c"] }),
            Some(("a", "mcp-param-region", json!({ "b": 3, "c": "x" }), true)),
        );
    }

    #[test]
    fn names_of_headers_are_titled_as_hyper_does() {
        let check = |name, expected: &str| assert_eq!(titled(name), expected);
        check("mcp-protocol-version", "Mcp-Protocol-Version");
        check("accept", "Accept");
    }
}
