//! Servers by name, from configuration files of other clients: `mcpServers`, or `servers` of VS Code, in JSON with comments and trailing
//! commas. Knows their format, no flags.

use super::unknown_word::UnknownWord;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json_mistake::uncapitalized;
use crate::settings;
use jsonc_parser::parse_to_serde_value;
use mcproof_hosts::HOST_JSON;
use mcproof_protocol::Transport;
use mcproof_record::{Diagnostic, Place};
use mcproof_suite::bounds::read_file;
use mcproof_suite::plan::{Inherited, Launch};
use mcproof_suite::restriction::{Restriction, UrlOwner};
use mcproof_system::machine::HOME_VARIABLE;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A server as a file describes it.
#[derive(Debug, PartialEq)]
pub(super) enum Known {
    Command { command: Vec<String>, env: Vec<(String, String)>, folder: Folder },
    Url { url: String, headers: Vec<(String, String)>, kind: Option<Transport> },
}

/// Where a command is to run.
#[derive(Debug, PartialEq)]
pub(super) enum Folder {
    /// Its entry says so.
    Chosen(PathBuf),
    /// That of the file, since the entry says nothing.
    OfFile(PathBuf),
    /// Nobody said.
    Open,
}

/// Looked for in each folder, in this order.
pub(super) const FILES: [&str; 4] = [".mcp.json", "mcp.json", ".vscode/mcp.json", OF_CURSOR];

/// In the home folder, it has the servers of all projects, and none of this one.
const OF_CURSOR: &str = ".cursor/mcp.json";

/// Under which clients keep their servers; the first that is there counts.
const KEYS: [&str; 2] = ["mcpServers", "servers"];

/// The server of that name.
pub(super) fn find(named: Option<&Path>, name: &str, restriction: Option<&Restriction>) -> Result<Known, Failure> {
    let files = read(named, restriction)?;
    if let Some((file, entry)) = files.iter().find_map(|file| Some((file, file.servers.get(name)?))) {
        return file.server(name, entry, restriction);
    }
    let known: Vec<&str> = files.iter().flat_map(|file| file.servers.keys()).map(String::as_str).collect();
    let shown = files.first().map(|file| file.shown.as_str());
    let inside = servers_inside(name, restriction);
    Err(UnknownWord { word: name, file: shown, known: &known, inside: &inside }.failure())
}

/// The servers of a file that was named in the place of one, if it is a configuration file.
fn servers_inside(name: &str, restriction: Option<&Restriction>) -> Vec<String> {
    let path = Path::new(name);
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let files = if is_json && path.is_file() { read(Some(path), restriction).unwrap_or_default() } else { Vec::new() };
    files.iter().flat_map(|file| file.servers.keys().cloned()).collect()
}

/// The one server that is there, when none is named.
pub(super) fn only(named: Option<&Path>, restriction: Option<&Restriction>) -> Result<Known, Failure> {
    let files = read(named, restriction)?;
    let mut names = BTreeSet::new();
    let all = files.iter().flat_map(|file| file.servers.iter().map(move |(name, entry)| (file, name, entry)));
    // The same name again is the same server, for another client.
    let all: Vec<(&File, &String, &Value)> = all.filter(|(_, name, _)| names.insert(*name)).collect();
    match all.as_slice() {
        [(file, name, entry)] => file.server(name, entry, restriction),
        [] => Err(Failure::bad_input("no-server", "no server given").hint("pass a URL, or a command after `--`")),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, name, _)| name.as_str()).collect();
            Err(Failure::bad_input("no-server", "no server given").hint(format!("known servers: {}", names.join(", "))))
        }
    }
}

/// The servers of the nearest folder that has some: the file as shown, and the name. None if a file cannot be used.
pub(super) fn names() -> Vec<(String, String)> {
    let files = read(None, None).unwrap_or_default();
    files.iter().flat_map(|file| file.servers.keys().map(|name| (file.shown.clone(), name.clone()))).collect()
}

/// The servers of one file.
#[cfg(feature = "ui")]
pub(super) fn names_in(path: &Path, restriction: Option<&Restriction>) -> Result<Vec<String>, Failure> {
    Ok(read(Some(path), restriction)?.iter().flat_map(|file| file.servers.keys().cloned()).collect())
}

struct File {
    /// As to be shown.
    shown: String,
    text: String,
    servers: Map<String, Value>,
    /// Where its commands run: the folder of a file that was found. One that was named is taken as if it lay here.
    folder: Option<PathBuf>,
}

/// Bytes of a file with servers.
const LARGEST: usize = 4 << 20;

/// The file that is named, or those of the nearest folder that has some.
fn read(named: Option<&Path>, restriction: Option<&Restriction>) -> Result<Vec<File>, Failure> {
    if let Some(path) = named {
        let shown = path.display().to_string();
        permit(restriction, path, &shown)?;
        let unreadable = |reason: String| Failure::bad_input("cannot-read", format!("{shown} {reason}"));
        let bytes = read_file(path, LARGEST).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("is not UTF-8 text".to_owned()))?;
        return Ok(vec![File::parse(shown, text, None)?]);
    }
    let here = settings::current_folder();
    for folder in here.ancestors() {
        let mut files = Vec::new();
        let is_home = settings::variable(HOME_VARIABLE).is_some_and(|home| Path::new(&home) == folder);
        for name in FILES.into_iter().filter(|name| !is_home || *name != OF_CURSOR) {
            let path = folder.join(name);
            // What cannot be read is somebody else's: nobody asked for it.
            let Some(text) = read_file(&path, LARGEST).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
            let shown = if folder == here { name.to_owned() } else { path.display().to_string() };
            permit(restriction, &path, &shown)?;
            files.push(File::parse(shown, text, Some(folder.to_owned()))?);
        }
        if !files.is_empty() {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

fn permit(restriction: Option<&Restriction>, path: &Path, shown: &str) -> Result<(), Failure> {
    let refused = restriction.map_or(Ok(()), |restriction| restriction.path(path, shown));
    refused.map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic))
}

impl File {
    fn parse(shown: String, text: String, folder: Option<PathBuf>) -> Result<Self, Failure> {
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let mut document: Value = parse_to_serde_value(&text, &HOST_JSON).map_err(|error| {
            let (line, column) = position(&text, error.range().start);
            Failure::bad_input("bad-config", format!("not valid JSON: {}", uncapitalized(&error.kind().to_string())))
                .at(place(&shown, &text, line, column))
        })?;
        let Some(key) = KEYS.into_iter().find(|key| document.get(key).is_some()) else {
            let failure = Failure::bad_input("bad-config", format!("{shown} has no `{}` or `{}`", KEYS[0], KEYS[1]));
            return Err(failure.hint(r#"servers stand in it as { "mcpServers": { "NAME": { "command": …, "args": […] } } }"#));
        };
        match document.get_mut(key).map(Value::take) {
            Some(Value::Object(servers)) => Ok(Self { servers, shown, text, folder }),
            _ => Err(Failure::bad_input("bad-config", format!("`{key}` in {shown} is not an object"))),
        }
    }

    fn server(&self, name: &str, entry: &Value, restriction: Option<&Restriction>) -> Result<Known, Failure> {
        let entry = Entry { file: self, name, value: entry, restriction };
        let kind = match entry.text("type")?.as_deref() {
            None => None,
            Some("stdio") => Some(Transport::Stdio),
            Some("http" | "streamable-http" | "streamableHttp") => Some(Transport::Http),
            Some("sse") => Some(Transport::Sse),
            Some(other) => return Err(entry.wrong(&format!("has the type `{other}`")).hint("use stdio, http or sse")),
        };
        let (command, url) = (entry.text("command")?, entry.text("url")?);
        match (command, url, kind) {
            (Some(program), None, None | Some(Transport::Stdio)) => {
                let mut command = vec![program];
                command.extend(entry.list("args")?);
                let folder = match (entry.text("cwd")?.map(PathBuf::from), &self.folder) {
                    (Some(cwd), Some(folder)) => Folder::Chosen(folder.join(cwd)),
                    (Some(cwd), None) => Folder::Chosen(cwd),
                    (None, Some(folder)) => Folder::OfFile(folder.clone()),
                    (None, None) => Folder::Open,
                };
                let env = entry.pairs("env")?;
                entry.permit(|restriction| {
                    let cwd = match &folder {
                        Folder::Chosen(folder) | Folder::OfFile(folder) => folder.clone(),
                        Folder::Open => settings::current_folder(),
                    };
                    let (command, env) = (command.clone(), env.clone());
                    restriction.launch(&Launch { command, env, folder: cwd, cwd: None, inherited: Inherited::All })
                })?;
                Ok(Known::Command { command, env, folder })
            }
            (None, Some(url), None | Some(Transport::Http | Transport::Sse)) => {
                entry.permit(|restriction| restriction.url(&url, UrlOwner::Others))?;
                Ok(Known::Url { url, headers: entry.pairs("headers")?, kind })
            }
            (Some(_), Some(_), _) => Err(entry.wrong("has both `command` and `url`")),
            (Some(_), None, Some(kind)) => Err(entry.wrong(&format!("has a `command`, but the type `{kind}`"))),
            (None, Some(_), Some(kind)) => Err(entry.wrong(&format!("has a `url`, but the type `{kind}`"))),
            (None, None, _) => Err(entry.wrong("has neither `command` nor `url`")),
        }
    }
}

/// One server of a file while it is read.
struct Entry<'a> {
    file: &'a File,
    name: &'a str,
    value: &'a Value,
    restriction: Option<&'a Restriction>,
}

impl Entry<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, Failure> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expand(text).map(Some),
            Some(_) => Err(self.wrong(&format!("has a `{key}` that is not a string"))),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, Failure> {
        let wrong = || self.wrong(&format!("has a `{key}` that is not a list of strings"));
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(|item| self.expand(item.as_str().ok_or_else(wrong)?)).collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, Failure> {
        let wrong = || self.wrong(&format!("has a `{key}` that is not a map of strings"));
        let pair = |(name, value): (&String, &Value)| match value {
            Value::String(text) => Ok((name.clone(), self.expand(text)?)),
            Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
            _ => Err(wrong()),
        };
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(map)) => map.iter().map(pair).collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// Replaces `${NAME}` and `${NAME:-default}`, as the clients do for which these files are written, and what VS Code writes:
    /// `${env:NAME}`, `${workspaceFolder}` and `${userHome}`.
    fn expand(&self, text: &str) -> Result<String, Failure> {
        let folder = || self.file.folder.clone().unwrap_or_else(settings::current_folder);
        for (name, _) in references(text) {
            let name = match name {
                "workspaceFolder" => continue,
                "userHome" => HOME_VARIABLE,
                name => name.strip_prefix("env:").unwrap_or(name),
            };
            self.permit(|restriction| restriction.variable(name))?;
        }
        let variable = |name: &str| match name {
            "workspaceFolder" => Some(folder().to_string_lossy().into_owned()),
            "userHome" => settings::variable(HOME_VARIABLE),
            _ => settings::variable(name.strip_prefix("env:").unwrap_or(name)),
        };
        expand(text, variable).map_err(|name| match name.split_once(':') {
            Some(("input", input)) => self
                .wrong(&format!("uses `${{{name}}}`, which VS Code prompts for"))
                .hint(format!("write ${{env:{}}} instead, and set that variable", input.to_uppercase().replace(['-', '.', ' '], "_"))),
            Some(("env", name)) => self.wrong(&format!("uses `${{env:{name}}}`, which is not set")).hint(format!("set {name}")),
            _ => self.wrong(&format!("uses `${{{name}}}`, which is not set")).hint(format!("set {name}, or write ${{{name}:-default}}")),
        })
    }

    fn permit(&self, ask: impl FnOnce(&Restriction) -> Result<(), Diagnostic>) -> Result<(), Failure> {
        self.restriction.map_or(Ok(()), ask).map_err(|diagnostic| self.here(Failure::new(Exit::BadInput, diagnostic)))
    }

    fn wrong(&self, what: &str) -> Failure {
        self.here(Failure::bad_input("bad-config", format!("server `{}` {what}", self.name)))
    }

    /// With the place where the server is named.
    fn here(&self, failure: Failure) -> Failure {
        let key = Value::from(self.name).to_string();
        let line = self.file.text.lines().zip(1..).find_map(|(line, number)| Some((number, line.find(&key)?)));
        match line {
            Some((number, column)) => failure.at(place(&self.file.shown, &self.file.text, number, column + 1)),
            None => failure,
        }
    }
}

/// Line and column of a byte, as [`place`] counts them.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    (before.matches('\n').count() + 1, before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1)
}

fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        let (name, default) = reference(inner);
        expanded += before;
        expanded += &variable(name).filter(|value| !value.is_empty() || default.is_none()).or(default.map(str::to_owned)).ok_or(name)?;
        rest = behind;
    }
    Ok(expanded + rest)
}

/// What stands between the braces: a name, and what is taken where it is not set.
fn reference(inner: &str) -> (&str, Option<&str>) {
    inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)))
}

/// All of them in a text.
fn references(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split("${").skip(1).filter_map(|after| Some(reference(after.split_once('}')?.0)))
}

/// `line` and `column` count from 1, the column in bytes.
fn place(file: &str, text: &str, line: usize, column: usize) -> Place {
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before = source.get(..column.saturating_sub(1)).unwrap_or(source);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Place {
        file: file.to_owned(),
        line: number(line.max(1)),
        column: number(before.chars().count() + 1),
        length: 1,
        text: source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Result<Known, String> {
        let file =
            File::parse("mcp.json".into(), text.to_owned(), Some("/project".into())).map_err(|failure| failure.diagnostic.message)?;
        let (name, entry) = file.servers.iter().next().expect("the test names a server");
        file.server(name, entry, None).map_err(|failure| failure.diagnostic.message)
    }

    #[test]
    fn entries_are_commands_or_urls() {
        let command = |command: &[&str], env: &[(&str, &str)], folder: Folder| {
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Ok(Known::Command { command: command.iter().map(|word| (*word).to_owned()).collect(), env, folder })
        };
        let url = |url: &str, kind| Ok(Known::Url { url: url.into(), headers: vec![], kind });
        let check = |text: &str, expected: Result<Known, String>| assert_eq!(server(text), expected, "{text}");
        check(
            r#"{"mcpServers":{"a":{"command":"node","args":["x.js"],"env":{"A":"1","B":2}}}}"#,
            command(&["node", "x.js"], &[("A", "1"), ("B", "2")], Folder::OfFile("/project".into())),
        );
        check(
            r#"{"mcpServers":{"a":{"type":"stdio","command":"node","cwd":"sub"}}}"#,
            command(&["node"], &[], Folder::Chosen("/project/sub".into())),
        );
        check(r#"{"mcpServers":{"a":{"url":"http://h/mcp","disabled":true}}}"#, url("http://h/mcp", None));
        check(r#"{"mcpServers":{"a":{"type":"streamable-http","url":"http://h/mcp"}}}"#, url("http://h/mcp", Some(Transport::Http)));
        check(r#"{"mcpServers":{"a":{"type":"sse","url":"http://h/sse"}}}"#, url("http://h/sse", Some(Transport::Sse)));
        let wrong = |message: &str| Err(message.to_owned());
        check(r#"{"mcpServers":{"a":{}}}"#, wrong("server `a` has neither `command` nor `url`"));
        check(r#"{"mcpServers":{"a":{"command":"x","url":"y"}}}"#, wrong("server `a` has both `command` and `url`"));
        check(r#"{"mcpServers":{"a":{"command":"x","type":"sse"}}}"#, wrong("server `a` has a `command`, but the type `sse`"));
        check(r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#, wrong("server `a` has a `args` that is not a list of strings"));
        check(r#"{"mcpServers":[]}"#, wrong("`mcpServers` in mcp.json is not an object"));
        check(r#"{"servers":[]}"#, wrong("`servers` in mcp.json is not an object"));
        check(r#"{"mcpservers":{}}"#, wrong("mcp.json has no `mcpServers` or `servers`"));
        // As VS Code has it.
        check(
            "{\n  // mine\n  \"servers\": {\n    \"a\": { \"command\": \"node\", \"args\": [\"${workspaceFolder}/x.js\",], /* no env */ },\n  },\n  \"inputs\": [],\n}\n",
            command(&["node", "/project/x.js"], &[], Folder::OfFile("/project".into())),
        );
        check(
            r#"{"servers":{"a":{"url":"http://h/${input:api-key}"}}}"#,
            wrong("server `a` uses `${input:api-key}`, which VS Code prompts for"),
        );
        check(
            r#"{"servers":{"a":{"url":"${env:NOT_SET_ANYWHERE}"}}}"#,
            wrong("server `a` uses `${env:NOT_SET_ANYWHERE}`, which is not set"),
        );
        check(r#"{"servers":{"b":{"url":"http://h"}},"mcpServers":{"a":{"url":"http://g"}}}"#, url("http://g", None));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let check = |text: &str, expected: &str| {
            let failure = File::parse("mcp.json".into(), text.to_owned(), None).err().expect("it is no JSON");
            let place = failure.diagnostic.place.expect("a mistake has a place");
            assert_eq!(format!("{}:{} {}", place.line, place.column, failure.diagnostic.message), expected, "{text}");
        };
        check("{", "1:2 not valid JSON: unterminated object");
        check("{\n  \"servers\": {\n    \"ä\": 1 \"b\": 2\n  }\n}", "3:11 not valid JSON: expected comma");
        check("{ 'servers': {} }", "1:3 not valid JSON: single-quoted strings are not allowed");
        check("{ servers: {} }", "1:3 not valid JSON: expected string for object property");
        check("/* open", "1:1 not valid JSON: unterminated comment block");
        check("{} {}", "1:4 not valid JSON: text cannot contain more than one JSON value");
    }

    #[test]
    fn variables_are_replaced() {
        let check = |text, expected: Result<&str, &str>| {
            let variable = |name: &str| (name == "HOME").then(|| "/root".to_owned());
            assert_eq!(expand(text, variable), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        };
        check("plain $HOME", Ok("plain $HOME"));
        check("${HOME}/x-${HOME}", Ok("/root/x-/root"));
        check("${NOPE:-d}", Ok("d"));
        check("${NOPE}", Err("NOPE"));
        check("${open", Ok("${open"));
    }
}
