//! The `answers:` of a suite or a test: how the client responds to requests of the server.

use super::document::{self, Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::reader::Reader;
use super::source::Source;
use super::{Environment, without_credentials};
use mcproof_client::{Answers, Elicitation, HostedTasks, Root, Sampling};
use mcproof_record::Diagnostic;
use serde_json::Value;
use std::path::Path;

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
            doc: "the user's response: these values and the defaults of the schema, `accept` with the defaults alone, `decline`, `cancel`, or `$result` with a whole result, which is sent as it is",
            shape: Shape::Elicitation,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.elicitation = Some(Elicitation::of(value(&reader.final_value(node))?).ok_or(Fault::Shape)?);
                Ok(())
            },
        },
        Key {
            name: "sampling",
            doc: "the model's response: a string, a whole result, or `reject`",
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
        Key {
            name: "validate",
            doc: "`false`: values that the form does not allow, and results of sampling that are none, do not fail the step. They are sent in any case, and no host sends them",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.validate = Some(reader.flag(node)?);
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

/// Reads what stands below `answers:`, where it stands alone. `name` is how the text is called.
///
/// # Errors
/// All mistakes in it, in the order of their places.
pub fn read_answers(name: &str, text: &str, environment: &Environment) -> Result<Answers, Vec<Diagnostic>> {
    let source = Source::new(name, text);
    let (tree, mistakes) = document::parse(&source, 0);
    let mut reader = Reader::new(&source, Path::new(""), environment);
    reader.diagnostics = mistakes;
    for empty in reader.diagnostics.iter_mut().filter(|diagnostic| diagnostic.code == "empty-file") {
        empty.hint = Some("`{}` has no answers".into());
    }
    let mut answers = Answers::default();
    if let Some(tree) = &tree {
        ANSWERS.read(&mut reader, tree, &mut answers);
    }
    if tree.is_some() && reader.mistakes() == 0 {
        return Ok(answers);
    }
    let mut mistakes = without_credentials(reader.diagnostics, environment);
    mistakes.sort_by_key(|mistake| mistake.place.as_ref().map(|place| (place.line, place.column)));
    Err(mistakes)
}

fn value(node: &Node) -> Result<Value, Fault> {
    match node.kind {
        Kind::Broken => Err(Fault::Reported),
        _ => Ok(node.to_value()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_that_stand_alone_are_those_of_a_suite() {
        let check = |text: &str, expected: Value| {
            let answers = read_answers("answers", text, &Environment::default()).unwrap();
            assert_eq!(Value::Object(answers.written()), expected, "{text}");
        };
        check("{}", json!({}));
        check("# a comment\nelicitation: accept\nsampling: reject\n", json!({ "elicitation": "accept", "sampling": "reject" }));
        check("elicitation: { name: Bob }\nroots: [file:///a]\n", json!({ "roots": ["file:///a"], "elicitation": { "name": "Bob" } }));
        check(r#"{"sampling":{"model":"m","role":"assistant"}}"#, json!({ "sampling": { "model": "m", "role": "assistant" } }));
    }

    #[test]
    fn what_is_wrong_with_them_is_told_with_its_line() {
        for (text, line, said) in [
            ("", 1, "empty"),
            ("elicitation: maybe\n", 1, "expected"),
            ("sampling: hi\nelicitaton: accept\n", 2, "elicitaton"),
            ("elicitation: [\n", 1, ""),
            ("- accept\n", 1, "which is a map"),
            ("sampling: ${env.NO_SUCH_VARIABLE}\n", 1, "NO_SUCH_VARIABLE"),
        ] {
            let mistakes = read_answers("answers", text, &Environment::default()).unwrap_err();
            let first = mistakes.first().unwrap();
            assert!(first.message.contains(said), "{text:?}: {first:?}");
            assert!(first.place.as_ref().is_some_and(|place| place.line >= line), "{text:?}: {first:?}");
        }
    }
}
