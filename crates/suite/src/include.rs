//! Puts included files into a suite's tree, before anything in it is read. Knows where `include:` may stand, not what it brings.

use super::bounds::{MOST_BYTES, MOST_MISTAKES, read_file};
use super::document::{self, Entry, Kind, Node};
use super::restriction::Restriction;
use super::source::{Source, Span};
use mcproof_record::Diagnostic;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// More files than any suite needs; it bounds what a small file can make us read.
const MOST_FILES: usize = 200;

/// Keys whose lists are put one after the other; the included ones come first.
const LISTS: [&str; 8] = ["tests", "tags", "skip_rules", "redact", "setup", "teardown", "before_each", "after_each"];
/// Keys whose maps are merged; the including file wins.
const MAPS: [&str; 6] = ["vars", "servers", "profiles", "timeouts", "answers", "audit"];

/// Reads the suite and everything that it includes.
pub(crate) fn read_tree(source: &mut Source, folder: &Path, restriction: Option<&Restriction>) -> (Option<Node>, Vec<Diagnostic>) {
    let (tree, diagnostics) = document::parse(source, 0);
    let mut includer = Includer { source, diagnostics, open: Vec::new(), is_full: false, restriction };
    let tree = tree.map(|tree| includer.suite(tree, folder));
    (tree, includer.diagnostics)
}

struct Includer<'a> {
    source: &'a mut Source,
    diagnostics: Vec<Diagnostic>,
    /// The files that are being included, outermost first.
    open: Vec<PathBuf>,
    /// No further file is read.
    is_full: bool,
    restriction: Option<&'a Restriction>,
}

impl Includer<'_> {
    /// Merges the files of a suite's `include:` into it.
    fn suite(&mut self, tree: Node, folder: &Path) -> Node {
        let Kind::Map(entries) = tree.kind else { return tree };
        let (includes, mut own): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.key.text == "include");
        for entry in &mut own {
            if entry.key.text == "tests" {
                self.tests(&mut entry.value, folder);
            } else if LISTS.contains(&entry.key.text.as_str()) {
                self.steps(&mut entry.value, folder);
            }
        }
        let mut merged: Vec<Entry> = Vec::new();
        for include in includes {
            for file in self.names(&include.value) {
                let Some((tree, below)) = self.open_file(&file, folder) else { continue };
                match self.suite(tree, &below).kind {
                    Kind::Map(entries) => merged = merge(entries, merged),
                    other => {
                        self.report("wrong-type", format!("an included file is a map like a suite, found {}", other.noun()), file.span)
                    }
                }
                self.open.pop();
            }
        }
        Node { kind: Kind::Map(merge(own, merged)), ..tree }
    }

    fn tests(&mut self, tests: &mut Node, folder: &Path) {
        let Kind::Seq(tests) = &mut tests.kind else { return };
        for test in tests {
            let Kind::Map(entries) = &mut test.kind else { continue };
            for entry in entries.iter_mut().filter(|entry| matches!(entry.key.text.as_str(), "steps" | "setup" | "teardown")) {
                self.steps(&mut entry.value, folder);
            }
        }
    }

    /// Replaces `- include: FILE` in a list of steps by the steps of that file.
    fn steps(&mut self, list: &mut Node, folder: &Path) {
        let Kind::Seq(items) = &mut list.kind else { return };
        for item in std::mem::take(items) {
            let file = match &item.kind {
                Kind::Map(entries) if entries.len() == 1 && entries[0].key.text == "include" => entries[0].value.clone(),
                _ => {
                    items.push(item);
                    continue;
                }
            };
            for file in self.names(&file) {
                let Some((mut tree, below)) = self.open_file(&file, folder) else {
                    // A step that is missing must not make the test look empty.
                    items.push(Node { kind: Kind::Broken, span: file.span });
                    continue;
                };
                self.steps(&mut tree, &below);
                match tree.kind {
                    Kind::Seq(steps) => items.extend(steps),
                    other => {
                        let message = format!("a file that is included as steps is a list of steps, found {}", other.noun());
                        self.report("wrong-type", message, file.span);
                    }
                }
                self.open.pop();
            }
        }
    }

    /// One file name, or a list of them.
    fn names(&mut self, node: &Node) -> Vec<Node> {
        match &node.kind {
            Kind::Text(_) => vec![node.clone()],
            Kind::Seq(items) if items.iter().all(|item| matches!(item.kind, Kind::Text(_))) => items.clone(),
            Kind::Broken => Vec::new(),
            other => {
                self.report("wrong-type", format!("expected a file or a list of files, found {}", other.noun()), node.span);
                Vec::new()
            }
        }
    }

    /// The tree of a file, and the folder in which it stands. Its caller pops it from `open`.
    fn open_file(&mut self, name: &Node, folder: &Path) -> Option<(Node, PathBuf)> {
        let Kind::Text(written) = &name.kind else { return None };
        if self.is_full || self.diagnostics.len() >= MOST_MISTAKES {
            return None;
        }
        if self.source.count_files() >= MOST_FILES {
            self.is_full = true;
            self.report("too-many-files", format!("this suite includes more than {MOST_FILES} files"), name.span);
            return None;
        }
        let path = folder.join(written);
        if let Some(Err(refused)) = self.restriction.map(|restriction| restriction.path(&path, written)) {
            let place = self.source.place(name.span);
            self.diagnostics.push(refused.at(place));
            return None;
        }
        let identity = path.canonicalize().unwrap_or_else(|_| path.clone());
        if self.open.contains(&identity) {
            self.report("endless-include", format!("`{written}` includes itself"), name.span);
            return None;
        }
        let room = MOST_BYTES.saturating_sub(self.source.size());
        let text = match read_file(&path, room).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                self.report("not-text", format!("`{}` is not UTF-8 text", path.display()), name.span);
                return None;
            }
            Err(problem) => {
                let diagnostic = Diagnostic::error("cannot-read", format!("`{}` {problem}", path.display()));
                let place = self.source.place(name.span);
                self.diagnostics.push(diagnostic.at(place).hint("paths are relative to the file that includes"));
                return None;
            }
        };
        let file = self.source.add(&path.display().to_string(), &text);
        let (tree, diagnostics) = document::parse(self.source, file);
        self.diagnostics.extend(diagnostics);
        self.open.push(identity);
        let below = path.parent().unwrap_or(folder).to_owned();
        if tree.is_none() {
            self.open.pop();
        }
        tree.map(|tree| (tree, below))
    }

    fn report(&mut self, code: &str, message: String, span: Span) {
        self.diagnostics.push(Diagnostic::error(code, message).at(self.source.place(span)));
    }
}

/// Lays the keys of one suite over those of another.
fn merge(over: Vec<Entry>, under: Vec<Entry>) -> Vec<Entry> {
    lay(over, under, |name, under, over| match (under, over) {
        (Kind::Seq(mut items), Kind::Seq(more)) if LISTS.contains(&name) => {
            items.extend(more);
            Kind::Seq(items)
        }
        (Kind::Map(under), Kind::Map(over)) if MAPS.contains(&name) => Kind::Map(lay(over, under, |_, _, over| over)),
        (_, over) => over,
    })
}

/// Lays entries over others; `join` says what becomes of a key that both have.
fn lay(over: Vec<Entry>, mut under: Vec<Entry>, join: impl Fn(&str, Kind, Kind) -> Kind) -> Vec<Entry> {
    let mut places: HashMap<String, usize> = under.iter().enumerate().map(|(at, entry)| (entry.key.text.clone(), at)).collect();
    for entry in over {
        let Some(at) = places.get(&entry.key.text) else {
            places.insert(entry.key.text.clone(), under.len());
            under.push(entry);
            continue;
        };
        let known = &mut under[*at];
        let below = std::mem::replace(&mut known.value.kind, Kind::Null);
        known.value = Node { kind: join(&entry.key.text, below, entry.value.kind), span: entry.value.span };
        known.key = entry.key;
    }
    under
}

/// Lays a profile over its suite.
pub(crate) fn overlay(tree: Node, profile: &[Entry]) -> Node {
    match tree.kind {
        Kind::Map(entries) => Node { kind: Kind::Map(merge(profile.to_vec(), entries)), span: tree.span },
        _ => tree,
    }
}
