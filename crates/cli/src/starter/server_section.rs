//! How a suite reaches the server that it was made from, without any credential in it. Knows targets and the keys of suites.

use mcproof_client::{ConnectOptions, Endpoint, Launch, Target, is_secret, url_holds_secret};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_system::files::without_dots;
use serde_json::{Map, Value, json};
use std::path::{Component, Path, PathBuf};
use url::Url;

/// Stands for a free port.
const PORT: &str = "${port}";

/// The value of `server:` and of `answers:`, and the variables of the environment that they need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSection {
    pub(super) server: Map<String, Value>,
    pub(super) answers: Option<Value>,
    pub variables: Vec<String>,
    /// Where its command runs, seen from the suite, if it is somewhere else.
    pub folder: Option<String>,
}

/// A URL, and the command and the variables that start what listens there, as they were typed: with `${port}` in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started<'a> {
    pub url: &'a str,
    pub command: &'a [String],
    pub env: &'a [(String, String)],
}

/// `kind` is the transport that was found. `folder` is that of the suite, `here` the absolute one where relative paths begin.
pub(crate) fn reach(
    target: &Target,
    options: &ConnectOptions,
    kind: Transport,
    started: Option<Started<'_>>,
    folder: &Path,
    here: &Path,
) -> ServerSection {
    let mut variables = Vec::new();
    let (mut way, mut runs_in) = (Map::new(), None);
    if let Target::Stdio(launch) | Target::Http { launch: Some(launch), .. } = target {
        let (command, env) = started.map_or((launch.command.as_slice(), launch.env.as_slice()), |started| (started.command, started.env));
        way = start(command, env, &mut variables);
        runs_in = folder_of(launch, folder, here);
        way.extend(runs_in.as_ref().map(|runs_in| ("cwd".to_owned(), json!(literal(runs_in)))));
    }
    if let Target::Http { endpoint, .. } = target {
        way.extend(address(endpoint, started.map(|started| started.url), &mut variables));
    }
    let mut server = Map::from_iter([(kind.to_string(), Value::Object(way))]);
    if options.era != EraChoice::Auto {
        server.insert("era".into(), json!(options.era.to_string()));
    }
    server.extend(options.protocol_version.as_ref().map(|version| ("protocol_version".to_owned(), json!(literal(version)))));
    let roots = options.answers.roots.as_ref().map(|roots| roots.iter().map(|root| literal(&root.uri)).collect::<Vec<_>>());
    ServerSection { server, answers: roots.map(|roots| json!({ "roots": roots })), variables, folder: runs_in }
}

fn start(command: &[String], env: &[(String, String)], variables: &mut Vec<String>) -> Map<String, Value> {
    let mut way = Map::from_iter([("command".to_owned(), json!(without_secrets(command, variables)))]);
    // The port is nobody's secret, and another one each time.
    let written = |name: &str, value: &str, variables: &mut Vec<String>| {
        if value.contains(PORT) && !is_secret(name, value) { literal(value) } else { variable(name, variables) }
    };
    let env: Map<String, Value> = env.iter().map(|(name, value)| (name.clone(), json!(written(name, value, variables)))).collect();
    if !env.is_empty() {
        way.insert("env".into(), Value::Object(env));
    }
    way
}

/// Where the command runs, seen from the folder of the suite, if it is not that.
fn folder_of(launch: &Launch, folder: &Path, here: &Path) -> Option<String> {
    let runs_in = without_dots(&launch.folder.as_ref().map_or_else(|| here.to_owned(), |run| here.join(run)));
    let folder = without_dots(&here.join(folder));
    (runs_in != folder).then(|| relative(&folder, &runs_in).display().to_string())
}

fn address(endpoint: &Endpoint, typed: Option<&str>, variables: &mut Vec<String>) -> Map<String, Value> {
    let url = match url_holds_secret(&endpoint.url) {
        true => variable("MCP_URL", variables),
        false => literal(typed.unwrap_or(endpoint.url.as_str())),
    };
    let header = |(name, value): &(String, String)| {
        let scheme = ["Bearer ", "Basic "].into_iter().find(|scheme| value.starts_with(scheme)).unwrap_or_default();
        let called = if scheme.is_empty() { name.to_ascii_uppercase() } else { "MCP_TOKEN".to_owned() };
        (name.clone(), json!(format!("{scheme}{}", variable(&called, variables))))
    };
    let headers: Map<String, Value> = endpoint.headers.iter().map(header).collect();
    let headers = (!headers.is_empty()).then(|| ("headers".to_owned(), Value::Object(headers)));
    [("url".to_owned(), json!(url))].into_iter().chain(headers).collect()
}

/// `${env.NAME}`, and notes that it is needed.
fn variable(name: &str, variables: &mut Vec<String>) -> String {
    let is_usual = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut name: String = name.chars().map(|character| if is_usual(character) { character } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    let written = format!("${{env.{name}}}");
    if !variables.contains(&name) {
        variables.push(name);
    }
    written
}

/// The words of a command; what is a credential by the name of its flag becomes a variable.
fn without_secrets(command: &[String], variables: &mut Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (index, word) in command.iter().enumerate() {
        let flag =
            index.checked_sub(1).map(|before| command[before].as_str()).filter(|before| before.starts_with('-') && !before.contains('='));
        let written = match (word.split_once('='), flag) {
            (Some((name, value)), _) if is_secret(name, value) => format!("{name}={}", variable(&of_flag(name), variables)),
            (_, Some(flag)) if !word.starts_with('-') && is_secret(flag, word) => variable(&of_flag(flag), variables),
            _ if Url::parse(word).is_ok_and(|url| url.has_host() && url_holds_secret(&url)) => variable("MCP_SERVER_URL", variables),
            _ => literal(word),
        };
        words.push(written);
    }
    words
}

fn of_flag(flag: &str) -> String {
    flag.trim_start_matches('-').to_ascii_uppercase()
}

/// What was typed is no variable, but for the one that means the same to a command line.
fn literal(text: &str) -> String {
    text.replace("${", "$${").replace("$${port}", PORT)
}

/// The way from one folder to another, as it is in every copy of a repository; absolute where they have nothing in common.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, parts): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&parts).take_while(|(one, other)| one == other).count();
    // The root, and one folder below it, are no repository.
    if common < 3 {
        return to.to_owned();
    }
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - common);
    up.chain(parts[common..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &Target, server: Value, variables: &[&str]) {
        let kind = if matches!(target, Target::Stdio(_)) { Transport::Stdio } else { Transport::Http };
        let found = reach(target, &ConnectOptions::default(), kind, None, Path::new("tests"), Path::new("/home/me/project"));
        assert_eq!(Value::Object(found.server), server);
        assert_eq!(found.variables, variables);
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_command_has_no_credential_and_runs_where_it_did() {
        let stdio = |command: &[&str], env: &[(&str, &str)], folder: Option<&str>| {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            Target::Stdio(Launch { command, env: pairs(env), folder: folder.map(PathBuf::from), ..Launch::default() })
        };
        check(&stdio(&["node", "server.js"], &[], None), json!({ "stdio": { "command": ["node", "server.js"], "cwd": ".." } }), &[]);
        check(
            &stdio(&["a", "${x}"], &[("PORT", "1"), ("My-Key", "k")], Some("./tests")),
            json!({ "stdio": { "command": ["a", "$${x}"], "env": { "PORT": "${env.PORT}", "My-Key": "${env.My_Key}" } } }),
            &["PORT", "My_Key"],
        );
        check(
            &stdio(&["a", "--token=abc", "--api-key", "abc", "--port", "80", "postgres://me:word@host/db"], &[], Some("/srv")),
            json!({ "stdio": {
                "command": ["a", "--token=${env.TOKEN}", "--api-key", "${env.API_KEY}", "--port", "80", "${env.MCP_SERVER_URL}"],
                "cwd": "/srv",
            } }),
            &["TOKEN", "API_KEY", "MCP_SERVER_URL"],
        );
    }

    #[test]
    fn an_address_has_no_credential() {
        let http = |url: &str, headers: &[(&str, &str)]| Target::Http {
            endpoint: Endpoint { url: Url::parse(url).unwrap(), headers: pairs(headers) },
            kind: None,
            launch: None,
            locate: None,
        };
        check(&http("http://h/mcp", &[]), json!({ "http": { "url": "http://h/mcp" } }), &[]);
        check(&http("http://h/mcp?api_key=1", &[]), json!({ "http": { "url": "${env.MCP_URL}" } }), &["MCP_URL"]);
        check(
            &http("http://h/mcp", &[("Authorization", "Bearer abc"), ("X-Tenant", "t")]),
            json!({ "http": {
                "url": "http://h/mcp",
                "headers": { "Authorization": "Bearer ${env.MCP_TOKEN}", "X-Tenant": "${env.X_TENANT}" },
            } }),
            &["MCP_TOKEN", "X_TENANT"],
        );
    }

    #[test]
    fn a_server_that_is_started_gets_a_port_of_its_own() {
        let endpoint = Endpoint { url: Url::parse("http://127.0.0.1:4711/mcp").unwrap(), headers: Vec::new() };
        let launch = Launch { command: vec!["a".into(), "4711".into()], ..Launch::default() };
        let target = Target::Http { endpoint, kind: None, launch: Some(launch), locate: None };
        let command = ["a".to_owned(), "${port}".to_owned()];
        let started =
            Started { url: "http://127.0.0.1:${port}/mcp", command: &command, env: &pairs(&[("LISTEN", "127.0.0.1:${port}"), ("A", "b")]) };
        let here = Path::new("/home/me/project");
        let found = reach(&target, &ConnectOptions::default(), Transport::Sse, Some(started), Path::new("."), here);
        assert_eq!(
            Value::Object(found.server),
            json!({ "sse": {
                "command": ["a", "${port}"],
                "env": { "LISTEN": "127.0.0.1:${port}", "A": "${env.A}" },
                "url": "http://127.0.0.1:${port}/mcp",
            } })
        );
    }
}
