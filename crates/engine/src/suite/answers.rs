//! The `answers:` of a suite or a test: how the client answers what the server asks of it.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use mcproof_client::{Answers, Elicitation, Sampling};
use serde_json::{Map, Value};

/// What has a policy here is declared as a capability of the client.
pub static ANSWERS: Object<Answers> = Object {
    name: "`answers`",
    keys: &[
        Key {
            name: "roots",
            doc: "URIs that `roots/list` gives",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let Kind::Seq(items) = &node.kind else { return Err(Fault::Shape) };
                draft.roots = Some(items.iter().map(|item| reader.text(item)).collect::<Result<_, _>>()?);
                Ok(())
            },
        },
        Key {
            name: "elicitation",
            doc: "what a user would do: fill in these values and the schema's defaults, `accept` with the defaults alone, `decline` or `cancel`",
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
            doc: "what the model would say: a text, a whole result, or `reject`",
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
    ],
    later: &[],
};

fn value(node: &Node) -> Result<Value, Fault> {
    match node.kind {
        Kind::Broken => Err(Fault::Reported),
        _ => Ok(node.to_value()),
    }
}
