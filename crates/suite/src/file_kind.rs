//! Recognizes a file of another kind by its keys, so that one sentence says what it is, and not one for each of its keys.
//! Knows the top of each format, not the formats.

use super::document::{self, Kind, Node};
use super::source::{Source, Span};
use mcproof_record::Diagnostic;

/// The files that have a format of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Suite,
    /// What `mcproof mock` serves.
    Mock,
    /// The configuration of `mcproof watch`.
    Monitor,
    /// Servers by name, as MCP hosts keep them.
    Hosts,
}

impl FileKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Suite => "a suite",
            Self::Mock => "a mock",
            Self::Monitor => "a configuration of `mcproof watch`",
            Self::Hosts => "a configuration of servers",
        }
    }

    /// What such a file is for.
    fn purpose(self) -> &'static str {
        match self {
            Self::Suite => "run it with `mcproof test`",
            Self::Mock => "serve it with `mcproof mock`",
            Self::Monitor => "monitor its targets with `mcproof watch`",
            Self::Hosts => "name one of its servers, as in `mcproof check NAME`; `mcproof init NAME` writes a suite",
        }
    }

    /// Whether a tree has what makes a file one of this kind. A suite has `answers` and `servers` as well, in another form.
    fn is_kind_of(self, tree: &Node) -> bool {
        let has = |key: &str| tree.get(key).is_some();
        match self {
            Self::Suite => has("tests") || has("server") || has("include"),
            Self::Mock => tree.get("answers").is_some_and(|answers| matches!(answers.kind, Kind::Seq(_))),
            Self::Monitor => has("targets"),
            Self::Hosts => has("mcpServers") || tree.get("servers").is_some_and(is_list_of_hosts),
        }
    }
}

/// Whether the text of a file that may be a suite or a mock is that of a suite.
pub fn is_suite(text: &str) -> bool {
    let tree = document::parse(&Source::new("file", text), 0).0;
    tree.is_some_and(|tree| FileKind::Suite.is_kind_of(&tree) && !FileKind::Mock.is_kind_of(&tree))
}

/// The servers of VS Code have their command or URL in themselves, those of a suite in a transport.
fn is_list_of_hosts(servers: &Node) -> bool {
    let Kind::Map(entries) = &servers.kind else { return false };
    !entries.is_empty() && entries.iter().all(|entry| entry.value.get("command").is_some() || entry.value.get("url").is_some())
}

/// Says what a file is that was read as one of the kind `wanted`, and where it shows, if its keys are those of another kind.
pub fn other_kind(tree: &Node, wanted: FileKind) -> Option<(Diagnostic, Span)> {
    let Kind::Map(entries) = &tree.kind else { return None };
    if wanted.is_kind_of(tree) {
        return None;
    }
    let kinds = [FileKind::Suite, FileKind::Monitor, FileKind::Mock, FileKind::Hosts];
    let found = kinds.into_iter().find(|kind| kind.is_kind_of(tree))?;
    let diagnostic = Diagnostic::error("other-file", format!("this is {}, not {}", found.noun(), wanted.noun()));
    Some((diagnostic.hint(found.purpose()), entries.first()?.key.span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_told_by_its_keys() {
        let check = |text: &str, wanted: FileKind, expected: Option<&str>| {
            let (tree, _) = document::parse(&Source::new("a.yaml", text), 0);
            let found = other_kind(&tree.expect("it is YAML"), wanted).map(|(diagnostic, _)| diagnostic.message);
            assert_eq!(found.as_deref(), expected, "{text} {wanted:?}");
        };
        let suite = "server: { stdio: x }\nanswers: { roots: [] }\ntests: []\n";
        let mock = "answers:\n  - { when: { call: a }, then: { text: b } }\n";
        let monitor = "targets:\n  shop: { stdio: x }\n";
        let hosts = "{ \"mcpServers\": { \"shop\": { \"command\": \"x\" } } }";
        let vs_code = "{ \"servers\": { \"shop\": { \"url\": \"http://h/\" } } }";
        check(suite, FileKind::Suite, None);
        check(suite, FileKind::Mock, Some("this is a suite, not a mock"));
        check(suite, FileKind::Monitor, Some("this is a suite, not a configuration of `mcproof watch`"));
        check(mock, FileKind::Mock, None);
        check(mock, FileKind::Suite, Some("this is a mock, not a suite"));
        check(monitor, FileKind::Monitor, None);
        check(monitor, FileKind::Suite, Some("this is a configuration of `mcproof watch`, not a suite"));
        check(hosts, FileKind::Suite, Some("this is a configuration of servers, not a suite"));
        check(vs_code, FileKind::Suite, Some("this is a configuration of servers, not a suite"));
        // Mistakes in a file of the right kind, or of none.
        check("mcpServers: {}\ntests: []\n", FileKind::Suite, None);
        check("servers: { shop: { stdio: x } }\n", FileKind::Suite, None);
        check("tset: []\n", FileKind::Suite, None);
        check("[]", FileKind::Mock, None);
    }
}
