//! The keys of a step that say what it does; a step has exactly one of them.

use super::StepDraft;
use super::objects::{CANCEL, COMPLETE, CancelDraft, CompleteDraft, HTTP, HttpDraft, SEND_BYTES, SendBytesDraft};
use crate::document::{Kind, Node};
use crate::format::{Fault, Key, Presence, Shape};
use crate::plan::{Action, Bytes, HttpRequest, Listing, NameConflicts, Topic};
use crate::reader::Reader;
use crate::server::{RUN, read_launch};
use crate::template::is_template;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_client::ProcessSignal;
use mcproof_record::Diagnostic;
use serde_json::{Map, Value};

pub(super) const CALL: Key<StepDraft> = Key {
    name: "call",
    doc: "calls the tool of this name, with the arguments in `with`",
    shape: Shape::Text,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let tool = reader.template_text(node)?;
        draft.act("call", Action::Call { tool, arguments: Map::new() }, reader, node)
    },
};

pub(super) const TOOLS: Key<StepDraft> = Key {
    name: "tools",
    doc: "lists the tools; a list of names is the exact set",
    shape: Shape::Names,
    presence: Presence::OneOf,
    read: |reader, node, draft| draft.list("tools", Listing::Tools, reader, node),
};

pub(super) const FEDERATION: Key<StepDraft> = Key {
    name: "federation",
    doc: "lists the tools of all servers of the suite as a host that merges them would, by qualified names such as `shop.create_order`; a list of such names is the exact set",
    shape: Shape::Names,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let place = draft.names(reader, node)?;
        draft.action = Some(("federation", Action::Federation(NameConflicts::default()), place));
        Ok(())
    },
};

pub(super) const PROMPTS: Key<StepDraft> = Key {
    name: "prompts",
    doc: "lists the prompts; a list of names is the exact set",
    shape: Shape::Names,
    presence: Presence::OneOf,
    read: |reader, node, draft| draft.list("prompts", Listing::Prompts, reader, node),
};

pub(super) const RESOURCES: Key<StepDraft> = Key {
    name: "resources",
    doc: "lists the resources; a list of URIs is the exact set",
    shape: Shape::Names,
    presence: Presence::OneOf,
    read: |reader, node, draft| draft.list("resources", Listing::Resources, reader, node),
};

pub(super) const TEMPLATES: Key<StepDraft> = Key {
    name: "templates",
    doc: "lists the resource templates; a list of URI templates is the exact set",
    shape: Shape::Names,
    presence: Presence::OneOf,
    read: |reader, node, draft| draft.list("templates", Listing::ResourceTemplates, reader, node),
};

pub(super) const READ: Key<StepDraft> = Key {
    name: "read",
    doc: "reads the resource at this URI",
    shape: Shape::Text,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let uri = reader.template_text(node)?;
        reader.permit(node.span, |restriction| restriction.uri(&uri))?;
        draft.act("read", Action::Read { uri }, reader, node)
    },
};

pub(super) const PROMPT: Key<StepDraft> = Key {
    name: "prompt",
    doc: "gets the prompt of this name, with the arguments in `with`",
    shape: Shape::Text,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let name = reader.template_text(node)?;
        draft.act("prompt", Action::Prompt { name, arguments: Map::new() }, reader, node)
    },
};

pub(super) const COMPLETION: Key<StepDraft> = Key {
    name: "complete",
    doc: "asks for completions of an argument",
    shape: Shape::Object(&COMPLETE),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let mut completion = CompleteDraft::default();
        if !COMPLETE.read(reader, node, &mut completion) {
            return Err(Fault::Reported);
        }
        let CompleteDraft { reference, argument, value, context } = completion;
        draft.act("complete", Action::Complete { reference, argument, value, context }, reader, node)
    },
};

pub(super) const HANDSHAKE: Key<StepDraft> = Key {
    name: "handshake",
    doc: "what the handshake or discovery said",
    shape: Shape::Nothing,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        reader.nothing_or_true(node)?;
        draft.act("handshake", Action::Handshake, reader, node)
    },
};

pub(super) const DISCOVER: Key<StepDraft> = Key {
    name: "discover",
    doc: "sends `server/discover`, which servers support since 2026-07-28",
    shape: Shape::Nothing,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        reader.nothing_or_true(node)?;
        draft.act("discover", Action::Discover, reader, node)
    },
};

pub(super) const PING: Key<StepDraft> = Key {
    name: "ping",
    doc: "checks that the server responds: `ping`, and `server/discover` in the modern era, which has no ping",
    shape: Shape::Nothing,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        reader.nothing_or_true(node)?;
        draft.act("ping", Action::Ping, reader, node)
    },
};

pub(super) const SUBSCRIBE: Key<StepDraft> = Key {
    name: "subscribe",
    doc: "subscribes to updates of the resource at this URI, or of changes of `tools`, `prompts` or `resources`, as the era has it",
    shape: Shape::Text,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let written = reader.template_text(node)?;
        reader.permit(node.span, |restriction| restriction.uri(&written))?;
        let topic = topic(written, reader, node)?;
        draft.act("subscribe", Action::Subscribe(topic), reader, node)
    },
};

pub(super) const UNSUBSCRIBE: Key<StepDraft> = Key {
    name: "unsubscribe",
    doc: "ends a subscription of this test, which `subscribe` began",
    shape: Shape::Text,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let written = reader.template_text(node)?;
        let topic = topic(written, reader, node)?;
        draft.act("unsubscribe", Action::Unsubscribe(topic), reader, node)
    },
};

/// What a server is told about a call that a step cancels.
const CANCELLED: &str = "canceled by the caller, who no longer needs the answer";

pub(super) const CANCELLATION: Key<StepDraft> = Key {
    name: "cancel",
    doc: "calls a tool and cancels the call before the response",
    shape: Shape::Object(&CANCEL),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let mut cancel = CancelDraft::default();
        if !CANCEL.read(reader, node, &mut cancel) {
            return Err(Fault::Reported);
        }
        let CancelDraft { tool, arguments, after, reason } = cancel;
        let reason = reason.unwrap_or_else(|| CANCELLED.to_owned());
        draft.act("cancel", Action::Cancel { tool, arguments, after, reason }, reader, node)
    },
};

pub(super) const RAW: Key<StepDraft> = Key {
    name: "raw",
    doc: "sends a JSON-RPC message as it stands, such as `{ jsonrpc: \"2.0\", id: 7, method: ping }`; a request waits for its response",
    shape: Shape::Values,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let resolved = reader.template(node);
        match resolved.to_value() {
            Value::Object(message) => draft.act("raw", Action::Raw(message), reader, node),
            Value::Null if resolved.kind != Kind::Null => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    },
};

pub(super) const HTTP_REQUEST: Key<StepDraft> = Key {
    name: "http",
    doc: "sends an HTTP request to the origin of the endpoint; the payload is `{ status, headers, body }`, in which names of headers have no case. Every status is accepted unless `expect` says which. Text is short for a path, or for a method and a path",
    shape: Shape::ObjectOrText(&HTTP),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let mut http = HttpDraft::default();
        match &node.kind {
            Kind::Text(_) | Kind::Number(_) => {
                let text = reader.template_text(node)?;
                match text.split_once(' ') {
                    Some((method, path)) => (http.method, http.path) = (Some(method.to_owned()), Some(path.trim().to_owned())),
                    None => http.path = Some(text),
                }
            }
            _ if !HTTP.read(reader, node, &mut http) => return Err(Fault::Reported),
            _ => {}
        }
        let HttpDraft { method, path, headers, body, in_session } = http;
        if let Some(path) = path.as_ref().filter(|path| !path.starts_with(['/', '$'])) {
            let diagnostic = Diagnostic::error("bad-path", format!("the path `{path}` does not begin with `/`"));
            reader.report(diagnostic.hint("a request goes to the origin of the endpoint, such as `http: /health`"), node.span);
            return Err(Fault::Reported);
        }
        let method = method.unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned());
        draft.act("http", Action::Http(HttpRequest { method, path, headers, body, in_session }), reader, node)
    },
};

pub(super) const BYTES: Key<StepDraft> = Key {
    name: "send_bytes",
    doc: "sends bytes as they stand: to stdin (without an added line feed), or as the body of a POST. It waits for a response only if the step expects one",
    shape: Shape::ObjectOrText(&SEND_BYTES),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let bytes = match &node.kind {
            Kind::Map(_) => {
                let mut bytes = SendBytesDraft::default();
                if !SEND_BYTES.read(reader, node, &mut bytes) {
                    return Err(Fault::Reported);
                }
                bytes.bytes.ok_or(Fault::Reported)?
            }
            _ => Bytes::Text(reader.template_text(node)?),
        };
        draft.act("send_bytes", Action::SendBytes(bytes), reader, node)
    },
};

pub(super) const CLOSE_STDIN: Key<StepDraft> = Key {
    name: "close_stdin",
    doc: "closes the server's stdin, which asks it to end",
    shape: Shape::Nothing,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        reader.nothing_or_true(node)?;
        draft.act("close_stdin", Action::CloseStdin, reader, node)
    },
};

pub(super) const SIGNAL: Key<StepDraft> = Key {
    name: "signal",
    doc: "sends a signal to the server that mcproof started",
    shape: Shape::Word(ProcessSignal::NAMES),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let signal = read_signal(reader, node)?;
        draft.act("signal", Action::Signal(signal), reader, node)
    },
};

pub(super) const RESTART: Key<StepDraft> = Key {
    name: "restart",
    doc: "ends the server in order and starts it anew, with a fresh session; saved values stay",
    shape: Shape::Nothing,
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        reader.nothing_or_true(node)?;
        draft.act("restart", Action::Restart, reader, node)
    },
};

/// The value of `parallel`, whose declaration refers to the table that it stands in.
pub(super) fn read_parallel(reader: &mut Reader<'_>, node: &Node, draft: &mut StepDraft) -> Result<(), Fault> {
    match &node.kind {
        Kind::Seq(steps) if !steps.is_empty() => draft.children.clone_from(steps),
        Kind::Seq(_) | Kind::Null => {
            let diagnostic = Diagnostic::error("empty-list", "nothing is to be run at the same time");
            reader.report(diagnostic.hint("list steps such as `- call: search`"), reader.key);
            return Err(Fault::Reported);
        }
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    }
    draft.act("parallel", Action::Parallel(Vec::new()), reader, node)
}

pub(super) const RUN_COMMAND: Key<StepDraft> = Key {
    name: "run",
    doc: "runs a command and waits for its end; the payload is `{ code, stdout, stderr }`, and the code has to be 0 unless `expect` says something of `code`",
    shape: Shape::ObjectOrText(&RUN),
    presence: Presence::OneOf,
    read: |reader, node, draft| {
        let launch = read_launch(reader, node)?;
        draft.act("run", Action::Run(launch), reader, node)
    },
};

/// `TERM`, `SIGTERM` and `term` alike.
pub(super) fn read_signal(reader: &mut Reader<'_>, node: &Node) -> Result<ProcessSignal, Fault> {
    let name = reader.text(node)?;
    name.parse().map_err(|_| Fault::Shape)
}

/// A URI has a colon, so that no word can be meant as one.
/// What has no scheme is no URI (RFC 3986, section 4.3): no server would say that such a resource has changed.
fn topic(written: String, reader: &mut Reader<'_>, node: &Node) -> Result<Topic, Fault> {
    const LISTS: [&str; 3] = ["tools", "prompts", "resources"];
    match written.as_str() {
        "tools" => Ok(Topic::List(Listing::Tools)),
        "prompts" => Ok(Topic::List(Listing::Prompts)),
        "resources" => Ok(Topic::List(Listing::Resources)),
        uri if uri.contains(':') || is_template(uri) => Ok(Topic::Resource(written)),
        word => {
            let message = format!("`{word}` is neither the URI of a resource nor one of {}", listed(LISTS));
            let hint = match did_you_mean(word, LISTS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a URI has a scheme, such as `file:///a.txt`; to subscribe to anything else, send `raw: { method: resources/subscribe, … }`".to_owned(),
            };
            reader.report(Diagnostic::error("no-topic", message).hint(hint), node.span);
            Err(Fault::Reported)
        }
    }
}
