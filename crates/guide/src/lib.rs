//! The pages of the documentation inside the program, for `mcproof help TOPIC`. Knows Markdown, not what the pages say.

mod render;
mod search;

pub use render::render;
pub use search::{Document, Fit, Found, Search, pages, search};

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

    /// The page that a reader begins with says that they are.
    #[test]
    fn the_pages_of_the_index_are_part_of_the_program() {
        let index = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/index.md")).unwrap();
        let others = ["reference/commands", "rules/README", "detection", "field", "ARCHITECTURE"];
        for link in index.split("](").skip(1).filter_map(|rest| rest.split_once(".md").map(|(link, _)| link)) {
            let name = link.rsplit('/').next().unwrap_or_default();
            assert_eq!(find(name).is_none(), others.contains(&link), "{link}");
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
}
