//! One target: how it is, how it was, how long it takes, what it promises.

use super::{Chrome, Fault, html, lasting};
use crate::config::TargetKind;
use crate::incident::Class;
use crate::moment::{DAY, FIVE_MINUTES, HOUR, Moment};
use crate::state::{Availability, Verdict};
use crate::store::read::{Bucket, ChangeRow, IncidentRow, ResultRow, TargetRow};
use crate::web::State;
use crate::web::chart::{self, Axis};
use crate::web::decisions::Decision;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, Query, State as Shared};
use axum::response::{Redirect, Response};
use serde::Deserialize;
use std::time::Duration;

const RESULTS: i64 = 40;
const INCIDENTS: i64 = 20;
const CHANGES: i64 = 50;

/// What a page may look back on: its name, the width of a piece, and how many of them.
const SPANS: [(&str, &str, Duration, usize); 5] = [
    ("24h", "24 hours", Duration::from_secs(900), 96),
    ("7d", "7 days", Duration::from_secs(2 * 3_600), 84),
    ("30d", "30 days", Duration::from_secs(8 * 3_600), 90),
    ("90d", "90 days", DAY, 90),
    ("1y", "a year", Duration::from_secs(4 * 86_400), 92),
];

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Look {
    #[serde(default)]
    span: String,
}

#[derive(Template)]
#[template(path = "target.html")]
struct Page {
    chrome: Chrome,
    name: String,
    link: String,
    mark: Mark,
    surface: Option<Mark>,
    sentence: String,
    facts: Vec<Fact>,
    tags: Vec<String>,
    muted: Option<Html>,
    open: Vec<Trouble>,
    spans: Vec<SpanChoice>,
    bars: Html,
    first_day: String,
    last_day: String,
    share: String,
    quantiles: Vec<(&'static str, String)>,
    chart: Option<Html>,
    phases: Option<Html>,
    contract: Option<ContractFacts>,
    changes: Vec<Change>,
    results: Vec<ResultLine>,
    past: Vec<Trouble>,
    badge: bool,
}

struct Fact {
    name: &'static str,
    value: Html,
}

struct SpanChoice {
    key: &'static str,
    name: &'static str,
    chosen: bool,
}

pub(super) struct Trouble {
    pub(super) id: String,
    pub(super) mark: Mark,
    pub(super) title: String,
    pub(super) subject: String,
    pub(super) class: &'static str,
    pub(super) opened: Html,
    pub(super) lasted: String,
    pub(super) acknowledged: bool,
    pub(super) open: bool,
}

struct ContractFacts {
    hash: String,
    server: String,
    tools: String,
    names: Vec<String>,
}

struct Change {
    id: String,
    at: Html,
    mark: Mark,
    hashes: String,
    announced: bool,
}

struct ResultLine {
    at: Html,
    mark: Mark,
    reason: String,
    took: String,
    region: String,
    attempt: i64,
    evidence: Option<String>,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    Query(look): Query<Look>,
) -> Result<Response, Fault> {
    let now = state.now();
    let target = state.target(&name).await?.ok_or(Fault::NotFound("target"))?;
    let (key, _, width, count) = *SPANS.iter().find(|(key, ..)| *key == look.span).unwrap_or(&SPANS[0]);
    let axis = Axis::until(now, width, count);
    // The coarsest rollups that are not wider than a piece.
    let rolled = [DAY, HOUR, FIVE_MINUTES].into_iter().find(|rolled| *rolled <= width).unwrap_or(FIVE_MINUTES);
    let pieces = axis.sort(&state.if_readable(state.store.history(&name, rolled, axis.from, now).await)?);
    let mut sum = Bucket::default();
    pieces.iter().for_each(|piece| sum.add(piece));
    let results = state.if_readable(state.store.results(&name, Moment(0), Moment(i64::MAX), RESULTS).await)?;
    let incidents = state.incidents_of(&name, INCIDENTS).await?;
    let (open, past): (Vec<_>, Vec<_>) = incidents.iter().map(|incident| trouble(incident, now)).partition(|trouble| trouble.open);
    let contract = match &target.contract {
        Some(hash) => Some(contract(&state, &name, hash).await?),
        None => None,
    };
    let quantile = |share: f64| sum.latency.quantile(share).map_or_else(|| "–".to_owned(), shown::micros);
    let page = Page {
        chrome: Chrome::new(&state, &identity, "overview", shown::plain(&name)).following(&name),
        link: shown::segment(&name),
        mark: shown::availability(target.availability),
        surface: shown::surface(target.surface),
        sentence: sentence(&target, &incidents, now),
        facts: facts(&state, &target, results.first(), now),
        tags: target.tags.iter().map(|tag| shown::plain(tag)).collect(),
        muted: (target.muted_until > now).then(|| shown::when(now, target.muted_until)),
        open,
        spans: SPANS.iter().map(|(each, name, ..)| SpanChoice { key: each, name, chosen: *each == key }).collect(),
        bars: chart::bars(&axis, &pieces, 40),
        first_day: shown::date(axis.from),
        last_day: "now".to_owned(),
        share: shown::up(&sum).unwrap_or_else(|| "no results yet".to_owned()),
        quantiles: vec![("p50", quantile(0.5)), ("p95", quantile(0.95)), ("p99", quantile(0.99))],
        chart: chart::latencies(&axis, &pieces),
        phases: results.iter().find(|result| result.verdict.is_up()).and_then(|result| chart::phases(&result.phases)),
        contract,
        changes: state.if_readable(state.store.changes(&name, CHANGES).await)?.iter().map(|change| self::change(change, now)).collect(),
        results: results.iter().map(|result| line(result, now)).collect(),
        past,
        badge: target.public,
        name: shown::plain(&name),
    };
    Ok(html(&page))
}

fn sentence(target: &TargetRow, incidents: &[IncidentRow], now: Moment) -> String {
    let open = |class: Class| incidents.iter().find(|incident| incident.resolved.is_none() && incident.class == class);
    let since = open(Class::Availability);
    let lasting = since.map(|incident| format!(" for {}", shown::span(now.since(incident.since)))).unwrap_or_default();
    match target.availability {
        Availability::Unknown => "Waiting for the first result.".to_owned(),
        Availability::Ok if open(Class::Partial).is_some() => "It is up, but not from everywhere.".to_owned(),
        Availability::Ok => "It is up.".to_owned(),
        Availability::Suspect => "The last probe failed; it is being probed again.".to_owned(),
        Availability::Down => {
            let cause = since.and_then(|incident| incident.detail.because_of.as_deref());
            let because = cause.map(|cause| format!(" because of {}", shown::plain(cause))).unwrap_or_default();
            format!("It has been down{lasting}{because}.")
        }
        Availability::Recovering => "It responds again; one more successful probe and it is up.".to_owned(),
        Availability::Flapping => "It is flapping.".to_owned(),
        Availability::Blind => "No results are coming in: its state is unknown.".to_owned(),
    }
}

fn facts(state: &State, target: &TargetRow, last: Option<&ResultRow>, now: Moment) -> Vec<Fact> {
    let text = |text: &str| Html(askama::filters::escape(text, askama::filters::Html).map(|safe| safe.to_string()).unwrap_or_default());
    let mut facts = vec![Fact { name: "Last result", value: shown::when(now, target.last_result) }];
    if let Some(last) = last {
        let took = shown::micros(u64::try_from(last.duration).unwrap_or(0));
        facts.push(Fact { name: "took", value: text(&took) });
        facts.push(Fact { name: "from", value: text(&shown::plain(&last.region)) });
    }
    facts.push(Fact { name: "probed every", value: text(&shown::span(Duration::from_millis(u64::try_from(target.every).unwrap_or(0)))) });
    let kind = match state.config().targets.get(&target.name).map(|spec| &spec.kind) {
        Some(TargetKind::Monitor(_)) => "another monitor",
        Some(TargetKind::Push { .. }) => "a job that reports its runs",
        Some(TargetKind::Server(_)) => "from the configuration",
        None if target.source == "api" => "added through the API",
        None => "",
    };
    if !kind.is_empty() {
        facts.push(Fact { name: "is", value: text(kind) });
    }
    if !target.host.is_empty() {
        facts.push(Fact { name: "at", value: text(&shown::plain(&target.host)) });
    }
    facts
}

async fn contract(state: &State, target: &str, hash: &str) -> Result<ContractFacts, Fault> {
    let Some(contract) = state.if_readable(state.store.contract(target, hash).await)? else {
        return Ok(ContractFacts { hash: shown::short_hash(hash), server: String::new(), tools: String::new(), names: Vec::new() });
    };
    let server = contract.server.as_ref().map(|server| {
        let part = |name: &str| server.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        shown::plain(&format!("{} {}", part("name"), part("version")))
    });
    let tools = contract.tools.as_deref().unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool.get("name")?.as_str()).map(|name| mcproof_report::escape_line(name, 80));
    Ok(ContractFacts {
        hash: shown::short_hash(hash),
        server: server.unwrap_or_default().trim().to_owned(),
        tools: shown::count(tools.len(), "tool"),
        names: names.take(500).collect(),
    })
}

pub(super) fn trouble(incident: &IncidentRow, now: Moment) -> Trouble {
    let end = incident.resolved.unwrap_or(now);
    Trouble {
        id: shown::segment(&incident.id),
        mark: shown::severity(incident.severity),
        title: shown::plain(&incident.title),
        subject: shown::plain(&incident.subject),
        class: incident.class.word(),
        opened: shown::when(now, incident.opened),
        lasted: shown::span(end.since(incident.since)),
        acknowledged: incident.acknowledged.is_some(),
        open: incident.resolved.is_none(),
    }
}

fn change(change: &ChangeRow, now: Moment) -> Change {
    Change {
        id: shown::segment(&change.id),
        at: shown::when(now, change.at),
        mark: shown::level(&change.level),
        hashes: format!("{} → {}", shown::short_hash(&change.old_hash), shown::short_hash(&change.new_hash)),
        announced: change.announced,
    }
}

pub(super) fn verdict(verdict: Verdict) -> Mark {
    let (class, shape) = match verdict {
        Verdict::Up => ("good", "●"),
        Verdict::Warning => ("warn", "▲"),
        Verdict::Down => ("bad", "■"),
        Verdict::Inconclusive => ("idle", "◌"),
    };
    Mark { class, shape, word: verdict.word() }
}

fn line(result: &ResultRow, now: Moment) -> ResultLine {
    ResultLine {
        at: shown::when(now, result.at),
        mark: verdict(result.verdict),
        reason: shown::plain(&result.reason),
        took: shown::micros(u64::try_from(result.duration).unwrap_or(0)),
        region: shown::plain(&result.region),
        attempt: result.attempt,
        evidence: result.evidence.as_deref().map(shown::segment),
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Mute {
    minutes: u32,
    /// The incident that the button stands at.
    #[serde(default)]
    back: String,
}

pub(in crate::web) async fn mute(
    Shared(state): Shared<State>,
    Path(name): Path<String>,
    Form(form): Form<Mute>,
) -> Result<Redirect, Fault> {
    let now = state.now();
    let until = if form.minutes == 0 { Moment(0) } else { now + lasting(form.minutes)? };
    state.target(&name).await?.ok_or(Fault::NotFound("target"))?;
    if !state.decide(Decision::Mute { target: &name, until }).await?.is_done {
        return Err(Fault::NotFound("target"));
    }
    let _ = state.bell.send(name.clone());
    let back = if form.back.is_empty() {
        format!("/targets/{}", shown::segment(&name))
    } else {
        format!("/incidents/{}", shown::segment(&form.back))
    };
    Ok(Redirect::to(&back))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Deploy {
    minutes: u32,
    #[serde(default)]
    note: String,
}

pub(in crate::web) async fn deploy(
    Shared(state): Shared<State>,
    Path(name): Path<String>,
    Form(form): Form<Deploy>,
) -> Result<Redirect, Fault> {
    let now = state.now();
    state.store.target(&name).await?.ok_or(Fault::NotFound("target"))?;
    let until = now + lasting(form.minutes)?;
    state.store.announce_deploy(&name, now, until, None, &form.note).await?;
    Ok(Redirect::to(&format!("/targets/{}", shown::segment(&name))))
}
