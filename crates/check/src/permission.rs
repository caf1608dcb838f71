//! Which tools a check may call. Safe by default: only what says of itself that it changes nothing.

use mcproof_analysis::probes::{EXPLORED_IN_PART, UNKNOWN_CALL};
use mcproof_analysis::{ConversationView, named};
use mcproof_record::{Conversation, FrameId, ProbeOutcome, Probed};
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

    /// Whether it allows all but the destructive ones.
    pub(super) fn is_all(&self) -> bool {
        matches!(self, Self::All { .. })
    }

    /// What was named and is none of these.
    pub fn unknown(&self, tools: &[Value]) -> Vec<String> {
        let named: &[String] = match self {
            Self::ReadOnly => &[],
            Self::Named(named) | Self::All { named } => named,
        };
        let is_listed = |name: &str| tools.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
        named.iter().filter(|name| !is_listed(name)).cloned().collect()
    }

    /// What `all` leaves out, in a sentence: most servers annotate nothing, and so all of their tools.
    fn left_out_of_all(&self, tools: &[Value]) -> Option<String> {
        let left_out = tools.iter().filter(|tool| self.is_all() && !self.allows(tool)).filter_map(|tool| tool.get("name")?.as_str());
        let left_out: Vec<String> = left_out.map(str::to_owned).collect();
        let why = "a tool counts as destructive unless it has `destructiveHint: false` or `readOnlyHint: true`";
        (!left_out.is_empty()).then(|| format!("`--call all` leaves out {}: {why}; `--call all,NAME` allows it", named(&left_out)))
    }

    /// Leaves marks of what was named and is not listed, and of what `all` leaves out, in a conversation that has a list of tools.
    pub(super) fn mark(&self, conversations: &mut [Conversation]) {
        if *self == Self::ReadOnly {
            return;
        }
        let (mut tools, mut place) = (Vec::<Value>::new(), 0);
        for (index, conversation) in conversations.iter().enumerate() {
            let listed: Vec<Value> = ConversationView::new(conversation).tools().into_iter().map(|(tool, _)| tool.clone()).collect();
            if !listed.is_empty() {
                place = index;
            }
            let is_new = |tool: &Value| !tools.iter().any(|known| known.get("name") == tool.get("name"));
            let new: Vec<Value> = listed.into_iter().filter(is_new).collect();
            tools.extend(new);
            // Another era may list other tools.
            if !tools.is_empty() && self.unknown(&tools).is_empty() {
                break;
            }
        }
        // Where no list came, nothing is known of any name.
        let Some(conversation) = conversations.get_mut(place).filter(|_| !tools.is_empty()) else { return };
        let at = conversation.transcript.frames.last().map_or(FrameId(0), |frame| frame.id);
        let mark = |probe: &str, subject: String| {
            let outcome = ProbeOutcome::Done;
            Probed { probe: probe.into(), subject: Some(subject), first: at, end: at, outcome }
        };
        conversation.probes.extend(self.unknown(&tools).into_iter().map(|name| mark(UNKNOWN_CALL, name)));
        conversation.probes.extend(self.left_out_of_all(&tools).map(|sentence| mark(EXPLORED_IN_PART, sentence)));
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

    #[test]
    fn names_that_no_tool_has_and_what_all_leaves_out_are_told() {
        let tools = [
            json!({ "name": "echo", "annotations": { "readOnlyHint": true } }),
            json!({ "name": "add", "annotations": { "destructiveHint": false } }),
            json!({ "name": "drop" }),
        ];
        let check = |permission: &str, unknown: &[&str], left_out: Option<&str>| {
            let permission: Permission = permission.parse().unwrap();
            assert_eq!(permission.unknown(&tools), unknown, "{permission:?}");
            let told = permission.left_out_of_all(&tools);
            assert_eq!(told.as_deref().and_then(|told| told.split_once(':')).map(|(start, _)| start), left_out, "{permission:?}");
        };
        check("echo", &[], None);
        check("ech,drop", &["ech"], None);
        check("all", &[], Some("`--call all` leaves out `drop`"));
        check("all,drop", &[], None);
        check("all,dorp", &["dorp"], Some("`--call all` leaves out `drop`"));
        assert!(Permission::ReadOnly.unknown(&tools).is_empty());
    }
}
