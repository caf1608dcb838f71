//! What everybody may see: the state of public targets in one sentence, 90 days of bars, how quick they are, how many tools they
//! have. And a badge for each. Nothing else of a target is told here.

use super::{Chrome, Fault, html};
use crate::moment::{DAY, HOUR, Moment};
use crate::state::Availability;
use crate::store::read::{Bucket, Scope, Strip, TargetRow};
use crate::web::State;
use crate::web::chart::{self, Axis};
use crate::web::guard::Stranger;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const DAYS: usize = 90;
/// Bars are this old at most.
const FRESH: Duration = Duration::from_secs(60);
/// Contracts whose number of tools is remembered.
const REMEMBERED: usize = 20_000;

#[derive(Template)]
#[template(path = "status.html")]
struct Page {
    chrome: Chrome,
    class: &'static str,
    shape: &'static str,
    sentence: String,
    targets: Vec<Entry>,
    one: bool,
    updated: Html,
}

struct Entry {
    name: String,
    link: String,
    mark: Mark,
    sentence: &'static str,
    bars: Html,
    share: String,
    p50: String,
    p95: String,
    tools: String,
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, Extension(stranger): Extension<Stranger>) -> Result<Response, Fault> {
    let targets: Vec<TargetRow> = state.store.targets().await?.into_iter().filter(|target| target.public).collect();
    show(&state, &stranger, targets, "Status").await
}

pub(in crate::web) async fn one(
    Shared(state): Shared<State>,
    Extension(stranger): Extension<Stranger>,
    Path(name): Path<String>,
) -> Result<Response, Fault> {
    let target = public(&state, &name).await?;
    let title = format!("Status of {}", shown::plain(&name));
    show(&state, &stranger, vec![target], &title).await
}

async fn public(state: &State, name: &str) -> Result<TargetRow, Fault> {
    // One that is not public is as good as none.
    state.store.target(name).await?.filter(|target| target.public).ok_or(Fault::NotFound("public target"))
}

async fn show(state: &State, stranger: &Stranger, targets: Vec<TargetRow>, title: &str) -> Result<Response, Fault> {
    let now = state.now();
    let days = days(state, now).await?;
    let mut entries = Vec::new();
    for target in &targets {
        let tools = tools(state, target).await?;
        entries.push(entry(target, days.get(&target.name), tools, now));
    }
    let (class, shape, sentence) = answer(&targets);
    let page = Page {
        chrome: Chrome::public(state, &stranger.seal, title),
        class,
        shape,
        sentence,
        one: entries.len() == 1,
        targets: entries,
        updated: shown::at(now),
    };
    let mut response = html(&page);
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("public, max-age=30"));
    Ok(response)
}

/// 90 days of the public targets; the day that is not over is made from its hours.
async fn days(state: &State, now: Moment) -> Result<Arc<BTreeMap<String, Strip>>, Fault> {
    if let Some((at, days)) = &state.inner.glance.lock().expect("nobody panics with it").days
        && now.since(*at) < FRESH
        && now >= *at
    {
        return Ok(days.clone());
    }
    let axis = Axis::until(now, DAY, DAYS);
    let mut days = state.store.strips(DAY, axis.from, Scope::Public).await?;
    let today = axis.end() - DAY;
    for (name, hours) in state.store.strips(HOUR, today, Scope::Public).await? {
        let strip = days.entry(name).or_default();
        if strip.hours.last().is_none_or(|last| last.start < today) {
            strip.hours.extend(hours.hours);
        }
    }
    let days = Arc::new(days);
    state.inner.glance.lock().expect("nobody panics with it").days = Some((now, days.clone()));
    Ok(days)
}

/// How many tools its contract has.
async fn tools(state: &State, target: &TargetRow) -> Result<Option<usize>, Fault> {
    let Some(hash) = &target.contract else { return Ok(None) };
    if let Some(known) = state.inner.glance.lock().expect("nobody panics with it").tools.get(hash) {
        return Ok(Some(*known));
    }
    let Some(count) = state.store.contract(&target.name, hash).await?.and_then(|contract| contract.tools).map(|tools| tools.len()) else {
        return Ok(None);
    };
    let mut glance = state.inner.glance.lock().expect("nobody panics with it");
    if glance.tools.len() >= REMEMBERED {
        glance.tools.clear();
    }
    glance.tools.insert(hash.clone(), count);
    Ok(Some(count))
}

fn entry(target: &TargetRow, strip: Option<&Strip>, tools: Option<usize>, now: Moment) -> Entry {
    let axis = Axis::until(now, DAY, DAYS);
    let pieces = axis.sort(strip.map_or(&[][..], |strip| &strip.hours));
    let mut sum = Bucket::default();
    pieces.iter().for_each(|piece| sum.add(piece));
    let quantile = |share: f64| sum.latency.quantile(share).map_or_else(|| "–".to_owned(), shown::micros);
    Entry {
        name: shown::plain(&target.name),
        link: shown::segment(&target.name),
        mark: shown::availability(target.availability),
        sentence: sentence(target.availability),
        bars: chart::bars(&axis, &pieces, 34),
        share: shown::up(&sum).unwrap_or_else(|| "no results yet".to_owned()),
        p50: quantile(0.5),
        p95: quantile(0.95),
        tools: tools.map(|tools| shown::count(tools, "tool")).unwrap_or_default(),
    }
}

/// All of them in one sentence.
fn answer(targets: &[TargetRow]) -> (&'static str, &'static str, String) {
    let count = |wanted: [Availability; 2]| targets.iter().filter(|target| wanted.contains(&target.availability)).count();
    let bad = count([Availability::Down, Availability::Flapping]);
    let back = count([Availability::Recovering; 2]);
    let blind = count([Availability::Blind, Availability::Unknown]);
    let of_all = |some: usize| format!("{} of {}", shown::thousands(some), shown::count(targets.len(), "target"));
    match () {
        () if targets.is_empty() => ("idle", "○", "No target is public.".to_owned()),
        () if bad > 0 => ("bad", "■", format!("{} down.", of_all(bad))),
        () if back > 0 && targets.len() == 1 => ("warn", "◑", "It is coming back.".to_owned()),
        () if back > 0 => ("warn", "◑", format!("{} coming back.", of_all(back))),
        () if blind == targets.len() => ("idle", "◌", "Nothing is known right now.".to_owned()),
        () if blind > 0 => ("idle", "◌", format!("Nothing is down, and nothing is known of {}.", shown::thousands(blind))),
        () => ("good", "●", "Everything works.".to_owned()),
    }
}

fn sentence(availability: Availability) -> &'static str {
    match availability {
        Availability::Ok => "It works.",
        // What is not confirmed is not announced.
        Availability::Suspect => "It works; the last probe is being repeated.",
        Availability::Down => "It is down.",
        Availability::Recovering => "It is coming back.",
        Availability::Flapping => "It goes down and up again.",
        Availability::Blind | Availability::Unknown => "Nothing is known right now.",
    }
}

pub(in crate::web) async fn badge(Shared(state): Shared<State>, Path(file): Path<String>) -> Result<Response, Fault> {
    let name = file.strip_suffix(".svg").ok_or(Fault::NotFound("badge"))?;
    let target = public(&state, name).await?;
    let (word, color) = match target.availability {
        Availability::Ok | Availability::Suspect => ("up", "#1a7f37"),
        Availability::Recovering => ("recovering", "#8a5a00"),
        Availability::Down => ("down", "#c4232f"),
        Availability::Flapping => ("unstable", "#c4232f"),
        Availability::Blind | Availability::Unknown => ("unknown", "#5b6472"),
    };
    let page = Badge::new(&mcproof_report::escape_line(name, 40), word, color);
    let text = page.render().unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "public, max-age=30")], text).into_response())
}

#[derive(Template)]
#[template(path = "badge.svg", escape = "html")]
struct Badge {
    name: String,
    word: &'static str,
    color: &'static str,
    left: usize,
    right: usize,
    whole: usize,
    middle_left: usize,
    middle_right: usize,
}

impl Badge {
    /// The widths are of the usual sans-serif fonts; `textLength` makes the text fit whatever the font is.
    fn new(name: &str, word: &'static str, color: &'static str) -> Self {
        let width = |text: &str| text.chars().count() * 7 + 12;
        let (left, right) = (width(name), width(word));
        Self { name: name.to_owned(), word, color, left, right, whole: left + right, middle_left: left / 2, middle_right: left + right / 2 }
    }
}
