//! What everybody may see: the state of public targets in one sentence, 90 days of bars, how quick they are, how many tools they
//! have. And a badge for each. Nothing else of a target is told here.

use super::notices::ShownNotice;
use super::{Chrome, Fault};
use crate::config::StatusPageSpec;
use crate::moment::{DAY, HOUR, Moment};
use crate::news::{NewsItem, news};
use crate::state::Availability;
use crate::store::notices::Notice;
use crate::store::read::{Bucket, PublicState, Strip, TargetRow};
use crate::web::State;
use crate::web::chart::{self, Axis};
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::collections::BTreeMap;

const DAYS: usize = 90;
/// Targets on one page.
const PER_PAGE: usize = 50;
/// Of all that there are, those that a page with targets of its own looks through.
const MOST_OF_SECTION: usize = 10_000;
/// As many as can be subscribed to by name.
const MOST_IN_FORM: usize = 100;
/// A page is this old at most.
const FRESH: i64 = 60_000;
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
    number: usize,
    pages: usize,
    open: Vec<ShownNotice>,
    past: Vec<ShownNotice>,
    /// Whether it can be subscribed to, and how.
    mail: bool,
    webhook: bool,
    /// For the form.
    only: String,
    /// Of the page itself, or of the one that it belongs to.
    path: String,
}

struct Entry {
    name: String,
    link: String,
    mark: Mark,
    sentence: String,
    bars: Html,
    share: String,
    p50: String,
    p95: String,
    tools: String,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Look {
    page: Option<usize>,
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, asked: HeaderMap, Query(look): Query<Look>) -> Result<Response, Fault> {
    let states = state.public_states().await?;
    let count = states.iter().map(|state| state.count).sum::<usize>();
    let (number, pages) = (look.page.unwrap_or(1), count.div_ceil(PER_PAGE).max(1));
    if !(1..=pages).contains(&number) {
        return Err(Fault::NotFound("page"));
    }
    let make = async || {
        let targets = state.public_targets(PER_PAGE, (number - 1) * PER_PAGE).await?;
        made(&state, "Status", &states, &targets, Part { number, pages, only: Only::All }).await
    };
    show(&state, &asked, &format!("page {number}"), &states, make).await
}

/// The page of a target, one of the pages that the configuration has, or the feed of one.
pub(in crate::web) async fn one(
    Shared(state): Shared<State>,
    asked: HeaderMap,
    Path(name): Path<String>,
    Query(look): Query<Look>,
) -> Result<Response, Fault> {
    let config = state.config();
    if let Some(page) = config.status.page(&name) {
        return section(&state, &asked, page, look).await;
    }
    if let Some(page) = name.strip_suffix(".atom").and_then(|name| config.status.page(name)) {
        return feed_of(&state, &asked, Some(page)).await;
    }
    let target = public(&state, &name).await?;
    let states = [PublicState { availability: target.availability, count: 1, since: target.since.0 }];
    let title = format!("Status of {}", shown::plain(&name));
    let make = async || {
        let part = Part { number: 1, pages: 1, only: Only::Target(&name) };
        made(&state, &title, &states, std::slice::from_ref(&target), part).await
    };
    show(&state, &asked, &format!("target {name}"), &states, make).await
}

/// A page of some targets.
async fn section(state: &State, asked: &HeaderMap, page: &StatusPageSpec, look: Look) -> Result<Response, Fault> {
    let all = state.public_states().await?;
    let number = look.page.unwrap_or(1);
    let make = async || {
        let targets = members(state, page).await?;
        let pages = targets.len().div_ceil(PER_PAGE).max(1);
        if !(1..=pages).contains(&number) {
            return Err(Fault::NotFound("page"));
        }
        let states: Vec<PublicState> =
            targets.iter().map(|target| PublicState { availability: target.availability, count: 1, since: target.since.0 }).collect();
        let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
        let part = Part { number, pages, only: Only::Page(page, &names) };
        let some: Vec<TargetRow> = targets.into_iter().skip((number - 1) * PER_PAGE).take(PER_PAGE).collect();
        made(state, &shown::plain(&page.title), &states, &some, part).await
    };
    show(state, asked, &format!("section {number} {page:?}"), &all, make).await
}

/// Those that do not work first.
async fn members(state: &State, page: &StatusPageSpec) -> Result<Vec<TargetRow>, Fault> {
    let all = state.public_targets(MOST_OF_SECTION, 0).await?;
    Ok(all.into_iter().filter(|target| page.shows(&target.name, &target.tags)).collect())
}

async fn public(state: &State, name: &str) -> Result<TargetRow, Fault> {
    // One that is not public is as good as none.
    state.target(name).await?.filter(|target| target.public).ok_or(Fault::NotFound("public target"))
}

/// Made once for all readers.
async fn show(
    state: &State,
    asked: &HeaderMap,
    name: &str,
    states: &[PublicState],
    make: impl AsyncFnOnce() -> Result<String, Fault>,
) -> Result<Response, Fault> {
    let notices = state.store.notices_version().await?;
    let version = format!("{} {states:?} {notices:?}", state.now().0.div_euclid(FRESH));
    let mut response = state.inner.rendered.page(name, &version, make).await?.response(asked);
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("public, max-age=30"));
    Ok(response)
}

/// Which of the pages it is.
struct Part<'a> {
    number: usize,
    pages: usize,
    only: Only<'a>,
}

/// What a page is about.
#[derive(Clone, Copy)]
enum Only<'a> {
    All,
    Target(&'a str),
    /// With the names of its targets.
    Page(&'a StatusPageSpec, &'a [String]),
}

impl Only<'_> {
    fn shows(self, notice: &Notice) -> bool {
        let about = |named: &dyn Fn(&String) -> bool| notice.targets.is_empty() || notice.targets.iter().any(named);
        match self {
            Self::All => true,
            Self::Target(target) => about(&|name| name == target),
            Self::Page(_, names) => about(&|name| names.contains(name)),
        }
    }
}

async fn made(state: &State, title: &str, states: &[PublicState], targets: &[TargetRow], part: Part<'_>) -> Result<String, Fault> {
    let now = state.now();
    let days = days(state, targets, now).await?;
    let down: Vec<&str> =
        targets.iter().filter(|target| target.availability == Availability::Down).map(|target| target.name.as_str()).collect();
    let causes = state.live().causes(&down).await?;
    let mut entries = Vec::new();
    for target in targets {
        let tools = tools(state, target).await?;
        let entry = entry(target, days.get(&target.name), tools, now);
        let sentence = match causes.get(&target.name) {
            Some((cause, true)) => format!("It is down because of {}.", shown::plain(cause)),
            // One that is not public is not named.
            Some((_, false)) => "It is down because of a dependency.".to_owned(),
            None => entry.sentence,
        };
        entries.push(Entry { sentence, ..entry });
    }
    let (class, shape, sentence) = answer(states);
    let Part { number, pages, only } = part;
    let one = matches!(only, Only::Target(_)) || (pages == 1 && entries.len() == 1);
    let (chrome, updated) = (Chrome::public(state, "", title), shown::at(now));
    let (open, past) = notices(state, &part, now).await?;
    let offered = &state.config().status.subscriptions;
    let (mail, webhook) = (offered.mail.is_some(), offered.webhook.is_some());
    let (path, only) = match only {
        Only::All => ("/status".to_owned(), String::new()),
        Only::Target(name) => ("/status".to_owned(), name.to_owned()),
        Only::Page(page, names) if names.len() <= MOST_IN_FORM => (format!("/status/{}", page.name), names.join(", ")),
        Only::Page(page, _) => (format!("/status/{}", page.name), String::new()),
    };
    let page =
        Page { chrome, class, shape, sentence, one, targets: entries, updated, number, pages, open, past, mail, webhook, only, path };
    page.render().map_err(|_| Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be displayed".to_owned()))
}

/// Notices for this page: those that are open, and those that were resolved lately. A page after the first has none.
async fn notices(state: &State, part: &Part<'_>, now: Moment) -> Result<(Vec<ShownNotice>, Vec<ShownNotice>), Fault> {
    if part.number > 1 {
        return Ok((Vec::new(), Vec::new()));
    }
    let notices = state.store.notices(now).await?;
    let (past, open): (Vec<&Notice>, Vec<&Notice>) =
        notices.iter().filter(|notice| part.only.shows(notice)).partition(|notice| notice.is_resolved());
    let shown = |notices: Vec<&Notice>| notices.into_iter().map(ShownNotice::new).collect();
    Ok((shown(open), shown(past)))
}

#[derive(Template)]
#[template(path = "status.atom", escape = "html")]
struct Feed {
    title: String,
    root: String,
    path: String,
    updated: String,
    entries: Vec<FeedEntry>,
}

struct FeedEntry {
    id: String,
    title: String,
    updated: Moment,
    text: String,
}

/// Outages of public targets and updates of notices as an Atom feed (RFC 4287), the latest first.
pub(in crate::web) async fn feed(Shared(state): Shared<State>, asked: HeaderMap) -> Result<Response, Fault> {
    feed_of(&state, &asked, None).await
}

async fn feed_of(state: &State, asked: &HeaderMap, page: Option<&StatusPageSpec>) -> Result<Response, Fault> {
    let (now, config) = (state.now(), state.config());
    let root = match &config.public_url {
        Some(url) => url.clone(),
        None => format!("http://{}", asked.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost")),
    };
    let mut all = news(&state.store, now).await?;
    if let Some(page) = page {
        let names: Vec<String> = members(state, page).await?.into_iter().map(|target| target.name).collect();
        all.retain(|item| item.targets.is_empty() || item.targets.iter().any(|target| names.contains(target)));
    }
    let path = page.map_or_else(|| "/status".to_owned(), |page| format!("/status/{}", page.name));
    let entry =
        |item: NewsItem| FeedEntry { id: format!("{root}{path}#{}", item.id), title: item.title, updated: item.at, text: item.text };
    let entries: Vec<FeedEntry> = all.into_iter().map(entry).collect();
    let updated = entries.first().map_or(now, |entry| entry.updated).to_string();
    let title = shown::plain(page.map_or_else(|| config.status.title(), |page| &page.title));
    let feed = Feed { title, root, path, updated, entries };
    let text = feed.render().map_err(|_| Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, "this feed cannot be written".to_owned()))?;
    let headers = [(header::CONTENT_TYPE, "application/atom+xml; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=30")];
    Ok((headers, text).into_response())
}

/// 90 days of some targets; the day that is not over is made from its hours.
async fn days(state: &State, targets: &[TargetRow], now: Moment) -> Result<BTreeMap<String, Strip>, Fault> {
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let axis = Axis::until(now, DAY, DAYS);
    let mut days = state.store.strips_of(&names, DAY, axis.from).await?;
    let today = axis.end() - DAY;
    for (name, hours) in state.store.strips_of(&names, HOUR, today).await? {
        let strip = days.entry(name).or_default();
        if strip.hours.last().is_none_or(|last| last.start < today) {
            strip.hours.extend(hours.hours);
        }
    }
    Ok(days)
}

/// How many tools its contract has.
async fn tools(state: &State, target: &TargetRow) -> Result<Option<usize>, Fault> {
    let Some(hash) = &target.contract else { return Ok(None) };
    if let Some(known) = state.inner.glance.lock().expect("no thread panics while it holds the lock").tools.get(hash) {
        return Ok(Some(*known));
    }
    let Some(count) = state.store.contract(&target.name, hash).await?.and_then(|contract| contract.tools).map(|tools| tools.len()) else {
        return Ok(None);
    };
    let mut glance = state.inner.glance.lock().expect("no thread panics while it holds the lock");
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
        sentence: sentence(target.availability).to_owned(),
        bars: chart::bars(&axis, &pieces, 34),
        share: shown::up(&sum).unwrap_or_else(|| "no results yet".to_owned()),
        p50: quantile(0.5),
        p95: quantile(0.95),
        tools: tools.map(|tools| shown::count(tools, "tool")).unwrap_or_default(),
    }
}

/// All of them in one sentence.
fn answer(states: &[PublicState]) -> (&'static str, &'static str, String) {
    let count = |wanted: [Availability; 2]| {
        states.iter().filter(|state| wanted.contains(&state.availability)).map(|state| state.count).sum::<usize>()
    };
    let all = states.iter().map(|state| state.count).sum::<usize>();
    let bad = count([Availability::Down, Availability::Flapping]);
    let back = count([Availability::Recovering; 2]);
    let blind = count([Availability::Blind, Availability::Unknown]);
    let of_all = |some: usize| format!("{} of {}", shown::thousands(some), shown::count(all, "target"));
    match () {
        () if all == 0 => ("idle", "○", "No target is public.".to_owned()),
        () if bad > 0 => ("bad", "■", format!("{} down.", of_all(bad))),
        () if back > 0 && all == 1 => ("warn", "◑", "It is recovering.".to_owned()),
        () if back > 0 => ("warn", "◑", format!("{} recovering.", of_all(back))),
        () if blind == all => ("idle", "◌", "The current state is unknown.".to_owned()),
        () if blind > 0 => ("idle", "◌", format!("Nothing is down; the state of {} is unknown.", shown::thousands(blind))),
        () => ("good", "●", "All systems operational.".to_owned()),
    }
}

fn sentence(availability: Availability) -> &'static str {
    match availability {
        Availability::Ok => "It is up.",
        // What is not confirmed is not announced.
        Availability::Suspect => "It is up; the last probe is being repeated.",
        Availability::Down => "It is down.",
        Availability::Recovering => "It is recovering.",
        Availability::Flapping => "It is flapping.",
        Availability::Blind | Availability::Unknown => "The current state is unknown.",
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
