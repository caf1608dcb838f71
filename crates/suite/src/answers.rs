//! The `answers:` of a suite or a test: how the client responds to requests of the server.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use mcproof_client::{Answers, Elicitation, HostedTasks, Root, Sampling};
use serde_json::{Map, Value};

/// What has a policy here is declared as a capability of the client.
pub static ANSWERS: Object<Answers> = Object {
    name: "`answers`",
    keys: &[
        Key {
            name: "roots",
            doc: "what `roots/list` returns: URIs, or maps with `uri` and `name`",
            shape: Shape::Roots,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let Kind::Seq(items) = &node.kind else { return Err(Fault::Shape) };
                let roots = items.iter().map(|item| {
                    let root = Root::of(&value(&reader.final_value(item))?).ok_or(Fault::Shape)?;
                    reader.permit(item.span, |restriction| restriction.uri(&root.uri))?;
                    Ok(root)
                });
                draft.roots = Some(roots.collect::<Result<_, _>>()?);
                Ok(())
            },
        },
        Key {
            name: "elicitation",
            doc: "the user's response: these values and the defaults of the schema, `accept` with the defaults alone, `decline` or `cancel`",
            shape: Shape::Elicitation,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.elicitation = Some(match value(&reader.final_value(node))? {
                    Value::Object(values) => Elicitation::Accept(values),
                    Value::String(word) if word == "accept" => Elicitation::Accept(Map::new()),
                    Value::String(word) if word == "decline" => Elicitation::Decline,
                    Value::String(word) if word == "cancel" => Elicitation::Cancel,
                    _ => return Err(Fault::Shape),
                });
                Ok(())
            },
        },
        Key {
            name: "sampling",
            doc: "the model's response: a text, a whole result, or `reject`",
            shape: Shape::Sampling,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.sampling = Some(match value(&reader.final_value(node))? {
                    Value::String(word) if word == "reject" => Sampling::Reject,
                    Value::String(text) => Sampling::Text(text),
                    result @ Value::Object(_) => Sampling::Result(result),
                    _ => return Err(Fault::Shape),
                });
                Ok(())
            },
        },
        Key {
            name: "tasks",
            doc: "lets a server of 2025-11-25 ask for elicitation and sampling as tasks: `true`, or how long they take",
            shape: Shape::ObjectOrFlag(&HOSTED_TASKS),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let mut tasks = HostedTasks::default();
                draft.tasks = match &node.kind {
                    Kind::Map(_) => HOSTED_TASKS.read(reader, node, &mut tasks).then_some(tasks).map(Some).ok_or(Fault::Reported)?,
                    _ => reader.flag(node)?.then_some(tasks),
                };
                Ok(())
            },
        },
    ],
    later: &[],
};

pub static HOSTED_TASKS: Object<HostedTasks> = Object {
    name: "`tasks`",
    keys: &[
        Key {
            name: "takes",
            doc: "time from the request to the client response, during which the server has to poll",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.takes = reader.duration(node)?;
                Ok(())
            },
        },
        Key {
            name: "poll_interval",
            doc: "the poll interval that is sent to the server",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.poll_interval = reader.duration(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

fn value(node: &Node) -> Result<Value, Fault> {
    match node.kind {
        Kind::Broken => Err(Fault::Reported),
        _ => Ok(node.to_value()),
    }
}
