//! What changed between two contracts: for a terminal, and as Markdown for a pull request. The text is the same.

use crate::escape::{escape_block, escape_line};
use crate::style::{BOLD, CYAN, DIM, GREEN, RED, Style, YELLOW, count};
use mcproof_record::{ChangeLevel, ContractChange, ContractDiff};
use serde_json::Value;

/// Rows of an old or a new text that are shown at a terminal.
const MOST_ROWS: usize = 4;
/// Characters of a text that a pull request shows.
const LONGEST: usize = 4_000;

const LEVELS: [ChangeLevel; 3] = [ChangeLevel::Breaking, ChangeLevel::Compatible, ChangeLevel::Cosmetic];

/// All changes, the worst first, and how many there are.
pub fn terminal(diff: &ContractDiff, style: &Style) -> String {
    let mut text = String::new();
    for change in &diff.changes {
        let color = match change.level {
            ChangeLevel::Breaking => RED,
            ChangeLevel::Compatible => GREEN,
            ChangeLevel::Cosmetic => CYAN,
        };
        let place = if change.pointer.is_empty() { String::new() } else { format!(" at {}", change.pointer) };
        let head = style.line(&format!("{}{place}", change.subject), style.width.saturating_sub(12).max(20));
        text += &format!("{} {}\n", style.paint(color, &format!("{:<10}", word(change.level))), style.paint(BOLD, &head));
        let mut lines = style.wrap(&format!("{} ({})", change.reason, change.code), style.width.saturating_sub(11).max(20), MOST_ROWS);
        lines.extend(only_for(diff, change).map(|keys| format!("only for {keys}")));
        lines.into_iter().for_each(|line| text += &format!("           {line}\n"));
        for (sign, color, value) in [("-", RED, &change.old), ("+", GREEN, &change.new)] {
            let Some(shown) = value.as_ref().map(readable) else { continue };
            for line in style.wrap(&escape_line(&shown, LONGEST), style.width.saturating_sub(13).max(20), MOST_ROWS) {
                text += &format!("           {}\n", style.paint(color, &format!("{sign} {line}")));
            }
        }
        if let Some(suspicion) = &change.suspicion {
            text += &format!("           {}\n", style.paint(YELLOW, &format!("suspicious: the new text {}", style.text(suspicion))));
        }
    }
    for reason in &diff.not_compared {
        text += &format!("{}\n", style.paint(DIM, &style.text(&format!("not compared: {reason}"))));
    }
    text + &style.paint(BOLD, &summary(diff)) + "\n"
}

/// The same as a comment on a pull request.
pub fn markdown(diff: &ContractDiff) -> String {
    let mut text = format!("### MCP contract: {}\n\n", summary(diff));
    text += &format!("From {} to {}.\n", code(&diff.old), code(&diff.new));
    if !diff.changes.is_empty() {
        text += "\n| | what | where | change |\n|---|---|---|---|\n";
    }
    for change in &diff.changes {
        let mark = if change.level == ChangeLevel::Breaking { "**breaking**" } else { word(change.level) };
        let place = if change.pointer.is_empty() { String::new() } else { code(&change.pointer) };
        let mut reason = prose(&change.reason);
        if let Some(keys) = only_for(diff, change) {
            reason += &format!(" (only for {})", prose(&keys));
        }
        if let Some(suspicion) = &change.suspicion {
            reason += &format!(" **suspicious: the new text {}**", prose(suspicion));
        }
        text += &format!("| {mark} | {} | {place} | {reason} |\n", prose(&change.subject));
    }
    for change in diff.changes.iter().filter(|change| is_text(&change.old) || is_text(&change.new)) {
        let side = |sign: &str, value: &Option<Value>| {
            let shown = value.as_ref().map(readable).unwrap_or_default();
            let shown: String = escape_block(&shown).chars().take(LONGEST).collect();
            shown.lines().map(|line| format!("{sign} {line}\n")).collect::<String>()
        };
        let body = side("-", &change.old) + &side("+", &change.new);
        let fence = "`".repeat(longest_run(&body, '`').max(2) + 1);
        let title = format!("{} {}", change.subject, change.pointer);
        text += &format!("\n<details><summary>{}</summary>\n\n{fence}diff\n{body}{fence}\n\n</details>\n", html(&title));
    }
    for reason in &diff.not_compared {
        text += &format!("\n_Not compared: {}._\n", prose(reason));
    }
    text
}

/// `2 breaking, 1 compatible, 3 cosmetic changes for legacy/full, modern/full`
pub fn summary(diff: &ContractDiff) -> String {
    let keys = escape_line(&diff.keys.join(", "), LONGEST);
    let of = if keys.is_empty() { "no kind of client in common".to_owned() } else { format!("for {keys}") };
    if diff.changes.is_empty() {
        return format!("{}, {of}", if diff.inconclusive { "no changes in what could be compared" } else { "no changes" });
    }
    let counted = LEVELS.map(|level| format!("{} {}", diff.count(level), word(level)));
    let suspicious = diff.changes.iter().filter(|change| change.suspicion.is_some()).count() as u64;
    let suspicious = if suspicious > 0 { format!(", {}", count(suspicious, "suspicious text")) } else { String::new() };
    format!("{} changes{suspicious}, {of}", counted.join(", "))
}

/// What a change of this level is called.
pub fn word(level: ChangeLevel) -> &'static str {
    match level {
        ChangeLevel::Breaking => "breaking",
        ChangeLevel::Compatible => "compatible",
        ChangeLevel::Cosmetic => "cosmetic",
    }
}

/// The kinds of clients that a change is for, where it is not for all of them.
pub fn only_for(diff: &ContractDiff, change: &ContractChange) -> Option<String> {
    (change.keys.len() < diff.keys.len() || change.keys.iter().any(|key| !diff.keys.contains(key))).then(|| change.keys.join(", "))
}

fn is_text(value: &Option<Value>) -> bool {
    value.as_ref().is_some_and(Value::is_string)
}

/// A string without quotes, everything else as JSON.
pub fn readable(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Text in a table: text of a server must not add markup or links. Code stays code.
fn prose(text: &str) -> String {
    let safe = escape_line(text, LONGEST);
    let mut prose = String::with_capacity(safe.len());
    for (index, part) in safe.split('`').enumerate() {
        match index % 2 {
            0 => part.chars().for_each(|character| {
                if "\\*_[]<>|#~".contains(character) {
                    prose.push('\\');
                }
                prose.push(character);
            }),
            _ => prose += &code(part),
        }
    }
    prose
}

/// Code in a table.
fn code(text: &str) -> String {
    let safe = escape_line(text, LONGEST).replace('|', "\\|");
    let fence = "`".repeat(longest_run(&safe, '`') + 1);
    let space = if safe.starts_with('`') || safe.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{safe}{space}{fence}")
}

fn html(text: &str) -> String {
    escape_line(text, LONGEST).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|character| character != wanted).map(|run| run.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::FORMAT_VERSION;

    fn change(level: ChangeLevel, reason: &str) -> ContractChange {
        ContractChange {
            level,
            code: "c".into(),
            keys: vec!["legacy/full".into()],
            subject: "tool `a`".into(),
            pointer: "/description".into(),
            reason: reason.into(),
            suspicion: None,
            old: None,
            new: None,
        }
    }

    fn diff(changes: Vec<ContractChange>) -> ContractDiff {
        let keys = vec!["legacy/full".to_owned(), "modern/full".to_owned()];
        ContractDiff {
            version: FORMAT_VERSION,
            old: "old".into(),
            new: "new".into(),
            keys,
            not_compared: vec![],
            inconclusive: false,
            changes,
        }
    }

    #[test]
    fn a_person_sees_level_place_reason_and_count() {
        let text = terminal(&diff(vec![change(ChangeLevel::Breaking, "argument `x` is required now")]), &Style::default());
        for part in
            ["breaking   tool `a` at /description", "argument `x` is required now (c)", "only for legacy/full", "1 breaking, 0 compatible"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(terminal(&diff(vec![]), &Style::default()).contains("no changes, for legacy/full, modern/full"));
        let inconclusive = ContractDiff { not_compared: vec!["tools: why".into()], inconclusive: true, ..diff(vec![]) };
        let text = terminal(&inconclusive, &Style::default());
        assert!(text.ends_with("not compared: tools: why\nno changes in what could be compared, for legacy/full, modern/full\n"), "{text}");
    }

    #[test]
    fn text_of_a_server_cannot_leave_its_place() {
        let hostile = "a|b\n# h <script> [x](http://y) \u{1b}[31m ```\n</details>";
        let mut poisoned = change(ChangeLevel::Cosmetic, hostile);
        poisoned.new = Some(hostile.into());
        poisoned.suspicion = Some("tells the model to lie".into());
        let text = markdown(&diff(vec![poisoned.clone()]));
        let row = text.lines().find(|line| line.starts_with("| cosmetic")).unwrap();
        assert!(row.contains("a\\|b") && row.contains("\\<script\\>") && row.contains("\\[x\\]") && !row.contains('\u{1b}'), "{row}");
        assert!(row.contains("**suspicious: the new text tells the model to lie**"));
        assert!(text.contains("````diff\n"), "the fence is longer than any in the text:\n{text}");
        assert!(!terminal(&diff(vec![poisoned]), &Style::default()).contains('\u{1b}'));
    }
}
