//! The pages of the documentation inside the program, for `mcproof help TOPIC`. Knows Markdown, not what the pages say.

mod render;

pub use render::render;

use mcproof_analysis::did_you_mean;

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The folder of `docs/`, such as `guide`.
    pub section: &'static str,
    /// The name of the file, without its extension.
    pub name: &'static str,
    /// The page as Markdown.
    pub text: &'static str,
}

/// All pages, by section and name.
pub const TOPICS: &[Topic] = include!(concat!(env!("OUT_DIR"), "/topics.rs"));

impl Topic {
    /// The first heading.
    pub fn title(&self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(self.name)
    }

    /// What names the page and nothing else.
    pub fn path(&self) -> String {
        format!("{}/{}", self.section, self.name)
    }
}

/// The page with this name (`ci`) or path (`guide/ci`), in any case of letters.
pub fn find(typed: &str) -> Option<&'static Topic> {
    let typed = typed.trim_end_matches(".md");
    TOPICS.iter().find(|topic| topic.path().eq_ignore_ascii_case(typed) || topic.name.eq_ignore_ascii_case(typed))
}

/// The name that was probably meant, of all pages and of `others`.
pub fn suggest<'a>(typed: &str, others: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    did_you_mean(typed, TOPICS.iter().map(|topic| topic.name).chain(others))
}

/// A line of a page that holds what was searched for.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub topic: &'static Topic,
    /// The heading above the line.
    pub heading: &'static str,
    pub line: &'static str,
}

/// What a search found.
#[derive(Debug)]
pub enum Search {
    /// Lines that hold all words; those of pages whose title holds them first.
    Lines(Vec<Found>),
    /// No line does: the pages that hold most of the words, best first.
    Pages(Vec<&'static Topic>),
}

/// Words of a question that say nothing about its subject.
const COMMON: [&str; 44] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "between", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it",
    "its", "me", "my", "no", "not", "of", "on", "one", "only", "or", "our", "see", "the", "their", "them", "this", "to", "two", "use",
    "we", "what", "when", "with", "your",
];

/// Pages that a search without an exact hit shows.
const MOST_PAGES: usize = 8;

/// Finds the lines that hold all words, whatever their case, or else the pages that hold most of them.
pub fn search(words: &[String]) -> Search {
    let words: Vec<String> = words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
    let lines = lines_with(&words);
    if !lines.is_empty() {
        return Search::Lines(lines);
    }
    let telling: Vec<&str> = words.iter().filter(|word| !COMMON.contains(&word.as_str())).map(|word| stem(word)).collect();
    let mut pages: Vec<(usize, usize, &Topic)> = TOPICS
        .iter()
        .map(|topic| {
            let (title, text) = (format!("{} {}", topic.name, topic.title()).to_lowercase(), topic.text.to_lowercase());
            let count = |within: &str| telling.iter().filter(|word| begins_a_word(within, word)).count();
            (count(&text), count(&title), topic)
        })
        .collect();
    // Half of the words by chance is no answer.
    pages.retain(|(found, ..)| found * 2 > telling.len());
    // Of equals, the page that is about little else.
    pages.sort_by_key(|(found, named, topic)| (std::cmp::Reverse(found + 2 * named), topic.title().len()));
    Search::Pages(pages.into_iter().take(MOST_PAGES).map(|(.., topic)| topic).collect())
}

/// A word without the ending of its plural.
fn stem(word: &str) -> &str {
    let word = word.trim_matches(|symbol: char| !symbol.is_alphanumeric());
    word.strip_suffix('s').filter(|stem| stem.chars().count() > 2 && !stem.ends_with('s')).unwrap_or(word)
}

fn begins_a_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric))
}

fn lines_with(words: &[String]) -> Vec<Found> {
    let holds = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    let mut found = Vec::new();
    for topic in TOPICS {
        let mut heading = topic.title();
        for line in topic.text.lines().filter(|line| !line.starts_with("<!--") && !line.starts_with("```")) {
            if let Some(title) = line.starts_with('#').then(|| line.trim_start_matches('#').trim()) {
                heading = title;
            }
            if holds(line) || (line.starts_with('#') && holds(&format!("{} {heading}", topic.title()))) {
                found.push(Found { topic, heading, line: line.trim_start_matches(['#', ' ', '-']) });
            }
        }
    }
    found.sort_by_key(|found| !holds(found.topic.title()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_title_and_a_name_of_its_own() {
        assert!(TOPICS.len() > 20, "{}", TOPICS.len());
        let mut names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOPICS.len(), "two pages have one name");
        for topic in TOPICS {
            assert!(topic.text.starts_with("# "), "{} has no title in its first line", topic.path());
            assert_eq!(find(&topic.path()), Some(topic));
        }
    }

    #[test]
    fn a_page_is_found_by_name_path_and_typo() {
        assert_eq!(find("CI").map(Topic::path).as_deref(), Some("guide/ci"));
        assert_eq!(find("guide/ci.md").map(Topic::path).as_deref(), Some("guide/ci"));
        assert_eq!(find("nonsense"), None);
        assert_eq!(suggest("parametrise", []), Some("parametrize"));
        assert_eq!(suggest("chekc", ["check"]), Some("check"));
    }

    fn searched(words: &str) -> Search {
        search(&[words.to_owned()])
    }

    #[test]
    fn a_line_with_all_words_is_found() {
        let Search::Lines(found) = searched("GitLab junit") else { panic!("no line was found") };
        assert!(found.iter().any(|found| found.topic.name == "ci"), "{found:?}");
    }

    #[test]
    fn a_question_finds_the_page_that_answers_it() {
        let check = |question: &str, expected: &str| {
            let names: Vec<&str> = match searched(question) {
                Search::Lines(found) => found.iter().map(|found| found.topic.name).collect(),
                Search::Pages(found) => found.iter().map(|topic| topic.name).collect(),
            };
            assert!(names.iter().take(3).any(|name| *name == expected), "{question}: {names:?}");
        };
        check("mock a server for my client", "mock");
        check("compare two versions of my server", "versions");
        check("the host does not see my tools", "hosts");
        check("record a bug for a colleague", "trace");
        check("alert to Slack only at night", "monitoring");
        check("find a memory leak", "faults");
        check("test on a flaky network", "chaos");
        check("share steps between suites", "share-steps");
        let Search::Pages(found) = searched("zebra xylophone umbrella") else { panic!("a line was found") };
        assert_eq!(found, Vec::<&Topic>::new());
    }
}
