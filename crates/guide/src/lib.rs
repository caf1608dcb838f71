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

/// The lines that hold all words, whatever their case; pages whose title holds them first.
pub fn search(words: &[String]) -> Vec<Found> {
    let words: Vec<String> = words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
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

    #[test]
    fn a_search_needs_all_words_in_one_line() {
        let found = search(&["GitLab".to_owned(), "junit".to_owned()]);
        assert!(found.iter().any(|found| found.topic.name == "ci"), "{found:?}");
        assert!(search(&["no page holds these words".to_owned()]).is_empty());
    }
}
