//! The headline and the lines of source that a diagnosis points at, with carets.

use super::GENERAL;
use super::differences::{label, summary};
use crate::Style;
use crate::check::INCONCLUSIVE;
use crate::escape::columns;
use crate::style::{Color, count};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use mcproof_record::{Diagnostic, Difference, Place, Severity};
use std::collections::BTreeMap;

/// Carets in one diagnosis; a person fixes the first few and runs again.
const MAXIMUM_CARETS: usize = 8;
/// Lines between two carets beyond which they are drawn apart.
const MAXIMUM_GAP: u32 = 1000;
/// Rows of a terminal that a headline may take, which may quote what a server sent.
const HEADLINE_ROWS: usize = 3;
/// The same for what a rule says, whose quotes are short: it is shown whole, unless somebody named something with a very long name.
const RULE_ROWS: usize = 16;

/// The drawing, and the differences that it explains completely.
pub(super) fn render<'a>(diagnostic: &'a Diagnostic, style: &Style) -> (String, Vec<&'a Difference>) {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let headline = if is_of_rule(&diagnostic.code) {
        style.sentence(&diagnostic.message, style.width.saturating_mul(RULE_ROWS))
    } else {
        style.line(&diagnostic.message, style.width.saturating_mul(HEADLINE_ROWS))
    };
    let (carets, explained) = carets(diagnostic, style);
    let snippets = hunks(carets, style.width).into_iter().map(|hunk| hunk.draw(style));
    let group = Group::with_title(level.primary_title(headline)).elements(snippets);
    let renderer = match style.color {
        Color::Plain => Renderer::plain(),
        Color::Ansi => Renderer::styled(),
    };
    // Below that, nothing of a source line would be left.
    let text = renderer.term_width(style.width.max(40)).render(&[group]);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    (lines.join("\n") + "\n", explained)
}

/// Whether a diagnostic is what a rule says, or why a check has no verdict.
fn is_of_rule(code: &str) -> bool {
    code == INCONCLUSIVE || !GENERAL.contains(&code)
}

struct Caret<'a> {
    place: &'a Place,
    label: Option<String>,
}

fn carets<'a>(diagnostic: &'a Diagnostic, style: &Style) -> (Vec<Caret<'a>>, Vec<&'a Difference>) {
    let place_of = |difference: &'a Difference| difference.place.as_ref().or(diagnostic.place.as_ref());
    // Differences at one place share a caret.
    let mut places: Vec<(&Place, Vec<&Difference>)> = Vec::new();
    for difference in &diagnostic.differences {
        let Some(place) = place_of(difference) else { continue };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, differences)) => differences.push(difference),
            None => places.push((place, vec![difference])),
        }
    }
    if places.is_empty() {
        let caret = diagnostic.place.as_ref().map(|place| Caret { place, label: None });
        return (caret.into_iter().collect(), Vec::new());
    }
    let mut explained = Vec::new();
    let mut carets = Vec::new();
    for (place, differences) in places.into_iter().take(MAXIMUM_CARETS) {
        let fitting = |label: &String| fits(label, place, style);
        let label = match differences.as_slice() {
            [only] => match label(only, place, style).filter(fitting) {
                Some(label) => {
                    explained.push(*only);
                    Some(label)
                }
                None => Some(summary(only, place, style)).filter(fitting),
            },
            several => Some(count(several.len() as u64, "difference")).filter(fitting),
        };
        carets.push(Caret { place, label });
    }
    (carets, explained)
}

/// Whether the label stands beside its caret within the width. A line that is too long is shown in part, with the caret near
/// its middle.
fn fits(label: &str, place: &Place, style: &Style) -> bool {
    let gutter = place.line.to_string().len() + " | ".len();
    let end = place.column.saturating_add(place.length).saturating_sub(1) as usize;
    let before: String = place.text.chars().take(end).collect();
    let at = gutter + columns(&before.replace('\t', "    "));
    let long = gutter + columns(&place.text) > style.width;
    let at = if long { at.min(style.width / 2) } else { at };
    at + 1 + columns(label) <= style.width
}

/// Neighbouring lines of one file.
struct Hunk<'a> {
    file: &'a str,
    /// Carets by line.
    lines: BTreeMap<u32, Vec<Caret<'a>>>,
}

fn hunks(carets: Vec<Caret<'_>>, width: usize) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for caret in carets {
        let near = |hunk: &&mut Hunk| {
            let mut known = hunk.lines.values().flatten();
            let is_same_text = |carets: &Vec<Caret>| carets.iter().all(|known| known.place.text == caret.place.text);
            hunk.file == caret.place.file
                && hunk.lines.get(&caret.place.line).is_none_or(is_same_text)
                && known.any(|known| can_share(known.place, caret.place, width))
        };
        match hunks.iter_mut().find(near) {
            Some(hunk) => hunk.lines.entry(caret.place.line).or_default().push(caret),
            None => hunks.push(Hunk { file: &caret.place.file, lines: BTreeMap::from([(caret.place.line, vec![caret])]) }),
        }
    }
    hunks
}

/// Whether two places are seen at once. A line wider than the terminal is shown only around its carets, which have to be near
/// each other, and would drag the other lines of its drawing with it.
fn can_share(one: &Place, other: &Place, width: usize) -> bool {
    let is_short = |place: &Place| columns(&place.text) <= width;
    if one.line == other.line {
        is_short(one) || one.column.abs_diff(other.column) as usize <= width / 3
    } else {
        is_short(one) && is_short(other) && one.line.abs_diff(other.line) <= MAXIMUM_GAP
    }
}

impl<'a> Hunk<'a> {
    fn draw(self, style: &Style) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let first = self.lines.keys().next().copied().unwrap_or(1);
        let last = self.lines.keys().next_back().copied().unwrap_or(1);
        let mut source = String::new();
        let mut annotations = Vec::new();
        for number in first..=last {
            if number > first {
                source.push('\n');
            }
            let Some(carets) = self.lines.get(&number) else {
                // This line is not known. It is usually folded, but a single line would be shown.
                source.push_str(style.ellipsis());
                continue;
            };
            let line = carets.first().map(|caret| style.source(&caret.place.text)).unwrap_or_default();
            for caret in carets {
                let before = caret.place.column.saturating_sub(1);
                let start = source.len() + byte_offset(&line, before);
                let end = source.len() + byte_offset(&line, before.saturating_add(caret.place.length.max(1)));
                annotations.push(AnnotationKind::Primary.span(start..end).label(caret.label.clone()));
            }
            source.push_str(&line);
        }
        Snippet::source(source).path(style.text(self.file)).line_start(first as usize).annotations(annotations)
    }
}

fn byte_offset(text: &str, characters: u32) -> usize {
    text.char_indices().nth(characters as usize).map_or(text.len(), |(offset, _)| offset)
}
