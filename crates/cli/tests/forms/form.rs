//! A form: how a server is named on a command line. Knows flags, not what a command prints.

use super::peers::{Peer, Start};
use mcproof_protocol::EraChoice;
use serde_json::{Value, json};
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// One way to name a server.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) transport: &'static str,
    pub(crate) names_transport: bool,
    era: EraChoice,
    /// A URL or a name, if any.
    target: Option<String>,
    /// What follows `--`, if anything.
    command: Vec<String>,
    flags: Vec<String>,
    folder: std::path::PathBuf,
}

/// The demo server `tracker`, over HTTP and HTTP+SSE, with a folder whose `mcp.json` names it.
pub(crate) struct Server {
    listening: Vec<(&'static str, Child, String)>,
    folder: tempfile::TempDir,
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

const OVER_HTTP: [(&str, &str); 2] = [("http", "mcp"), ("sse", "sse")];

impl Server {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listening: Vec<_> = OVER_HTTP.into_iter().map(|(kind, _)| listen(kind)).collect();
        let mut servers = json!({"command": {"command": MCPROOF, "args": ["demo", "tracker"]}});
        for (kind, _, url) in &listening {
            servers[format!("{kind}-url")] = json!({"url": url});
            servers[format!("{kind}-typed")] = json!({"type": kind, "url": url});
        }
        std::fs::write(folder.path().join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
        Self { listening, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the plainest form says: a command, and nothing named.
    pub(crate) fn plain(&self, verb: &[&str]) -> Ran {
        self.plain_with(verb, &[])
    }

    pub(crate) fn plain_with(&self, verb: &[&str], words: &[&str]) -> Ran {
        let words = [verb, words, &["--", MCPROOF, "demo", "tracker"]].concat();
        run(self.folder(), &words.into_iter().map(str::to_owned).collect::<Vec<_>>())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for (_, process, _) in &mut self.listening {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn listen(kind: &'static str) -> (&'static str, Child, String) {
    let mut process =
        Command::new(MCPROOF).args(["demo", "tracker", "--transport", kind]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    (kind, process, url)
}

/// Every form of that server, with the transport named and left open, in these eras.
pub(crate) fn forms(server: &Server, eras: &[EraChoice]) -> impl Iterator<Item = Form> {
    let tracker = || [MCPROOF, "demo", "tracker"].map(str::to_owned).to_vec();
    let new = |transport, target: Option<&str>, command| Form {
        transport,
        names_transport: false,
        era: EraChoice::Auto,
        target: target.map(str::to_owned),
        command,
        flags: Vec::new(),
        folder: server.folder().to_owned(),
    };
    let mut found = vec![new("stdio", None, tracker()), new("stdio", Some("command"), Vec::new())];
    for (kind, _, url) in &server.listening {
        let path = OVER_HTTP.into_iter().find(|(other, _)| other == kind).unwrap().1;
        let serves = [tracker(), ["--transport", kind, "--port", "${port}"].map(str::to_owned).to_vec()].concat();
        found.push(new(kind, Some(url), Vec::new()));
        found.push(new(kind, Some(&format!("http://127.0.0.1:${{port}}/{path}")), serves));
        found.push(new(kind, Some(&format!("{kind}-url")), Vec::new()));
        found.push(new(kind, Some(&format!("{kind}-typed")), Vec::new()));
    }
    let named = [false, true].into_iter();
    let ways: Vec<_> = named.flat_map(|names_transport| eras.iter().map(move |era| (names_transport, *era))).collect();
    found
        .into_iter()
        .flat_map(move |form| ways.clone().into_iter().map(move |(names_transport, era)| Form { names_transport, era, ..form.clone() }))
}

/// The forms of a server that others wrote which need no running one.
pub(crate) fn of_peer(name: &str) -> Vec<Form> {
    let peer = Peer::named(name);
    let transports = ["stdio", "http", "sse"].into_iter().filter(|transport| peer.0[transport].is_object());
    let mut found = Vec::new();
    for transport in transports {
        let Start { command, env, cwd, url } = peer.start(transport);
        let mut flags: Vec<String> = env.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("{key}={value}")]).collect();
        flags.extend(cwd.into_iter().flat_map(|folder| ["--cwd".to_owned(), folder]));
        flags.extend(["--connect-timeout".to_owned(), "60s".to_owned()]);
        for names_transport in [false, true] {
            let (target, command, flags) = (url.clone(), command.clone(), flags.clone());
            found.push(Form { transport, names_transport, era: EraChoice::Auto, target, command, flags, folder: super::peers::root() });
        }
    }
    found
}

impl Form {
    /// Whether the transport has the era.
    pub(crate) fn is_possible(&self) -> bool {
        !(self.transport == "sse" && self.era == EraChoice::Modern)
    }

    /// Whether it differs from others in more than what its configuration file says of it.
    pub(crate) fn is_distinct(&self) -> bool {
        self.target.as_deref().is_none_or(|target| target.contains("://"))
    }

    /// The era in which a server of both is talked to.
    pub(crate) fn comes_to(&self) -> &'static str {
        if self.transport == "sse" || self.era == EraChoice::Legacy { "legacy" } else { "modern" }
    }

    pub(crate) fn run(&self, verb: &[&str]) -> Ran {
        self.run_with(verb, &[])
    }

    pub(crate) fn run_with(&self, verb: &[&str], words: &[&str]) -> Ran {
        let mut all: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
        all.extend(self.target.clone());
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all.extend(self.rest());
        run(&self.folder, &all)
    }

    fn rest(&self) -> Vec<String> {
        let mut rest = self.flags.clone();
        if self.names_transport {
            rest.extend(["--transport".to_owned(), self.transport.to_owned()]);
        }
        match self.era {
            EraChoice::Auto => {}
            EraChoice::Legacy => rest.extend(["--era", "legacy"].map(str::to_owned)),
            EraChoice::Modern => rest.extend(["--era", "modern"].map(str::to_owned)),
        }
        if !self.command.is_empty() {
            rest.push("--".to_owned());
            rest.extend(self.command.clone());
        }
        rest
    }
}

impl Display for Form {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.target.as_deref().unwrap_or_default(), self.rest().join(" "))
    }
}

pub(crate) fn run(folder: &Path, words: &[String]) -> Ran {
    let mut command = Command::new(MCPROOF);
    command.current_dir(folder).args(words).env("NO_COLOR", "1").env("XDG_STATE_HOME", "/nowhere").stdin(Stdio::null());
    let output = command.env_remove("GITHUB_ACTIONS").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ran {
    /// What a command that succeeded printed.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}
