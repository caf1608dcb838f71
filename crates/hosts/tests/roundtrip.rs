//! Configuration files of real hosts, made after their documentation: put behind the proxy and taken out again, they are the same bytes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_hosts::{Edit, Host, HostFileError, ServerChange, backup_of, edit, read, replace};
use proptest::prelude::*;

const PROGRAM: &str = "/usr/local/bin/mcproof";

fn fixture(host: Host) -> String {
    let ending = if host == Host::Goose { "yaml" } else { "json" };
    read(format!("tests/fixtures/{}.{ending}", host.name()).as_ref()).unwrap()
}

fn done(host: Host, text: &str, what: Edit) -> (String, Vec<(String, ServerChange)>) {
    let changed = edit(host, text, what, &[], PROGRAM).unwrap();
    (changed.text, changed.servers)
}

#[test]
fn each_host_gets_its_bytes_back() {
    for host in Host::ALL {
        let before = fixture(host);
        let (installed, servers) = done(host, &before, Edit::Install);
        assert_ne!(installed, before, "{host:?}");
        assert!(servers.iter().any(|(_, change)| *change == ServerChange::Installed), "{host:?}: {servers:?}");
        assert!(servers.iter().all(|(_, change)| *change != ServerChange::NotUnderstood), "{host:?}: {servers:?}");
        let (again, unchanged) = done(host, &installed, Edit::Install);
        assert_eq!(again, installed, "{host:?}");
        assert!(unchanged.iter().all(|(_, change)| *change != ServerChange::Installed), "{host:?}: {unchanged:?}");
        let (removed, _) = done(host, &installed, Edit::Uninstall);
        assert_eq!(removed, before, "{host:?}");
        assert_eq!(done(host, &before, Edit::Uninstall).0, before, "{host:?}");
    }
}

#[test]
fn servers_of_extensions_are_told_apart_from_what_is_not_understood() {
    let (_, servers) = done(Host::Zed, &fixture(Host::Zed), Edit::Install);
    let found = servers.into_iter().map(|(_, change)| change).collect::<Vec<_>>();
    let [installed, of_extension] = [ServerChange::Installed, ServerChange::OfExtension];
    assert_eq!(found, [installed, of_extension, of_extension, installed]);
}

#[test]
fn the_host_starts_the_proxy_with_the_command_of_the_server() {
    let (installed, _) = done(Host::Project, &fixture(Host::Project), Edit::Install);
    let expected = r#"{"mcpServers":{"shop":{"command":"/usr/local/bin/mcproof","args":["proxy", "--", "node", "server.js"]}}}"#;
    assert_eq!(installed, expected);
    let (installed, _) = done(Host::Goose, &fixture(Host::Goose), Edit::Install);
    assert!(
        installed.contains("    args:\n    - \"proxy\"\n    - \"--\"\n    - uvx\n    - mcp-server-fetch # the package\n"),
        "{installed}"
    );
    assert!(installed.contains("    cmd: \"/usr/local/bin/mcproof\"\n    args: [\"proxy\", \"--\", \"npx\", -y, pkg]\n"), "{installed}");
    assert!(installed.contains("    cmd: \"/usr/local/bin/mcproof\"\n    args: [proxy, \"--\", ./bare]\n"), "{installed}");
}

#[test]
fn one_server_is_edited_and_the_others_stay() {
    let before = fixture(Host::ClaudeDesktop);
    let changed = edit(Host::ClaudeDesktop, &before, Edit::Install, &["weather".into()], PROGRAM).unwrap();
    assert_eq!(changed.servers, [("weather".to_owned(), ServerChange::Installed)]);
    assert!(changed.text.contains(r#""command": "npx""#));
    let unknown = edit(Host::ClaudeDesktop, &before, Edit::Install, &["wether".into()], PROGRAM);
    assert_eq!(unknown, Err(HostFileError::NoSuchServer("wether".into())));
}

#[test]
fn what_an_editor_has_laid_out_anew_is_taken_out_all_the_same() {
    let formatted = "{\"mcpServers\": {\"a\": {\n  \"command\": \"mcproof\",\n  \"args\": [\n    \"proxy\",\n    \"--\",\n    \"node\",\n    \"a.js\"\n  ]\n}}}";
    let (removed, _) = done(Host::Project, formatted, Edit::Uninstall);
    assert_eq!(removed, "{\"mcpServers\": {\"a\": {\n  \"command\": \"node\",\n  \"args\": [\n    \"a.js\"\n  ]\n}}}");
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let check = |host, text: &str| edit(host, text, Edit::Install, &[], PROGRAM).unwrap_err();
    assert!(matches!(check(Host::Project, "{\"mcpServers\": {"), HostFileError::Invalid(_)));
    assert!(matches!(check(Host::Project, "{'mcpServers': {}}"), HostFileError::Invalid(_)));
    assert!(matches!(check(Host::Goose, "extensions: [\n"), HostFileError::Invalid(_)));
    assert_eq!(check(Host::Project, "{\"servers\": {}}"), HostFileError::NoServers("mcpServers"));
    let odd = edit(Host::Project, r#"{"mcpServers":{"a":{"command":"x","command":"y"},"b":{"command":1}}}"#, Edit::Install, &[], PROGRAM);
    assert!(odd.unwrap().servers.iter().all(|(_, change)| *change == ServerChange::NotUnderstood));
}

#[test]
fn a_file_is_replaced_whole_with_a_copy_that_goes_when_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, "before").unwrap();
    replace(&file, "before", "after").unwrap();
    assert_eq!((read(&file).unwrap(), read(&backup_of(&file)).unwrap()), ("after".into(), "before".into()));
    assert!(replace(&file, "before", "other").is_err(), "somebody else has changed it");
    replace(&file, "after", "before").unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn space() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", " ", "\n  ", "\r\n\t", " // note\n", "/* , ] */"]).prop_map(str::to_owned)
}

#[test]
fn what_somebody_else_wrote_is_left_alone() {
    let own = r#"{"mcpServers":{"a":{"command":"mcproof","args":["proxy","--cwd","/srv","--","node","x.js"]},"b":{"command":"node"}}}"#;
    let installed = done(Host::Project, own, Edit::Install).0;
    assert_ne!(installed, own);
    let (removed, servers) = done(Host::Project, &installed, Edit::Uninstall);
    assert_eq!(removed, own);
    assert_eq!(servers, [("a".to_owned(), ServerChange::OwnOptions), ("b".to_owned(), ServerChange::Uninstalled)]);
    let goose = "extensions:\n  a:\n    type: stdio\n    cmd: mcproof\n    args: [proxy, --cwd, /srv, --, node]\n";
    assert_eq!(done(Host::Goose, goose, Edit::Uninstall), (goose.to_owned(), vec![("a".to_owned(), ServerChange::OwnOptions)]));
    let twice = r#"{"mcpServers":{"a":{"command":"node"}},"mcpServers":{"b":{"command":"deno"}}}"#;
    let refused = edit(Host::Project, twice, Edit::Install, &[], "/usr/bin/mcproof");
    assert_eq!(refused, Err(HostFileError::ServersTwice("mcpServers")));
}

proptest! {
    #[test]
    fn any_layout_comes_back_as_it_was(
        words in prop::collection::vec("[a-z\\-@/. é]{0,6}", 0..4),
        spaces in prop::collection::vec(space(), 12),
        has_args in any::<bool>(), args_first in any::<bool>(), has_mark in any::<bool>(),
        command in "[a-z\\\\ /é]{1,8}",
    ) {
        let quoted = |word: &String| serde_json::to_string(word).unwrap();
        let s = |index: usize| spaces[index].as_str();
        let items = words.iter().map(quoted).collect::<Vec<_>>().join(&format!("{},{}", s(0), s(1)));
        let args = format!("\"args\"{}:{}[{}{items}{}]", s(2), s(3), s(4), s(5));
        let command = format!("\"command\"{}:{}{}", s(6), s(7), quoted(&command));
        let members = match (has_args, args_first) {
            (false, _) => command,
            (true, true) => format!("{args}{},{}{command}", s(8), s(9)),
            (true, false) => format!("{command}{},{}{args}", s(8), s(9)),
        };
        let mark = if has_mark { "\u{feff}" } else { "" };
        let before = format!("{mark}{{{}\"mcpServers\": {{\"x\": {{{}{members}{}}}}}}}{}", s(10), s(11), s(1), s(0));
        let (installed, servers) = done(Host::Project, &before, Edit::Install);
        prop_assert_eq!(&servers[..], &[("x".to_owned(), ServerChange::Installed)][..]);
        prop_assert_eq!(done(Host::Project, &installed, Edit::Uninstall).0, before);
    }
}
