//! Texts that address the model instead of the user.

use super::ConversationView;
use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::texts::{ModelText, texts_for_models};
use mcproof_analysis::texts::{control_character, hidden_character, hidden_instruction};
use mcproof_analysis::wording::excerpt;
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use unicode_security::{MixedScript as _, is_potential_mixed_script_confusable_char, skeleton};

const PRACTICE: &[RequirementSource] = &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Security, source: "" }];
const GUESS: Option<&str> = Some("phrases are signs, not proof: an honest text may use them");

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "text-has-no-hidden-characters",
        area: Area::Poisoning,
        requirement: "names, descriptions and schemas have no invisible characters",
        sources: PRACTICE,
        judge: Judge::Together(|all| {
            each_text(all, |text| hidden_character(text).map(|found| format!("contains {}, which is invisible", code(found))))
        }),
        why: "the model reads text that the user who approves the tool cannot see",
        remedy: "remove the characters; they often come from copied web pages",
        ..Rule::DEFAULT
    },
    Rule {
        id: "text-has-no-control-characters",
        area: Area::Poisoning,
        requirement: "names, descriptions and schemas have no control characters except tabs and line breaks",
        sources: PRACTICE,
        judge: Judge::Together(|all| {
            each_text(all, |text| control_character(text).map(|found| format!("contains the control character {}", code(found))))
        }),
        why: "a model reads the whole text, while escape sequences hide or rewrite parts of it in a terminal",
        remedy: "remove the characters; use colors only in logs",
        ..Rule::DEFAULT
    },
    Rule {
        id: "text-has-no-hidden-instructions",
        area: Area::Poisoning,
        requirement: "descriptions contain no hidden instructions to the model",
        sources: PRACTICE,
        tolerance: GUESS,
        judge: Judge::Together(|all| each_text(all, |text| hidden_instruction(text).map(str::to_owned))),
        why: "hosts rarely show descriptions, and models follow them: attackers use this to steal files and conversations",
        remedy: "describe what the tool does; remove instructions to the model about the user, other instructions or files",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-names-are-not-confusable",
        area: Area::Poisoning,
        requirement: "no tool name looks like that of another tool, or mixes similar letters of several scripts",
        sources: PRACTICE,
        tolerance: Some("similar names are confusing, but rarely intentional"),
        judge: Judge::Together(confusable),
        why: "a user approves one tool and the model calls the other",
        remedy: "rename one of them",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-description-does-not-steer-other-tools",
        area: Area::Poisoning,
        requirement: "a tool's description gives no instructions about tools of other servers",
        sources: PRACTICE,
        tolerance: GUESS,
        judge: Judge::Together(does_not_steer_other_tools),
        why: "a model follows the description when it uses other tools, too: one server can take over another",
        remedy: "mention only tools of this server, by their current names",
        ..Rule::DEFAULT
    },
];

fn code(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

fn each_text(all: &[&ConversationView<'_>], wrong: impl Fn(&str) -> Option<String>) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for ModelText { place, text, frame } in texts_for_models(conversation) {
            seen += 1;
            if let Some(detail) = wrong(text) {
                flaws.push((place, Flaw { subject: String::new(), detail, frames: vec![frame], conversation: position }));
            }
        }
    }
    let flaws = flaws.into_iter().map(|(place, flaw)| Flaw { subject: place.replace('`', ""), ..flaw }).collect();
    match seen {
        0 => Judgment::NotApplicable("the server lists nothing, and has no instructions".into()),
        _ => Judgment::from_violations(told("the text", "the texts", flaws)),
    }
}

fn confusable(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let mut alike: BTreeMap<String, (&str, mcproof_record::FrameId)> = BTreeMap::new();
        for (tool, frame) in conversation.tools() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            seen += 1;
            if !name.is_single_script() && name.chars().any(is_potential_mixed_script_confusable_char) {
                let odd: String = name.chars().filter(|character| !character.is_ascii()).map(|found| format!(" {}", code(found))).collect();
                let message = format!("the name of tool `{name}` mixes letters of several scripts:{odd}");
                violations.push(Violation { conversation: position, ..Violation::new(message, [frame]) });
            }
            let plain: String = name.chars().filter(|character| character.is_alphanumeric()).collect::<String>().to_lowercase();
            // A zero looks like a capital letter, which looks like a small one.
            let looks = skeleton(name).collect::<String>().to_lowercase();
            for key in [format!("spelled {plain}"), format!("looks {looks}")] {
                match alike.get(&key) {
                    Some((other, first)) if *other != name => {
                        let message = format!("tools `{other}` and `{name}` have names that look alike");
                        violations.push(Violation { conversation: position, ..Violation::new(message, [*first, frame]) });
                        break;
                    }
                    Some(_) => {}
                    None => {
                        alike.insert(key, (name, frame));
                    }
                }
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable("the server lists no tools".into()),
        // The first of many pairs are enough.
        _ => Judgment::from_violations(violations.into_iter().take(MOST_ALIKE).collect()),
    }
}

/// Pairs of names that are reported.
const MOST_ALIKE: usize = 20;

/// Tools of other servers in general, or every tool call.
static OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(tools?\s+(of|from|provided\s+by)\s+(other|another|any|all)\s+(mcp\s+)?servers?|(other|another|any|all)\s+(mcp\s+)?servers?'?s?\s+tools?|(with|in|to|for|at)\s+(every|each|all|any)\s+(other\s+|subsequent\s+|following\s+|future\s+)?tool\s+calls?)\b",
    )
    .expect("the pattern is constant")
});

/// A tool by its name, in a sentence that gives an instruction.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b[Tt]he\s+[`'"]?([a-z][a-z0-9]*(?:[_-][a-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]*)[`'"]?\s+tool\b[^.!?\n]{0,40}\b(must|should|always|never|has\s+to|needs\s+to)\b"#)
        .expect("the pattern is constant")
});

fn does_not_steer_other_tools(all: &[&ConversationView<'_>]) -> Judgment {
    let own: BTreeSet<String> = all
        .iter()
        .flat_map(|conversation| conversation.tools())
        .filter_map(|(tool, _)| Some(tool.get("name")?.as_str()?.to_lowercase()))
        .collect();
    // Servers refer to a tool by the end of its name, or with a prefix that a host adds.
    let mut looked_up: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_own = |name: &str| {
        let name = name.to_lowercase();
        let is_end = || own.contains(&name) || own.iter().any(|known| known.ends_with(&name) || name.ends_with(known.as_str()));
        *looked_up.entry(name.clone()).or_insert_with(is_end)
    };
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for (tool, frame) in conversation.tools() {
            let Some(text) = tool.get("description").and_then(Value::as_str) else { continue };
            seen += 1;
            let named = NAMED.captures_iter(text).filter_map(|found| found.get(1)).find(|name| !is_own(name.as_str()));
            let detail = match (named, OTHERS.find(text)) {
                (Some(name), _) => {
                    format!("its description gives instructions about `{}`, which is not a tool of this server", name.as_str())
                }
                (None, Some(phrase)) => format!("its description refers to tools of other servers: \"{}\"", excerpt(phrase.as_str())),
                (None, None) => continue,
            };
            let subject = super::flaws::name_of(tool).to_owned();
            flaws.push(Flaw { subject, detail, frames: vec![frame], conversation: position });
        }
    }
    match seen {
        0 => Judgment::NotApplicable("no tool has a description".into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}
