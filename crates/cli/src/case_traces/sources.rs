//! The suites of a test as files in its trace, without what they say in full and nobody is to see. Knows YAML, no runs.

use mcproof_client::redaction::{REDACTED, Redactor};
use mcproof_client::{Launch, Target, given_secrets};
use mcproof_suite::auth::literal_secrets;
use mcproof_suite::bounds;
use mcproof_suite::document;
use mcproof_suite::source::Source;
use serde_json::Value;
use std::path::Path;

/// The text of a suite, or of a file that it includes. `None` if it is gone, or cannot be read any more.
pub(super) fn clean_source(file: &str, known: &Redactor) -> Option<String> {
    bounds::read_text(Path::new(file)).ok().and_then(|text| without_secrets(&text, known))
}

/// Characters between two variables that may be a secret.
const SHORTEST_PIECE: usize = 8;

fn without_secrets(text: &str, known: &Redactor) -> Option<String> {
    let tree = document::parse(&Source::new("suite", text), 0).0?;
    let mut secrets = literal_secrets(&tree);
    collect(&tree.to_value(), &mut secrets);
    let clean = Redactor::new(known.secrets().iter().cloned().chain(secrets));
    let cleaned = clean.text(text).into_owned();
    // A value may be written in another way than it reads, such as on two lines.
    let read = document::parse(&Source::new("suite", &cleaned.replace(REDACTED, "redacted")), 0).0?;
    (!holds_secret(&read.to_value(), &clean)).then_some(cleaned)
}

fn holds_secret(value: &Value, clean: &Redactor) -> bool {
    match value {
        Value::String(text) => clean.text(text) != text.as_str(),
        Value::Array(items) => items.iter().any(|item| holds_secret(item, clean)),
        Value::Object(members) => members.values().any(|value| holds_secret(value, clean)),
        _ => false,
    }
}

/// What is written for a server, wherever that is.
fn collect(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "env" => {
                        secrets.extend(given_secrets(&pairs(value), &[]));
                        secrets.extend(of_process(Vec::new(), pairs(value)));
                    }
                    "headers" => secrets.extend(given_secrets(&[], &pairs(value))),
                    "vars" => secrets.extend(of_process(Vec::new(), pairs(value))),
                    "url" | "http" | "sse" => {
                        secrets.extend(of_process(Vec::new(), said(value).into_iter().map(|text| (name.clone(), text)).collect()));
                    }
                    "stdio" | "command" => secrets.extend(of_process(words(value), Vec::new())),
                    _ => {}
                }
                collect(value, secrets);
            }
        }
        _ => {}
    }
}

fn of_process(command: Vec<String>, env: Vec<(String, String)>) -> Vec<String> {
    Target::Stdio(Launch { command, env, ..Launch::default() }).secrets()
}

/// A text that stands there in full; else what stands between its variables, if that is long enough to be a secret.
fn said(value: &Value) -> Vec<String> {
    let Some(text) = value.as_str() else { return Vec::new() };
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default();
    let pieces: Vec<&str> = parts.map(|part| part.split_once('}').map_or("", |(_, piece)| piece)).collect();
    if pieces.is_empty() {
        return vec![text.to_owned()];
    }
    let is_long = |piece: &&str| piece.chars().count() >= SHORTEST_PIECE;
    std::iter::once(first).chain(pieces).filter(is_long).map(str::to_owned).collect()
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let named = |(name, value): (&String, &Value)| said(value).into_iter().map(|text| (name.clone(), text)).collect::<Vec<_>>();
    value.as_object().into_iter().flatten().flat_map(named).collect()
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(said).collect(),
        Value::String(line) => shlex::split(line).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_in_a_trace_holds_no_secret() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_secrets(text, &Redactor::new(["hunter22".to_owned()])).as_deref(), Some(expected));
        };
        check("server: { http: 'http://a' }\nvars: { a: hunter22 }\n", "server: { http: 'http://a' }\nvars: { a: [redacted] }\n");
        check("server: { stdio: { command: [a, --token=s3cr3t-value] } }\n", "server: { stdio: { command: [a, --token=[redacted]] } }\n");
        check("headers: { X-Key: abcd-1234-efgh }\n", "headers: { X-Key: [redacted] }\n");
        check("headers: { X-Key: '${env.KEY}' }\nproduct: PROD-123\n", "headers: { X-Key: '${env.KEY}' }\nproduct: PROD-123\n");
        check("auth: { bearer: abcd1234efgh }\n", "auth: { bearer: [redacted] }\n");
        check("vars: { API_TOKEN: abcd1234efgh }\n", "vars: { API_TOKEN: [redacted] }\n");
        check("vars: { API_TOKEN: 'abcd1234efgh${env.A}' }\n", "vars: { API_TOKEN: '[redacted]${env.A}' }\n");
        let of_two_lines = "vars: { API_TOKEN: \"abcd1234\\\n  efgh\" }\n";
        assert_eq!(without_secrets(of_two_lines, &Redactor::new([])), None);
    }
}
