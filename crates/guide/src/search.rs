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
}

/// What a search found.
#[derive(Debug)]
pub enum Search<'a> {
    /// Lines that hold all words; those of documents whose title holds them first.
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

/// A word without the ending of its plural. What begins with a sign, such as a flag, is meant as it stands.
fn stem(word: &str) -> &str {
    if !word.starts_with(char::is_alphanumeric) {
        return word;
    }
    let word = word.trim_matches(|symbol: char| !symbol.is_alphanumeric());
    word.strip_suffix('s').filter(|stem| stem.chars().count() > 2 && !stem.ends_with('s')).unwrap_or(word)
}

/// Whether a word of the text begins with this one.
fn holds(text: &str, word: &str) -> bool {
    let is_word = word.starts_with(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| !is_word || !text[..at].chars().next_back().is_some_and(char::is_alphanumeric))
}

fn lines_with<'a>(words: &[&str], documents: impl Iterator<Item = &'a Document<'a>>) -> Vec<Found<'a>> {
    let holds_all = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| holds(&text, word))
    };
    let mut found = Vec::new();
    if words.is_empty() {
        return found;
    }
    for document in documents {
        let title: &str = &document.title;
        let mut heading = title;
        for line in document.text.lines().filter(|line| !line.starts_with("```")) {
            if let Some(also) = line.strip_prefix(ALSO) {
                if holds_all(also) {
                    found.push(Found { document, heading, line: heading });
                }
                continue;
            }
            if line.starts_with("<!--") {
                continue;
            }
            if let Some(title) = line.starts_with('#').then(|| line.trim_start_matches('#').trim()) {
                heading = title;
            }
            if holds_all(line) || (line.starts_with('#') && holds_all(&format!("{title} {heading}"))) {
                found.push(Found { document, heading, line: line.trim_start_matches(['#', ' ']).trim_start_matches("- ") });
            }
        }
    }
    found.sort_by_key(|found| !holds_all(&found.document.title));
    found
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
        assert_eq!(searched("zebra xylophone umbrella"), Vec::<String>::new());
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
