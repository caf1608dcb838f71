//! Whether a resource template returns files outside its folder.
//! Source: server/resources, security considerations.

use super::ConversationView;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::AttemptOutcome;
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::methods;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "resource-template-blocks-path-traversal",
    area: Area::Security,
    requirement: "a resource template returns no file outside its folder for a path with `../`",
    sources: &[RequirementSource {
        revisions: revisions::ALL,
        level: RequirementLevel::Must,
        source: "server/resources#security-considerations",
    }],
    judge: Judge::Each(stays_inside),
    why: "anyone who can make a model read a resource, for example with a prompt in a web page, can read keys and passwords on the machine",
    remedy: "resolve the path, including symbolic links, and refuse paths that are not below the served folder",
    sdks: &[
        ("Python", "`path.resolve().is_relative_to(root)`"),
        ("TypeScript", "`path.relative(root, await fs.realpath(file))` may not begin with `..`"),
    ],
    ..Rule::DEFAULT
}];

/// A line of `/etc/passwd` that is the same on every machine.
static PASSWD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^root:[^:\n]*:0:0:").expect("patterns of the program are valid"));
/// The same line in Base64, from the first byte of the file.
const PASSWD_BASE64: &str = "cm9vdDp4OjA6MD";

fn stays_inside(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes("template-traversal") {
        match attempt.answer {
            AttemptOutcome::Result { value, .. } => {
                seen += 1;
                let contents = value.get("contents").and_then(Value::as_array).into_iter().flatten();
                let mut texts =
                    contents.flat_map(|content| ["text", "blob"].map(|key| content.get(key))).flatten().filter_map(Value::as_str);
                if texts.any(|text| PASSWD.is_match(text) || text.starts_with(PASSWD_BASE64)) {
                    let uri = attempt.request.and_then(|request| request.param("/uri")).and_then(Value::as_str).unwrap_or_default();
                    let message = format!("`{}` returned /etc/passwd of the machine for `{}`", excerpt(attempt.subject()), excerpt(uri));
                    violations.push(Violation::new(message, attempt.frames()));
                }
            }
            AttemptOutcome::Error { .. } => seen += 1,
            _ => {}
        }
    }
    violations.truncate(1);
    match seen {
        0 if conversation
            .listed(methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates")
            .next()
            .is_none_or(|(items, _)| items.is_empty()) =>
        {
            Judgment::NotApplicable("the server lists no resource template".into())
        }
        _ => Judgment::of(violations, seen, "no template was expanded"),
    }
}
