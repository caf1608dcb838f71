//! A mock that is written by hand: when such a request comes, then this is the response. What it has no answer for comes from a recording or a
//! lock, if it names one. Knows the words of the file, no transports.

use mcproof_protocol::Era;
use mcproof_record::{Diagnostic, Place};
use mcproof_relay::mock::{Answers, Miss, MissReason, Script, ServerFacts, SessionState, TimedStep};
use mcproof_suite::document::{self, Kind, Node};
use mcproof_suite::file_kind::{FileKind, other_kind};
use mcproof_suite::format::{Fault, Key, Object, Presence, Shape};
use mcproof_suite::judge::{Matcher, Payload, Subject};
use mcproof_suite::reader::Reader;
use mcproof_suite::schema::format_schema;
use mcproof_suite::source::{Source, Span};
use mcproof_suite::{Environment, interpolate, without_credentials};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What the file says.
#[derive(Debug)]
pub(super) struct WrittenMock {
    name: String,
    pub(super) base: Option<(PathBuf, Place)>,
    answers: Vec<WrittenAnswer>,
}

#[derive(Debug)]
struct WrittenAnswer {
    when: When,
    then: Then,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    Tools,
    Resources,
    Prompts,
}

#[derive(Debug)]
struct When {
    feature: Feature,
    /// The name of the tool or prompt, or the URI.
    name: String,
    with: Option<Matcher>,
    state: Option<String>,
}

#[derive(Debug)]
struct Then {
    response: Response,
    /// In which the session is from then on.
    state: Option<String>,
}

/// Values with `${…}` in them.
#[derive(Clone, Debug)]
enum Response {
    Text(Value),
    Structured(Value),
    Result(Value),
    ToolError(Value),
    RpcError(Value),
}

#[derive(Default)]
struct FileDraft {
    base: Option<(PathBuf, Span)>,
    answers: Vec<(Option<When>, Option<Then>, Span)>,
}

#[derive(Default)]
struct AnswerDraft {
    when: Option<When>,
    then: Option<Then>,
}

#[derive(Default)]
struct WhenDraft {
    asked: Option<(Feature, String)>,
    with: Option<Matcher>,
    state: Option<String>,
}

#[derive(Default)]
struct ThenDraft {
    response: Option<(Response, Span)>,
    state: Option<String>,
}

static FILE: Object<FileDraft> = Object {
    name: "a mock",
    keys: &[
        Key {
            name: "base",
            doc: "a trace or a lock, which answers what `answers` does not",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.base = Some((PathBuf::from(reader.text(node)?), node.span));
                Ok(())
            },
        },
        Key {
            name: "answers",
            doc: "a list of answers, of which the first that fits is given",
            shape: Shape::List(&ANSWER),
            presence: Presence::Required,
            read: |reader, node, draft| {
                let Kind::Seq(items) = &node.kind else { return Err(Fault::Shape) };
                if items.is_empty() {
                    reader.error("no-answers", "there are no answers in this list", node.span);
                }
                for item in items {
                    let mut answer = AnswerDraft::default();
                    ANSWER.read(reader, item, &mut answer);
                    draft.answers.push((answer.when, answer.then, item.span));
                }
                Ok(())
            },
        },
    ],
    later: &[],
};

static ANSWER: Object<AnswerDraft> = Object {
    name: "an answer",
    keys: &[
        Key {
            name: "when",
            doc: "the requests that it answers",
            shape: Shape::Object(&WHEN),
            presence: Presence::Required,
            read: |reader, node, draft| {
                let mut when = WhenDraft::default();
                if WHEN.read(reader, node, &mut when)
                    && let Some((feature, name)) = when.asked
                {
                    draft.when = Some(When { feature, name, with: when.with, state: when.state });
                }
                Ok(())
            },
        },
        Key {
            name: "then",
            doc: "the response",
            shape: Shape::Object(&THEN),
            presence: Presence::Required,
            read: |reader, node, draft| {
                let mut then = ThenDraft::default();
                if THEN.read(reader, node, &mut then)
                    && let Some((response, _)) = then.response
                {
                    draft.then = Some(Then { response, state: then.state });
                }
                Ok(())
            },
        },
    ],
    later: &[],
};

static WHEN: Object<WhenDraft> = Object {
    name: "`when`",
    keys: &[
        asked("call", "the name of a tool", |reader, node, draft| read_asked(reader, node, draft, Feature::Tools)),
        asked("read", "the URI of a resource", |reader, node, draft| read_asked(reader, node, draft, Feature::Resources)),
        asked("prompt", "the name of a prompt", |reader, node, draft| read_asked(reader, node, draft, Feature::Prompts)),
        Key {
            name: "with",
            doc: "the arguments, as `expect` of a suite describes a value",
            shape: Shape::Matcher,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.with = Some(Matcher::compile(node, Subject::Wire, reader.source, &mut reader.diagnostics).ok_or(Fault::Reported)?);
                Ok(())
            },
        },
        Key {
            name: "state",
            doc: "only in this state of the session, which `then` of an earlier answer has set",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.state = Some(reader.text(node)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

static THEN: Object<ThenDraft> = Object {
    name: "`then`",
    keys: &[
        response("text", "a text block, the text of the resource, or a message of the user", |reader, node, draft| {
            draft.respond(reader, node, Response::Text)
        }),
        response("structured", "structured content of a tool, which is sent as text as well", |reader, node, draft| {
            draft.respond(reader, node, Response::Structured)
        }),
        response("result", "the whole result", |reader, node, draft| draft.respond(reader, node, Response::Result)),
        response("tool_error", "the text of a result with `isError`", |reader, node, draft| {
            draft.respond(reader, node, Response::ToolError)
        }),
        response("rpc_error", "a JSON-RPC error: a map with `code` and `message`", |reader, node, draft| {
            let value = node.to_value();
            if !(value["code"].is_i64() && value["message"].is_string()) {
                reader.error("bad-error", "a JSON-RPC error has a whole number as `code`, and a text as `message`", node.span);
                return Err(Fault::Reported);
            }
            draft.respond(reader, node, Response::RpcError)
        }),
        Key {
            name: "state",
            doc: "the state of the session from then on",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.state = Some(reader.text(node)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

type Read<T> = fn(&mut Reader<'_>, &Node, &mut T) -> Result<(), Fault>;

const fn asked(name: &'static str, doc: &'static str, read: Read<WhenDraft>) -> Key<WhenDraft> {
    Key { name, doc, shape: Shape::Text, presence: Presence::OneOf, read }
}

const fn response(name: &'static str, doc: &'static str, read: Read<ThenDraft>) -> Key<ThenDraft> {
    Key { name, doc, shape: Shape::Any, presence: Presence::OneOf, read }
}

fn read_asked(reader: &mut Reader<'_>, node: &Node, draft: &mut WhenDraft, feature: Feature) -> Result<(), Fault> {
    draft.asked = Some((feature, reader.text(node)?));
    Ok(())
}

impl ThenDraft {
    fn respond(&mut self, reader: &Reader<'_>, node: &Node, response: fn(Value) -> Response) -> Result<(), Fault> {
        // `${…}` is filled in when the request comes.
        self.response = Some((response(node.to_value()), reader.key));
        Ok(())
    }
}

/// The JSON Schema of the file.
pub(super) fn schema() -> Value {
    let example = json!({ "answers": [{ "when": { "call": "search", "with": { "query": "tea" } }, "then": { "text": "none left" } }] });
    format_schema(&FILE, "mcproof mock", "What a mock of an MCP server answers", example)
}

/// Reads a mock that is written by hand.
///
/// # Errors
/// All mistakes, in the order of their places.
pub(super) fn load(path: &Path, text: &str, environment: &Environment) -> Result<WrittenMock, Vec<Diagnostic>> {
    let source = Source::new(&path.display().to_string(), text);
    let folder = path.parent().unwrap_or(Path::new("."));
    let (tree, mistakes) = document::parse(&source, 0);
    let mut reader = Reader::new(&source, folder, environment);
    reader.diagnostics = mistakes;
    let mut draft = FileDraft::default();
    if let Some(tree) = &tree {
        match other_kind(tree, FileKind::Mock) {
            Some((other, span)) => reader.report(other, span),
            None => {
                FILE.read(&mut reader, tree, &mut draft);
            }
        }
    }
    let mut answers = Vec::new();
    for (when, then, span) in draft.answers {
        let (Some(when), Some(then)) = (when, then) else { continue };
        if let (false, Response::Structured(_) | Response::ToolError(_)) = (when.feature == Feature::Tools, &then.response) {
            reader.error("inapplicable-key", "`structured` and `tool_error` are results of tools", span);
        }
        answers.push(WrittenAnswer { when, then, place: reader.place(span) });
    }
    if reader.mistakes() > 0 {
        let mut mistakes = without_credentials(reader.diagnostics, environment);
        mistakes.sort_by_key(|mistake| mistake.place.as_ref().map(|place| (place.line, place.column)));
        return Err(mistakes);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
    let base = draft.base.map(|(base, span)| (folder.join(base), reader.place(span)));
    Ok(WrittenMock { name, base, answers })
}

/// Answers as written, and what is not written as the base.
pub(super) struct WrittenAnswers {
    mock: WrittenMock,
    base: Option<Box<dyn Answers>>,
}

impl WrittenAnswers {
    pub(super) fn new(mock: WrittenMock, base: Option<Box<dyn Answers>>) -> Self {
        Self { mock, base }
    }

    fn has(&self, feature: Feature) -> bool {
        self.mock.answers.iter().any(|answer| answer.when.feature == feature)
    }

    /// Names of a feature, each once.
    fn names(&self, feature: Feature) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for answer in self.mock.answers.iter().filter(|answer| answer.when.feature == feature) {
            if !names.contains(&answer.when.name.as_str()) {
                names.push(&answer.when.name);
            }
        }
        names
    }

    fn list(&self, method: &str) -> Option<Script> {
        let result = match method {
            "tools/list" => {
                let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": self.names(Feature::Tools).iter().map(tool).collect::<Vec<_>>() })
            }
            "prompts/list" => {
                json!({ "prompts": self.names(Feature::Prompts).iter().map(|name| json!({ "name": name })).collect::<Vec<_>>() })
            }
            "resources/list" => {
                let resource = |uri: &&str| json!({ "uri": uri, "name": uri });
                json!({ "resources": self.names(Feature::Resources).iter().map(resource).collect::<Vec<_>>() })
            }
            "resources/templates/list" => json!({ "resourceTemplates": [] }),
            _ => return None,
        };
        Some(Script::result(result))
    }

    /// The first answer that fits, or else how the nearest differs.
    fn find(&self, feature: Feature, state: &SessionState, params: &Value) -> Result<usize, Option<String>> {
        let name = params[if feature == Feature::Resources { "uri" } else { "name" }].as_str().unwrap_or_default();
        let arguments = Payload::of(arguments_of(params));
        let mut nearest = None;
        for (number, answer) in self.mock.answers.iter().enumerate() {
            let When { feature: of, name: wanted, with, state: needed } = &answer.when;
            if *of != feature || wanted != name {
                continue;
            }
            let at = format!("{}:{}", answer.place.file, answer.place.line);
            if let Some(difference) = with.as_ref().and_then(|with| with.compare(&arguments, &Map::new()).into_iter().next()) {
                let path = if difference.path.is_empty() {
                    "with".to_owned()
                } else {
                    format!("with.{}", difference.path.trim_start_matches('.'))
                };
                let text = format!("that of {at} differs at {path}: expected {}, found {}", difference.expected, difference.actual);
                nearest.get_or_insert(text);
            } else if needed.is_some() && *needed != state.name {
                let text = format!("that of {at} needs the state `{}`", needed.as_deref().unwrap_or_default());
                nearest.get_or_insert(text);
            } else {
                return Ok(number);
            }
        }
        Err(nearest)
    }
}

fn arguments_of(params: &Value) -> Value {
    params.get("arguments").cloned().unwrap_or_else(|| json!({}))
}

impl Answers for WrittenAnswers {
    fn eras(&self) -> Vec<Era> {
        self.base.as_ref().map(|base| base.eras()).unwrap_or_default()
    }

    fn about(&self, state: &mut SessionState, era: Era, client: &Value) -> ServerFacts {
        let mut facts = match &self.base {
            Some(base) => base.about(state, era, client),
            None => ServerFacts { server: json!({ "name": self.mock.name, "version": "0" }), ..ServerFacts::default() },
        };
        for (feature, key) in [(Feature::Tools, "tools"), (Feature::Resources, "resources"), (Feature::Prompts, "prompts")] {
            if self.has(feature) {
                facts.capabilities.entry(key).or_insert_with(|| json!({}));
            }
        }
        facts
    }

    fn go_on(&self, state: &mut SessionState, script: &Script) {
        if let Some(base) = &self.base {
            base.go_on(state, script);
        }
    }

    fn answer(&self, state: &mut SessionState, era: Era, method: &str, params: &Value) -> Result<Script, Miss> {
        let feature = match method {
            "tools/call" => Feature::Tools,
            "resources/read" => Feature::Resources,
            "prompts/get" => Feature::Prompts,
            _ => return self.unwritten(state, era, method, params, None),
        };
        let number = match self.find(feature, state, params) {
            Ok(number) => number,
            Err(nearest) => return self.unwritten(state, era, method, params, nearest),
        };
        let WrittenAnswer { when, then, place } = &self.mock.answers[number];
        let count = state.counts.entry(format!("answer {number}")).or_default();
        *count += 1;
        let scope = Map::from_iter([
            ("with".to_owned(), arguments_of(params)),
            ("n".to_owned(), json!(*count)),
            ("state".to_owned(), json!(state.name.clone().unwrap_or_default())),
        ]);
        let script = then.response.script(when, &scope).map_err(|why| {
            let nearest = Some(format!("that of {}:{} cannot be filled in: {why}", place.file, place.line));
            Miss::new(method, params, MissReason::Unwritten { nearest })
        })?;
        if let Some(next) = &then.state {
            state.name = Some(next.clone());
        }
        Ok(script)
    }

    fn noted(&self, state: &mut SessionState, method: &str) -> Vec<TimedStep> {
        self.base.as_ref().map(|base| base.noted(state, method)).unwrap_or_default()
    }

    fn tool(&self, name: &str) -> Option<Value> {
        self.base.as_ref().and_then(|base| base.tool(name))
    }
}

impl WrittenAnswers {
    /// What the base says, or what follows from the names that are answered.
    fn unwritten(&self, state: &mut SessionState, era: Era, method: &str, params: &Value, nearest: Option<String>) -> Result<Script, Miss> {
        let of_base = self.base.as_ref().map(|base| base.answer(state, era, method, params));
        match (of_base, self.list(method)) {
            (Some(Ok(script)), _) => Ok(script),
            (_, Some(script)) => Ok(script),
            (Some(Err(miss)), None) if nearest.is_none() => Err(miss),
            (_, None) => Err(Miss::new(method, params, MissReason::Unwritten { nearest })),
        }
    }
}

impl Response {
    fn script(&self, when: &When, scope: &Map<String, Value>) -> Result<Script, String> {
        let filled = |value: &Value| interpolate(value, scope).map_err(|missing| missing.to_string());
        let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let block = |text: String| json!({ "type": "text", "text": text });
        Ok(match self {
            Self::Text(text) => {
                let text = text_of(&filled(text)?);
                Script::result(match when.feature {
                    Feature::Tools => json!({ "content": [block(text)] }),
                    Feature::Resources => json!({ "contents": [{ "uri": when.name, "text": text }] }),
                    Feature::Prompts => json!({ "messages": [{ "role": "user", "content": block(text) }] }),
                })
            }
            Self::Structured(value) => {
                let value = filled(value)?;
                Script::result(json!({ "content": [block(value.to_string())], "structuredContent": value }))
            }
            Self::Result(result) => Script::result(filled(result)?),
            Self::ToolError(text) => Script::result(json!({ "content": [block(text_of(&filled(text)?))], "isError": true })),
            Self::RpcError(error) => {
                let error = filled(error)?;
                let code = error["code"].as_i64().unwrap_or(-32603);
                Script::error(code, text_of(&error["message"]))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "\
answers:
  - when: { call: create_order, with: { quantity: { $gt: 100 } } }
    then: { tool_error: \"only 100 of ${with.product} are left\" }
  - when: { call: create_order }
    then: { structured: { id: \"ORD-${n}\", quantity: \"${with.quantity}\" }, state: ordered }
  - when: { call: stock, state: ordered }
    then: { text: 8 }
  - when: { call: stock }
    then: { text: 10 }
  - when: { read: \"shop://terms\" }
    then: { text: the terms }
  - when: { prompt: greet }
    then: { rpc_error: { code: -32000, message: \"no, ${with.name}\" } }
";

    fn answers(text: &str) -> WrittenAnswers {
        WrittenAnswers::new(load(Path::new("shop.mock.yaml"), text, &Environment::default()).unwrap(), None)
    }

    /// What follows from a request, or why nothing does.
    fn check(answers: &WrittenAnswers, state: &mut SessionState, (method, params): (&str, Value), expected: &str) {
        let said = match answers.answer(state, Era::Legacy, method, &params) {
            Ok(script) => format!("{:?}", script.outcome),
            Err(miss) => miss.to_string(),
        };
        assert!(said.contains(expected), "{method} {params}: {said}");
    }

    #[test]
    fn the_first_answer_that_fits_is_given_and_the_state_goes_on() {
        let (shop, mut state) = (answers(SHOP), SessionState::default());
        let call = |name: &str, arguments: Value| ("tools/call", json!({ "name": name, "arguments": arguments }));
        let stock = || call("stock", json!({}));
        check(&shop, &mut state, stock(), r#""text": String("10")"#);
        check(&shop, &mut state, call("create_order", json!({ "quantity": 101, "product": "p" })), "only 100 of p are left");
        check(&shop, &mut state, stock(), r#""text": String("10")"#);
        check(
            &shop,
            &mut state,
            call("create_order", json!({ "quantity": 2 })),
            r#""structuredContent": Object {"id": String("ORD-1"), "quantity": Number(2)}"#,
        );
        check(&shop, &mut state, call("create_order", json!({ "quantity": 2 })), "ORD-2");
        check(&shop, &mut state, stock(), r#""text": String("8")"#);
        check(&shop, &mut state, ("resources/read", json!({ "uri": "shop://terms" })), "the terms");
        check(&shop, &mut state, ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ann" } })), "no, Ann");
        check(&shop, &mut SessionState::default(), ("tools/list", json!({})), "create_order");
    }

    #[test]
    fn a_miss_names_the_nearest_answer() {
        let shop = answers(
            "answers:\n  - { when: { call: a, with: { x: 1 } }, then: { text: one } }\n  - { when: { call: b, state: s }, then: { text: \"${with.y}\" } }\n",
        );
        let call = |name: &str| ("tools/call", json!({ "name": name, "arguments": { "x": 2 } }));
        let mut state = SessionState::default();
        check(&shop, &mut state, call("a"), "shop.mock.yaml:2 differs at with.x: expected 1, found 2");
        check(&shop, &mut state, call("b"), "shop.mock.yaml:3 needs the state `s`");
        state.name = Some("s".into());
        check(&shop, &mut state, call("b"), "cannot be filled in: `${with.y}` has no value");
        check(&shop, &mut state, call("c"), "`tools/call c` has no answer in the mock");
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let told = |text: &str| {
            let mistakes = load(Path::new("m.yaml"), text, &Environment::default()).unwrap_err();
            mistakes
                .iter()
                .map(|mistake| format!("{}:{}", mistake.code, mistake.place.as_ref().map_or(0, |place| place.line)))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("answers: []"), ["no-answers:1"]);
        assert_eq!(told("answers:\n  - when: { cal: x }\n    then: { text: a, tool_error: b }\n"), ["unknown-key:2", "conflicting-keys:3"]);
        assert_eq!(told("answers:\n  - { when: { read: x }, then: { structured: {} } }\n"), ["inapplicable-key:2"]);
        assert_eq!(told("answers:\n  - { when: { call: x }, then: { rpc_error: no } }\n"), ["bad-error:2"]);
        assert_eq!(told("base: x\n"), ["missing-key:1"]);
    }
}
