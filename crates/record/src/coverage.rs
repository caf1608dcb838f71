//! What a server offers, next to what the cases of a run used of it.

use serde::{Deserialize, Serialize};

/// How much of what a server offers the cases of a suite used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The suite file as the user named it.
    pub suite: String,
    /// The name of the server in the suite.
    pub server: String,
    pub items: Vec<CoveredItem>,
}

/// One thing that can be tested: a tool, one of its arguments, its error path, a prompt, a resource, a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredItem {
    pub kind: ItemKind,
    /// The name of the tool or prompt, or the URI.
    pub name: String,
    /// The argument, where `kind` is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// How many exchanges used it.
    pub uses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    Tool,
    ToolArgument,
    ToolError,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
}
