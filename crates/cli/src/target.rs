//! The server that a command line names, and how to reach it. Knows flags and configuration files, not requests.

mod config;
pub(crate) mod host;
mod unknown_word;

use crate::authorization::AuthArgs;
use crate::authorization::browser::Consent;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json_mistake::json_mistake;
use crate::malformed;
use crate::network::NetworkArgs;
use crate::oddities::StrictArgs;
use crate::restriction::RestrictionArgs;
use crate::settings;
use crate::suggest;
use clap::{Args as _, FromArgMatches as _};
use config::{Folder, Known};
use mcproof_analysis::diagnosis::Audience;
use mcproof_analysis::oddities::Oddities;
use mcproof_analysis::offer::check_revision;
use mcproof_check::{CheckOptions, HostStart, Permission};
use mcproof_client::{
    BaseEnvironment, ConnectOptions, Destinations, Endpoint, Guardian, Launch, ListedHost, Network, Reading, Root, Startup, TapBounds,
    Target, URL_HINT, check_server_url, given_secrets, inherited_secrets, server_url,
};
use mcproof_protocol::{EraChoice, Transport, TransportChoice};
use mcproof_record::Diagnostic;
use mcproof_suite::restriction::Restriction;
use serde_json::{Map, Value};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long connections to a server at a URL are retried: a typo in a URL must not cost a minute.
pub(crate) const STARTUP: Duration = Duration::from_secs(2);

/// The flags of every command that connects to a server.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArgs {
    /// Command that starts the server; without a URL, it is reached over stdio
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub(crate) command: Vec<String>,
    /// Use the server with this name in the configuration file
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// URL of the server, as TARGET
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) server_url: Option<String>,
    /// Read server names from this file [default: the nearest .mcp.json, mcp.json, .vscode/mcp.json or .cursor/mcp.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Transport: auto, stdio, http (Streamable HTTP) or sse (HTTP+SSE)
    #[arg(long, value_name = "TRANSPORT", default_value = "auto", value_parser = parse_transport, help_heading = "Connection")]
    pub(crate) transport: TransportChoice,
    /// Protocol era: auto, legacy (with `initialize`) or modern (2026-07-28)
    #[arg(long, alias = "protocol-era", value_name = "ERA", default_value = "auto", value_parser = parse_era, hide_short_help = true, help_heading = "Connection")]
    pub(crate) era: EraChoice,
    /// Offer only this protocol revision, such as 2025-11-25; with --era legacy, any text is sent
    #[arg(long, value_name = "REVISION", hide_short_help = true, help_heading = "Connection")]
    pub(crate) protocol_version: Option<String>,
    /// Declare these client capabilities, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_capabilities, hide_short_help = true, help_heading = "Connection")]
    pub(crate) capabilities: Option<Capabilities>,
    /// Offer this root to the server and return it for `roots/list`; may be repeated
    #[arg(long, value_name = "URI", hide_short_help = true, help_heading = "Connection")]
    pub(crate) root: Vec<String>,
    /// Set an environment variable for the server; may be repeated
    #[arg(short, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Start the server in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Start the server with the environment of this shell, or with that of a desktop host
    #[arg(long, value_name = "STYLE", default_value = "shell", hide_default_value = true, hide_short_help = true)]
    pub(crate) launch: host::Style,
    /// Send this HTTP header with every request; may be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header, help_heading = "Connection")]
    pub(crate) header: Vec<(String, String)>,
    /// Timeout of each request, such as 5s or 200ms; a bare number, from 100 on, is milliseconds [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, help_heading = "Connection")]
    pub(crate) timeout: Option<Duration>,
    /// Timeout of the server's start and handshake [default: 30s]
    ///
    /// Until then, the connection is retried when it is refused or reset, or when the response is HTTP 502, 503 or 504. At a URL without
    /// a command, it is retried for 2 s unless this flag is given.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, hide_short_help = true, help_heading = "Connection")]
    pub(crate) connect_timeout: Option<Duration>,
    /// Write all traffic to this file, or to a new file in this folder; see `mcproof trace`
    ///
    /// A name that ends in .json stands for one JSON document, written at the end; any other for a trace, which grows meanwhile.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) authorization: AuthArgs,
    #[command(flatten)]
    pub(crate) restriction: RestrictionArgs,
    /// What the configuration file sets, and is not to be used.
    #[arg(skip)]
    pub(crate) left_out: LeftOut,
}

/// Names of variables and headers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) env: Vec<String>,
    pub(crate) headers: Vec<String>,
}

/// Client capabilities.
#[derive(Clone, Debug)]
pub(crate) struct Capabilities(Map<String, Value>);

/// A server, ready to be talked to.
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) options: ConnectOptions,
    /// Never to be recorded or shown.
    pub(crate) secrets: Vec<String>,
    /// For each request.
    pub(crate) timeout: Duration,
    /// How long a tool may take, if somebody said so.
    pub(crate) call_patience: Option<Duration>,
    pub(crate) trace: Option<PathBuf>,
    /// What is kept of the wire.
    pub(crate) tap: TapBounds,
    /// How messages that only some clients accept are handled.
    pub(crate) oddities: Oddities,
}

/// How a server is named on a command line.
enum Named<'a> {
    Command(&'a [String]),
    Url(&'a str),
    /// A URL, and the command that starts what listens there.
    Started(&'a str, &'a [String]),
    /// A name in a configuration file.
    Server(&'a str),
    /// A single word of `inspect`, which may be a command as well.
    ServerOrCommand(&'a String),
    Nothing,
}

/// What words that are neither a URL nor a name may be. With each of them, a command after `--` beside a URL starts the server
/// that listens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Nothing: one word, which is a URL or a name.
    Name,
    /// A command, as MCP Inspector takes it.
    NameOrCommand,
}

impl Resolved {
    /// As strict as the flags say.
    pub(crate) fn judged(self, strict: StrictArgs) -> Self {
        Self { oddities: strict.oddities(), ..self }
    }

    /// The options of a check that may make these calls.
    pub(crate) fn check_options(self, calls: Permission) -> CheckOptions {
        let Self { target, options, secrets, timeout, call_patience, tap, .. } = self;
        CheckOptions { calls, call_patience, ..CheckOptions::new(target, options, secrets, tap, timeout) }
    }

    /// What to do if a server fails at its start, because it was started as by a host.
    pub(crate) fn host_hint(&self) -> Option<String> {
        match &self.target {
            Target::Stdio(launch) | Target::Http { launch: Some(launch), .. } => host::hint(launch),
            Target::Http { launch: None, .. } => None,
        }
    }
}

impl LeftOut {
    fn apply(&self, target: &mut Target) {
        let launch = match target {
            Target::Stdio(launch) => Some(launch),
            Target::Http { endpoint, launch, .. } => {
                endpoint.headers.retain(|(name, _)| !self.headers.iter().any(|out| out.eq_ignore_ascii_case(name)));
                launch.as_mut()
            }
        };
        if let Some(launch) = launch {
            launch.env.retain(|(name, _)| !self.env.contains(name));
        }
    }
}

impl TargetArgs {
    /// As if nothing had been typed but how to reach servers over the network.
    pub(crate) fn of_network(network: &NetworkArgs) -> Self {
        Self { network: network.clone(), ..Self::of_no_words() }
    }

    /// What nothing typed means.
    fn of_no_words() -> Self {
        let grammar = Self::augment_args(clap::Command::new("drive").no_binary_name(true));
        let matches = grammar.try_get_matches_from(std::iter::empty::<&str>()).expect("no flag has to be typed");
        Self::from_arg_matches(&matches).expect("the grammar is that of these very flags")
    }

    /// Whether `--` or a flag names the server, so that no positional word does.
    pub(crate) fn names_server(&self) -> bool {
        !self.command.is_empty() || self.server.is_some() || self.server_url.is_some()
    }

    /// Finds the server. `words` are the positional ones that may name it.
    pub(crate) fn resolve(&self, words: &[String], meaning: Words) -> Result<Resolved, Failure> {
        self.resolve_for(words, meaning, &Consent::AtTerminal)
    }

    /// The same, where somebody else than who sits at the terminal may have to sign in.
    pub(crate) fn resolve_for(&self, words: &[String], meaning: Words, consent: &Consent) -> Result<Resolved, Failure> {
        let mut resolved = self.resolve_named(words, meaning, consent)?;
        // By flags, or by the configuration file that names the server.
        let given = match &resolved.target {
            Target::Stdio(launch) => given_secrets(&launch.env, &[]),
            Target::Http { endpoint, launch, .. } => {
                let variables = launch.as_ref().map(|launch| launch.env.as_slice()).unwrap_or_default();
                given_secrets(variables, &endpoint.headers)
            }
        };
        resolved.secrets.extend(given);
        Ok(resolved)
    }

    /// The same server as a desktop host starts it, if `target`, which is how it is started here, is one that hosts start.
    pub(crate) fn host_start(&self, words: &[String], target: &Target) -> Option<HostStart> {
        let Target::Stdio(_) = target else { return None };
        let server = Self { launch: host::Style::Host, ..self.clone() };
        let resolved = server.resolve(words, Words::Name);
        let hint = resolved.as_ref().ok().and_then(Resolved::host_hint);
        let launch = match resolved.map(|resolved| resolved.target) {
            Ok(Target::Stdio(launch)) => Ok(launch),
            Ok(Target::Http { .. }) => return None,
            Err(failure) => {
                let Diagnostic { message, hint, .. } = *failure.diagnostic;
                Err(hint.map_or_else(|| message.clone(), |hint| format!("{message}; {hint}")))
            }
        };
        let handed_on = |name: &String| launch.as_ref().is_ok_and(|launch| launch.env.iter().any(|(known, _)| known == name));
        let left_out = settings::variables().into_keys().filter(|name| !handed_on(name)).collect();
        Some(HostStart { launch, hint, left_out })
    }

    /// The same for a program that compares what its server says: of its variables and headers, only those are secrets that are named so.
    pub(crate) fn resolve_named(&self, words: &[String], meaning: Words, consent: &Consent) -> Result<Resolved, Failure> {
        let restriction = self.restriction()?;
        let restriction = restriction.as_deref();
        self.permit_outputs(self.trace.as_deref())?;
        let find = |name: &str| config::find(self.config.as_deref(), name, restriction);
        let mut target = match self.named(words, meaning)? {
            Named::Command(command) => self.stdio(command.to_vec(), Vec::new(), Folder::Open)?,
            Named::Url(url) => self.http(url, Vec::new(), None, None)?,
            Named::Started(url, command) => {
                let port = free_port()?;
                let command = command.iter().map(|word| word.replace(PORT, &port)).collect();
                let env = self.env.iter().map(|(name, value)| (name.clone(), value.replace(PORT, &port))).collect();
                let launch = self.launched(command, env, Folder::Open)?;
                self.http(&url.replace(PORT, &port), Vec::new(), None, Some(launch))?
            }
            Named::Server(name) => self.configured(find(name)?)?,
            Named::Nothing => self.configured(config::only(self.config.as_deref(), restriction)?)?,
            Named::ServerOrCommand(word) => match find(word) {
                Ok(known) => self.configured(known)?,
                Err(_) if settings::program_exists(word) => self.stdio(vec![word.clone()], Vec::new(), Folder::Open)?,
                Err(failure) => return Err(failure),
            },
        };
        let mut network = self.network.network()?;
        if let Some(restriction) = restriction {
            restrict(restriction, &mut target, &mut network);
        }
        self.left_out.apply(&mut target);
        check_offer(self.protocol_version.as_deref(), self.era)?;
        let guardian = Guardian::of_whole_process();
        let mut options = ConnectOptions {
            authorization: self.authorization.apply(&mut target, &guardian, consent)?,
            era: self.era,
            protocol_version: self.protocol_version.clone(),
            timeout: Some(self.connect_timeout.unwrap_or(CONNECT_TIMEOUT)),
            reading: Reading::Tolerant,
            startup: Startup::Awaited(self.connect_timeout.unwrap_or(STARTUP)),
            guardian,
            limits: self.network.limits().limits(),
            network,
            ..ConnectOptions::default()
        };
        if let Some(Capabilities(capabilities)) = &self.capabilities {
            options.client.capabilities = capabilities.clone();
        }
        options.answers.roots = (!self.root.is_empty()).then(|| self.root.iter().map(|uri| Root::from(uri.as_str())).collect());
        let mut secrets = target.secrets();
        if let Target::Stdio(_) | Target::Http { launch: Some(_), .. } = &target {
            secrets.extend(inherited_secrets(&settings::variables()));
        }
        let tap = self.network.limits().tap_bounds();
        let timeout = self.timeout.unwrap_or(REQUEST_TIMEOUT);
        let call_patience = self.timeout;
        Ok(Resolved { target, options, secrets, timeout, call_patience, trace: self.trace.clone(), tap, oddities: Oddities::Warn })
    }

    /// The restriction of configuration files, if any.
    pub(crate) fn restriction(&self) -> Result<Option<Arc<Restriction>>, Failure> {
        self.restriction.restriction(&self.typed_paths(), [])
    }

    /// With --restricted, no link in a checkout may lead a file that is written out of it.
    ///
    /// # Errors
    /// One does.
    pub(crate) fn permit_outputs<'a>(&self, outputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
        self.restriction.permit_outputs(&self.typed_paths(), outputs)
    }

    fn typed_paths(&self) -> Vec<PathBuf> {
        self.config.iter().filter(|path| path.exists()).cloned().chain([".".into()]).collect()
    }

    fn named<'a>(&'a self, words: &'a [String], meaning: Words) -> Result<Named<'a>, Failure> {
        let mut found = Vec::new();
        if !self.command.is_empty() {
            found.push(("the command after `--`", Named::Command(&self.command)));
        }
        if let Some(name) = &self.server {
            found.push(("--server", Named::Server(name)));
        }
        if let Some(url) = &self.server_url {
            found.push(("--server-url", Named::Url(url)));
        }
        match words {
            [] => {
                if let ([(_, Named::Command(command)), (_, Named::Url(url))], None) = (found.as_slice(), &self.server) {
                    return Ok(Named::Started(url, command));
                }
            }
            [url] if url.contains("://") && !self.command.is_empty() && found.len() == 1 => {
                return Ok(Named::Started(url, &self.command));
            }
            [word] if word.contains("://") => found.push(("the URL", Named::Url(word))),
            [word] if meaning != Words::NameOrCommand => found.push(("the argument", Named::Server(word))),
            [word] => found.push(("the argument", Named::ServerOrCommand(word))),
            command => found.push(("the command", Named::Command(command))),
        }
        if let [(one, _), (other, _), ..] = found.as_slice() {
            return Err(Failure::bad_input("two-servers", format!("the server is given twice: by {one} and by {other}")));
        }
        Ok(found.pop().map_or(Named::Nothing, |(_, named)| named))
    }

    fn configured(&self, known: Known) -> Result<Target, Failure> {
        match known {
            Known::Command { command, env, folder } => self.stdio(command, env, folder),
            Known::Url { url, headers, kind } => self.http(&url, headers, kind, None),
        }
    }

    fn stdio(&self, command: Vec<String>, mut env: Vec<(String, String)>, folder: Folder) -> Result<Target, Failure> {
        if let Some(kind @ (Transport::Http | Transport::Sse)) = self.transport.only() {
            let message = format!("`--transport {kind}` requires a URL, but a command is reached over stdio");
            let hint = "add its URL: 'http://127.0.0.1:${port}/mcp' -- COMMAND --port '${port}'";
            return Err(Failure::bad_input("transport-mismatch", message).hint(hint));
        }
        if !self.header.is_empty() {
            return Err(Failure::bad_input("transport-mismatch", "`--header` requires a URL, but a command is reached over stdio")
                .hint("pass credentials in the server's environment: -e NAME=VALUE"));
        }
        env.extend(self.env.iter().cloned());
        Ok(Target::Stdio(self.launched(command, env, folder)?))
    }

    fn launched(&self, command: Vec<String>, env: Vec<(String, String)>, folder: Folder) -> Result<Launch, Failure> {
        let launch = |folder| Launch { command, env, folder, ..Launch::default() };
        Ok(match (self.launch, self.cwd.clone(), folder) {
            (host::Style::Shell, Some(folder), _) => launch(Some(folder)),
            (host::Style::Shell, None, Folder::Chosen(folder) | Folder::OfFile(folder)) => launch(Some(folder)),
            (host::Style::Shell, None, Folder::Open) => launch(None),
            (host::Style::Host, Some(folder), _) | (host::Style::Host, None, Folder::Chosen(folder)) => {
                host::launched(launch(Some(folder)))?
            }
            (host::Style::Host, None, Folder::Open | Folder::OfFile(_)) => host::launched(launch(None))?,
        })
    }

    fn http(
        &self,
        url: &str,
        mut headers: Vec<(String, String)>,
        kind: Option<Transport>,
        launch: Option<Launch>,
    ) -> Result<Target, Failure> {
        let kind = match self.transport.only() {
            None => kind,
            Some(Transport::Stdio) => {
                return Err(Failure::bad_input("transport-mismatch", "`--transport stdio` requires a command, not a URL"));
            }
            Some(kind) => Some(kind),
        };
        let is_host = self.launch == host::Style::Host;
        for (flag, given) in [("-e", !self.env.is_empty()), ("--cwd", self.cwd.is_some()), ("--launch", is_host)] {
            if given && launch.is_none() {
                let message = format!("`{flag}` requires a command: mcproof does not start a server at a URL");
                return Err(Failure::bad_input("transport-mismatch", message));
            }
        }
        let url = parse_url(url)?;
        for (name, value) in &self.header {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name.clone(), value.clone()));
        }
        Ok(Target::Http { endpoint: Endpoint { url, headers }, kind, launch, locate: None })
    }
}

/// Restricts the destinations to the listed hosts and the host of the target.
fn restrict(restriction: &Restriction, target: &mut Target, network: &mut Network) {
    let mut hosts = restriction.hosts.clone();
    if let Target::Http { endpoint, .. } = target {
        hosts.extend(ListedHost::of(&endpoint.url));
    }
    network.destinations = Destinations::Listed(hosts);
    if let Target::Stdio(launch) | Target::Http { launch: Some(launch), .. } = target
        && launch.surroundings == BaseEnvironment::Ours
    {
        launch.surroundings = BaseEnvironment::Nothing;
        launch.env.splice(0..0, restriction.inherited.iter().cloned());
    }
}

/// Stands for a free port.
const PORT: &str = "${port}";

fn free_port() -> Result<String, Failure> {
    mcproof_client::free_port()
        .map(|port| port.to_string())
        .map_err(|error| Failure::bad_input("no-port", format!("no free port: {error}")).hint("replace `${port}` with a port"))
}

/// The URL of a server.
pub(crate) fn parse_url(text: &str) -> Result<Url, Failure> {
    server_url(text).map_err(|bad| Failure::bad_input("bad-url", format!("`{}` {bad}", malformed::without_password(text))).hint(URL_HINT))
}

/// A URL with `${port}`, which is filled in later.
pub(crate) fn parse_url_template(text: &str) -> Result<String, String> {
    check_server_url(text).map(|()| text.to_owned()).map_err(|bad| format!("it {bad}; {URL_HINT}"))
}

pub(crate) fn parse_transport(text: &str) -> Result<TransportChoice, String> {
    match text {
        "streamable-http" => Ok(TransportChoice::Http),
        _ => text.parse().map_err(|_| choices(text, &["auto", "stdio", "http", "sse"])),
    }
}

pub(crate) fn parse_era(text: &str) -> Result<EraChoice, String> {
    text.parse().map_err(|_| choices(text, &["auto", "legacy", "modern"]))
}

/// The names of the servers in a configuration file.
#[cfg(feature = "ui")]
pub(crate) fn names_in(file: &Path, restriction: Option<&Restriction>) -> Result<Vec<String>, Failure> {
    config::names_in(file, restriction)
}

/// The servers that can be named in this folder: the file that has them, and the name.
pub(crate) fn names_here() -> Vec<(String, String)> {
    config::names()
}

/// Checks that a session can offer this revision.
pub(crate) fn check_offer(version: Option<&str>, era: EraChoice) -> Result<(), Failure> {
    let flaw = version.and_then(|version| check_revision(version, era, Audience::CommandLine));
    flaw.map_or(Ok(()), |flaw| Err(Failure::new(Exit::BadInput, flaw)))
}

fn parse_capabilities(text: &str) -> Result<Capabilities, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Capabilities(object)),
        Ok(_) => Err("not a JSON object, such as {\"roots\":{}}".to_owned()),
        Err(error) => Err(format!("not a JSON object: {}", json_mistake(text, &error))),
    }
}

fn choices(typed: &str, allowed: &[&str]) -> String {
    match suggest::did_you_mean(typed, allowed.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of {}", allowed.join(", ")),
    }
}

pub(crate) fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(malformed::remedy(text, "=")),
    }
}

pub(crate) fn parse_header(text: &str) -> Result<(String, String), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match text.split_once(':') {
        // Without quotes, the value is another word.
        Some((name, value))
            if !name.is_empty() && !value.trim().is_empty() && name.bytes().all(is_token) && !value.contains(['\r', '\n', '\0']) =>
        {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        _ => Err(malformed::remedy(text, ": ")),
    }
}
