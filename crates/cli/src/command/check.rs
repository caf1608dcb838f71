//! `mcproof check TARGET`: judges conversations of all kinds of clients by every applicable rule.

use crate::conversation::{self, Interrupts, Watching};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json_mistake::json_mistake;
use crate::offered::{Offered, offered};
use crate::recording::{self, CheckTrace};
use crate::reporters::{ReporterArgs, Written};
use crate::status::Status;
use crate::target::{TargetArgs, Words};
use crate::typed::Typed;
use crate::{output, settings, whole_file};
use clap::Args as _;
use clap::builder::StringValueParser;
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_check::{Budget, CheckOptions, Explored, Permission, RepeatedCalls, explore};
use mcproof_client::redaction::Redactor;
use mcproof_record::{
    Baseline, CheckReport, Conclusion, Conversation, Diagnostic, FORMAT_VERSION, Finding, Gap, GapKind, Judged, RuleResult, Severity,
    Transcript,
};
use mcproof_report::{Repeat, diagnostic, escape};
use mcproof_rules::{self as rules, Area, RepeatedTools, Strictness, UnknownRule, hosts};
use mcproof_trace::{TraceRoom, is_zip};
use serde_json::error::Category;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use url::Url;

/// Check a server against the MCP specification
///
/// Connects as every kind of client and judges the traffic by rules of protocol, transport, quality and security. Only tools that declare
/// themselves read-only are called, and those of --call.
///
/// Known defects of SDK versions are reported last, with the version that fixes them. They fail the check like any other finding; the
/// severity of a defect without a fixed version is lowered by one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof check -- node server.js
  mcproof check http://127.0.0.1:3000/mcp --browser --reporter sarif=mcproof.sarif
  mcproof check 'http://127.0.0.1:${port}/mcp' -- node server.js --port '${port}'
  mcproof check --call all,delete_note --only tools,calls -- python server.py
  mcproof check --call create_order --lost-response -- node shop.js
  mcproof check --hosts -- npx -y my-server
  mcproof explain stdio-only-messages-on-stdout")]
pub(crate) struct Arguments {
    #[command(flatten)]
    typed: Typed,
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    ///
    /// With a URL and a command, the command starts the server at the URL, and `${port}` in both is a free port.
    target: Option<String>,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    reports: ReporterArgs,
    #[command(flatten)]
    server: TargetArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
struct RuleArgs {
    /// Judge only these rules: ids, areas, or globs such as `cors-*`; separate with commas, or repeat
    #[arg(long, value_name = "RULES", long_help = only_help(), value_parser = rule_names(), hide_possible_values = true)]
    only: Vec<String>,
    /// Skip these rules; as for --only
    #[arg(long, value_name = "RULES", value_parser = rule_names(), hide_possible_values = true)]
    skip: Vec<String>,
    /// Treat warnings as failures
    ///
    /// Stale entries of the baseline fail as well, and no severity is lowered: every violated MUST is a failure, even if it is common or
    /// no version of the SDK fixes it.
    #[arg(long)]
    strict: bool,
    /// Also call these tools: names separated by commas, or `all` for every tool that is not destructive [default: only read-only tools]
    #[arg(long, value_name = "TOOLS", value_parser = |text: &str| text.parse::<Permission>())]
    call: Option<Permission>,
    /// Repeat the calls of --call, as a client does when a response is lost, and report tools whose effect doubles
    ///
    /// The state of the server is observed through its lists, resources and read-only tools, before and after each call.
    #[arg(long, requires = "call")]
    lost_response: bool,
    /// Time limit of the whole check; what is not reached is reported as not tested
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    deadline: Duration,
    /// Also check what browsers need, such as CORS
    #[arg(long)]
    browser: bool,
    /// Also check what known hosts reject and whether the server starts in their environment, and estimate the token cost of the tools
    #[arg(long)]
    hosts: bool,
    /// URL of another instance of the same server, without session affinity; may be repeated
    #[arg(long, value_name = "URL", hide_short_help = true)]
    replica: Vec<Url>,
    /// Accept the findings that this file lists
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all current findings to the --baseline file
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
    /// Judge the conversations of an earlier check, saved with --trace or --reporter json, without a server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "replica"], hide_short_help = true)]
    replay: Option<PathBuf>,
}

fn rule_names() -> Offered<StringValueParser> {
    offered(StringValueParser::new(), super::explain::names)
}

fn only_help() -> String {
    let areas = Area::EVERY.map(Area::name).join(", ");
    format!(
        "Judge only these rules: ids, areas, or globs such as `cors-*`; separate with commas, or repeat\n\nAreas: {areas}. `mcproof explain` lists the rules of each."
    )
}

/// The rules that judge calls which were repeated.
const OF_REPEATED_CALLS: [&str; 2] = ["lost-response-doubles-no-effect", "idempotent-changes-nothing-twice"];

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let RuleArgs { only, skip, strict, hosts, baseline, update_baseline, replay, .. } = &arguments.rules;
    let mut rules = rules::select(only, skip).map_err(unknown_rule)?;
    let host_rules = if *hosts { rules::of_hosts(skip).map_err(unknown_rule)? } else { Vec::new() };
    let is_hosts = |id: &str| host_rules.iter().any(|rule| rule.id == id);
    // They join what is judged anyway, be that all or what was named.
    rules.retain(|rule| !is_hosts(rule.id));
    rules.extend(&host_rules);
    arguments.server.permit_outputs(arguments.reports.files().chain(baseline.as_deref()))?;
    let known = baseline.as_deref().map(|path| read_baseline(path, *update_baseline)).transpose()?;
    let used = [baseline, replay, &arguments.server.config, &arguments.server.trace];
    let reporters = arguments.reports.open_for_check(|| Ok(used.into_iter().flatten().cloned().collect()))?;
    let began = Instant::now();
    let Talked { target, conversations, secrets, trace } = match replay {
        Some(path) => {
            let saved = read_report(path)?;
            Talked { target: saved.target, conversations: saved.conversations, secrets: Redactor::default(), trace: None }
        }
        None => match arguments.talk(rules.iter().any(|rule| rule.id == hosts::HOST_STARTS_SERVER))? {
            Ok(talked) => talked,
            Err(exit) => return Ok(exit),
        },
    };
    let strictness = if *strict { Strictness::Strict } else { Strictness::Tolerant };
    let mut report = rules::report(target, &rules, conversations, strictness);
    if arguments.rules.lost_response {
        tell_repeated(&mut report);
    }
    let mut stale = Vec::new();
    if let (Some(path), Some(known)) = (baseline, known) {
        let current = if *update_baseline { known.renewed(&report) } else { known };
        if *update_baseline {
            write(path, &current)?;
        }
        stale = current.apply(&mut report);
        // What was not judged cannot be stale.
        stale.retain(|acceptance| rules.iter().any(|rule| rule.id == acceptance.rule));
    }
    match arguments.server.trace.as_deref() {
        Some(path) if recording::is_document(path) => write(path, &report)?,
        Some(path) => write_trace(trace.as_deref().unwrap_or(path), &mut report, &secrets)?,
        None => {}
    }
    let least = if *strict { Severity::Warning } else { Severity::Error };
    // Whoever is strict about hosts wants to be refused by none.
    let counts = |ruling: &RuleResult, finding: &Finding| finding.severity >= least || (*strict && is_hosts(&ruling.rule));
    let conclusion = if *strict && !stale.is_empty() { Conclusion::Failed } else { report.conclusion(counts) };
    let file = arguments.file();
    let written = reporters.write(&report, conclusion, &arguments.repeat(), began.elapsed(), &file)?;
    if arguments.rules.hosts
        && let Some(cost) = hosts::cost(&report.conversations)
    {
        output::talk(&told(&cost));
    }
    for acceptance in &stale {
        let message = format!("baseline accepts a finding that no longer exists: {}, {}", acceptance.rule, acceptance.message);
        let diagnostic = Diagnostic::warning("stale-acceptance", message).hint("remove it, or use --update-baseline");
        output::talk(&diagnostic::render(&diagnostic, &settings::style()));
    }
    Ok(match (conclusion, written) {
        (Conclusion::Failed, _) => Exit::Failed,
        (Conclusion::Inconclusive, _) if report.gaps.iter().any(|gap| gap.kind == GapKind::NoConversation) => Exit::Unreachable,
        (Conclusion::Inconclusive, _) => Exit::Failed,
        (Conclusion::Passed, Written::Incompletely) => Exit::BadInput,
        (Conclusion::Passed, Written::All) => Exit::Passed,
    })
}

/// Says for which tools `--lost-response` proves something. If for none, what was asked for was not tested, and the check cannot pass.
fn tell_repeated(report: &mut CheckReport) {
    let RepeatedTools { repeated, unobserved } = rules::repeated_tools(&report.conversations);
    let listed = |tools: &BTreeSet<String>| tools.iter().map(|tool| format!("`{}`", escape(tool))).collect::<Vec<_>>().join(", ");
    if !repeated.is_empty() {
        output::talk(&format!("repeated the calls of {}\n", listed(&repeated)));
    }
    let rulings: Vec<&RuleResult> = report.rules.iter().filter(|ruling| OF_REPEATED_CALLS.contains(&ruling.rule.as_str())).collect();
    if rulings.is_empty() || rulings.iter().any(|ruling| matches!(ruling.judged, Judged::Broken { .. })) {
        return;
    }
    let is_judged = rulings.iter().any(|ruling| matches!(ruling.judged, Judged::Pass));
    let why = rulings.iter().find_map(|ruling| match &ruling.judged {
        Judged::Untestable { why } => Some(why.as_str()),
        _ => None,
    });
    let unknown = "whether a repeated call doubles its effect is not known";
    let (message, hint) = if repeated.is_empty() {
        (
            "no call was repeated: no tool of --call succeeded while a list, a resource or a read-only tool could be observed".to_owned(),
            "name tools in --call that succeed with arguments made from their schemas, or repeat the call in a suite",
        )
    } else if !unobserved.is_empty() {
        let message = format!("{unknown} of {}: nothing that can be read shows the effect of the first call", listed(&unobserved));
        (message, "effects are observed through lists, resources and read-only tools that change with calls only; else, use a suite")
    } else if let (false, Some(why)) = (is_judged, why) {
        (format!("{unknown}: {why}"), "repeat the call in a suite, with arguments of your own")
    } else {
        return;
    };
    let is_known_of_none = repeated.len() == unobserved.len() || unobserved.is_empty();
    if is_known_of_none && report.gaps.is_empty() {
        report.gaps.push(Gap { kind: GapKind::NotJudged, message, hint: hint.to_owned(), conversation: None });
    } else {
        output::talk(&diagnostic::render(&Diagnostic::warning("not-observed", message).hint(hint), &settings::style()));
    }
}

/// The conversations with a server.
struct Talked {
    /// What the server is called, without secrets.
    target: String,
    conversations: Vec<Conversation>,
    secrets: Redactor,
    /// What was written while they were held.
    trace: Option<PathBuf>,
}

impl Arguments {
    /// Holds the conversations, unless the user ends it. `as_host` starts the server once more as a desktop host does.
    fn talk(&self, as_host: bool) -> Result<Result<Talked, Exit>, Failure> {
        let resolved = self.server.resolve(self.target.as_slice(), Words::Name)?;
        let name = self.target.clone().or_else(|| self.server.server.clone()).unwrap_or_else(|| self.server.command.join(" "));
        let mut check_options = CheckOptions {
            budget: Budget::of(self.rules.deadline),
            as_browser: self.rules.browser,
            host_start: if as_host { self.server.host_start(self.target.as_slice(), &resolved.target) } else { None },
            replicas: self.rules.replica.clone(),
            repeats: if self.rules.lost_response { RepeatedCalls::OfAllTools } else { RepeatedCalls::default() },
            ..resolved.check_options(self.rules.call.clone().unwrap_or_default())
        };
        let secrets = Redactor::new(check_options.secrets.clone());
        let target = secrets.text(&name).into_owned();
        let trace = self.server.trace.as_deref().filter(|path| !recording::is_document(path));
        let trace = trace.map(|path| CheckTrace::begin(path, target.clone(), &check_options.target, &secrets)).transpose()?;
        check_options.watcher = trace.as_ref().map(CheckTrace::watcher);
        let explored = conversation::run(async {
            let mut interrupts = Interrupts::new()?;
            let exploring = Status::new(Watching::Off).during("checking the server", explore(&check_options));
            Ok::<_, Failure>(interrupts.or_end(&check_options.options.guardian, exploring).await)
        })??;
        let trace = trace.map(CheckTrace::end).transpose()?;
        match explored {
            Err(exit) => Ok(Err(exit)),
            Ok(Explored { conversations, unreachable: None }) => Ok(Ok(Talked { target, conversations, secrets, trace })),
            Ok(Explored { conversations, unreachable: Some(failure) }) => {
                let transcript = conversations.into_iter().next().map(|take| take.transcript).unwrap_or_default();
                let diagnostic = diagnosis::of_connect_failure(&failure, &check_options.target, &transcript, Audience::CommandLine);
                Err(Failure::new(Exit::Unreachable, diagnostic.map_text(|text| secrets.text(&text).into_owned())))
            }
        }
    }

    /// What was typed, for the commands that judge single rules again.
    fn repeat(&self) -> Repeat {
        let mut repeat = self.typed.repeat(&Self::augment_args(clap::Command::new("check")));
        repeat.flags.splice(0..0, self.target.clone());
        repeat
    }

    /// Where services that want a file show the findings: the first word of the command that is one.
    fn file(&self) -> String {
        let words = self.server.command.iter().filter(|word| Path::new(word).is_relative() && Path::new(word).is_file());
        let config = [".mcp.json", "mcp.json"].into_iter().find(|name| Path::new(name).is_file());
        words.map(String::as_str).chain(config).next().unwrap_or("README.md").to_owned()
    }
}

pub(super) fn unknown_rule(unknown: UnknownRule) -> Failure {
    Failure::new(Exit::BadInput, unknown.diagnostic())
}

/// What the tools cost, in one line.
fn told(cost: &hosts::Cost) -> String {
    let dearest =
        cost.dearest.as_ref().map(|(name, _)| format!("; most for `{}`, {}", escape(name), cost.dearest_tokens())).unwrap_or_default();
    let hosts::Cost { tools, characters, .. } = cost;
    let subject = if *tools == 1 { "the tool uses".to_owned() } else { format!("the {tools} tools use") };
    format!("{subject} about {} tokens in every conversation (estimate: {characters} characters / 4){dearest}\n", cost.tokens())
}

fn read_baseline(path: &Path, may_be_missing: bool) -> Result<Baseline, Failure> {
    if may_be_missing && !path.exists() {
        return Ok(Baseline { version: FORMAT_VERSION, accepted: Vec::new() });
    }
    let failure = |failure: Failure| failure.hint("create the file with --update-baseline");
    read(path).map_err(failure)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let cannot = |reason: String| Failure::bad_input("cannot-read", format!("cannot read {}: {reason}", path.display()));
    let bytes = mcproof_suite::bounds::read_input(path).map_err(|error| cannot(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| match error.classify() {
        Category::Io | Category::Data => cannot(error.to_string()),
        Category::Syntax | Category::Eof => {
            let mistake = json_mistake(&String::from_utf8_lossy(&bytes), &error);
            Failure::bad_input("cannot-read", format!("{} is not valid JSON: {mistake}", path.display()))
        }
    })
}

/// The sessions as those of a trace, and all else as a file in it.
fn write_trace(path: &Path, report: &mut CheckReport, secrets: &Redactor) -> Result<(), Failure> {
    let transcripts: Vec<Transcript> = report.conversations.iter_mut().map(|talk| std::mem::take(&mut talk.transcript)).collect();
    let rest = serde_json::to_vec_pretty(report).expect("a report has text keys only");
    for (talk, transcript) in report.conversations.iter_mut().zip(transcripts) {
        talk.transcript = transcript;
    }
    recording::write_check(path, &report.target, &report.conversations, &rest, secrets)
}

/// A report as JSON, or a trace with its sessions and the rest of it.
fn read_report(path: &Path) -> Result<CheckReport, Failure> {
    let cannot = |reason: String| Failure::bad_input("cannot-read", format!("cannot read {}: {reason}", path.display()));
    if !is_zip(path) {
        return read(path);
    }
    let (sessions, report) = super::trace::sessions_with(path, "check.json", TraceRoom::default())?;
    let Some(report) = report else {
        return Err(cannot("it is not the trace of a check".into()).hint("save one with `mcproof check TARGET --trace FILE`"));
    };
    let mut report: CheckReport = serde_json::from_slice(&report).map_err(|error| cannot(error.to_string()))?;
    for (talk, transcript) in report.conversations.iter_mut().zip(sessions.into_values()) {
        talk.transcript = transcript;
    }
    Ok(report)
}

fn write(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).expect("a report has text keys only");
    text.push(b'\n');
    whole_file::write(path, text).map_err(|error| Failure::cannot_write(path, &error))
}
