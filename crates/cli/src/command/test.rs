//! `mcproof test`: finds suites, reads them, runs them, reports.

use crate::authorization::AuthArgs;
use crate::conversation::{self, Interrupts, Watching};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::NetworkArgs;
use crate::reporters::{ReporterArgs, Reporters, Written};
use crate::typed::Typed;
use crate::{output, settings};
use clap::Args as _;
use mcproof_client::auth::Authorization;
use mcproof_client::{Endpoint, EraChoice, Guardian, Patience, Target, Tls, TransportKind};
use mcproof_engine::run::{self, Covering, RunOptions, Snapshots, Transcripts};
use mcproof_engine::suite::plan::{Binding, Launch, Reach, Server, Suite};
use mcproof_engine::suite::{self, Environment};
use mcproof_record::{Diagnostic, Event, Place, Summary};
use mcproof_report::diagnostic;
use mcproof_report::terminal::Detail;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Run suites over the real wire
///
/// Each test runs once for each transport that its suite declares, on a server of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    typed: Typed,
    /// Suite files, or folders to search for `*.mcproof.yaml` and `mcproof.yaml`
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Only these transports (repeat, or separate with commas)
    #[arg(long, value_name = "stdio|http|sse", value_delimiter = ',', value_parser = parse_transport)]
    transport: Vec<TransportKind>,
    /// The protocol era to speak, in place of what the suite says
    #[arg(long, alias = "protocol-era", value_name = "auto|legacy|modern")]
    era: Option<EraChoice>,
    /// The protocol revision to offer, and no other
    #[arg(long, value_name = "VERSION")]
    protocol_version: Option<String>,
    /// Set a variable of the suites: NAME=TEXT, or NAME:=JSON
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// The profile of the suites to test against, such as `staging`
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Test the server at this URL instead of the suite's own; with a command, `${port}` in it is a free port
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A header for --url
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// An environment variable for the command after `--`
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Working folder for the command after `--`
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Cases at the same time
    #[arg(short, long, value_name = "N", default_value_t = default_jobs(), value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Time that each request may take, in place of the suite's
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Time from the start of a server until its handshake is answered, in place of the suite's
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    connect_timeout: Option<Duration>,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    authorization: AuthArgs,
    /// Take what comes as the new snapshots, without a review
    #[arg(long)]
    update_snapshots: bool,
    /// Also tell which tools, arguments, error paths, prompts and resources of the servers no test used
    #[arg(long)]
    coverage: bool,
    #[command(flatten)]
    reports: ReporterArgs,
    /// Test the server that this command starts instead of the suite's own
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  mcproof test                                  all suites below this folder
  mcproof test shop.mcproof.yaml --transport stdio
  mcproof test --reporter junit=junit.xml --reporter html=report.html
  mcproof test e2e.mcproof.yaml --var tool=search -- node server.js
  mcproof test e2e.mcproof.yaml --url https://staging.example.com/mcp --header 'Authorization: Bearer …'";

fn parse_transport(text: &str) -> Result<TransportKind, String> {
    match text.parse() {
        Ok(kind @ (TransportKind::Stdio | TransportKind::Http | TransportKind::Sse)) => Ok(kind),
        _ => Err("a suite runs over stdio, http or sse".into()),
    }
}

fn default_jobs() -> u16 {
    std::thread::available_parallelism().ok().and_then(|cores| u16::try_from(cores.get()).ok()).unwrap_or(1)
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let network = arguments.network.network()?;
    let guardian = Guardian::of_whole_process();
    let (server, authorization) = given(arguments, &guardian)?;
    let suites = match load(arguments, server, &network.tls)? {
        Loaded::Suites(suites) => suites,
        Loaded::Mistakes(mistakes) => {
            let count = mistakes.len();
            output::talk(&diagnostic::render_all(&mistakes, &settings::style()));
            output::talk(&format!("\n{count} {}, nothing was run\n", if count == 1 { "mistake" } else { "mistakes" }));
            return Ok(Exit::BadInput);
        }
    };
    if run::cases(&suites, &arguments.transport).is_empty() {
        let message = "no test uses a transport that was asked for";
        return Err(Failure::new(Exit::NothingSelected, Diagnostic::error("nothing-selected", message)).hint("leave out --transport"));
    }
    let options = RunOptions {
        jobs: arguments.jobs.into(),
        transports: arguments.transport.clone(),
        era: arguments.era,
        protocol_version: arguments.protocol_version.clone(),
        connect_timeout: arguments.connect_timeout,
        request_timeout: arguments.timeout,
        mcproof: settings::own_binary(),
        patience: Patience::default(),
        guardian,
        limits: arguments.network.limits(),
        network,
        authorization,
        transcripts: if arguments.reports.show_every_wire() { Transcripts::OfAll } else { Transcripts::OfFailures },
        coverage: if arguments.coverage { Covering::Servers } else { Covering::Off },
        snapshots: if arguments.update_snapshots { Snapshots::Update } else { Snapshots::Compare },
    };
    let detail = match (arguments.reports.is_quiet(), watching) {
        (true, _) => Detail::Quiet,
        (_, Watching::Wire) => Detail::Verbose,
        (_, Watching::Off) => Detail::Normal,
    };
    let repeat = arguments.typed.repeat(&Arguments::augment_args(clap::Command::new("test")));
    let reporters = arguments.reports.open(detail, &repeat)?;
    let mut stopped = None;
    let (summary, written) = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let stop = async { stopped = Some(interrupts.next().await) };
        Ok::<_, Failure>(report(suites, options, stop, reporters).await)
    })??;
    let counts = summary.counts();
    Ok(match stopped {
        Some(exit) => exit,
        None if counts.failed == 0 && counts.cancelled == 0 => match written {
            Written::All => Exit::Passed,
            // Whoever waits for the report must not take its absence for success.
            Written::Incompletely => Exit::BadInput,
        },
        None if summary.reached_a_server() => Exit::Failed,
        None => Exit::Unreachable,
    })
}

/// Runs, and tells the reporters. One that can no longer write does not end the run.
async fn report(
    suites: Vec<Arc<Suite>>,
    options: RunOptions,
    stop: impl Future<Output = ()>,
    mut reporters: Reporters,
) -> (Summary, Written) {
    let summary = run::run(suites, options, stop, &mut |event: &Event| reporters.event(event)).await;
    (summary, reporters.close())
}

enum Loaded {
    Suites(Vec<Arc<Suite>>),
    /// In the order of files and places.
    Mistakes(Vec<Diagnostic>),
}

fn load(arguments: &Arguments, server: Option<Server>, tls: &Tls) -> Result<Loaded, Failure> {
    let files = suite::discover(&arguments.paths).map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic))?;
    if files.is_empty() {
        let paths: Vec<String> = arguments.paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!("no suite was found in {}", paths.join(", "));
        let diagnostic = Diagnostic::error("no-suite", message).hint("a suite is a file whose name ends with `.mcproof.yaml`");
        return Err(Failure::new(Exit::NothingSelected, diagnostic));
    }
    let environment = Environment {
        variables: settings::variables(),
        overrides: overrides(&arguments.variables)?,
        profile: arguments.profile.clone(),
        server,
        tls: tls.clone(),
    };
    let (mut suites, mut mistakes) = (Vec::new(), Vec::new());
    for file in files {
        let named = file.display().to_string();
        let text = match std::fs::read(&file).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                mistakes.push(Diagnostic::error("not-text", format!("`{named}` is not UTF-8 text")));
                continue;
            }
            Err(error) => {
                mistakes.push(Diagnostic::error("cannot-read", format!("`{named}` cannot be read: {error}")));
                continue;
            }
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match suite::load(&named, &text, folder, &environment) {
            Ok(suite) => suites.push(Arc::new(suite)),
            Err(found) => mistakes.extend(found),
        }
    }
    Ok(if mistakes.is_empty() { Loaded::Suites(suites) } else { Loaded::Mistakes(mistakes) })
}

fn overrides(variables: &[String]) -> Result<Map<String, Value>, Failure> {
    let wrong = |text: &str, why: &str| Failure::bad_input("bad-variable", format!("--var {text}: {why}"));
    let mut map = Map::new();
    for text in variables {
        let (name, value) = text.split_once('=').ok_or_else(|| wrong(text, "expected NAME=TEXT or NAME:=JSON"))?;
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => (name, serde_json::from_str(value).map_err(|error| wrong(text, &format!("no JSON: {error}")))?),
            None => (name, Value::from(value)),
        };
        map.insert(name.to_owned(), value);
    }
    Ok(map)
}

/// What the command line names: a server, and how to be let in.
fn given(arguments: &Arguments, guardian: &Guardian) -> Result<(Option<Server>, Option<Authorization>), Failure> {
    let mut server = server(arguments)?;
    if !arguments.authorization.is_asked_for() {
        return Ok((server, None));
    }
    // With a free port in it, the URL is another one in each case.
    let known = server.as_mut().and_then(|server| server.bindings.first_mut()).filter(|binding| !needs_port(binding));
    let Some(binding) = known else { return Ok((server, arguments.authorization.for_suites(guardian)?)) };
    let mut target = match &binding.url {
        Some(url) => {
            let url = Url::parse(url).map_err(|error| Failure::bad_input("bad-url", format!("--url {url}: {error}")))?;
            let endpoint = Endpoint { url, headers: binding.headers.clone() };
            Target::Http { endpoint, kind: None, launch: None, locate: None }
        }
        None => Target::Stdio(mcproof_client::Launch::default()),
    };
    let authorization = arguments.authorization.apply(&mut target, guardian)?;
    if let Target::Http { endpoint, .. } = target {
        binding.headers = endpoint.headers;
    }
    Ok((server, authorization))
}

fn needs_port(binding: &Binding) -> bool {
    binding.url.as_ref().is_some_and(|url| url.contains("${port}"))
}

/// The server of the command line, if it names one.
fn server(arguments: &Arguments) -> Result<Option<Server>, Failure> {
    let Arguments { url, headers, env, cwd, command, .. } = arguments;
    if url.is_none() && command.is_empty() {
        return match (headers.is_empty(), env.is_empty() && cwd.is_none()) {
            (false, _) => Err(Failure::bad_input("bad-flag", "--header needs --url")),
            (_, false) => Err(Failure::bad_input("bad-flag", "-e and --cwd need a command after `--`")),
            _ => Ok(None),
        };
    }
    let text = url.iter().chain(command).cloned().collect::<Vec<_>>().join(" ");
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX).max(1);
    let place = Place { file: "command line".into(), line: 1, column: 1, length, text };
    let pair = |text: &String, separator: char, flag: &str| {
        let (name, value) = text
            .split_once(separator)
            .ok_or_else(|| Failure::bad_input("bad-flag", format!("{flag} {text}: expected a name, `{separator}` and a value")))?;
        Ok((name.trim().to_owned(), value.trim_start().to_owned()))
    };
    let launch = (!command.is_empty())
        .then(|| {
            let env = env.iter().map(|text| pair(text, '=', "-e")).collect::<Result<_, Failure>>()?;
            let folder = cwd.clone().unwrap_or_else(settings::current_folder);
            Ok::<_, Failure>(Launch { command: command.clone(), env, folder, cwd: None })
        })
        .transpose()?;
    let transport = match (url, arguments.transport.as_slice()) {
        (None, _) => TransportKind::Stdio,
        (Some(_), [TransportKind::Sse]) => TransportKind::Sse,
        (Some(_), _) => TransportKind::Http,
    };
    let headers = headers.iter().map(|text| pair(text, ':', "--header")).collect::<Result<_, Failure>>()?;
    let binding = Binding { transport, place: place.clone(), launch, url: url.clone(), headers, port_from: None, reach: Reach::default() };
    let (era, protocol_version) = (EraChoice::Auto, None);
    Ok(Some(Server { name: "server".into(), place, bindings: vec![binding], era, protocol_version }))
}
