//! `mcproof test`: runs suites and reports the results.

#[cfg(feature = "ui")]
mod page;
mod watch;

use crate::authorization::AuthArgs;
use crate::authorization::browser::Consent;
use crate::case_traces::{CaseTraces, TraceChoice};
use crate::conversation::{self, Interrupts, Watching};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::last_run::Memory;
use crate::network::NetworkArgs;
#[cfg(feature = "ui")]
use crate::network::parse_listen_address;
use crate::numbers::whole;
use crate::printing;
use crate::reporters::{ReporterArgs, Reporters, Written};
use crate::selection::{Scope, SelectionArgs};
use crate::suites::{Read, SuiteArgs};
use crate::target::{STARTUP, check_offer, host, parse_url};
use crate::traffic;
use crate::typed::Typed;
use crate::{output, settings};
use clap::Args as _;
use mcproof_client::auth::Authorization;
use mcproof_client::{Endpoint, Guardian, Network, ShutdownTimeouts, Startup, Target};
use mcproof_protocol::EraChoice;
use mcproof_record::{Counts, Diagnostic, Event, Summary, counted};
use mcproof_report::Repeat;
use mcproof_report::terminal::Detail;
use mcproof_suite::plan::{Binding, Server};
use mcproof_suite::run::{self, CoverageMode, FILTER_HELP, Grace, Plan, RunOptions, Snapshots, Start, Transcripts};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// Run test suites
///
/// Each test runs once for each transport that its suite declares, with a separate server.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n{FILTER_HELP}"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    typed: Typed,
    #[command(flatten)]
    suites: SuiteArgs,
    /// Protocol era, overriding the suite: auto, legacy or modern
    #[arg(long, alias = "protocol-era", value_name = "ERA", hide_short_help = true, help_heading = "Connection")]
    era: Option<EraChoice>,
    /// Offer only this protocol revision, overriding the suite
    #[arg(long, value_name = "REVISION", hide_short_help = true, help_heading = "Connection")]
    protocol_version: Option<String>,
    /// Number of tests to run in parallel [default: number of cores]; with 1, servers never overlap
    // Counted where it is needed: other commands are built from this grammar, too, and to count takes 25 files.
    #[arg(short, long, value_name = "N", value_parser = whole(1..=u16::MAX), help_heading = "Execution")]
    jobs: Option<u16>,
    /// Stop after the first failure, or after N failures
    #[arg(short = 'x', long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = whole(NonZeroU32::MIN..=NonZeroU32::MAX), help_heading = "Execution")]
    fail_fast: Option<NonZeroU32>,
    /// Fail if a test passed only after a retry
    #[arg(long, alias = "fail-on-flaky-tests", hide_short_help = true, help_heading = "Execution")]
    fail_on_flaky: bool,
    /// Start each server only when its test starts, instead of ahead of time
    #[arg(long, hide_short_help = true, help_heading = "Execution")]
    no_warm_start: bool,
    /// Run again when a suite changes, or a file below its directory that .gitignore does not exclude
    #[arg(long, conflicts_with = "json", help_heading = "Execution")]
    watch: bool,
    /// Watch the tests in the browser: see the messages of each, run them again, edit their suite
    #[cfg(feature = "ui")]
    #[arg(long, conflicts_with_all = ["watch", "json"], help_heading = "Page")]
    ui: bool,
    /// Address to serve the page of --ui at [default: 127.0.0.1:7140, or a free port]
    #[cfg(feature = "ui")]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, requires = "ui", hide_short_help = true, help_heading = "Page")]
    listen: Option<std::net::SocketAddr>,
    /// Print the address of the page of --ui, but do not open a browser
    #[cfg(feature = "ui")]
    #[arg(long, requires = "ui", hide_short_help = true, help_heading = "Page")]
    no_open: bool,
    /// Print the messages of each test, and not only of those that fail: for the page of --ui
    #[cfg(feature = "ui")]
    #[arg(long, hide = true, requires = "json")]
    every_wire: bool,
    /// Start servers with the environment of this shell, or with that of a desktop host
    #[arg(long, value_name = "STYLE", default_value = "shell", hide_default_value = true, hide_short_help = true, help_heading = "Target")]
    launch: host::Style,
    /// Timeout of each request, overriding the suite
    #[arg(long, value_name = "DURATION", value_parser = duration::with_unit, help_heading = "Connection")]
    timeout: Option<Duration>,
    /// Timeout of a server's start and handshake, overriding the suite
    #[arg(long, value_name = "DURATION", value_parser = duration::with_unit, hide_short_help = true, help_heading = "Connection")]
    connect_timeout: Option<Duration>,
    /// Append each request with its arguments, result and verdict to this file, as JSON lines, overriding `audit` of the suites
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    audit: Option<PathBuf>,
    /// Write a trace of each test: on, off, on-failure, or a folder for those of all tests [default: on-failure in CI, else off]
    ///
    /// `on` and `on-failure` write to mcproof-traces; see `mcproof trace`.
    #[arg(long, value_name = "WHEN|FOLDER", value_parser = clap::value_parser!(TraceChoice), help_heading = "Output")]
    trace: Option<TraceChoice>,
    /// Accept all new and changed snapshots without review
    #[arg(long, help_heading = "Execution")]
    update_snapshots: bool,
    /// Report the tools, arguments, error paths, prompts and resources that no test used
    #[arg(long, help_heading = "Reports")]
    coverage: bool,
    #[command(flatten)]
    reports: ReporterArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    authorization: AuthArgs,
}

const EXAMPLES: &str = "\
Examples:
  # all suites below this directory
  mcproof test
  mcproof test shop.mcproof.yaml --transport stdio
  mcproof test shop.mcproof.yaml::'an unknown tool fails'
  mcproof test -E 'tag(smoke) & !name(/slow/)'
  mcproof test --reporter junit=junit.xml --reporter html=report.html
  mcproof test e2e.mcproof.yaml --var tool=search -- node server.js
  mcproof test e2e.mcproof.yaml --url https://staging.example.com/mcp --header 'X-Key: …'
";

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let detail = match (arguments.reports.is_quiet(), watching) {
        (true, _) => Detail::Quiet,
        (_, Watching::Wire) => Detail::Verbose,
        (_, Watching::Off) => Detail::Normal,
    };
    #[cfg(feature = "ui")]
    if arguments.ui {
        return page::run(arguments.listen, arguments.no_open);
    }
    let given = arguments.given()?;
    if arguments.watch {
        return conversation::run(watch::run(arguments, &given, detail))?;
    }
    let Some(plan) = arguments.plan(&given, Scope::AsTyped)? else { return Ok(Exit::BadInput) };
    conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        arguments.pass(&plan, &given, detail, &mut interrupts).await
    })?
}

/// What the command line names, the same for each run: a server, the way to servers, and how to be let in.
struct CommonOptions {
    server: Option<Server>,
    network: Network,
    authorization: Option<Authorization>,
    guardian: Guardian,
}

impl Arguments {
    /// Reads the suites again. Returns nothing if they have errors, which are printed.
    fn plan(&self, given: &CommonOptions, scope: Scope) -> Result<Option<Plan>, Failure> {
        self.plan_of(self.read(given)?, scope)
    }

    fn read(&self, given: &CommonOptions) -> Result<Read, Failure> {
        self.suites.read(given.server.clone(), &given.network.tls)
    }

    fn plan_of(&self, read: Read, scope: Scope) -> Result<Option<Plan>, Failure> {
        let Some(loaded) = read.or_tell() else { return Ok(None) };
        self.selection.plan(&self.suites, loaded, scope, &Memory::of_current_folder()).map(Some)
    }

    fn given(&self) -> Result<CommonOptions, Failure> {
        check_offer(self.protocol_version.as_deref(), self.era.unwrap_or_default())?;
        let traces = self.traces();
        self.suites.permit_outputs(self.reports.files().chain(self.audit.as_deref()).chain(traces.folder()))?;
        if let Some(file) = &self.audit {
            let open = || std::fs::OpenOptions::new().create(true).append(true).open(file);
            let opened = mcproof_system::files::make_folder_of(file).and_then(|()| open());
            opened.map_err(|error| Failure::bad_input("audit-not-written", format!("--audit {}: {error}", file.display())))?;
        }
        let network = Network { destinations: self.suites.destinations()?, ..self.network.network()? };
        let guardian = Guardian::of_whole_process();
        let mut server = self.suites.server()?;
        if !self.authorization.is_asked_for() {
            return Ok(CommonOptions { server, network, authorization: None, guardian });
        }
        // With a free port in it, the URL is another one in each case.
        let known = server.as_mut().and_then(|server| server.bindings.first_mut()).filter(|binding| !needs_port(binding));
        let Some(binding) = known else {
            let authorization = self.authorization.for_suites(&guardian)?;
            return Ok(CommonOptions { server, network, authorization, guardian });
        };
        let mut target = match &binding.url {
            Some(url) => {
                let endpoint = Endpoint { url: parse_url(url)?, headers: binding.headers.clone() };
                Target::Http { endpoint, kind: None, launch: None, locate: None }
            }
            None => Target::Stdio(mcproof_client::Launch::default()),
        };
        let authorization = self.authorization.apply(&mut target, &guardian, &Consent::AtTerminal)?;
        if let Target::Http { endpoint, .. } = target {
            binding.headers = endpoint.headers;
        }
        Ok(CommonOptions { server, network, authorization, guardian })
    }

    fn traces(&self) -> TraceChoice {
        TraceChoice::unless_given(self.trace.as_ref(), settings::is_ci())
    }

    fn options(&self, given: &CommonOptions) -> RunOptions {
        RunOptions {
            jobs: self.jobs.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from),
            fail_fast: self.fail_fast,
            start: if self.no_warm_start { Start::Cold } else { Start::Warm },
            era: self.era,
            protocol_version: self.protocol_version.clone(),
            connect_timeout: self.connect_timeout,
            startup: Startup::Awaited(self.connect_timeout.unwrap_or(STARTUP)),
            request_timeout: self.timeout,
            mcproof: settings::own_binary(),
            launcher: self.launch.launcher(),
            patience: ShutdownTimeouts::default(),
            guardian: given.guardian.clone(),
            limits: self.network.limits(),
            network: given.network.clone(),
            authorization: given.authorization.clone(),
            transcripts: if self.shows_every_wire() || matches!(self.trace, Some(TraceChoice::OfAll(_))) {
                Transcripts::OfAll
            } else {
                Transcripts::OfFailures
            },
            judge: Some(Arc::new(traffic::judge)),
            coverage: if self.coverage { CoverageMode::Servers } else { CoverageMode::Off },
            audit: self.audit.clone(),
            secrets: [mcproof_client::inherited_secrets(&settings::variables()), self.suites.given_secrets()].concat(),
            began: settings::now(),
            watcher: None,
            snapshots: if self.update_snapshots { Snapshots::Update } else { Snapshots::Compare },
        }
    }

    /// Whether whoever reads the results looks at the messages of all tests.
    fn shows_every_wire(&self) -> bool {
        #[cfg(feature = "ui")]
        if self.every_wire {
            return true;
        }
        self.reports.show_every_wire()
    }

    /// What was typed, for the commands that repeat single cases.
    fn repeat(&self) -> Repeat {
        self.typed.repeat(&Self::augment_args(clap::Command::new("test")))
    }

    /// One run of a plan, until it is done or interrupted.
    async fn pass(&self, plan: &Plan, given: &CommonOptions, detail: Detail, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
        let reporters =
            self.reports.open(detail, &self.repeat(), || Ok(self.suites.files()?.into_iter().chain(self.audit.clone()).collect()))?;
        let mut options = self.options(given);
        let mut traces = CaseTraces::open(self.traces(), &options.secrets)?;
        options.watcher = traces.watcher();
        let mut stopped = None;
        let stop = async {
            let signals = interrupts;
            stopped = Some(signals.next().await);
            Grace(signals.end_servers(&given.guardian))
        };
        let (summary, written) = report(plan, options, stop, reporters, &mut traces).await;
        if let Some(told) = traces.close()? {
            output::talk(&told);
        }
        Memory::of_current_folder().remember(&summary);
        let counts = summary.counts();
        Ok(match stopped {
            Some(exit) => exit,
            // Tests that were all left out prove nothing, and no tests even less; of an empty part, the others have the tests.
            None if !plan.is_empty() && counts == (Counts { skipped: counts.skipped, ..Counts::default() }) => {
                let all = if counts.skipped > 0 { "all tests were skipped" } else { "there were no tests" };
                let diagnostic = Diagnostic::error("nothing-tested", format!("{all}, so nothing was tested"));
                printing::report(&Failure::new(Exit::NothingSelected, diagnostic.hint("see the reasons above, and `skip_if`")));
                Exit::NothingSelected
            }
            None if counts.failed == 0 && counts.canceled == 0 => match written {
                Written::All if self.fail_on_flaky && counts.flaky > 0 => {
                    let message = format!("{} passed only after a retry: --fail-on-flaky is on", counted(counts.flaky, "test"));
                    let diagnostic = Diagnostic::error("flaky", message).hint("the first attempt of each is among the results above");
                    printing::report(&Failure::new(Exit::Failed, diagnostic));
                    Exit::Failed
                }
                Written::All => Exit::Passed,
                // Whoever waits for the report must not take its absence for success.
                Written::Incompletely => Exit::BadInput,
            },
            None if summary.reached_a_server() || has_failed_by_itself(plan, &summary) => Exit::Failed,
            None => Exit::Unreachable,
        })
    }
}

/// Whether a command of a suite failed: then possibly no server was used, and none is unreachable.
fn has_failed_by_itself(plan: &Plan, summary: &Summary) -> bool {
    if summary.outcomes.values().any(|outcome| plan.failed_in_command(outcome)) {
        return true;
    }
    let codes = summary.outcomes.values().flat_map(|outcome| &outcome.diagnostics).map(|diagnostic| diagnostic.code.as_str());
    codes.into_iter().any(|code| matches!(code, "command-failed" | "command-not-started" | "command-timeout"))
}

fn needs_port(binding: &Binding) -> bool {
    binding.url.as_ref().is_some_and(|url| url.contains("${port}"))
}

/// Runs the tests and sends events to the reporters. A failed reporter does not end the run.
async fn report<G: Future<Output = ()>>(
    plan: &Plan,
    options: RunOptions,
    stop: impl Future<Output = Grace<G>>,
    mut reporters: Reporters,
    traces: &mut CaseTraces,
) -> (Summary, Written) {
    let mut keep = |event: &Event| {
        traces.event(event);
        reporters.event(event);
    };
    let summary = run::run(plan, options, stop, &mut keep).await;
    (summary, reporters.close())
}
