//! `profiles:` of a suite: what is different against another deployment of the same server.

use super::declared;
use super::document::{Entry, Kind, Node};
use super::faults::FAULT;
use super::format::{Key, Object, Presence, Shape};
use super::include::overlay;
use super::leaks::LEAKS;
use super::parse::TIMEOUTS;
use super::plan::Needs;
use super::reader::Reader;
use super::resilience::{BREAKER, RETRY};
use super::retries::RETRIES;
use super::server::SERVER;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::Diagnostic;

/// One value of `profiles:`. Its values are read where they stand in the suite once the profile is laid over it; those of a profile that
/// is not chosen are held against their declaration.
pub static PROFILE: Object<ProfileDraft> = Object {
    name: "a profile",
    keys: &[
        of_suite("server", "the server under test, in place of the suite's", Shape::Object(&SERVER)),
        of_suite("servers", "servers by name, in place of those of the suite", Shape::Objects(&SERVER)),
        of_suite("vars", "variables that replace or join those of the suite", Shape::Values),
        of_suite("timeouts", "timeouts that replace those of the suite", Shape::Object(&TIMEOUTS)),
        of_suite("isolation", "`test` or `file`, in place of the suite's", Shape::Word(&["test", "file"])),
        of_suite("retries", "in place of the suite's", Shape::ObjectOrNumber(&RETRIES)),
        of_suite("retry", "in place of the suite's", Shape::ObjectOrNumber(&RETRY)),
        of_suite("breaker", "in place of the suite's", Shape::Object(&BREAKER)),
        of_suite("faults", "in place of the suite's, in addition to those of its servers", Shape::ObjectOrList(&FAULT)),
        of_suite("leaks", "in place of the suite's", Shape::ObjectOrFlag(&LEAKS)),
        Key {
            name: "tags",
            doc: "runs only tests with one of these tags; it is an error if there are none",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.tags = reader.texts(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

const fn of_suite(name: &'static str, doc: &'static str, shape: Shape) -> Key<ProfileDraft> {
    Key { name, doc, shape, presence: Presence::Optional, read: |_, _, _| Ok(()) }
}

#[derive(Default)]
pub struct ProfileDraft {
    tags: Vec<String>,
}

/// The suite with the chosen profile laid over it, and the tags that it selects; all tests if there are none.
pub(crate) fn apply(reader: &mut Reader<'_>, tree: Node) -> (Node, Vec<String>) {
    let chosen = reader.environment.profile.clone();
    let Some(node) = tree.get("profiles") else {
        if let Some(name) = chosen {
            let diagnostic = Diagnostic::error("unknown-profile", format!("this suite has no profile `{name}`"));
            reader.report(diagnostic.hint(format!("add `profiles: {{ {name}: … }}`, or leave out --profile")), tree.span);
        }
        return (tree, Vec::new());
    };
    let Kind::Map(profiles) = &node.kind else {
        reader.wrong_type(&Shape::Objects(&PROFILE).expected(), node);
        return (tree, Vec::new());
    };
    let mut selected = None;
    for Entry { key, value } in profiles {
        let mut draft = ProfileDraft::default();
        let readable = PROFILE.read(reader, value, &mut draft);
        if let (true, true, Kind::Map(entries)) = (Some(&key.text) == chosen.as_ref(), readable, &value.kind) {
            let entries: Vec<Entry> = entries.iter().filter(|entry| entry.key.text != "tags").cloned().collect();
            selected = Some((entries, draft.tags));
        } else if let Kind::Map(entries) = &value.kind {
            for entry in entries {
                if let Some(key) = PROFILE.keys.iter().find(|key| key.name == entry.key.text) {
                    declared::check(reader, key.shape, &entry.value);
                }
            }
        }
    }
    if let Some((entries, tags)) = selected {
        let mut tree = tree;
        let names_a_server = |entry: &Entry| matches!(entry.key.text.as_str(), "server" | "servers");
        let names: Vec<&str> = entries.iter().filter(|entry| names_a_server(entry)).map(|entry| entry.key.text.as_str()).collect();
        if !names.is_empty() {
            reader.offered = places_of_servers(&tree).flat_map(servers_in).flat_map(|(_, server)| offered_by(server)).collect();
            let chosen = entries.iter().filter(|entry| names_a_server(entry));
            reader.swapped = chosen.flat_map(servers_of).map(|(name, _)| name.to_owned()).collect();
        }
        if let (false, Kind::Map(suite)) = (names.is_empty(), &mut tree.kind) {
            // `server` of the suite and `servers` of the profile, or the other way round, are not meant to meet.
            suite.retain(|entry| !names_a_server(entry) || names.contains(&entry.key.text.as_str()));
        }
        return (overlay(tree, &entries), tags);
    }
    if let Some(name) = chosen.filter(|name| !profiles.iter().any(|entry| entry.key.text == *name)) {
        let names = || profiles.iter().map(|entry| entry.key.text.as_str());
        let diagnostic = Diagnostic::error("unknown-profile", format!("this suite has no profile `{name}`"));
        let hint = match did_you_mean(&name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("profiles are {}", listed(names())),
        };
        reader.report(diagnostic.hint(hint), node.span);
    }
    (tree, Vec::new())
}

/// The suite itself, and its profiles.
fn places_of_servers(tree: &Node) -> impl Iterator<Item = &Node> {
    let profiles = tree.get("profiles").map_or(&[][..], entries_of);
    std::iter::once(tree).chain(profiles.iter().map(|entry| &entry.value))
}

/// The servers that a suite or a profile declares, with their names.
fn servers_in(place: &Node) -> impl Iterator<Item = (&str, &Node)> {
    entries_of(place).iter().flat_map(servers_of)
}

/// The servers of `server` or `servers`, if the entry is one of these.
fn servers_of(entry: &Entry) -> Vec<(&str, &Node)> {
    match entry.key.text.as_str() {
        "server" => vec![("server", &entry.value)],
        "servers" => entries_of(&entry.value).iter().map(|entry| (entry.key.text.as_str(), &entry.value)).collect(),
        _ => Vec::new(),
    }
}

/// What a server has for actions that need it, as far as its keys tell.
fn offered_by(server: &Node) -> Vec<Needs> {
    let of = |Entry { key, value }: &Entry| {
        let transport = match key.text.as_str() {
            "stdio" => Needs::Stdio,
            "http" | "sse" => Needs::Http,
            _ => return Vec::new(),
        };
        let is_started = transport == Needs::Stdio || value.get("command").is_some();
        if is_started { vec![transport, Needs::OwnProcess] } else { vec![transport] }
    };
    entries_of(server).iter().flat_map(of).collect()
}

fn entries_of(node: &Node) -> &[Entry] {
    if let Kind::Map(entries) = &node.kind { entries } else { &[] }
}
