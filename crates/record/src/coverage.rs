//! What a server offers, next to what the cases of a run used of it.

use serde::{Deserialize, Serialize};

/// How much of what a server offers the tests of a suite used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// The suite file as the user named it.
    pub suite: String,
    /// The name of the server in the suite.
    pub server: String,
    pub items: Vec<CoveredItem>,
}

impl Coverage {
    /// How many of the items were used.
    pub fn used(&self) -> usize {
        self.items.iter().filter(|item| item.uses > 0).count()
    }

    /// The share of the items that were used, rounded down: only complete coverage is 100. It is 100 for a server that offers nothing.
    pub fn percent(&self) -> u32 {
        let whole = self.items.len();
        (self.used() * 100).checked_div(whole).map_or(100, |percent| u32::try_from(percent).expect("at most 100"))
    }

    /// What no test used, in the order of the server's lists.
    pub fn unused(&self) -> impl Iterator<Item = &CoveredItem> {
        self.items.iter().filter(|item| item.uses == 0)
    }
}

/// One thing that can be tested: a tool, one of its arguments, its error path, a prompt, a resource, a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uses: &[u32], percent: u32) {
        let item = |uses| CoveredItem { kind: ItemKind::Tool, name: "t".into(), argument: None, uses };
        let coverage = Coverage { suite: "s".into(), server: "server".into(), items: uses.iter().copied().map(item).collect() };
        assert_eq!(coverage.percent(), percent, "{uses:?}");
        assert_eq!(coverage.unused().count() + coverage.used(), uses.len());
    }

    #[test]
    fn only_what_is_complete_is_100_percent() {
        check(&[], 100);
        check(&[0], 0);
        check(&[1, 9], 100);
        check(&[1, 0, 1], 66);
        check(&[vec![1; 299], vec![0]].concat(), 99);
    }
}
