//! One conversation: a client of others and a server of others, with the proxy between them, then the suite and the mock of the recording.

use super::peers::{self, Peer, Start, root};
use super::started::{Listening, proxy};
use super::{kept, mcproof};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Client {
    TypeScript,
    Python1,
    Python2,
    Inspector,
}

impl Client {
    pub(crate) const ALL: [Self; 4] = [Self::TypeScript, Self::Python1, Self::Python2, Self::Inspector];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript SDK 1",
            Self::Python1 => "Python SDK 1",
            Self::Python2 => "Python SDK 2",
            Self::Inspector => "Inspector CLI",
        }
    }
}

/// Who talks to whom, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) server: String,
    pub(crate) transport: String,
    pub(crate) client: Client,
}

/// What came of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Requests of the client.
    pub(crate) requests: usize,
    /// Steps of the exported suite.
    pub(crate) steps: usize,
    /// Requests that are no step, and why.
    pub(crate) left_out: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

/// The direct run, to which that through the proxy is compared, is left to the chore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    Sample,
    Whole,
}

/// An action, its name, and its arguments.
type Step = Value;

impl Conversation {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for server in peers::names() {
            let peer = Peer::named(&server);
            for transport in ["stdio", "http", "sse"].into_iter().filter(|transport| peer.0[transport].is_object()) {
                let of = |client| Self { server: server.clone(), transport: transport.to_owned(), client };
                all.extend(Client::ALL.map(of).into_iter().filter(|talk| !talk.is_beyond_the_specification()));
            }
        }
        all
    }

    /// These two speak 2026-07-28 over HTTP+SSE with each other, which that revision does not have, so that no mock does.
    pub(crate) fn is_beyond_the_specification(&self) -> bool {
        (self.server.as_str(), self.transport.as_str(), self.client) == ("fastmcp", "sse", Client::Python2)
    }

    pub(crate) fn label(&self, between: char) -> String {
        format!("{}{between}{}{between}{:?}", self.server, self.transport, self.client)
    }

    /// The server and the steps, working in this folder.
    pub(crate) fn in_folder(&self, folder: &Path) -> (Start, Vec<Step>) {
        let peers = root().join("target/peers");
        let moved = |text: String| {
            let text = text.replace(&format!("{}/fixture", peers.display()), &folder.display().to_string());
            text.replace(&format!("{}/sqlite", peers.display()), &folder.display().to_string())
        };
        let mut start = Peer::named(&self.server).start(&self.transport);
        start.command = start.command.into_iter().map(moved).collect();
        start.env = start.env.into_iter().map(|(name, value)| (name, moved(value))).collect();
        let text = fs::read_to_string(root().join("peers/conversations.json")).unwrap();
        let all: Value = serde_json::from_str(&moved(text.replace("${peers}", &peers.display().to_string()))).unwrap();
        let steps = all[&self.server].as_array().unwrap_or_else(|| panic!("peers/conversations.json has no {}", self.server)).clone();
        (start, steps)
    }

    /// What one process of the client does: everything, or a single step.
    fn rounds(&self, steps: Vec<Step>) -> Vec<Vec<Step>> {
        if self.client != Client::Inspector {
            return vec![steps];
        }
        // The first of each action, and a call that fails. It refuses by itself to call what is not listed.
        let mut chosen: Vec<Step> = Vec::new();
        for step in &steps {
            if !chosen.iter().any(|known| known[0] == step[0]) {
                chosen.push(step.clone());
            }
        }
        let is_listed = |step: &&Step| step[0] == "call" && step[1].as_str().is_none_or(|name| name.replace('-', "_") != "no_such_tool");
        chosen.extend(steps.iter().rev().find(is_listed).cloned());
        chosen.into_iter().map(|step| vec![step]).collect()
    }

    /// The command of the client for these steps, with the server that it starts or finds.
    fn client_command(&self, steps: &[Step], server: &[String]) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let path = |relative: &str| {
            let path = root().join(relative);
            assert!(path.exists(), "{} is not there: run `cargo xtask peers` first", path.display());
            path.display().to_string()
        };
        let script = Value::Array(steps.to_vec()).to_string();
        match self.client {
            Client::TypeScript => [words(&["node", &path("crates/cli/tests/recorded/client.mjs"), &script]), server.to_vec()].concat(),
            Client::Python1 | Client::Python2 => {
                let python = if self.client == Client::Python1 { "mcp1" } else { "mcp2" };
                let python = path(&format!("target/peers/python/{python}/bin/python"));
                [vec![python, path("crates/cli/tests/recorded/client.py"), script], server.to_vec()].concat()
            }
            Client::Inspector => {
                // It knows the transport by the end of a URL.
                let server = if server.len() == 2 && server[1].starts_with("http") { &server[1..] } else { server };
                let patience = ["--connect-timeout", "60000"].map(str::to_owned).to_vec();
                [peers::installed("inspector"), server.to_vec(), inspector_flags(&steps[0]), patience].concat()
            }
        }
    }

    pub(crate) fn run_client(&self, steps: &[Step], server: &[String], env: &[(String, String)], folder: &Path) -> Output {
        let command = self.client_command(steps, server);
        let sdk = root().join("target/peers/node/everything/node_modules/@modelcontextprotocol");
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]).envs(env.iter().cloned()).env("SDK", sdk).envs(COMMITTER);
        program.current_dir(folder).stdin(Stdio::null()).output().unwrap()
    }
}

/// Who commits, for git.
const COMMITTER: [(&str, &str); 4] =
    [("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b")];

fn inspector_flags(step: &Step) -> Vec<String> {
    let (action, name) = (step[0].as_str().unwrap(), step[1].as_str().unwrap_or_default());
    let pairs = |flag: &str| {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let members = step[2].as_object().into_iter().flatten();
        members.flat_map(|(key, value)| [flag.to_owned(), format!("{key}={}", plain(value))]).collect::<Vec<_>>()
    };
    let method = |method: &str| vec!["--method".to_owned(), method.to_owned()];
    match action {
        "tools" => method("tools/list"),
        "resources" => method("resources/list"),
        "templates" => method("resources/templates/list"),
        "prompts" => method("prompts/list"),
        "read" => [method("resources/read"), vec!["--uri".into(), name.into()]].concat(),
        "prompt" => [method("prompts/get"), vec!["--prompt-name".into(), name.into()], pairs("--prompt-args")].concat(),
        _ => [method("tools/call"), vec!["--tool-name".into(), name.into()], pairs("--tool-arg")].concat(),
    }
}

/// Where servers work: the fixture anew, always at the same place, so that the requests of each run are the same.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn of(name: &str) -> Self {
        Self(kept("work").join(name))
    }

    pub(crate) fn fresh(&self) {
        let _ = fs::remove_dir_all(&self.0);
        copy(&root().join("target/peers/fixture"), &self.0);
        let _ = fs::remove_file(self.0.join("memory.jsonl"));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap_or_else(|_| panic!("{} is not there: run `cargo xtask peers` first", from.display())) {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => assert!(fs::copy(entry.path(), target).is_ok()),
        }
    }
}

/// What goes wrong with this conversation, if anything does.
pub(crate) fn record_and_use(conversation: &Conversation, thoroughness: Thoroughness) -> Row {
    let name = conversation.label('-');
    let folder = Folder::of(&name);
    let (start, steps) = conversation.in_folder(&folder.0);
    let mut row = Row::default();
    for (number, steps) in conversation.rounds(steps).into_iter().enumerate() {
        let results = kept("traces").join(format!("{name}-{number}"));
        let _ = fs::remove_dir_all(&results);
        fs::create_dir_all(&results).unwrap();
        let round = Round { conversation, folder: &folder, start: &start, steps: &steps, results };
        row.requests += steps.len();
        if let Err(why) = round.run(thoroughness, &mut row) {
            row.wrong.push(format!("{}, round {number}: {why}", conversation.label(' ')));
        }
    }
    row
}

struct Round<'a> {
    conversation: &'a Conversation,
    folder: &'a Folder,
    start: &'a Start,
    steps: &'a [Step],
    /// For the trace and the suite.
    results: PathBuf,
}

/// What a client printed, and its exit code.
#[derive(PartialEq)]
struct Printed {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Round<'_> {
    fn run(&self, thoroughness: Thoroughness, row: &mut Row) -> Result<(), String> {
        let trace = self.results.join("session.mcptrace");
        // Of an earlier run; the proxy keeps a recording that exists.
        let _ = fs::remove_file(&trace);
        let recorded = self.proxied(&trace)?;
        // Inspector says on stderr what it was refused.
        let is_refused = self.conversation.client == Client::Inspector && recorded.stderr.contains("{\"error\":{");
        if recorded.stdout.lines().count() < self.steps.len() && !is_refused {
            return Err(format!("the client got too little:\n{}{}", recorded.stdout, recorded.stderr));
        }
        if thoroughness == Thoroughness::Whole {
            let direct = self.direct()?;
            differ("without the proxy", &masked(&direct.stdout), "with it", &masked(&recorded.stdout))?;
        }
        self.suite(&trace, row)?;
        let mocked = self.mocked(&trace)?;
        differ("recorded", &recorded.stdout, "mocked", &mocked.stdout)?;
        if mocked.code != recorded.code {
            return Err(format!("the client ended with {:?} when recorded, with {:?} when mocked", recorded.code, mocked.code));
        }
        match mocked.stderr.lines().find(|line| line.starts_with("error: ") || line.starts_with("note: ")) {
            None => Ok(()),
            Some(line) => Err(format!("the mock said {line}")),
        }
    }

    fn is_stdio(&self) -> bool {
        self.conversation.transport == "stdio"
    }

    fn client(&self, server: &[String]) -> Printed {
        let output = self.conversation.run_client(self.steps, server, &[], &self.folder.0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Printed { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// As the command of the client's server. Inspector takes what looks like a flag for its own, and hands on no variables.
    fn client_of_command(&self, command: &[String]) -> Printed {
        let script = self.results.join("server.sh");
        let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        let variables: String = self.start.env.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect();
        let words: Vec<String> = command.iter().map(quoted).collect();
        fs::write(&script, format!("#!/bin/sh\n{variables}exec {}\n", words.join(" "))).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        self.client(&[script.display().to_string()])
    }

    fn client_of_url(&self, url: &str) -> Printed {
        self.client(&[self.conversation.transport.clone(), url.to_owned()])
    }

    fn direct(&self) -> Result<Printed, String> {
        self.folder.fresh();
        if self.is_stdio() {
            return Ok(self.client_of_command(&self.start.command));
        }
        let server = Listening::server(self.start, &self.folder.0)?;
        Ok(self.client_of_url(&server.url))
    }

    fn proxied(&self, trace: &Path) -> Result<Printed, String> {
        self.folder.fresh();
        if self.is_stdio() {
            let proxy = [mcproof(), "proxy", "--trace", trace.to_str().unwrap(), "--"].map(str::to_owned);
            return Ok(self.client_of_command(&[&proxy[..], &self.start.command].concat()));
        }
        let proxy = proxy(self.start, Some(trace), &self.folder.0)?;
        let printed = self.client_of_url(&proxy.url);
        match proxy.end() {
            (Some(0), _) => Ok(printed),
            (code, said) => Err(format!("the proxy ended with {code:?}: {said}")),
        }
    }

    fn mocked(&self, trace: &Path) -> Result<Printed, String> {
        self.folder.fresh();
        let mock = [mcproof(), "mock", trace.to_str().unwrap()].map(str::to_owned);
        if self.is_stdio() {
            return Ok(self.client_of_command(&mock));
        }
        let mut command = Command::new(mcproof());
        command.arg("mock").arg(trace).args(["--transport", &self.conversation.transport]);
        let mock = Listening::announced(&mut command)?;
        let printed = self.client_of_url(&mock.url);
        match mock.end() {
            (Some(0), _) => Ok(printed),
            (code, said) => Err(format!("the mock ended with {code:?}: {said}")),
        }
    }

    /// Exports the recording and runs the suite on the same server.
    fn suite(&self, trace: &Path, row: &mut Row) -> Result<(), String> {
        self.folder.fresh();
        let run = |words: &[&str]| {
            let mut command = Command::new(mcproof());
            command.args(words).current_dir(&self.folder.0).envs(self.start.env.iter().cloned()).envs(COMMITTER);
            let output = command.stdin(Stdio::null()).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let suite = self.folder.0.join("recorded.mcproof.yaml");
        let exported = run(&["trace", "export", trace.to_str().unwrap(), "--suite", "--output", suite.to_str().unwrap()]);
        let (code, _, said) = exported;
        row.left_out.extend(said.lines().filter(|line| line.starts_with("left out")).map(str::to_owned));
        if code == Some(2) && said.contains("no request in the trace can be a step") {
            return Ok(());
        }
        let steps = said.lines().find_map(|line| line.split_once(" with ")?.1.split(' ').next()?.parse::<usize>().ok());
        let (Some(0), Some(steps)) = (code, steps) else { return Err(format!("export: {said}")) };
        row.steps += steps;
        let _ = fs::copy(&suite, self.results.join("recorded.mcproof.yaml"));
        let (code, tested, said) = run(&["test", "--trace", "off", "--color", "never", suite.to_str().unwrap()]);
        match code {
            Some(0) if tested.contains("1 passed") => Ok(()),
            _ => Err(format!("the suite of the recording: {tested}{said}")),
        }
    }
}

/// Without what is another value in each run: times, hashes, ports.
fn masked(text: &str) -> String {
    let masks = [(r"\b[0-9a-f]{7,40}\b", "H"), (r"\d+", "0")];
    masks.iter().fold(text.to_owned(), |text, (form, mask)| Regex::new(form).unwrap().replace_all(&text, *mask).into_owned())
}

fn differ(one: &str, first: &str, two: &str, second: &str) -> Result<(), String> {
    if first == second {
        return Ok(());
    }
    let (left, right): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    let place = left.iter().zip(&right).position(|(left, right)| left != right).unwrap_or(left.len().min(right.len()));
    let line = |lines: &[&str]| {
        let line = lines.get(place).copied().unwrap_or("(nothing)");
        line.chars().take(1500).collect::<String>()
    };
    Err(format!("line {} differs\n  {one}: {}\n  {two}: {}", place + 1, line(&left), line(&right)))
}
