//! Tests of the model: what it says of runs that are made up.

use super::judge::{Effect, Hindrance, Judged, Outage, Page, Reach, Record, judge};
use super::pager::incident_of;
use libtest_mimic::{Failed, Trial};
use std::time::Duration;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn outage(target: &str, began: u64, ended: u64) -> Outage {
    Outage {
        target: target.into(),
        symptom: "refuses".into(),
        reach: Reach::Alone,
        is_patient: false,
        began: seconds(began),
        ended: seconds(ended),
    }
}

/// `kind incident class target`, each with its own message; `duty/` stands before the key of an alert.
fn page(at: u64, text: &str) -> Page {
    let words: Vec<&str> = text.split(' ').collect();
    let [kind, incident, class, target] = [words[0], words[1], words[2], words[3]].map(str::to_owned);
    let page = Page { at: seconds(at), kind, class, target, ..Page::default() };
    match incident.strip_prefix("duty/") {
        Some(alert) => Page { channel: "duty".into(), incident: incident_of(alert), alert: alert.to_owned(), ..page },
        None => Page { channel: "hook".into(), message: format!("{at} {text}"), incident, ..page },
    }
}

fn halt(began: u64, ended: u64, of_database: bool) -> Hindrance {
    Hindrance { kind: "freeze".into(), effect: Effect::Halts, of_database, began: seconds(began), ended: seconds(ended) }
}

/// Lost, phantom, early, order, end lost, end false, told by several, blind.
type Counts = [usize; 8];

fn counts(judged: &Judged) -> Counts {
    let Judged { lost, phantom, early, disordered, ends_lost, ends_false, told_by_several, blind, .. } = judged;
    let found = [lost, phantom, early, disordered, ends_lost, ends_false].map(Vec::len);
    [found[0], found[1], found[2], found[3], found[4], found[5], *told_by_several, *blind]
}

fn check(what: &str, outages: &[Outage], pages: &[(u64, &str)], hindrances: &[Hindrance], expected: Counts) -> Result<(), Failed> {
    let pages = pages.iter().map(|(at, text)| page(*at, text)).collect();
    let record = Record { outages: outages.to_vec(), pages, hindrances: hindrances.to_vec(), ..Record::default() };
    let judged = judge(&record);
    if counts(&judged) == expected { Ok(()) } else { Err(format!("{what}: {expected:?} expected: {judged:?}").into()) }
}

fn judges() -> Result<(), Failed> {
    let told = [(20, "trigger i availability a"), (50, "resolve i availability a")];
    check("told and over", &[outage("a", 0, 40)], &told, &[], [0; 8])?;
    check("nobody was told", &[outage("a", 0, 40)], &[], &[], [1, 0, 0, 0, 0, 0, 0, 0])?;
    check("too short", &[outage("a", 0, 25)], &[], &[], [0; 8])?;
    check("nobody was there", &[outage("a", 0, 40)], &[], &[halt(5, 20, false)], [0; 8])?;
    check("long enough without", &[outage("a", 0, 140)], &[], &[halt(5, 30, false)], [1, 0, 0, 0, 0, 0, 0, 0])?;
    check("nothing was down", &[], &told, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    check("another one was down", &[outage("b", 0, 25)], &told, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    check("down for a moment", &[outage("a", 10, 13)], &told, &[], [0, 0, 1, 0, 0, 0, 0, 0])?;
    check("an end of what goes on", &[outage("a", 0, 90)], &told, &[], [0, 0, 0, 0, 0, 1, 0, 0])?;
    check("no end", &[outage("a", 0, 40)], &told[..1], &[], [0, 0, 0, 0, 1, 0, 0, 0])?;
    let turned = [(20, "resolve i availability a"), (50, "trigger i availability a")];
    check("the end first", &[outage("a", 0, 40)], &turned, &[], [0, 0, 0, 2, 0, 1, 0, 0])?;
    let twice = [told[0], (22, "trigger i availability a"), told[1]];
    check("two begins", &[outage("a", 0, 40)], &twice, &[], [0, 0, 0, 1, 0, 0, 0, 0])?;
    let two = [told[0], (21, "trigger j availability a"), (50, "resolve i availability a"), (50, "resolve j availability a")];
    check("told twice", &[outage("a", 0, 40)], &two, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    check("without a database", &[outage("a", 0, 60)], &two, &[halt(5, 8, true)], [0, 0, 0, 0, 0, 1, 1, 0])?;
    let double = [told[0], (21, "trigger j availability a"), (30, "resolve i availability a"), (65, "resolve j availability a")];
    check("one of two pages ends", &[outage("a", 0, 60)], &double, &[halt(5, 8, true)], [0, 0, 0, 0, 0, 0, 1, 0])?;
    let worse = [(20, "trigger duty/i availability a"), (25, "trigger duty/i.1 availability a"), (25, "trigger duty/i.1 availability a")];
    let ends = [(50, "resolve duty/i availability a"), (50, "resolve duty/i.1 availability a"), (60, "trigger duty/i.1 availability a")];
    let worse = [worse, ends].concat();
    check("each alert ends", &[outage("a", 0, 40)], &worse[..5], &[], [0; 8])?;
    check("the later alert never ends", &[outage("a", 0, 40)], &worse[..4], &[], [0, 0, 0, 0, 1, 0, 0, 0])?;
    check("no alert ends", &[outage("a", 0, 40)], &worse[..3], &[], [0, 0, 0, 0, 1, 0, 0, 0])?;
    check("an alert is opened again", &[outage("a", 0, 40)], &worse, &[], [0, 0, 0, 1, 1, 0, 0, 0])?;
    let both = [told[0], worse[0], told[1]];
    check("a service is not told the end", &[outage("a", 0, 40)], &both, &[], [0, 0, 0, 0, 1, 0, 0, 0])?;
    let blind = [(60, "trigger i blind a"), (70, "resolve i blind a")];
    check("blind", &[], &blind, &[halt(0, 40, false)], [0, 0, 0, 0, 0, 0, 0, 1])?;
    check("not blind", &[], &blind, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    check("the third one", &[outage("a", 0, 40)], &[(20, "trigger i flapping a")], &[], [0; 8])?;
    check("and more", &[outage("a", 0, 40), outage("a", 90, 140)], &[(20, "trigger i flapping a")], &[], [0; 8])
}

fn weighs_storms() -> Result<(), Failed> {
    let all: Vec<Outage> = ["a", "b", "c", "d", "e"].map(|name| Outage { reach: Reach::Host, ..outage(name, 0, 40) }).into();
    let storm = [(20, "trigger i storm host"), (50, "resolve i storm host")];
    check("a storm tells of its parts", &all, &storm, &[], [0; 8])?;
    let again = [storm[0], (21, "trigger j storm host"), storm[1], (50, "resolve j storm host")];
    check("a storm told again", &all, &again, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    check("by another process", &all, &again, &[halt(5, 8, true)], [0, 0, 0, 0, 0, 0, 1, 0])?;
    check("a storm of four", &all[..4], &storm, &[], [0, 1, 0, 0, 0, 0, 0, 0])?;
    let late = [all.as_slice(), &[outage("f", 60, 120)]].concat();
    check("what began after a storm", &late, &storm, &[], [1, 0, 0, 0, 0, 0, 0, 0])?;
    let alone = [all.as_slice(), &[outage("f", 25, 70)]].concat();
    check("what is on another host", &alone, &storm, &[], [1, 0, 0, 0, 0, 0, 0, 0])?;
    let region = [(20, "trigger i storm region:local"), (50, "resolve i storm region:local")];
    check("what joins a storm of all", &alone, &region, &[], [0; 8])
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("model::judges", judges), Trial::test("model::weighs_storms", weighs_storms)]
}
