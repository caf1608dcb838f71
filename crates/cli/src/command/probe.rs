//! `mcproof probe TARGET`: the health of a server, as one line and one exit code.

mod replay;

use crate::conversation::{self, Interrupts, Watching};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::numbers::whole;
use crate::oddities::StrictArgs;
use crate::recording::Recording;
use crate::target::{Resolved, TargetArgs, Words};
use crate::{contracts, diagnosis, duration, output, settings};
use mcproof_analysis::diagnosis::Audience;
use mcproof_client::redaction::Redactor;
use mcproof_client::{ConnectOptions, Startup, Tap, Target};
use mcproof_contract::probe::{ProbeExtent, ProbePlan, Probed, Promise, persist, probe};
use mcproof_record::ProbeVerdict;
use mcproof_report::{diagnostic, probe as lines};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long `--retry` goes on.
const DEADLINE: Duration = Duration::from_secs(60);

/// Probe a server once and print its health and latency
///
/// Connects, performs the handshake and lists the tools, as a new client does, and prints one line with the duration of each phase.
/// Phases that were not reached are omitted. A certificate that is about to expire is a warning.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof probe https://mcp.example.com/mcp
  # after a deployment: wait until healthy
  mcproof probe https://mcp.example.com/mcp --deadline 2m
  mcproof probe https://mcp.example.com/mcp --min-days 21 --lock mcproof.lock --json
  mcproof probe -- node server.js
  # from an incident of `mcproof watch`
  mcproof probe --replay probe.mcptrace
  mcproof probe 'http://127.0.0.1:${port}/mcp' -e PORT='${port}' -- node server.js")]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    ///
    /// With a URL and a command, the command starts the server at the URL, and `${port}` in both, and in -e, is a free port.
    target: Option<String>,
    /// Retry with increasing delays until the server is healthy or --deadline has passed
    #[arg(long)]
    retry: bool,
    /// Time limit of --retry, which it implies [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration::with_unit)]
    deadline: Option<Duration>,
    /// Fail if the certificate expires in fewer days
    #[arg(long, value_name = "DAYS", value_parser = whole(0..=u32::MAX))]
    min_days: Option<u32>,
    /// Compare the contract with this lock: breaking changes fail, others are warnings
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Judge a saved probe without the server: the output of --trace, or the evidence of an incident
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "retry", "deadline", "min_days", "lock", "command", "server_url", "server", "strict"])]
    replay: Option<PathBuf>,
    /// Print the result as JSON; see `mcproof schema probe`
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    strict: StrictArgs,
    #[command(flatten)]
    server: TargetArgs,
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    if let Some(path) = &arguments.replay {
        return replay::run(path, arguments.json);
    }
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?;
    let plan = arguments.plan(&resolved)?;
    let recording = resolved.trace.as_deref().map(|path| Recording::create(path, &resolved)).transpose()?;
    let fresh_tap = || Tap::with(resolved.tap, resolved.secrets.clone(), Recording::observer(recording.as_ref(), watching));
    let probed = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        Ok::<_, Failure>(interrupts.or_end(&resolved.options.guardian, arguments.attempt(&plan, fresh_tap)).await)
    })??;
    let (Probed { mut report, failure, .. }, tap) = match probed {
        Ok(probed) => probed,
        Err(exit) => return Ok(exit),
    };
    if let (Some(failure), Some(diagnostic)) = (&failure, report.diagnostics.first_mut()) {
        diagnosis::explain_launch(diagnostic, failure, &resolved);
    }
    let style = settings::style();
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).expect("a report has text keys only");
        output::json(&format!("{text}\n"))?;
    } else {
        output::show(&lines::line(&report, &style))?;
    }
    for diagnostic in &report.diagnostics {
        output::talk(&diagnostic::render(diagnostic, &style));
    }
    if let Some(recording) = recording {
        recording.finish(&tap)?;
    }
    Ok(match (report.verdict, failure) {
        (ProbeVerdict::Healthy | ProbeVerdict::Warning, _) => Exit::Passed,
        (_, Some(failure)) => diagnosis::exit_of(&failure),
        (_, None) => Exit::Failed,
    })
}

/// What the lock says that a client like ours is promised.
fn promise(path: &Path, resolved: &Resolved) -> Result<Promise, Failure> {
    let shown = path.display().to_string();
    let text = mcproof_suite::bounds::read_text(path).map_err(|error| {
        Failure::bad_input("cannot-read", format!("cannot read {shown}: {error}")).hint("create it with `mcproof lock TARGET`")
    })?;
    let lock = contracts::read_lock(path, &text)?;
    Promise::choose(&shown, &lock, &resolved.target, resolved.options.era).ok_or_else(|| {
        let failure = Failure::bad_input("nothing-locked", format!("{shown} has no contract for this transport and era"));
        failure.hint("lock it first, with the same --transport and --era")
    })
}

impl Arguments {
    fn plan(&self, resolved: &Resolved) -> Result<ProbePlan, Failure> {
        if self.min_days.is_some() && !resolved.target.is_over_tls() {
            let failure = Failure::bad_input("no-certificate", "--min-days requires an https:// URL");
            return Err(failure.hint("omit --min-days"));
        }
        let name = match (&self.target, &self.server.server, &resolved.target) {
            (Some(name), _, _) | (None, Some(name), _) => name.clone(),
            (None, None, Target::Http { endpoint, .. }) => endpoint.url.to_string(),
            (None, None, Target::Stdio(launch)) => launch.command.join(" "),
        };
        let secrets = Redactor::new(resolved.secrets.clone());
        Ok(ProbePlan {
            name: secrets.text(&name).into_owned(),
            target: resolved.target.clone(),
            // A probe tells whether the server works now: it does not wait until an outage is over, unless --retry says so.
            options: ConnectOptions { startup: Startup::Over, ..resolved.options.clone() },
            timeout: resolved.timeout,
            least_days: self.min_days,
            promise: self.lock.as_deref().map(|path| promise(path, resolved)).transpose()?,
            extent: ProbeExtent::Tools,
            oddities: self.strict.oddities(),
            audience: Audience::CommandLine,
        })
    }

    async fn attempt(&self, plan: &ProbePlan, fresh_tap: impl Fn() -> Tap) -> (Probed, Tap) {
        if !self.retry && self.deadline.is_none() {
            let tap = fresh_tap();
            return (probe(plan, &tap, settings::now()).await, tap);
        }
        let within = self.deadline.unwrap_or(DEADLINE);
        persist(plan, within, fresh_tap, settings::now, |failed_attempt| {
            output::talk(&lines::failed_attempt(failed_attempt.report, failed_attempt.attempt, failed_attempt.delay));
        })
        .await
    }
}
