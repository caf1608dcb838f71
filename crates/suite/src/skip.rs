//! Reads `skip_if:` and `skip_rules:`. Conditions about this machine are decided here; what only a run knows is left in the plan.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{Skip, SkippedRule};
use super::reader::Reader;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_protocol::{Era, Transport};
use mcproof_record::Diagnostic;
use std::path::Path;

/// All conditions of one map have to hold.
pub static SKIP_IF: Object<SkipDraft> = Object {
    name: "`skip_if`",
    keys: &[
        Key {
            name: "env",
            doc: "this environment variable is set, and not empty; `NAME=value` asks for that value",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let written = reader.text(node)?;
                let (name, wanted) = written.split_once('=').map_or((written.as_str(), None), |(name, value)| (name, Some(value)));
                reader.permit(node.span, |restriction| restriction.variable(name))?;
                let found = reader.environment.variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
                let holds = wanted.map_or(found.is_some(), |wanted| found == Some(wanted));
                draft.condition(holds, format!("the environment variable `{written}` is set"));
                Ok(())
            },
        },
        Key {
            name: "no_env",
            doc: "this environment variable is not set, or empty",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let name = reader.text(node)?;
                reader.permit(node.span, |restriction| restriction.variable(&name))?;
                let is_set = reader.environment.variables.get(&name).is_some_and(|value| !value.is_empty());
                draft.condition(!is_set, format!("the environment variable `{name}` is not set"));
                Ok(())
            },
        },
        Key {
            name: "no_command",
            doc: "no such program is on the PATH",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let name = reader.text(node)?;
                reader.permit(node.span, |restriction| restriction.program(&name))?;
                let path = reader.environment.variables.get("PATH").map(String::as_str).unwrap_or_default();
                let found = std::env::split_paths(path).any(|folder| folder.join(&name).is_file()) || Path::new(&name).is_file();
                draft.condition(!found, format!("`{name}` is not on the PATH"));
                Ok(())
            },
        },
        Key {
            name: "os",
            doc: "mcproof runs on this system",
            shape: Shape::Word(&["linux", "macos", "windows"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let name = reader.text(node)?;
                if !["linux", "macos", "windows"].contains(&name.as_str()) {
                    return Err(Fault::Shape);
                }
                draft.condition(name == std::env::consts::OS, format!("this is {name}"));
                Ok(())
            },
        },
        Key {
            name: "transport",
            doc: "the test runs over this transport, or one of these",
            shape: Shape::WordOrWords(&["stdio", "http", "sse"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let names = match &node.kind {
                    Kind::Seq(_) => reader.texts(node)?,
                    _ => vec![reader.text(node)?],
                };
                for name in names {
                    match name.parse::<Transport>() {
                        Ok(kind) => draft.skip.transports.push(kind),
                        Err(_) => return Err(unknown(reader, node, "transport", &name, &["stdio", "http", "sse"])),
                    }
                }
                draft.reasons.push("it is not for this transport".into());
                Ok(())
            },
        },
        Key {
            name: "era",
            doc: "the session has this era",
            shape: Shape::Word(&["legacy", "modern"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.skip.era = Some(match reader.text(node)?.as_str() {
                    "legacy" => Era::Legacy,
                    "modern" => Era::Modern,
                    other => return Err(unknown(reader, node, "era", other, &["legacy", "modern"])),
                });
                draft.reasons.push("it is not for this era".into());
                Ok(())
            },
        },
        Key {
            name: "lacks",
            doc: "the server does not declare this capability, such as `prompts` or `resources.subscribe`",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let capability = reader.text(node)?;
                // What no server can declare would skip the test everywhere.
                if !is_capability(&capability) {
                    return Err(unknown(reader, node, "capability", &capability, &CAPABILITIES));
                }
                draft.reasons.push(format!("the server does not declare `{capability}`"));
                draft.skip.lacks = Some(capability);
                Ok(())
            },
        },
        Key {
            name: "reason",
            doc: "why, for the report",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.skip.reason = reader.text(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

pub struct SkipDraft {
    skip: Skip,
    reasons: Vec<String>,
    /// Whether the conditions about this machine hold.
    holds: bool,
}

impl SkipDraft {
    fn condition(&mut self, holds: bool, reason: String) {
        self.holds &= holds;
        self.reasons.push(reason);
    }
}

/// A map of conditions, or a list of such maps, of which one is enough.
pub(crate) fn read_skips(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<Skip>, Fault> {
    let items = match &node.kind {
        Kind::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut skips = Vec::new();
    let before = reader.mistakes();
    for item in items {
        let skip = Skip { reason: String::new(), transports: Vec::new(), era: None, lacks: None };
        let mut draft = SkipDraft { skip, reasons: Vec::new(), holds: true };
        if !SKIP_IF.read(reader, item, &mut draft) {
            continue;
        }
        if draft.reasons.is_empty() {
            let diagnostic = Diagnostic::error("missing-key", "`skip_if` has no condition");
            reader.report(diagnostic.hint("add one, or write `skip: reason` to leave the test out everywhere"), item.span);
            continue;
        }
        if draft.skip.reason.is_empty() {
            draft.skip.reason = draft.reasons.join(", and ");
        }
        skips.extend(draft.holds.then_some(draft.skip));
    }
    if reader.mistakes() == before { Ok(skips) } else { Err(Fault::Reported) }
}

/// The capabilities of servers in all revisions, and their flags.
const CAPABILITIES: [&str; 12] = [
    "completions",
    "experimental",
    "extensions",
    "logging",
    "prompts",
    "prompts.listChanged",
    "resources",
    "resources.listChanged",
    "resources.subscribe",
    "tasks",
    "tools",
    "tools.listChanged",
];

/// What is below those that are not bounded may have any name.
fn is_capability(name: &str) -> bool {
    let is_open = ["experimental.", "extensions.", "tasks."].iter().any(|open| name.starts_with(open));
    is_open || CAPABILITIES.contains(&name)
}

pub const ALLOW_FAULTS_DOC: &str = "`true`: what the server does wrong outside its responses (noise on stdout, a second response, a broken rule) is a warning, and fails no test; a server that ends although no step expects it fails the test nevertheless";

pub const SKIP_RULES_DOC: &str =
    "rules of `check` that the traffic of the tests is not judged by: ids, areas, or globs such as `progress-*`; `*` for all";

pub(crate) fn read_skipped_rules(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<SkippedRule>, Fault> {
    let place = reader.place(node.span);
    Ok(reader.texts(node)?.into_iter().map(|name| SkippedRule { name, place: place.clone() }).collect())
}

fn unknown(reader: &mut Reader<'_>, node: &Node, what: &str, written: &str, names: &[&'static str]) -> Fault {
    let diagnostic = Diagnostic::error(format!("unknown-{what}"), format!("`{written}` is not a known {what}"));
    let diagnostic = match did_you_mean(written, names.iter().copied()) {
        Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
        None => diagnostic.hint(format!("choose one of {}", listed(names.iter().copied()))),
    };
    reader.report(diagnostic, node.span);
    Fault::Reported
}
