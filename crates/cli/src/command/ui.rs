//! `mcproof ui`: the inspector in the browser. Here are its flags, and what a server means that is typed into its page.

mod comparing;
mod saving;

use crate::authorization::browser::{self, Consent};
use crate::authorization::secret_source::{self, SecretSource};
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::parse_listen_address;
use crate::target::{self, LeftOut, Resolved, TargetArgs, Words};
use crate::{output, settings};
use clap::{Args as _, FromArgMatches as _};
use mcproof_client::{Answers, Guardian};
use mcproof_record::{Diagnostic, ProbeReport, Severity, Transcript};
use mcproof_suite::Environment;
use mcproof_suite::answers::read_answers;
use mcproof_trace::{CallStream, Item, PROBE, SessionKey, Trace, TraceRoom};
use mcproof_ui::{
    Access, Compared, ComparedSide, Connector, Inspector, KnownServer, NewTest, Options, Prepared, RecordedSession, SavedTest, ServerSpec,
    SessionSteps, SharedSession, SignIn, SuiteChange, TestRunner, Token,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;
use url::Url;

/// Explore servers in the browser: call tools, watch the traffic, keep tests
///
/// Serves a page on loopback and opens it. TARGET may be a URL, the name of a server in .mcp.json, a configuration file with servers, or a
/// trace file to look at; a command comes last, after `--`. Without a target, the page asks for one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof ui -- node server.js
  mcproof ui http://127.0.0.1:3000/mcp
  mcproof ui .mcp.json
  mcproof ui session.mcptrace
  mcproof ui --no-open --listen 127.0.0.1:8080 -- node server.js")]
pub(crate) struct Arguments {
    /// URLs, names of servers in .mcp.json, configuration files, or trace files; a command comes last, after `--`
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Address to serve the page at; other than loopback requires --token [default: 127.0.0.1:7140, or a free port]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, help_heading = "Page")]
    listen: Option<SocketAddr>,
    /// Token that the page requires, at least 16 characters: env:NAME, file:PATH, or the token itself [default: a new one for each start]
    #[arg(long, value_name = "SECRET", value_parser = secret_source::parse, help_heading = "Page")]
    token: Option<SecretSource>,
    /// Also accept this host name, with its port, in the address of the page; may be repeated
    #[arg(long, value_name = "HOST:PORT", help_heading = "Page")]
    public_host: Vec<String>,
    /// Print the address of the page, but do not open a browser
    #[arg(long, help_heading = "Page")]
    no_open: bool,
    #[command(flatten)]
    server: TargetArgs,
}

/// The same in each start, so that the browser keeps what belongs to the page: theme, layout, saved calls.
const USUAL_PORT: u16 = 7140;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.server.trace.is_some() {
        return Err(Failure::bad_input("bad-flag", "`--trace` cannot be used with `ui`").hint("save the session from the page"));
    }
    let token = arguments.token()?;
    let (servers, recorded) = arguments.targets()?;
    conversation::run(serve(arguments, token, servers, recorded, None))?
}

/// The page of `mcproof test --ui`.
pub(super) fn serve_tests(listen: Option<SocketAddr>, no_open: bool, tests: Arc<dyn TestRunner>) -> Result<Exit, Failure> {
    let matches = Arguments::augment_args(clap::Command::new("ui")).get_matches_from(["ui"]);
    let typed = Arguments::from_arg_matches(&matches).expect("nothing is required");
    let arguments = Arguments { listen, no_open, ..typed };
    let token = arguments.token()?;
    conversation::run(serve(&arguments, token, Vec::new(), Vec::new(), Some(tests)))?
}

async fn serve(
    arguments: &Arguments,
    token: Token,
    servers: Vec<ServerSpec>,
    recorded: Vec<RecordedSession>,
    tests: Option<Arc<dyn TestRunner>>,
) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new()?;
    let base =
        TargetArgs { command: Vec::new(), server: None, server_url: None, env: Vec::new(), header: Vec::new(), ..arguments.server.clone() };
    let connector = Arc::new(CommandLine { base, folder: settings::current_folder() });
    let options = || Options {
        access: Access::new(token.clone(), arguments.public_host.clone()),
        connector: Arc::clone(&connector) as _,
        servers: servers.clone(),
        recorded: recorded.clone(),
        tests: tests.clone(),
        now: settings::now,
        version: env!("CARGO_PKG_VERSION"),
    };
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
    let bound = match (Inspector::bind(arguments.listen.unwrap_or(usual), options()).await, arguments.listen) {
        (Err(error), None) if error.kind() == ErrorKind::AddrInUse => {
            Inspector::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options()).await
        }
        (bound, _) => bound,
    };
    let inspector = bound.map_err(|error| Failure::cannot_listen(arguments.listen.unwrap_or(usual), &error))?;
    let url = inspector.url();
    output::show(&format!("{url}\n"))?;
    output::talk("Serving until Ctrl-C. Whoever has this address can start programs as you: keep it to yourself.\n");
    let (stop, stopped) = oneshot::channel::<()>();
    let opening = async {
        if !arguments.no_open {
            open(&url).await;
        }
    };
    let serving = inspector.serve(async {
        // The sender goes away with the stop.
        let _ = stopped.await;
    });
    let mut serving = std::pin::pin!(serving);
    let failed = |error: std::io::Error| Failure::bad_input("cannot-listen", format!("the listener failed: {error}"));
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Passed).map_err(failed),
        _ = async { tokio::join!(interrupts.next(), opening) } => {}
    }
    drop(stop);
    tokio::select! {
        served = serving => served.map_err(failed)?,
        _ = interrupts.next() => {}
    }
    // It runs until it is asked to end: that is no interruption.
    Ok(Exit::Passed)
}

/// Opens the page, where there is a user with a browser.
async fn open(url: &str) {
    if settings::is_ci() || !output::stderr_is_terminal() {
        return;
    }
    let page = Url::parse(url).expect("the address of the page is a URL");
    if !browser::open(&page, settings::browsers(), &Guardian::of_whole_process()).await {
        output::talk("No browser was opened: open the address by hand\n");
    }
}

impl Arguments {
    fn token(&self) -> Result<Token, Failure> {
        let unusable = |failure: mcproof_ui::AccessFailure| Failure::bad_input("bad-token", format!("--token: {failure}"));
        if let Some(source) = &self.token {
            return Token::chosen(source.read("--token")?.expose()).map_err(unusable);
        }
        let is_loopback = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        };
        if let Some(address) = self.listen.filter(|address| !is_loopback(*address)) {
            let message = format!("{address} is reachable from other machines, and the page can start programs");
            return Err(Failure::bad_input("open-address", message)
                .hint("listen on loopback, such as 127.0.0.1:8080, or set a token with --token env:NAME and the name of this machine with --public-host"));
        }
        Token::random().map_err(unusable)
    }

    /// The servers to connect to, and the recorded sessions to show.
    fn targets(&self) -> Result<(Vec<ServerSpec>, Vec<RecordedSession>), Failure> {
        let (mut servers, mut recorded) = (Vec::new(), Vec::new());
        let TargetArgs { command, server, server_url, env, cwd, root, header, config, .. } = &self.server;
        let typed = ServerSpec {
            env: env.clone(),
            headers: header.clone(),
            cwd: cwd.as_ref().map(|cwd| cwd.display().to_string()),
            roots: root.clone(),
            ..ServerSpec::default()
        };
        let config = config.as_ref().map(|config| config.display().to_string());
        let mut command = command.clone();
        for word in self.targets.iter().chain(server_url) {
            let path = Path::new(word);
            if word.contains("://") {
                // A URL and a command: what the command starts listens there.
                servers.push(ServerSpec { url: Some(word.clone()), command: std::mem::take(&mut command), ..typed.clone() });
            } else if path.is_file() && path.extension().is_some_and(|end| end == "json") && !is_trace(path) {
                let names = target::names_in(path, self.server.restriction()?.as_deref())?;
                servers.extend(names.into_iter().map(|name| ServerSpec {
                    server: Some(name),
                    config: Some(word.clone()),
                    ..typed.clone()
                }));
            } else if path.is_file() {
                recorded.extend(read(path)?);
            } else if path.extension().is_some_and(|end| end == "mcptrace" || end == "jsonl") {
                return Err(Failure::bad_input("cannot-read", format!("file `{word}` does not exist")).hint("check the path"));
            } else {
                servers.push(ServerSpec { server: Some(word.clone()), config: config.clone(), ..typed.clone() });
            }
        }
        servers.extend(server.iter().map(|name| ServerSpec { server: Some(name.clone()), config: config.clone(), ..typed.clone() }));
        if !command.is_empty() {
            servers.push(ServerSpec { command, ..typed });
        }
        Ok((servers, recorded))
    }
}

/// Whether a JSON file is one that `--trace` has written, and not one with servers.
fn is_trace(path: &Path) -> bool {
    Trace::open(path).is_ok()
}

/// The sessions of a trace, or of the evidence of a monitor.
fn read(path: &Path) -> Result<Vec<RecordedSession>, Failure> {
    let cannot = |error: mcproof_trace::TraceError| super::trace::unreadable(path, &error);
    let mut stream = CallStream::new(Trace::open(path).map_err(cannot)?.within(TraceRoom::default()));
    let mut sessions: BTreeMap<SessionKey, Transcript> = BTreeMap::new();
    let mut probe: Option<ProbeReport> = None;
    for item in stream.by_ref() {
        match item.map_err(cannot)? {
            Item::Session(session) => {
                sessions.entry(session.key).or_default();
            }
            Item::Frame(frame) => sessions.entry(frame.session).or_default().frames.push(frame.into_frame()),
            Item::Attachment(file) if file.name == PROBE => probe = serde_json::from_slice(file.bytes.as_bytes()).ok(),
            _ => {}
        }
    }
    let file = PathBuf::from(path.file_name().unwrap_or(path.as_os_str()));
    let named = |key: SessionKey| {
        let session = stream.session(key).filter(|session| !session.server.is_empty());
        let name = session.map_or_else(|| file.display().to_string(), |session| session.server.clone());
        let client = stream.session(key).and_then(|session| session.client.as_deref()).filter(|client| *client != "mcproof");
        name + &client.map(|client| format!(" · {client}")).unwrap_or_default()
    };
    let found = probe.or_else(|| probed(path)).and_then(found);
    Ok(sessions.into_iter().map(|(key, transcript)| RecordedSession { name: named(key), transcript, found: found.clone() }).collect())
}

/// The report of a probe in a JSON file.
fn probed(path: &Path) -> Option<ProbeReport> {
    if path.extension().is_none_or(|end| end != "json") {
        return None;
    }
    let document: Value = serde_json::from_slice(&mcproof_suite::bounds::read_input(path).ok()?).ok()?;
    serde_json::from_value(document.get("report")?.clone()).ok()
}

/// What a probe has found.
fn found(report: ProbeReport) -> Option<Box<Diagnostic>> {
    report.diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error).map(Box::new)
}

/// Reads what is typed into the page as if it stood on the command line, with the flags that do.
struct CommandLine {
    base: TargetArgs,
    /// Where `mcproof ui` was started: tests are saved below it.
    folder: PathBuf,
}

impl CommandLine {
    /// The flags that say what a description says, and the server that they mean.
    fn resolved(&self, spec: &ServerSpec, user: Option<SignIn>) -> Result<(TargetArgs, Resolved), Failure> {
        let spec = spec.clone();
        let flag = |message: String| Failure::bad_input("bad-flag", message);
        let mut typed = TargetArgs {
            command: spec.command,
            server: spec.server,
            config: spec.config.map(PathBuf::from).or(self.base.config.clone()),
            env: spec.env,
            header: spec.headers,
            authorization: self.base.authorization.clone().with_client(spec.client_id, spec.client_secret.clone(), spec.scope.as_deref()),
            left_out: LeftOut { env: spec.without_env, headers: spec.without_headers },
            cwd: spec.cwd.filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
            root: spec.roots,
            protocol_version: spec.revision.or(self.base.protocol_version.clone()),
            ..self.base.clone()
        };
        if let Some(era) = &spec.era {
            typed.era = target::parse_era(era).map_err(flag)?;
        }
        if let Some(transport) = &spec.transport {
            typed.transport = target::parse_transport(transport).map_err(flag)?;
        }
        let words: Vec<String> = spec.url.into_iter().collect();
        let consent = user.map_or(Consent::Nobody, Consent::OnPage);
        let mut resolved = typed.resolve_for(&words, Words::Name, &consent)?;
        // What it is, wherever that is said to be.
        let secret = spec.client_secret.and_then(|secret| SecretSource::typed(secret).read("--client-secret").ok());
        resolved.secrets.extend(secret.map(|secret| secret.expose().to_owned()));
        Ok((typed, resolved))
    }
}

impl Connector for CommandLine {
    fn prepare(&self, spec: &ServerSpec, user: Option<SignIn>) -> Result<Prepared, Box<Diagnostic>> {
        let (_, resolved) = self.resolved(spec, user).map_err(|failure| failure.diagnostic)?;
        let hint = resolved.host_hint();
        Ok(Prepared { target: resolved.target, options: resolved.options, secrets: resolved.secrets, tap: resolved.tap, hint })
    }

    fn find_program(&self, name: &str, prepared: &Prepared) -> Option<PathBuf> {
        super::doctor::find(name, &prepared.target)
    }

    fn answers(&self, text: &str) -> Result<Answers, Box<Diagnostic>> {
        // Without variables: the page shows the answers, and suites that are saved have them.
        let restriction = self.base.restriction().map_err(|failure| failure.diagnostic)?;
        let environment = Environment { restriction, ..Environment::default() };
        let first = |mistakes: Vec<Diagnostic>| mistakes.into_iter().next().expect("whoever refuses a text says why");
        read_answers("answers", text, &environment).map_err(|mistakes| Box::new(first(mistakes)))
    }

    fn compare(&self, old: &ComparedSide, new: &ComparedSide) -> Result<Compared, Box<Diagnostic>> {
        comparing::compare(self, old, new).map_err(|failure| failure.diagnostic)
    }

    fn contract_files(&self) -> Vec<String> {
        comparing::files(&self.folder)
    }

    fn known(&self) -> Vec<KnownServer> {
        target::names_here().into_iter().map(|(file, name)| KnownServer { name, file }).collect()
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn suites(&self) -> Vec<String> {
        saving::suites(&self.folder)
    }

    fn save(&self, test: &NewTest) -> Result<SavedTest, Box<Diagnostic>> {
        saving::save(&self.folder, test)
    }

    fn suite_text(&self, file: &str) -> Result<String, Box<Diagnostic>> {
        saving::text(&self.folder, file)
    }

    fn change_suite(&self, change: &SuiteChange) -> Result<(), Box<Diagnostic>> {
        saving::change(&self.folder, change)
    }

    fn steps(&self, session: &SharedSession) -> Result<SessionSteps, Box<Diagnostic>> {
        saving::steps(session)
    }

    fn trace(&self, session: &SharedSession) -> Result<Vec<u8>, Box<Diagnostic>> {
        saving::trace(session).map_err(|failure| failure.diagnostic)
    }
}
