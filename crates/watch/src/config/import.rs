//! Takes over the servers of an `mcpServers` file, as other clients have it. What is wrong in there is told at the place
//! that names the file.

use super::leaves::check_url;
use super::target::{check_credentials, fitting_name};
use mcproof_record::{Diagnostic, Severity};
use mcproof_suite::document::Node;
use mcproof_suite::plan::Server;
use mcproof_suite::reader::Reader;
use mcproof_suite::server::read_server;
use serde_json::{Map, Value, json};

/// The servers of a file, by their names, without those that are disabled there. What cannot be read is told at `node`, which names the
/// file; so is what is left out, unless it is among `own`, the targets of this file.
pub(super) fn read_import(reader: &mut Reader<'_>, node: &Node, own: &[String]) -> Vec<(String, Server)> {
    let Ok(named) = reader.text(node) else {
        return Vec::new();
    };
    let servers = match servers(reader, &named) {
        Ok(servers) => servers,
        Err(why) => {
            let diagnostic = Diagnostic::error("bad-import", format!("`{named}` {why}"));
            reader.report(diagnostic.hint("expected a JSON file with `mcpServers`; paths are relative to this file"), node.span);
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for (name, entry) in servers {
        let name = fitting_name(&name);
        if let Some(word) = disabled(&entry) {
            if !own.contains(&name) {
                let message = format!("the server `{name}` of `{named}` has `{word}`, so it is not monitored");
                let note = Diagnostic { severity: Severity::Note, ..Diagnostic::warning("server-disabled", message) };
                reader.report(note.hint("enable it there, or add it to `targets`"), node.span);
            }
            continue;
        }
        match suite_server(reader, &entry) {
            Ok(value) => {
                if let Some(url) = value["http"]["url"].as_str().or(value["sse"]["url"].as_str())
                    && check_url(reader, node, url).is_err()
                {
                    continue;
                }
                let written = Node::from_value(&value, node.span);
                let server = read_server(reader, &name, node.span, &written);
                let server = server.filter(|server| check_credentials(reader, server, node.span).is_some());
                found.extend(server.map(|server| (name, server)));
            }
            Err(why) => reader.error("bad-import", format!("the server `{name}` of `{named}` {why}"), node.span),
        }
    }
    found
}

/// By which words a client leaves a server alone, if it does.
fn disabled(entry: &Value) -> Option<&'static str> {
    let is = |key: &str, value: bool| entry.get(key).and_then(Value::as_bool) == Some(value);
    match () {
        () if is("disabled", true) => Some("disabled: true"),
        () if is("enabled", false) => Some("enabled: false"),
        () => None,
    }
}

fn servers(reader: &Reader<'_>, named: &str) -> Result<Map<String, Value>, String> {
    let text = mcproof_suite::bounds::read_text(&reader.folder.join(named)).map_err(|error| format!("cannot be read: {error}"))?;
    let document: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| format!("is not valid JSON: {error}"))?;
    match document.get("mcpServers") {
        Some(Value::Object(servers)) => Ok(servers.clone()),
        _ => Err("has no `mcpServers`".to_owned()),
    }
}

/// The entry as a suite would have it.
fn suite_server(reader: &Reader<'_>, entry: &Value) -> Result<Value, String> {
    let entry = expanded(reader, entry)?;
    let transport = match entry.get("type").and_then(Value::as_str) {
        None => None,
        Some("stdio") => Some("stdio"),
        Some("http" | "streamable-http" | "streamableHttp") => Some("http"),
        Some("sse") => Some("sse"),
        Some(other) => return Err(format!("has the unknown type `{other}`; types are stdio, http and sse")),
    };
    let given = |key: &str| entry.get(key).filter(|value| !value.is_null()).cloned();
    match (given("command"), given("url"), transport) {
        (Some(program), None, None | Some("stdio")) => {
            let mut command = vec![program];
            match given("args") {
                None => {}
                Some(Value::Array(words)) => command.extend(words),
                Some(_) => return Err("has `args` that are not a list".to_owned()),
            }
            let mut binding = json!({ "command": command });
            for key in ["env", "cwd"] {
                if let Some(value) = given(key) {
                    binding[key] = value;
                }
            }
            Ok(json!({ "stdio": binding }))
        }
        (None, Some(url), None | Some("http" | "sse")) => {
            let mut binding = json!({ "url": url });
            if let Some(headers) = given("headers") {
                binding["headers"] = headers;
            }
            Ok(Value::Object(Map::from_iter([(transport.unwrap_or("http").to_owned(), binding)])))
        }
        (None, None, _) => Err("has neither `command` nor `url`".to_owned()),
        (Some(_), Some(_), _) => Err("has both `command` and `url`".to_owned()),
        _ => Err("has a type that contradicts its keys".to_owned()),
    }
}

/// Fills `${NAME}` and `${NAME:-default}`, as the clients do for which these files are written. What is filled in is final.
fn expanded(reader: &Reader<'_>, value: &Value) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expand(reader, text)?),
        Value::Array(items) => Value::Array(items.iter().map(|item| expanded(reader, item)).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| Ok((key.clone(), expanded(reader, value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn expand(reader: &Reader<'_>, text: &str) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        let value = reader.environment.variables.get(name).map(String::as_str).filter(|value| !value.is_empty() || default.is_none());
        filled += before;
        filled += value.or(default).ok_or_else(|| format!("uses `${{{name}}}`, which is not set"))?;
        rest = behind;
    }
    filled += rest;
    // A suite would look for variables again.
    Ok(filled.replace("${", "$${"))
}
