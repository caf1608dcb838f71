//! Finds words in texts: the pages, and what else the program has to say. Knows lines and headings, not where a text comes from.

use crate::{TOPICS, Topic};
use std::borrow::Cow;
use std::cmp::Reverse;

/// A text that is searched.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// What shows it, such as `mcproof help guide/ci`.
    pub command: String,
    pub title: Cow<'a, str>,
    /// Markdown. The words of a line `<!-- search: … -->` are found as well: they are what readers call the subject of its section.
    pub text: Cow<'a, str>,
}

/// A line that holds what was searched for.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub document: &'a Document<'a>,
    /// The heading above the line.
    pub heading: &'a str,
    pub line: &'a str,
    pub fit: Fit,
}

/// How well a line fits what was searched for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Readers call its section so.
    Called,
    /// It is the row of a key, a flag or a section that is called so.
    Subject,
    /// The title of its document has all words.
    Title,
    Heading,
    /// It has all words.
    Words,
    /// Some of its words only begin like those.
    Beginnings,
}

/// What a search found.
#[derive(Debug)]
pub enum Search<'a> {
    /// Lines that hold all words, by document: the one with the line that fits best comes first, and so does that line.
    Lines(Vec<Found<'a>>),
    /// No line does: the documents that hold most of the words, best first.
    Documents(Vec<&'a Document<'a>>),
}

/// Words of a question that say nothing about its subject.
const COMMON: [&str; 44] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "between", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it",
    "its", "me", "my", "no", "not", "of", "on", "one", "only", "or", "our", "see", "the", "their", "them", "this", "to", "two", "use",
    "we", "what", "when", "with", "your",
];

/// Documents that a search without an exact hit shows.
const MOST_DOCUMENTS: usize = 8;

/// Before what readers call the subject of a section.
const ALSO: &str = "<!-- search: ";

/// All pages.
pub fn pages() -> Vec<Document<'static>> {
    let document = |topic: &'static Topic| Document {
        command: format!("mcproof help {}", topic.path()),
        title: topic.title().into(),
        text: topic.text.into(),
    };
    TOPICS.iter().map(document).collect()
}

/// Finds the lines that hold all words, whatever their case, or else all words that tell something, or else the pages that hold most of
/// them, or else the others that do.
pub fn search<'a>(words: &[String], pages: &'a [Document<'a>], others: &'a [Document<'a>]) -> Search<'a> {
    let words: Vec<String> = words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
    let telling: Vec<&str> = words.iter().filter(|word| !COMMON.contains(&word.as_str())).map(|word| stem(word)).collect();
    let words: Vec<&str> = words.iter().map(|word| stem(word)).collect();
    for wanted in [&words, &telling] {
        let lines = lines_with(wanted, pages.iter().chain(others));
        if !lines.is_empty() {
            return Search::Lines(lines);
        }
    }
    let found = with_most(&telling, pages);
    Search::Documents(if found.is_empty() { with_most(&telling, others) } else { found })
}

fn with_most<'a>(telling: &[&str], documents: &'a [Document<'a>]) -> Vec<&'a Document<'a>> {
    let mut counted: Vec<(usize, usize, &'a Document<'a>)> = documents
        .iter()
        .map(|document| {
            let (title, text) = (format!("{} {}", document.command, document.title).to_lowercase(), document.text.to_lowercase());
            let count = |within: &str| telling.iter().filter(|word| holds(within, word)).count();
            (count(&text), count(&title), document)
        })
        .collect();
    // Half of the words by chance is no answer.
    counted.retain(|(found, ..)| found * 2 > telling.len());
    // Of equals, the one that is about little else.
    counted.sort_by_key(|(found, named, document)| (Reverse(found + 2 * named), document.title.len()));
    counted.into_iter().take(MOST_DOCUMENTS).map(|(.., document)| document).collect()
}

/// A word without the ending of its plural, or of a verb. What begins with a sign, such as a flag, is meant as it stands.
fn stem(word: &str) -> &str {
    if !word.starts_with(char::is_alphanumeric) {
        return word;
    }
    let word = word.trim_matches(|symbol: char| !symbol.is_alphanumeric());
    let without = |ending: &str, fewest: usize| word.strip_suffix(ending).filter(|stem| stem.chars().count() >= fewest);
    let plural = without("s", 3).filter(|stem| !stem.ends_with('s'));
    plural.or_else(|| without("ing", 4)).or_else(|| without("ed", 4)).unwrap_or(word)
}

/// Whether a word of the text begins with this one.
fn holds(text: &str, word: &str) -> bool {
    places(text, word).next().is_some()
}

/// Whether it is a word of the text, in the singular or the plural.
fn holds_whole(text: &str, word: &str) -> bool {
    places(text, word).any(is_over)
}

/// What follows each occurrence of a word at the beginning of one.
fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_word = word.starts_with(char::is_alphanumeric);
    let begins = move |at: usize| !is_word || !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    text.match_indices(word).filter(move |(at, _)| begins(*at)).map(move |(at, _)| &text[at + word.len()..])
}

fn is_over(rest: &str) -> bool {
    let rest = ["s", "ing", "ed"].iter().find_map(|ending| rest.strip_prefix(*ending)).unwrap_or(rest);
    !rest.starts_with(|character: char| character.is_alphanumeric() || character == '_')
}

/// Whether a line is the row of a key, a flag, or the heading of a section, that is called so: behind signs only.
fn is_subject(line: &str, words: &[&str]) -> bool {
    let line = line.to_lowercase();
    let named = line.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    let wanted = words.join(" ");
    let wanted = wanted.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    named.len() < line.len() && named.strip_prefix(wanted).is_some_and(|rest| is_over(rest) && !rest.starts_with('-'))
}

fn lines_with<'a>(words: &[&str], documents: impl Iterator<Item = &'a Document<'a>>) -> Vec<Found<'a>> {
    let holds_all = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| holds(&text, word))
    };
    if words.is_empty() {
        return Vec::new();
    }
    let is_whole = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| holds_whole(&text, word))
    };
    let fit = |line: &str, title: &str, is_heading: bool| match is_whole(line) {
        _ if is_subject(line, words) => Fit::Subject,
        _ if is_whole(title) => Fit::Title,
        true if is_heading => Fit::Heading,
        true => Fit::Words,
        false => Fit::Beginnings,
    };
    let mut found: Vec<Vec<Found<'a>>> = Vec::new();
    for document in documents {
        let mut lines = Vec::new();
        let title: &str = &document.title;
        let mut heading = title;
        for line in document.text.lines().filter(|line| !line.starts_with("```")) {
            if let Some(also) = line.strip_prefix(ALSO) {
                if holds_all(also) {
                    let fit = if is_whole(also) { Fit::Called } else { Fit::Beginnings };
                    lines.push(Found { document, heading, line: heading, fit });
                }
                continue;
            }
            if line.starts_with("<!--") {
                continue;
            }
            let is_heading = line.starts_with('#');
            if is_heading {
                heading = line.trim_start_matches('#').trim();
            }
            if holds_all(line) || (is_heading && holds_all(&format!("{title} {heading}"))) {
                let fit = fit(line, title, is_heading);
                lines.push(Found { document, heading, line: line.trim_start_matches(['#', ' ']).trim_start_matches("- "), fit });
            }
        }
        lines.sort_by_key(|found| found.fit);
        found.push(lines);
    }
    found.retain(|lines| !lines.is_empty());
    found.sort_by_key(|lines| lines[0].fit);
    found.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What shows the documents that were found, best first, each once.
    fn searched(words: &str) -> Vec<String> {
        let (pages, words) = (pages(), [words.to_owned()]);
        let mut commands: Vec<String> = match search(&words, &pages, &[]) {
            Search::Lines(found) => found.iter().map(|found| found.document.command.clone()).collect(),
            Search::Documents(found) => found.iter().map(|document| document.command.clone()).collect(),
        };
        commands.dedup();
        commands
    }

    #[test]
    fn a_line_with_all_words_is_found() {
        assert!(searched("GitLab junit").contains(&"mcproof help guide/ci".to_owned()));
    }

    #[test]
    fn a_question_finds_the_page_that_answers_it() {
        let check = |question: &str, expected: &str| {
            let found = searched(question);
            assert!(found.iter().take(3).any(|found| found.ends_with(&format!("/{expected}"))), "{question}: {found:?}");
        };
        check("mock a server for my client", "mock");
        check("compare two versions of my server", "versions");
        check("the host does not see my tools", "hosts");
        check("record a bug for a colleague", "trace");
        check("alert to Slack only at night", "monitoring");
        check("find a memory leak", "faults");
        check("test on a flaky network", "chaos");
        check("share steps between suites", "share-steps");
        // Words that no page has in its text, and no page needs.
        check("load test", "parametrize");
        check("benchmark", "parametrize");
        check("fuzz", "check");
        check("suppress a rule", "check");
        check("custom headers", "requests");
        check("air-gapped", "install");
        check("docker", "install");
        check("windows", "install");
        check("pytest", "migrate-pytest");
        check("fixtures", "login");
        check("tags", "select");
        check("keyword test", "select");
        check("rerun change", "select");
        check("failed again", "select");
        check("parallel workers", "select");
        check("csv", "parametrize");
        check("virtual users", "parametrize");
        check("wait ready", "ci");
        check("server ready", "ci");
        check("temporary directory", "database");
        check("tmp_path", "database");
        check("global setup", "login");
        check("ignore timestamp", "snapshots");
        check("corporate proxy", "install");
        check("eventually", "suites");
        check("response time", "suites");
        check("capture", "suites");
        check("jsonpath", "suites");
        check("approximately", "suites");
        check("contains", "suites");
        assert_eq!(searched("zebra xylophone umbrella"), Vec::<String>::new());
    }

    #[test]
    fn the_line_that_is_about_a_word_comes_before_those_that_mention_it() {
        let page = |title: &'static str, text: &'static str| Document { command: title.to_owned(), title: title.into(), text: text.into() };
        let pages = [
            page("One", "# One\nIt contains much.\nWhat is containing it."),
            page("Two", "# Two\nThis one contains more.\n| `$contains` | a part |\n<!-- search: container -->\n"),
            page("Three", "# Three\n<!-- search: partial match, contains -->\nA container.\n"),
        ];
        let found = |words: &str| match search(&[words.to_owned()], &pages, &[]) {
            Search::Lines(found) => found.iter().map(|found| (found.line.to_owned(), found.fit)).collect::<Vec<_>>(),
            Search::Documents(_) => Vec::new(),
        };
        let told = |line: &str, fit: Fit| (line.to_owned(), fit);
        assert_eq!(
            found("contains"),
            [
                told("Three", Fit::Called),
                told("A container.", Fit::Beginnings),
                told("| `$contains` | a part |", Fit::Subject),
                told("This one contains more.", Fit::Words),
                told("Two", Fit::Beginnings),
                told("It contains much.", Fit::Words),
                told("What is containing it.", Fit::Words),
            ]
        );
        assert_eq!(found("more"), [told("This one contains more.", Fit::Words)]);
        assert_eq!(found("mor"), [told("This one contains more.", Fit::Beginnings)]);
    }

    #[test]
    fn what_no_page_has_is_found_in_the_others() {
        let other =
            |title: &'static str, text: &'static str| Document { command: title.to_owned(), title: title.into(), text: text.into() };
        let others = [other("mcproof zebra --help", "--stripes  How many stripes\n--xylophone  Loud"), other("mcproof yak --help", "Yak")];
        let found = |words: &str| match search(&[words.to_owned()], &[], &others) {
            Search::Lines(found) => found.iter().map(|found| found.line.to_owned()).collect(),
            Search::Documents(found) => found.iter().map(|document| document.command.clone()).collect::<Vec<_>>(),
        };
        assert_eq!(found("the stripe"), ["--stripes  How many stripes"]);
        assert_eq!(found("--xylophone"), ["--xylophone  Loud"]);
        assert_eq!(found("loud stripes umbrella"), ["mcproof zebra --help"]);
        assert_eq!(found("ephone"), Vec::<String>::new());
        assert_eq!(found("the"), Vec::<String>::new());
    }
}
