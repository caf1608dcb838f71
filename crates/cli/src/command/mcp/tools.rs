//! The tools: their declarations, and the translation of their arguments to a command line of mcproof. Starts nothing.

use super::job::{Job, Wire};
use super::limits::{Limits, RequestedAccess};
use crate::suggest;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A call of one of the tools.
#[derive(Debug)]
pub(super) enum ToolCall {
    /// Something that this binary does in a process of its own.
    Run(Job),
    Transcript(Page),
    /// Rules, or all of them.
    Explain(Option<String>),
}

/// A part of what an operation left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The newest where there is none.
    pub(super) operation: Option<u64>,
    pub(super) part: Part,
    /// Lines, counted from 1.
    pub(super) from: Option<usize>,
    pub(super) last: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    #[default]
    Wire,
    Output,
}

/// How long an operation may take unless the agent says otherwise.
const DEADLINE: u64 = 120;
/// What may be said at most.
const LONGEST_DEADLINE: u64 = 3600;
/// The usual wait for one answer, of which an operation must be able to outlast a few to say what did not come.
const USUAL_WAIT: Duration = Duration::from_secs(30);

/// All tools, in the order in which they are of use.
pub(super) fn all() -> Vec<Tool> {
    let what = json!({ "type": "string", "enum": ["tools", "resources", "templates", "prompts"], "default": "tools" });
    let strings = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let text = |about: &str| json!({ "type": "string", "description": about });
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    let object = |about: &str| json!({ "type": "object", "description": about });
    let number = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
    vec![
        starts(
            "list",
            "List",
            "Starts a server and lists its tools, resources, templates or prompts, one per line.",
            of_server(json!({ "what": what })),
            &[],
        ),
        starts(
            "call",
            "Call a tool",
            "Calls one tool of a server and returns its raw result.",
            of_server(json!({ "tool": text("Name of the tool"), "arguments": object("Its arguments") })),
            &["tool"],
        ),
        starts(
            "request",
            "Send a request",
            "Sends any request to a server and returns its raw result. Use it for requests that `list` and `call` do not cover.",
            of_server(json!({ "method": text("Such as resources/read"), "params": object("Its parameters") })),
            &["method"],
        ),
        starts(
            "check",
            "Check a server",
            "Checks a server against the MCP specification: protocol, transport, quality, security. Findings in order of severity, with hints. Calls \
             only tools with readOnlyHint, unless `call` allows more.",
            of_server(json!({
                "only": strings("Judge these rules only: ids, areas, or globs such as cors-*"),
                "skip": strings("Skip these rules"),
                "call": strings("Also call these tools, or all; by default only read-only tools"),
                "strict": flag("Treat warnings as failures"),
            })),
            &[],
        ),
        starts(
            "test",
            "Run suites",
            "Runs suites (*.mcproof.yaml) and reports failures, likely cause first. The suites name the server, unless \
             `command` or a URL in `server` does.",
            of_server(json!({
                "paths": strings("Files or directories, FILE::NAME or FILE:LINE for one test; default: all below cwd"),
                "filter": text("Such as: tag(smoke) & !name(/slow/)"),
                "rerun_failed": flag("Only tests that did not pass last time"),
            })),
            &[],
        ),
        starts(
            "diff",
            "Compare",
            "Compares the contracts of two servers or lock files and reports breaking changes.",
            with_start(json!({ "old": text(SIDE), "new": text(SIDE) })),
            &["old", "new"],
        ),
        starts("probe", "Probe", "Probes a server and reports its health and latency in one line.", of_server(json!({})), &[]),
        reads(
            "transcript",
            "Read the traffic",
            "Returns the traffic of an earlier operation, or the rest of its output.",
            json!({
                "operation": number("Number of the operation; default: the last"),
                "part": { "type": "string", "enum": ["wire", "output"], "default": "wire" },
                "from": number("First line"),
                "last": number("Number of lines from the end"),
            }),
        ),
        reads(
            "explain",
            "Explain a rule",
            "Explains a rule of `check`: the requirement, why it matters, how to fix it, and a failing and a passing conversation.",
            json!({ "rule": { "type": "string", "maxLength": 200, "description": "Id, area or glob; default: all ids by area" } }),
        ),
    ]
}

const SIDE: &str = "Lock file, trace, URL, name in .mcp.json, or command line";

/// The arguments that say which server, for a tool with these of its own.
fn of_server(own: Value) -> Value {
    let server = json!({
        "command": { "type": "string", "minLength": 1, "description": "Command that starts the server; split into words as in a shell, but run without one" },
        "server": {
            "type": "string", "pattern": "^[^-]",
            "description": "URL of a running server, or name in .mcp.json; default: the only server there",
        },
    });
    merged(own, with_start(server))
}

/// The arguments that say how a server is started, besides these.
fn with_start(own: Value) -> Value {
    let start = json!({
        "env": { "type": "object", "additionalProperties": { "type": "string" }, "description": "Variables of the server" },
        "cwd": { "type": "string", "description": "Directory to run in; .mcp.json and suites are searched there" },
        "transport": { "type": "string", "enum": ["auto", "stdio", "http", "sse"] },
        "era": { "type": "string", "enum": ["auto", "legacy", "modern"], "description": "legacy: initialize; modern: 2026-07-28" },
        "timeout": {
            "type": "integer", "minimum": 1, "maximum": LONGEST_DEADLINE, "default": DEADLINE,
            "description": "Timeout of the operation in seconds",
        },
    });
    merged(own, start)
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

/// A tool that starts programs that the agent names, which may do anything.
fn starts(name: &'static str, title: &str, about: &'static str, properties: Value, required: &[&str]) -> Tool {
    let effect = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    declared(name, title, about, properties, required).with_annotations(effect)
}

/// A tool that only looks at what is known here.
fn reads(name: &'static str, title: &str, about: &'static str, properties: Value) -> Tool {
    let effect = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    declared(name, title, about, properties, &[]).with_annotations(effect)
}

fn declared(name: &'static str, title: &str, about: &'static str, properties: Value, required: &[&str]) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), json!(false));
    Tool::new(name, about, schema).with_title(title)
}

/// Parses the arguments of a tool. Reports all errors, as schema violations.
pub(super) fn read(tool: &Tool, arguments: JsonObject, limits: &Limits) -> Result<ToolCall, String> {
    let schema = Value::Object((*tool.input_schema).clone());
    let arguments = Value::Object(arguments);
    let mistakes = mistakes(&schema, &arguments);
    if !mistakes.is_empty() {
        return Err(format!("invalid arguments for `{}`: {}", tool.name, mistakes.join("; ")));
    }
    let number = |name: &str| arguments[name].as_u64();
    let lines = |name: &str| number(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    Ok(match &*tool.name {
        "transcript" => ToolCall::Transcript(Page {
            operation: number("operation"),
            part: if arguments["part"] == "output" { Part::Output } else { Part::Wire },
            from: lines("from"),
            last: lines("last"),
        }),
        "explain" => ToolCall::Explain(text(&arguments, "rule").map(str::to_owned)),
        name => ToolCall::Run(Request { tool: name, arguments: &arguments }.job(limits)?),
    })
}

fn mistakes(schema: &Value, arguments: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("the schemas of our tools are schemas");
    let known: Vec<&str> = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let unknown = arguments.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).filter(|name| !known.contains(name));
    let unknown = unknown.map(|name| format!("unknown argument `{name}`; {}", suggest::hint(name, &known).unwrap_or_default()));
    let wrong = validator.iter_errors(arguments).filter(|error| !error.schema_path().as_str().ends_with("/additionalProperties"));
    let wrong = wrong.map(|error| match error.instance_path().as_str() {
        "" => error.to_string(),
        place => format!("`{}`: {error}", place.trim_start_matches('/')),
    });
    unknown.chain(wrong).collect()
}

fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments[name].as_str()
}

/// The file of FILE::NAME and FILE:LINE.
fn without_test(path: &str) -> String {
    let file = path.split_once("::").map_or(path, |(file, _)| file);
    let line = file.rsplit_once(':').filter(|(_, line)| !line.is_empty() && line.bytes().all(|digit| digit.is_ascii_digit()));
    line.map_or(file, |(file, _)| file).to_owned()
}

/// A request that fits its schema, on the way to a command line.
struct Request<'a> {
    tool: &'a str,
    arguments: &'a Value,
}

impl Request<'_> {
    fn job(&self, limits: &Limits) -> Result<Job, String> {
        limits.permit(&self.requested_access()?, self.text("cwd").map(Path::new))?;
        let deadline = Duration::from_secs(self.arguments["timeout"].as_u64().unwrap_or(DEADLINE));
        let (mut words, wire) = match self.tool {
            "check" => (self.check()?, Wire::Check),
            "test" => (self.test()?, Wire::Test),
            "diff" => (self.diff(deadline), Wire::Stderr),
            "probe" => (self.probe(deadline)?, Wire::Stderr),
            _ => (self.inspect(deadline)?, Wire::Stderr),
        };
        words.splice(1..1, limits.flags());
        let env = if self.tool == "test" { self.env() } else { Vec::new() };
        Ok(Job {
            tool: self.tool.to_owned(),
            words,
            env,
            folder: self.text("cwd").map(PathBuf::from).or_else(|| limits.folder()),
            wire,
            deadline,
        })
    }

    /// What of it may be refused.
    fn requested_access(&self) -> Result<RequestedAccess<'_>, String> {
        let command = self.command()?.into_iter().skip(1).collect::<Vec<_>>();
        let variables = self.arguments["env"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        Ok(RequestedAccess {
            commands: if command.is_empty() { Vec::new() } else { vec![command] },
            variables,
            // A file may really be called so.
            paths: self.list("paths").into_iter().flat_map(|path| [path.to_owned(), without_test(path)]).collect(),
            sides: ["old", "new"].into_iter().filter_map(|side| self.text(side)).collect(),
        })
    }

    fn text(&self, name: &str) -> Option<&str> {
        text(self.arguments, name)
    }

    fn flag(&self, name: &str) -> Option<String> {
        (self.arguments[name] == true).then(|| format!("--{}", name.replace('_', "-")))
    }

    fn list(&self, name: &str) -> Vec<&str> {
        self.arguments[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// One request, by the command that takes each of its parts in one word: nothing in it can be taken for a flag.
    fn inspect(&self, deadline: Duration) -> Result<Vec<String>, String> {
        let mut words = vec!["inspect".to_owned()];
        match self.tool {
            "list" => words.push(match self.text("what") {
                Some("templates") => "--method=resources/templates/list".to_owned(),
                what => format!("--method={}/list", what.unwrap_or("tools")),
            }),
            "call" => {
                words.push("--method=tools/call".into());
                words.extend(self.text("tool").map(|name| format!("--tool-name={name}")));
                words.extend(self.arguments.get("arguments").map(|object| format!("--tool-args-json={object}")));
            }
            _ => {
                words.extend(self.text("method").map(|method| format!("--method={method}")));
                words.extend(self.arguments.get("params").map(|params| format!("--params={params}")));
            }
        }
        words.extend(self.way(deadline));
        // A word of its own could be a program as well.
        words.extend(
            self.text("server").map(|server| format!("--{}={server}", if server.contains("://") { "server-url" } else { "server" })),
        );
        words.extend(self.command()?);
        Ok(words)
    }

    fn probe(&self, deadline: Duration) -> Result<Vec<String>, String> {
        let mut words = vec!["probe".to_owned()];
        words.extend(self.way(deadline));
        self.server(words)
    }

    fn check(&self) -> Result<Vec<String>, String> {
        let mut words: Vec<String> = vec!["check".into(), "--reporter=agent".into()];
        for name in ["only", "skip", "call"] {
            let named = self.list(name);
            words.extend((!named.is_empty()).then(|| format!("--{name}={}", named.join(","))));
        }
        words.extend(self.flag("strict"));
        words.extend(self.client());
        words.extend(self.set());
        self.server(words)
    }

    fn test(&self) -> Result<Vec<String>, String> {
        let mut words: Vec<String> = vec!["test".into(), "--reporter=agent".into()];
        words.extend(self.text("filter").map(|filter| format!("--filter={filter}")));
        words.extend(self.flag("rerun_failed"));
        words.extend(self.client().into_iter().filter(|flag| !flag.ends_with("=auto")));
        match self.text("server") {
            Some(url) if url.contains("://") => words.push(format!("--url={url}")),
            Some(name) => {
                return Err(format!("`server` of `test` must be a URL, found `{name}`; omit it to test the servers of the suites"));
            }
            None => {}
        }
        // What begins like a flag is a path all the same.
        words.extend(self.list("paths").into_iter().map(|path| if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }));
        words.extend(self.command()?);
        Ok(words)
    }

    fn diff(&self, deadline: Duration) -> Vec<String> {
        let mut words = vec!["diff".to_owned()];
        words.extend(["old", "new"].into_iter().filter_map(|side| Some(format!("--{side}={}", self.text(side)?))));
        words.extend(self.way(deadline));
        words
    }

    /// The flags of every command that shows the wire on stderr. Where the time is short, each wait is, too: what did not come is
    /// worth more than that the time is over.
    fn way(&self, deadline: Duration) -> Vec<String> {
        let mut words = vec!["--verbose".to_owned()];
        let wait = deadline / 3;
        if wait < USUAL_WAIT {
            words.extend(["timeout", "connect-timeout"].map(|flag| format!("--{flag}={}ms", wait.as_millis())));
        }
        words.extend(self.client());
        words.extend(self.set());
        words
    }

    fn client(&self) -> Vec<String> {
        ["transport", "era"].into_iter().filter_map(|name| Some(format!("--{name}={}", self.text(name)?))).collect()
    }

    fn set(&self) -> Vec<String> {
        self.env().into_iter().map(|(name, value)| format!("-e{name}={value}")).collect()
    }

    fn env(&self) -> Vec<(String, String)> {
        let pairs = self.arguments["env"].as_object().into_iter().flatten();
        pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    }

    /// Adds the server, which is a word of its own: a URL may stand beside the command that starts what listens there.
    fn server(&self, mut words: Vec<String>) -> Result<Vec<String>, String> {
        words.extend(self.text("server").map(str::to_owned));
        words.extend(self.command()?);
        Ok(words)
    }

    fn command(&self) -> Result<Vec<String>, String> {
        let Some(command) = self.text("command") else { return Ok(Vec::new()) };
        match shlex::split(command) {
            Some(words) if words.is_empty() => Err("`command` is empty".into()),
            Some(words) => Ok(std::iter::once("--".to_owned()).chain(words).collect()),
            None => Err(format!("`command` has an unclosed quote: {command}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, arguments: Value) -> Result<ToolCall, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        read(all().iter().find(|known| known.name == tool).unwrap(), arguments, &Limits::default())
    }

    fn check(tool: &str, arguments: Value, expected: &str) {
        let Ok(ToolCall::Run(job)) = asked(tool, arguments) else { panic!("{tool} is no job") };
        assert_eq!(job.words.join(" "), expected);
    }

    #[test]
    fn arguments_become_a_command_line() {
        check("list", json!({ "command": "node 'my server.js'" }), "inspect --method=tools/list --verbose -- node my server.js");
        check(
            "list",
            json!({ "what": "templates", "server": "shop" }),
            "inspect --method=resources/templates/list --verbose --server=shop",
        );
        check("list", json!({ "timeout": 9 }), "inspect --method=tools/list --verbose --timeout=3000ms --connect-timeout=3000ms");
        check(
            "call",
            json!({ "tool": "--help", "arguments": { "a": "-- b" }, "command": "s", "era": "legacy" }),
            r#"inspect --method=tools/call --tool-name=--help --tool-args-json={"a":"-- b"} --verbose --era=legacy -- s"#,
        );
        check(
            "request",
            json!({ "method": "ping", "params": {}, "server": "http://h/mcp", "env": { "K": "v" } }),
            "inspect --method=ping --params={} --verbose -eK=v --server-url=http://h/mcp",
        );
        check(
            "check",
            json!({ "only": ["tools", "stdio-*"], "call": ["all"], "strict": true, "server": "http://h:${port}/mcp", "command": "s" }),
            "check --reporter=agent --only=tools,stdio-* --call=all --strict http://h:${port}/mcp -- s",
        );
        check(
            "test",
            json!({ "paths": ["a.mcproof.yaml::x", "-b"], "filter": "tag(x)", "transport": "auto", "rerun_failed": true }),
            "test --reporter=agent --filter=tag(x) --rerun-failed a.mcproof.yaml::x ./-b",
        );
        check("test", json!({ "server": "http://h/mcp", "command": "s" }), "test --reporter=agent --url=http://h/mcp -- s");
        check("diff", json!({ "old": "mcproof.lock", "new": "node s.js" }), "diff --old=mcproof.lock --new=node s.js --verbose");
        check("probe", json!({ "server": "shop" }), "probe --verbose shop");
    }

    #[test]
    fn what_is_wrong_with_arguments_is_told_whole() {
        let check = |tool: &str, arguments: Value, said: &[&str]| {
            let told = asked(tool, arguments).unwrap_err();
            for part in said {
                assert!(told.contains(part), "{part:?} is not in {told:?}");
            }
        };
        check(
            "list",
            json!({ "comand": "x", "what": "tool" }),
            &["`list`", "unknown argument `comand`; did you mean `command`?", "`what`: "],
        );
        check("call", json!({ "arguments": [] }), &["\"tool\" is a required property", "`arguments`: "]);
        check("list", json!({ "command": "a 'b" }), &["an unclosed quote"]);
        check("list", json!({ "command": "  " }), &["`command` is empty"]);
        check("check", json!({ "server": "--call=all" }), &["`server`: "]);
        check("check", json!({ "timeout": 0 }), &["`timeout`: "]);
        check("test", json!({ "server": "shop" }), &["must be a URL, found `shop`"]);
        check("explain", json!({ "rule": "x", "command": "y" }), &["unknown argument `command`"]);
    }
}
