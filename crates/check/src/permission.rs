//! Which tools a check may call. Safe by default: only what says of itself that it changes nothing.

use serde_json::Value;
use std::str::FromStr;

/// Which tools may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// Those annotated `readOnlyHint: true`.
    #[default]
    ReadOnly,
    /// These besides.
    Named(Vec<String>),
    /// All but the destructive ones: those have to be named.
    All { named: Vec<String> },
}

impl Permission {
    /// Whether a tool, as the server listed it, may be called.
    pub fn allows(&self, tool: &Value) -> bool {
        let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_named = |named: &[String]| named.iter().any(|known| known == name);
        // 2025-11-25, schema, ToolAnnotations: a tool that does not say otherwise may destroy.
        let is_read_only = hint("readOnlyHint") == Some(true) && hint("destructiveHint") != Some(true);
        match self {
            Self::ReadOnly => is_read_only,
            Self::Named(named) => is_read_only || is_named(named),
            Self::All { named } => is_read_only || is_named(named) || hint("destructiveHint") == Some(false),
        }
    }

    /// Whether it was named.
    pub(super) fn names(&self, tool: &Value) -> bool {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::ReadOnly => false,
            Self::Named(named) | Self::All { named } => named.iter().any(|known| known == name),
        }
    }
}

impl FromStr for Permission {
    type Err = std::convert::Infallible;

    /// Names with commas between them; `all` among them allows every tool that is not destructive.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (all, named): (Vec<String>, Vec<String>) =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).partition(|name| name == "all");
        Ok(if all.is_empty() { Self::Named(named) } else { Self::All { named } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_are_called_only_where_that_is_safe_or_allowed() {
        let check = |permission: &str, annotations: Value, expected| {
            let permission = if permission.is_empty() { Permission::ReadOnly } else { permission.parse().unwrap() };
            let tool = json!({ "name": "t", "annotations": annotations });
            assert_eq!(permission.allows(&tool), expected, "{permission:?} {tool}");
        };
        check("", json!({ "readOnlyHint": true }), true);
        check("", json!({ "readOnlyHint": true, "destructiveHint": true }), false);
        check("", json!({}), false);
        check("", json!({ "destructiveHint": false }), false);
        check("t", json!({}), true);
        check("u, t", json!({ "destructiveHint": true }), true);
        check("u", json!({}), false);
        check("all", json!({}), false);
        check("all", json!({ "destructiveHint": false }), true);
        check("all", json!({ "destructiveHint": true }), false);
        check("all,t", json!({ "destructiveHint": true }), true);
    }
}
