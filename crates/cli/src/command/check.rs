//! `mcproof check TARGET`: every rule that applies, judged on conversations as all kinds of clients hold them.

use crate::conversation::{self, Interrupts, Watching};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::{TargetArgs, Words};
use crate::{output, settings};
use mcproof_engine::check::{Explored, Inquiry, Permission, explore};
use mcproof_engine::{diagnosis, rules};
use mcproof_record::{CheckReport, FORMAT_VERSION, Severity, Transcript};
use url::Url;

/// Find out what is wrong with a server
///
/// Behaves like every kind of client, and judges what happened by rules: protocol, transport, quality, security. Tools are
/// called only if they say that they change nothing, or with `--call`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    target: Option<String>,
    /// Tools that may be called besides read-only ones: names with commas, or `all` but the destructive ones
    #[arg(long, value_name = "TOOLS", value_parser = |text: &str| text.parse::<Permission>())]
    call: Option<Permission>,
    /// Judge as a browser would: CORS
    #[arg(long)]
    browser: bool,
    /// Another instance of the same server, without affinity; may be repeated
    #[arg(long, value_name = "URL")]
    replica: Vec<Url>,
    /// Give no lenience: a broken MUST is a failure, however common; warnings fail as well
    #[arg(long)]
    strict: bool,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: TargetArgs,
}

pub(crate) fn run(arguments: &Arguments, _watching: Watching) -> Result<Exit, Failure> {
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?;
    let name = arguments.target.clone().unwrap_or_else(|| arguments.server.command.join(" "));
    let inquiry = Inquiry {
        target: resolved.target,
        options: resolved.options,
        secrets: resolved.secrets,
        tap: resolved.tap,
        timeout: resolved.timeout,
        calls: arguments.call.clone().unwrap_or_default(),
        as_browser: arguments.browser,
        replicas: arguments.replica.clone(),
    };
    let explored = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        tokio::select! {
            explored = explore(&inquiry) => Ok(Ok(explored)),
            exit = interrupts.next() => Ok(Err(exit)),
        }
    })??;
    let Explored { takes, unreachable } = match explored {
        Ok(explored) => explored,
        Err(exit) => return Ok(exit),
    };
    if let Some(failure) = unreachable {
        let transcript = takes.into_iter().next().map(|take| take.transcript).unwrap_or_else(Transcript::default);
        let diagnostic = diagnosis::of_connect_failure(&failure, &inquiry.target, &transcript, diagnosis::Asker::CommandLine);
        return Err(Failure::new(Exit::Unreachable, diagnostic));
    }
    let rules: Vec<_> = rules::all().collect();
    let rulings = rules::judge(&rules, &takes, arguments.strict);
    let report = CheckReport { version: FORMAT_VERSION, target: name, rulings, takes };
    if arguments.json {
        let mut text = serde_json::to_vec(&report).expect("a report has text keys only");
        text.push(b'\n');
        output::data(&text)?;
    } else {
        output::show(&mcproof_report::check::render(&report, &settings::style()))?;
    }
    let least = if arguments.strict { Severity::Warning } else { Severity::Error };
    let failed = report.findings().any(|(_, finding)| finding.severity >= least && !finding.accepted);
    Ok(if failed { Exit::Failed } else { Exit::Passed })
}
