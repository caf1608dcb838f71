//! `mcproof watch status`, `incidents` and `silences`: what the database of a monitor knows, for a terminal and for scripts. Reads, and
//! changes nothing.

use super::of_store;
use super::operations::{DatabaseArgs, with_store};
use super::reading;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use comfy_table::{ContentArrangement, Table, presets};
use mcproof_report::escape;
use mcproof_watch::incident::{Class, Severity};
use mcproof_watch::moment::{Moment, span};
use mcproof_watch::state::Availability;
use mcproof_watch::store::BLIND_AFTER;
use mcproof_watch::store::read::{IncidentRow, TargetRow, Which};
use mcproof_watch::store::silences::{Silence, SilenceRow};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A monitor that is a little late is alive.
const GRACE: Duration = Duration::from_secs(60);
/// Incidents that are listed, and that are looked through for a target.
const MOST: i64 = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch status watch.yaml
  mcproof watch status watch.yaml --database postgres://db/watch --json

Exit codes: 0 all targets work, 1 one does not, or nobody knows or monitors it, or the file was not applied, 2 bad input, 4 there are no targets")]
pub(crate) struct StatusArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch incidents watch.yaml
  mcproof watch incidents watch.yaml --all --json")]
pub(crate) struct IncidentsArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// Open incidents only (the default)
    #[arg(long, conflicts_with = "all")]
    open: bool,
    /// Also resolved incidents
    #[arg(long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch silences watch.yaml
  mcproof watch silences watch.yaml --json")]
pub(crate) struct SilencesArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kept: DatabaseArgs,
}

pub(super) fn silences(arguments: &SilencesArguments) -> Result<Exit, Failure> {
    with_store(&arguments.config, &arguments.kept, async |store, now| {
        let silences = store.silences(now).await.map_err(|failure| of_store(&failure))?;
        if arguments.json {
            let silences: Vec<Value> = silences.iter().map(silence).collect();
            output::show(&format!("{:#}\n", json!({ "silences": silences })))?;
        } else if silences.is_empty() {
            output::talk("no active silences\n");
        } else {
            let all = |patterns: &[String]| if patterns.is_empty() { "all".to_owned() } else { escape(&patterns.join(", ")).into_owned() };
            let row = |row: &SilenceRow| {
                let Silence { names, tags, author, reason, ends, .. } = &row.silence;
                let left = format!("in {}", span(ends.since(now)));
                [row.id.clone(), all(names), all(tags), escape(author).into_owned(), left, escape(reason).into_owned()]
            };
            output::show(&table(["silence", "names", "tags", "by", "ends", "reason"], silences.iter().map(row)))?;
        }
        Ok(Exit::Passed)
    })
}

fn silence(row: &SilenceRow) -> Value {
    let Silence { names, tags, author, reason, starts, ends } = &row.silence;
    json!({
        "id": row.id,
        "names": names,
        "tags": tags,
        "author": author,
        "reason": reason,
        "starts": starts.to_string(),
        "ends": ends.to_string(),
    })
}

pub(super) fn status(arguments: &StatusArguments) -> Result<Exit, Failure> {
    with_store(&arguments.config, &arguments.kept, async |store, now| {
        let targets = store.targets().await.map_err(|failure| of_store(&failure))?;
        let open = store.incidents(Which::Open, None, MOST).await.map_err(|failure| of_store(&failure))?;
        let inconclusive = store.inconclusive(Moment::default()).await.map_err(|failure| of_store(&failure))?;
        let is_target = |incident: &IncidentRow| targets.iter().any(|target| target.name == incident.subject);
        let quiet = store.quiet(&reading::windows(&arguments.config), now).await.map_err(|failure| of_store(&failure))?;
        let seen: Vec<Seen<'_>> = targets.iter().map(|target| Seen::of(target, &open, &inconclusive, &quiet, now)).collect();
        // Nobody may have it in the file that is in use.
        let mut unmonitored = reading::targets(&arguments.config);
        unmonitored.retain(|name| !targets.iter().any(|target| target.name == *name));
        let rejections = store.rejections(now).await.map_err(|failure| of_store(&failure))?;
        // The others still see what is probed from there, unless too few of them are left.
        let blind: Vec<&IncidentRow> = open.iter().filter(|incident| incident.class == Class::Blind && !is_target(incident)).collect();
        let is_seen = blind.iter().all(|incident| incident.severity == Severity::Notify);
        let works = unmonitored.is_empty() && rejections.is_empty() && is_seen && seen.iter().all(Seen::works);
        if arguments.json {
            let targets: Vec<Value> = seen.iter().map(Seen::json).collect();
            output::show(&format!(
                "{:#}\n",
                json!({ "works": works, "targets": targets, "unmonitored": unmonitored, "rejected": rejections })
            ))?;
        } else if !seen.is_empty() {
            let rows = seen.iter().map(|seen| seen.row(now));
            output::show(&table(["target", "state", "contract", "since", "last probe", "open incident"], rows))?;
        }
        if seen.iter().any(|seen| seen.is_stale) {
            output::talk("some targets have no recent result: is the monitor running, and can it write to the database?\n");
        }
        for incident in blind {
            output::talk(&format!("{}: {}\n", incident.severity, escape(&incident.title)));
        }
        if !seen.is_empty() && !unmonitored.is_empty() {
            let names = escape(&unmonitored.join(", ")).into_owned();
            let hint = if rejections.is_empty() { "restart or reload the monitor" } else { "correct the configuration" };
            output::talk(&format!("not monitored, although they stand in the configuration: {names}; {hint}\n"));
        }
        for why in &rejections {
            output::talk(&format!("the configuration was not applied, and an earlier version is in use: {}\n", escape(why)));
        }
        if seen.is_empty() {
            output::talk("there are no targets in this database\n");
            return Ok(if rejections.is_empty() { Exit::NothingSelected } else { Exit::Failed });
        }
        Ok(if works { Exit::Passed } else { Exit::Failed })
    })
}

pub(super) fn incidents(arguments: &IncidentsArguments) -> Result<Exit, Failure> {
    with_store(&arguments.config, &arguments.kept, async |store, now| {
        let which = if arguments.all { Which::All } else { Which::Open };
        let incidents = store.incidents(which, None, MOST).await.map_err(|failure| of_store(&failure))?;
        let quiet = store.quiet(&reading::windows(&arguments.config), now).await.map_err(|failure| of_store(&failure))?;
        let is_quiet = |incident: &IncidentRow| quiet.get(&incident.subject).filter(|_| incident.resolved.is_none()).map(String::as_str);
        if arguments.json {
            let incidents: Vec<Value> = incidents.iter().map(|row| with_quiet(incident(row), is_quiet(row))).collect();
            output::show(&format!("{:#}\n", json!({ "incidents": incidents })))?;
        } else if incidents.is_empty() {
            output::talk(if arguments.all { "no incidents\n" } else { "no open incidents\n" });
        } else {
            let row = |incident: &IncidentRow| {
                let state = match (incident.resolved, &incident.acknowledged_by) {
                    (Some(_), _) if incident.detail.is_unmonitored => "no longer monitored".to_owned(),
                    (Some(resolved), _) => format!("resolved after {}", span(resolved.since(incident.since))),
                    (None, Some(who)) => format!("acknowledged by {}", escape(who)),
                    (None, None) => {
                        let cause = incident.detail.because_of.as_ref().map(|cause| format!(", because of {}", escape(cause)));
                        format!("open{}{}", cause.unwrap_or_default(), after_comma(is_quiet(incident)))
                    }
                };
                [
                    incident.id.clone(),
                    incident.severity.to_string(),
                    incident.class.to_string(),
                    ago(incident.since, now),
                    state,
                    escape(&incident.title).into_owned(),
                ]
            };
            output::show(&table(["incident", "severity", "class", "since", "state", "title"], incidents.iter().map(row)))?;
        }
        Ok(Exit::Passed)
    })
}

/// A target as it was found last.
struct Seen<'a> {
    target: &'a TargetRow,
    /// What matters most of what is open.
    incident: Option<&'a IncidentRow>,
    /// Why the last probe says nothing about it.
    inconclusive: Option<&'a str>,
    /// Why nobody is told of it, and until when.
    quiet: Option<&'a str>,
    is_stale: bool,
}

impl<'a> Seen<'a> {
    fn of(
        target: &'a TargetRow,
        open: &'a [IncidentRow],
        inconclusive: &'a BTreeMap<String, String>,
        quiet: &'a BTreeMap<String, String>,
        now: Moment,
    ) -> Self {
        let every = Duration::from_millis(target.every.unsigned_abs());
        let newest = target.last_result.max(target.since);
        // What is still to come was written by a clock that has been set back since.
        let is_stale = newest > now + every || now.since(newest) > every * BLIND_AFTER + GRACE;
        let incident = open.iter().filter(|incident| incident.subject == target.name).max_by_key(|incident| incident.severity);
        let of_target = |all: &'a BTreeMap<String, String>| all.get(&target.name).map(String::as_str);
        Self { target, incident, inconclusive: of_target(inconclusive), quiet: of_target(quiet), is_stale }
    }

    fn works(&self) -> bool {
        !self.is_stale && matches!(self.target.availability, Availability::Ok | Availability::Recovering)
    }

    fn row(&self, now: Moment) -> [String; 6] {
        let target = self.target;
        let stale = if self.is_stale { " (stale)" } else { "" };
        [
            escape(&target.name).into_owned(),
            format!("{}{stale}{}", target.availability, after_comma(self.quiet)),
            target.surface.to_string(),
            ago(target.since, now),
            if target.last_result == Moment::default() { "never".to_owned() } else { ago(target.last_result, now) },
            self.incident
                .map(|incident| {
                    let because = incident.detail.because_of.as_ref().map(|cause| format!(" (because of {})", escape(cause)));
                    format!("{} {}: {}{}", incident.severity, incident.class, escape(&incident.title), because.unwrap_or_default())
                })
                .or_else(|| Some(format!("none; the last probe was inconclusive: {}", escape(self.inconclusive?))))
                .unwrap_or_default(),
        ]
    }

    fn json(&self) -> Value {
        let target = self.target;
        let shown = json!({
            "target": target.name,
            "availability": target.availability.word(),
            "contract_state": target.surface.word(),
            "since": target.since.to_string(),
            "last_result": (target.last_result > Moment::default()).then(|| target.last_result.to_string()),
            "stale": self.is_stale,
            "works": self.works(),
            "inconclusive": self.inconclusive,
            "incident": self.incident.map(incident),
        });
        with_quiet(shown, self.quiet)
    }
}

fn incident(row: &IncidentRow) -> Value {
    let time = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    json!({
        "id": row.id,
        "subject": row.subject,
        "class": row.class.word(),
        "severity": row.severity.word(),
        "title": row.title,
        "detail": row.detail,
        "since": row.since.to_string(),
        "opened": row.opened.to_string(),
        "resolved": time(row.resolved),
        "acknowledged": time(row.acknowledged),
        "acknowledged_by": row.acknowledged_by,
        "parent": row.parent,
    })
}

/// Why nobody is told of it, and until when.
fn with_quiet(mut shown: Value, quiet: Option<&str>) -> Value {
    shown["quiet"] = json!(quiet);
    shown
}

fn after_comma(quiet: Option<&str>) -> String {
    quiet.map(|quiet| format!(", {quiet}")).unwrap_or_default()
}

fn table<const COLUMNS: usize>(titles: [&str; COLUMNS], rows: impl Iterator<Item = [String; COLUMNS]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(titles);
    for row in rows {
        table.add_row(row);
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim()));
    lines.collect()
}

fn ago(moment: Moment, now: Moment) -> String {
    format!("{} ago", span(now.since(moment)))
}
