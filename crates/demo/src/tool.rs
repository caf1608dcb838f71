//! What every tool of a demo is made of: its declaration, its arguments, its answer.
//! Knows schemas and results, not what a tool does.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The arguments of a call, as they came.
pub(crate) type Arguments = JsonObject;

/// What a tool does to the world, so that its annotations cannot contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds something; the same call again adds it again.
    Adds,
    /// Overwrites something; the same call again changes nothing more.
    Sets,
}

/// The declaration of one tool.
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) input: JsonObject,
    pub(crate) output: Option<JsonObject>,
}

impl From<Declaration> for Tool {
    fn from(declaration: Declaration) -> Self {
        let tool = Self::new(declaration.name, declaration.description, declaration.input)
            .with_title(declaration.title)
            .with_annotations(annotations(declaration.effect));
        match declaration.output {
            Some(schema) => tool.with_raw_output_schema(Arc::new(schema)),
            None => tool,
        }
    }
}

fn annotations(effect: Effect) -> ToolAnnotations {
    let closed_world = ToolAnnotations::new().open_world(false);
    match effect {
        Effect::Reads => closed_world.read_only(true).destructive(false).idempotent(true),
        Effect::Adds => closed_world.read_only(false).destructive(false).idempotent(false),
        Effect::Sets => closed_world.read_only(false).destructive(true).idempotent(true),
    }
}

/// The schema of arguments: these properties and no others, so that a misspelt argument is an error.
pub(crate) fn input(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = output(properties, required);
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

/// The schema of a result: at least these properties.
pub(crate) fn output(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), json!(required));
    schema
}

/// A tool that could not do its work: the caller reads this text in an `isError` result.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ToolError(pub(crate) String);

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<ToolError> for CallToolResult {
    fn from(error: ToolError) -> Self {
        Self::error(vec![ContentBlock::text(error.0)])
    }
}

pub(crate) type ToolResult = Result<CallToolResult, ToolError>;

/// Reads the arguments of the tool `name`. A missing or mistyped one is an error of the tool, which a model
/// can read and correct, and not of the protocol (SEP-1303).
pub(crate) fn read<T: DeserializeOwned>(name: &str, arguments: Arguments) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| ToolError(format!("Invalid arguments for {name}: {error}")))
}

/// A result of one text block.
pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// A result of one text block with `_meta`, which must be an object.
pub(crate) fn text_with_meta(content: impl Into<String>, meta: Value) -> CallToolResult {
    let Value::Object(meta) = meta else { unreachable!("callers write `_meta` as an object literal") };
    text(content).with_meta(Some(MetaObject(meta)))
}
