//! The suites of a test as files in its trace, without what they say in full and nobody is to see. Knows YAML, no runs.

use mcproof_client::redaction::Redactor;
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

fn without_secrets(text: &str, known: &Redactor) -> Option<String> {
    let tree = document::parse(&Source::new("suite", text), 0).0?;
    let mut secrets = literal_secrets(&tree);
    collect(&tree.to_value(), &mut secrets);
    let clean = Redactor::new(known.secrets().iter().cloned().chain(secrets));
    Some(clean.text(text).into_owned())
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
                    "url" | "http" | "sse" => secrets.extend(of_process(Vec::new(), vec![(name.clone(), said(value).unwrap_or_default())])),
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

/// Texts that stand there in full.
fn said(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.contains("${"))?;
    Some(text.to_owned())
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    value.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), said(value)?))).collect()
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(said).collect(),
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
    }
}
