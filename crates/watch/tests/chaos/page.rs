//! What a run came to, as the page in the documentation shows it.

use super::judge::{Judged, RULES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The figures of one run. Kept as JSON beside the logs, so that the page can show the last run on each database.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) database: String,
    pub(crate) seed: u64,
    pub(crate) minutes: u64,
    pub(crate) machine: String,
    /// Of the program: how it was compiled, and from what.
    #[serde(default)]
    pub(crate) build: String,
    pub(crate) targets: usize,
    pub(crate) processes: usize,
    pub(crate) results: i64,
    pub(crate) messages: usize,
    pub(crate) skipped: Vec<String>,
    /// How often what was done.
    pub(crate) faults: BTreeMap<String, usize>,
    pub(crate) judged: Judged,
    /// The longest times without a result and without a sign: when, how long in milliseconds, and during what.
    pub(crate) unseen: Vec<(u64, u64, String)>,
    /// The same for a single server that was well: it was asked nothing.
    pub(crate) unasked: Vec<(u64, u64, String)>,
    /// From the end of a fault to `/healthz` of everybody, in milliseconds.
    pub(crate) recoveries: BTreeMap<String, Vec<u64>>,
    /// Processes that ended though nobody killed them.
    pub(crate) ended: Vec<String>,
}

impl Figures {
    pub(crate) fn count(&self) -> usize {
        self.faults.values().sum()
    }

    /// Nothing was lost, made up or out of order.
    pub(crate) fn is_flawless(&self) -> bool {
        let Judged { lost, phantom, disordered, early, ends_lost, ends_false, .. } = &self.judged;
        [lost, phantom, disordered, early, ends_lost, ends_false].iter().all(|found| found.is_empty())
    }
}

pub(crate) fn page(runs: &[Figures]) -> String {
    let mut page = String::from(
        "# Chaos\n\nWhat random faults do to `mcproof watch`, started as a user starts it, against a model that knows the truth: the servers that are \
         watched write down when they were down, and the receivers what they were sent. Written by `cargo xtask chaos`; the harness is \
         `crates/watch/tests/chaos`.\n\n",
    );
    let mut row = |name: &str, cell: &dyn Fn(&Figures) -> String| {
        let cells: String = runs.iter().map(|run| format!(" {} |", cell(run))).collect();
        let _ = writeln!(page, "| {name} |{cells}");
    };
    row("", &|run| run.database.clone());
    row("---", &|_| "---".to_owned());
    row("faults", &|run| run.count().to_string());
    row("seed, minutes", &|run| format!("{}, {}", run.seed, run.minutes));
    row("build", &|run| run.build.clone());
    row("targets, processes", &|run| format!("{}, {}", run.targets, run.processes));
    row("results, messages", &|run| format!("{}, {}", run.results, run.messages));
    row("outages that had to be told of", &|run| run.judged.owed.to_string());
    row("outages that were told of", &|run| run.judged.told.to_string());
    row("**lost**", &|run| run.judged.lost.len().to_string());
    row("**phantom**", &|run| run.judged.phantom.len().to_string());
    row("**order**", &|run| run.judged.disordered.len().to_string());
    row("early", &|run| run.judged.early.len().to_string());
    row("end lost", &|run| run.judged.ends_lost.len().to_string());
    row("end false", &|run| run.judged.ends_false.len().to_string());
    row("told by several", &|run| run.judged.told_by_several.to_string());
    row("blind, rightly", &|run| run.judged.blind.to_string());
    row("storms", &|run| run.judged.storms.to_string());
    row("the same message again", &|run| run.judged.repeated.to_string());
    row("unseen for at most", &|run| {
        run.unseen.first().map_or("-".to_owned(), |(_, length, what)| format!("{} ({what})", seconds(*length)))
    });
    row("ended by itself", &|run| run.ended.len().to_string());
    let _ =
        writeln!(page, "\nEach target is probed every 2 s, with a timeout of 2 s. {}\n\n## What counts as what\n\n{RULES}", machines(runs));
    latencies(&mut page, runs);
    durations(&mut page, "From the end of a fault until `/healthz` of every process answers 200", runs, |run| &run.recoveries);
    faults(&mut page, runs);
    findings(&mut page, runs);
    page
}

fn machines(runs: &[Figures]) -> String {
    let mut said: Vec<String> = runs.iter().map(|run| run.machine.clone()).collect();
    said.dedup();
    let skipped: Vec<&str> = runs.iter().flat_map(|run| &run.skipped).map(String::as_str).collect();
    let skipped = if skipped.is_empty() { String::new() } else { format!(" Left out: {}.", skipped.join("; ")) };
    format!("{}.{skipped}", said.join("; "))
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100)
}

const BY_AILMENT: &str = "all: ";

fn latencies(page: &mut String, runs: &[Figures]) {
    let names = names(runs, |run| &run.judged.latencies);
    let (by_ailment, by_fault): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with(BY_AILMENT));
    let _ = writeln!(page, "\n## From an outage to its page\n\nBy what was done between the two; a page may count for several.");
    write_durations(page, runs, &by_fault, |run| &run.judged.latencies);
    let _ = writeln!(page, "\nBy how the server did not work:");
    write_durations(page, runs, &by_ailment, |run| &run.judged.latencies);
}

fn names(runs: &[Figures], of: fn(&Figures) -> &BTreeMap<String, Vec<u64>>) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().flat_map(|run| of(run).keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

fn durations(page: &mut String, title: &str, runs: &[Figures], of: fn(&Figures) -> &BTreeMap<String, Vec<u64>>) {
    let _ = writeln!(page, "\n## {title}");
    write_durations(page, runs, &names(runs, of), of);
}

fn write_durations(page: &mut String, runs: &[Figures], names: &[String], of: fn(&Figures) -> &BTreeMap<String, Vec<u64>>) {
    let heads: String = runs.iter().map(|run| format!(" {0}: number | p50 | p99 |", run.database)).collect();
    let _ = writeln!(page, "\n| |{heads}\n|---|{}", "---|---|---|".repeat(runs.len()));
    for name in names {
        let cells: String = runs
            .iter()
            .map(|run| match of(run).get(name) {
                Some(values) if !values.is_empty() => {
                    format!(" {} | {} | {} |", values.len(), seconds(quantile(values, 50)), seconds(quantile(values, 99)))
                }
                _ => " | | |".to_owned(),
            })
            .collect();
        let _ = writeln!(page, "| {} |{cells}", name.strip_prefix(BY_AILMENT).unwrap_or(name));
    }
}

/// The smallest value that so many percent do not exceed.
fn quantile(values: &[u64], percent: usize) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let at = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(at).copied().unwrap_or_default()
}

fn faults(page: &mut String, runs: &[Figures]) {
    let mut names: Vec<&String> = runs.iter().flat_map(|run| run.faults.keys()).collect();
    names.sort();
    names.dedup();
    let heads: String = runs.iter().map(|run| format!(" {} |", run.database)).collect();
    let _ = writeln!(page, "\n## What was done\n\n| |{heads}\n|---|{}", "---|".repeat(runs.len()));
    for name in names {
        let cells: String = runs.iter().map(|run| format!(" {} |", run.faults.get(name).copied().unwrap_or(0))).collect();
        let _ = writeln!(page, "| {name} |{cells}");
    }
}

fn findings(page: &mut String, runs: &[Figures]) {
    let of = |run: &Figures| -> Vec<(&'static str, Vec<String>)> {
        let Judged { lost, phantom, disordered, early, ends_lost, ends_false, .. } = run.judged.clone();
        vec![
            ("lost", lost),
            ("phantom", phantom),
            ("order", disordered),
            ("early", early),
            ("end lost", ends_lost),
            ("end false", ends_false),
            ("ended by itself", run.ended.clone()),
        ]
    };
    if runs.iter().all(|run| of(run).iter().all(|(_, found)| found.is_empty())) {
        return;
    }
    let _ = writeln!(page, "\n## What was found\n");
    for run in runs {
        for (what, found) in of(run) {
            for one in found {
                let _ = writeln!(page, "- {}, {what}: {one}", run.database);
            }
        }
    }
}
