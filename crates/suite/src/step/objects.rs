//! The values of those keys of a step that are objects themselves.

use super::actions::read_signal;
use super::read_matcher;
use crate::document::Kind;
use crate::format::{Fault, Key, Object, Presence, Shape};
use crate::judge::{Matcher, Subject};
use crate::plan::{Bytes, TaskCall};
use base64::Engine as _;
use mcproof_client::ProcessSignal;
use mcproof_record::Diagnostic;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The value of `complete:`.
pub static COMPLETE: Object<CompleteDraft> = Object {
    name: "a completion",
    keys: &[
        Key {
            name: "prompt",
            doc: "the name of the prompt whose argument is completed",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.reference = json!({"type": "ref/prompt", "name": reader.template_text(node)?});
                Ok(())
            },
        },
        Key {
            name: "resource",
            doc: "the URI template of the resource whose argument is completed",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let uri = reader.template_text(node)?;
                reader.permit(node.span, |restriction| restriction.uri(&uri))?;
                draft.reference = json!({"type": "ref/resource", "uri": uri});
                Ok(())
            },
        },
        Key {
            name: "argument",
            doc: "the name of the argument",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.argument = reader.text(node)?;
                Ok(())
            },
        },
        Key {
            name: "value",
            doc: "what is typed so far",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.value = reader.template_text(node)?;
                Ok(())
            },
        },
        Key {
            name: "context",
            doc: "other arguments that have a value already",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let Kind::Map(entries) = &node.kind else { return Err(Fault::Shape) };
                for entry in entries {
                    match reader.template_text(&entry.value) {
                        Ok(text) => drop(draft.context.insert(entry.key.text.clone(), Value::String(text))),
                        Err(Fault::Shape) => reader.wrong_type("a string", &entry.value),
                        Err(Fault::Reported) => {}
                    }
                }
                Ok(())
            },
        },
    ],
    later: &[],
};

/// The value of `task:`.
pub static TASK: Object<TaskCall> = Object {
    name: "a task",
    keys: &[Key {
        name: "ttl",
        doc: "how long a server of 2025-11-25 is asked to keep the task; later ones decide by themselves",
        shape: Shape::Duration,
        presence: Presence::Optional,
        read: |reader, node, draft| {
            draft.ttl = Some(reader.duration(node)?);
            Ok(())
        },
    }],
    later: &[],
};

/// The value of `cancel:`.
pub static CANCEL: Object<CancelDraft> = Object {
    name: "a cancellation",
    keys: &[
        Key {
            name: "call",
            doc: "the tool to call",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.tool = reader.template_text(node)?;
                Ok(())
            },
        },
        Key {
            name: "with",
            doc: "the arguments of the call",
            shape: Shape::Values,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let resolved = reader.template(node);
                draft.arguments = match resolved.to_value() {
                    Value::Object(arguments) => arguments,
                    Value::Null if resolved.kind != Kind::Null => return Err(Fault::Reported),
                    _ => return Err(Fault::Shape),
                };
                Ok(())
            },
        },
        Key {
            name: "after",
            doc: "when it is canceled, counted from the call; an earlier response is a failure",
            shape: Shape::Duration,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.after = reader.duration(node)?;
                Ok(())
            },
        },
        Key {
            name: "reason",
            doc: "the reason that is sent to the server; over HTTP, servers since 2026-07-28 only see the request close",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.reason = Some(reader.template_text(node)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

/// The value of `http:`.
pub static HTTP: Object<HttpDraft> = Object {
    name: "an HTTP request",
    keys: &[
        Key {
            name: "method",
            doc: "GET if left out, or POST where there is a body",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.method = Some(reader.text(node)?);
                Ok(())
            },
        },
        Key {
            name: "path",
            doc: "the path with its query; that of the endpoint if left out",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.path = Some(reader.template_text(node)?);
                Ok(())
            },
        },
        Key {
            name: "headers",
            doc: "headers by name; those of the server's configuration go along",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let Kind::Map(entries) = &node.kind else { return Err(Fault::Shape) };
                for entry in entries {
                    match reader.template_word(&entry.value) {
                        Ok(value) => draft.headers.push((entry.key.text.clone(), value)),
                        Err(Fault::Shape) => reader.wrong_type("a string", &entry.value),
                        Err(Fault::Reported) => {}
                    }
                }
                Ok(())
            },
        },
        Key {
            name: "body",
            doc: "text as it is, anything else as JSON",
            shape: Shape::Any,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let resolved = reader.template(node);
                draft.body = Some(resolved.to_value()).filter(|_| resolved.kind != Kind::Broken);
                Ok(())
            },
        },
        Key {
            name: "session",
            doc: "whether the headers of the session go along: its id and the protocol version",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.in_session = reader.flag(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

/// The value of `send_bytes:`.
pub static SEND_BYTES: Object<SendBytesDraft> = Object {
    name: "bytes",
    keys: &[
        Key {
            name: "text",
            doc: "the bytes as text",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.bytes = Some(Bytes::Text(reader.template_text(node)?));
                Ok(())
            },
        },
        Key {
            name: "base64",
            doc: "the bytes in Base64",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let text = reader.text(node)?;
                match base64::engine::general_purpose::STANDARD.decode(text.trim()) {
                    Ok(bytes) => draft.bytes = Some(Bytes::Fixed(bytes)),
                    Err(error) => {
                        let message = format!("not valid Base64: {}", error.to_string().trim_end_matches('.').to_lowercase());
                        reader.report(Diagnostic::error("bad-base64", message), node.span);
                        return Err(Fault::Reported);
                    }
                }
                Ok(())
            },
        },
    ],
    later: &[],
};

/// The value of `exited:`.
pub static EXITED: Object<ExitedDraft> = Object {
    name: "an exit",
    keys: &[
        Key {
            name: "code",
            doc: "the exit code, or a matcher for it",
            shape: Shape::Matcher,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.code = Some(read_matcher(reader, node, Subject::Wire)?);
                Ok(())
            },
        },
        Key {
            name: "signal",
            doc: "the signal that ends the server, where no exit code is expected",
            shape: Shape::Word(ProcessSignal::NAMES),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.signal = Some(read_signal(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "within",
            doc: "how long the server may take to end; 5s if left out",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.within = Some(reader.duration(node)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

#[derive(Default)]
pub struct CompleteDraft {
    pub(super) reference: Value,
    pub(super) argument: String,
    pub(super) value: String,
    pub(super) context: Map<String, Value>,
}

#[derive(Default)]
pub struct CancelDraft {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) after: Duration,
    pub(super) reason: Option<String>,
}

#[derive(Default)]
pub struct HttpDraft {
    pub(super) method: Option<String>,
    pub(super) path: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    pub(super) in_session: bool,
}

#[derive(Default)]
pub struct SendBytesDraft {
    pub(super) bytes: Option<Bytes>,
}

#[derive(Default)]
pub struct ExitedDraft {
    pub(super) code: Option<Matcher>,
    pub(super) signal: Option<ProcessSignal>,
    pub(super) within: Option<Duration>,
}
