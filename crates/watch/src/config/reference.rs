//! References to secrets in what a target has in common with a server of a suite: `env:NAME` and `file:PATH` mean there what they mean
//! everywhere else in the file. Suites know only `${env.NAME}`, so what a reference stands for is put in its place before they read it.

use super::leaves::{is_literal, referred};
use mcproof_client::{is_secret, url_holds_secret};
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Entry, Kind, Node};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use url::Url;

/// Of fewer characters a value is no credential.
const SHORTEST: usize = 8;

/// A key of a target and its value without references. A secret in full is warned of, and so is a reference where nothing reads it.
pub(super) fn filled(reader: &mut Reader<'_>, entry: &Entry) -> Entry {
    let value = match (entry.key.text.as_str(), &entry.value.kind) {
        ("stdio", Kind::Text(_)) => {
            check_command(reader, &entry.value);
            entry.value.clone()
        }
        ("http" | "sse", Kind::Text(_)) => filled_url(reader, entry),
        ("stdio" | "http" | "sse", Kind::Map(entries)) => with_entries(&entry.value, entries, |inner| filled_binding(reader, inner)),
        ("auth", Kind::Map(entries)) => with_entries(&entry.value, entries, |inner| filled_auth(reader, inner)),
        ("proxy", _) => filled_value(reader, &entry.value),
        _ => entry.value.clone(),
    };
    Entry { key: entry.key.clone(), value }
}

fn filled_binding(reader: &mut Reader<'_>, entry: &Entry) -> Node {
    match (entry.key.text.as_str(), &entry.value.kind) {
        ("url", Kind::Text(_)) => filled_url(reader, entry),
        ("headers" | "env", Kind::Map(entries)) => with_entries(&entry.value, entries, |inner| {
            warn_of_secret(reader, inner);
            // Of databases in a file, `file:dev.db` is the address itself.
            let is_address = entry.key.text == "env" && !is_secret(&inner.key.text, "of-any-value") && is_file(&inner.value);
            if is_address { inner.value.clone() } else { filled_value(reader, &inner.value) }
        }),
        ("auth", Kind::Map(entries)) => with_entries(&entry.value, entries, |inner| filled_auth(reader, inner)),
        ("proxy", _) => filled_value(reader, &entry.value),
        ("command", _) => {
            check_command(reader, &entry.value);
            entry.value.clone()
        }
        _ => entry.value.clone(),
    }
}

fn filled_auth(reader: &mut Reader<'_>, entry: &Entry) -> Node {
    match entry.key.text.as_str() {
        "bearer" | "client_secret" => filled_value(reader, &entry.value),
        _ => entry.value.clone(),
    }
}

fn filled_url(reader: &mut Reader<'_>, entry: &Entry) -> Node {
    let is_telling = |text: &str| Url::parse(text).is_ok_and(|url| url.username().is_empty() && url_holds_secret(&url));
    if matches!(&entry.value.kind, Kind::Text(text) if is_telling(text)) && is_literal(&entry.value) {
        report_secret(reader, entry.key.span);
    }
    filled_value(reader, &entry.value)
}

/// The same map with other values.
fn with_entries(node: &Node, entries: &[Entry], mut value: impl FnMut(&Entry) -> Node) -> Node {
    let entries = entries.iter().map(|entry| Entry { key: entry.key.clone(), value: value(entry) }).collect();
    Node { kind: Kind::Map(entries), span: node.span }
}

/// A URL of a file (`file://…`) is no reference. What is wrong with a reference is reported here.
fn filled_value(reader: &mut Reader<'_>, node: &Node) -> Node {
    let Kind::Text(text) = &node.kind else { return node.clone() };
    if text.starts_with("file://") {
        return node.clone();
    }
    let kind = match referred(reader, node, text) {
        Ok(None) => return node.clone(),
        // What is filled in is final.
        Ok(Some(value)) if !value.is_empty() => Kind::Text(value.replace("${", "$${")),
        Ok(Some(_)) => {
            reader.error("empty-secret", "this secret is empty", node.span);
            Kind::Broken
        }
        Err(_) => Kind::Broken,
    };
    Node { kind, span: node.span }
}

fn is_file(node: &Node) -> bool {
    matches!(&node.kind, Kind::Text(text) if text.starts_with("file:"))
}

/// A header or a variable that is named as a secret, and holds what may be one.
fn warn_of_secret(reader: &mut Reader<'_>, entry: &Entry) {
    if secret_in_full(entry).is_some() {
        report_secret(reader, entry.key.span);
    }
}

/// The value of a header or a variable that stands in the file in full and is a secret, by its name.
pub(super) fn secret_in_full(entry: &Entry) -> Option<String> {
    let text = match &entry.value.kind {
        Kind::Text(text) => text.clone(),
        Kind::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_reference = text.starts_with("env:") || text.starts_with("file:");
    let credential = text.split_whitespace().last().unwrap_or_default();
    let is_place = text.starts_with(['/', '.', '~']) || text.contains("://");
    let may_be_one = credential.chars().count() >= SHORTEST && !is_place && !is_reference;
    (may_be_one && is_literal(&entry.value) && is_secret(&entry.key.text, &text)).then_some(text)
}

fn report_secret(reader: &mut Reader<'_>, span: Span) {
    let warning = Diagnostic::warning("literal-secret", "this file contains a secret in plain text");
    reader.report(warning.hint("write `${env.NAME}` in its place, and set NAME in the environment of mcproof"), span);
}

/// A word of a command may begin with `env:` and mean it. As the name of a variable it hardly does.
fn check_command(reader: &mut Reader<'_>, node: &Node) {
    let words: Vec<(String, Span)> = match &node.kind {
        Kind::Text(line) => line.split_whitespace().map(|word| (word.to_owned(), reader.source.part(node.span, word))).collect(),
        Kind::Seq(items) => items
            .iter()
            .filter_map(|item| match &item.kind {
                Kind::Text(text) => Some((text.clone(), item.span)),
                _ => None,
            })
            .collect(),
        _ => return,
    };
    for (word, span) in words {
        let value = word.rsplit_once('=').map_or(word.as_str(), |(_, value)| value).trim_matches(['\'', '"']);
        let Some(name) = value.strip_prefix("env:") else { continue };
        if !name.is_empty() && name.chars().all(|character| matches!(character, 'A'..='Z' | '0'..='9' | '_')) {
            let message = format!("`{value}` is passed to the command as it is");
            reader.report(Diagnostic::warning("literal-reference", message).hint(format!("write `${{env.{name}}}`")), span);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Loaded, TargetKind, load};
    use mcproof_suite::Environment;
    use mcproof_suite::plan::Binding;
    use std::collections::BTreeMap;

    fn read(target: &str) -> Result<(Binding, Vec<String>), Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tok.txt"), "from-a-file\n").unwrap();
        let variables = [("TOK", "Bearer ${abc}"), ("EMPTY", ""), ("URL", "https://a/mcp?token=t-1234567")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = Environment { variables: BTreeMap::from(variables), ..Environment::default() };
        let text = format!("channels: {{ w: {{ webhook: 'https://x/' }} }}\ntargets: {{ a: {target} }}\n");
        match load("w.yaml", &text, folder.path(), &environment) {
            Ok(Loaded { config, warnings }) => {
                let TargetKind::Server(server) = &config.targets["a"].kind else { panic!("{text}") };
                Ok((server.bindings[0].clone(), warnings.into_iter().map(|warning| warning.message).collect()))
            }
            Err(mistakes) => Err(mistakes.into_iter().map(|mistake| mistake.message).collect()),
        }
    }

    #[test]
    fn references_mean_the_same_in_headers_and_variables_as_elsewhere() {
        for (value, expected) in [
            ("env:TOK", Ok("Bearer $${abc}")),
            ("file:tok.txt", Ok("from-a-file")),
            ("file:///tok.txt", Ok("file:///tok.txt")),
            ("x env:TOK", Ok("x env:TOK")),
            ("env:TOKK", Err("the variable `TOKK` is not set")),
            ("env:EMPTY", Err("this secret is empty")),
            ("file:no.txt", Err("`no.txt` cannot be read: No such file or directory (os error 2)")),
        ] {
            let header = read(&format!("{{ http: {{ url: 'https://a/', headers: {{ X-Api-Key: '{value}' }} }} }}"));
            let found = header.map(|(binding, _)| binding.headers[0].1.clone());
            assert_eq!(found, expected.map(str::to_owned).map_err(|message| vec![message.to_owned()]), "{value}");
            let variable = read(&format!("{{ stdio: {{ command: x, env: {{ API_KEY: '{value}' }} }} }}"));
            let found = variable.map(|(binding, _)| binding.launch.unwrap().env[0].1.clone());
            assert_eq!(found, expected.map(str::to_owned).map_err(|message| vec![message.to_owned()]), "{value}");
        }
        assert_eq!(read("{ http: 'env:URL' }").unwrap().0.url.as_deref(), Some("https://a/mcp?token=t-1234567"));
        assert_eq!(read("{ http: 'https://a/', auth: { bearer: 'file:tok.txt' } }").unwrap().0.headers[0].1, "Bearer from-a-file");
    }

    #[test]
    fn secrets_in_full_are_warned_of() {
        const PLAIN: &str = "this file contains a secret in plain text";
        for (target, expected) in [
            ("{ http: { url: 'https://a/', headers: { Authorization: 'Bearer abcdefgh' } } }", &[PLAIN][..]),
            ("{ http: { url: 'https://a/', headers: { Authorization: 'Bearer ${env.URL}', X-Tenant: abcdefghijkl } } }", &[]),
            ("{ stdio: { command: x, env: { GITHUB_TOKEN: abcdefgh, TOKEN_LIMIT: 5000, KEY_FILE: /etc/key.pem } } }", &[PLAIN]),
            ("{ http: 'https://a/?api_key=abcdefgh' }", &[PLAIN]),
            ("{ http: 'https://a/?page=abcdefgh' }", &[]),
            ("{ stdio: 'x --token env:TOK --mode=env:dev' }", &["`env:TOK` is passed to the command as it is"]),
            ("{ stdio: { command: [x, '--token=env:TOK'] } }", &["`env:TOK` is passed to the command as it is"]),
        ] {
            assert_eq!(read(target).unwrap().1, expected, "{target}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_not_left_out_silently() {
        const REFUSED: &str = "this URL has a user name or a password, which would not be sent";
        for target in [
            "{ http: 'http://bob:s3cret@a/mcp' }",
            "{ sse: { url: 'https://bob@a/sse' } }",
            "{ http: { url: 'http://bob:pw@127.0.0.1:${port}/', command: 'x ${port}' } }",
        ] {
            assert_eq!(read(target).unwrap_err(), [REFUSED], "{target}");
        }
        assert!(read("{ http: 'https://a/@scope/mcp?to=a@b' }").is_ok());
    }
}
