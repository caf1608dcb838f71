//! "Is it up?" in one sentence, then all targets, the worst first.

use super::{Chrome, Fault, html};
use crate::moment::{HOUR, Moment};
use crate::state::Availability;
use crate::store::read::{IncidentRow, Strip, TargetRow, Which};
use crate::web::State;
use crate::web::chart::{self, Axis};
use crate::web::guard::Identity;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::extract::{Extension, Query, State as Shared};
use axum::response::Response;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Strips are this old at most.
const FRESH: Duration = Duration::from_secs(60);
/// Names in the answer, and problems of a row.
const NAMES: usize = 3;
const PROBLEMS: usize = 2;

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Filter {
    #[serde(default)]
    q: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    state: String,
    /// Only these, as JSON; for live updates.
    #[serde(default)]
    names: Option<String>,
}

pub(super) struct Row {
    id: String,
    name: String,
    link: String,
    rank: u8,
    mark: Mark,
    surface: Option<Mark>,
    tags: Vec<String>,
    muted: bool,
    problems: Vec<Problem>,
    strip: Html,
    latency: String,
    seen: Html,
    haystack: String,
}

struct Problem {
    id: String,
    title: String,
}

struct Answer {
    class: &'static str,
    shape: &'static str,
    sentence: String,
    more: String,
    /// What keeps people from being told.
    alarm: String,
}

struct StateChoice {
    word: &'static str,
    number: usize,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    chrome: Chrome,
    answer: Answer,
    query: String,
    tags: Vec<String>,
    chosen_tag: String,
    states: Vec<StateChoice>,
    chosen_state: String,
    shown: String,
    empty: String,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "fragment.html")]
struct Fragment {
    answer: Answer,
    rows: Vec<Row>,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Query(filter): Query<Filter>,
) -> Result<Response, Fault> {
    let Known { targets, open, hours, now } = known(&state).await?;
    let answer = Answer { alarm: alarm(&state).await?, ..answer(&targets, now) };
    let all_tags: BTreeSet<&str> = targets.iter().flat_map(|target| target.tags.iter().map(String::as_str)).collect();
    let words = Availability::ALL.map(|state| shown::availability(state).word);
    let number = |word: &str| targets.iter().filter(|target| shown::availability(target.availability).word == word).count();
    let states = words.into_iter().map(|word| StateChoice { word, number: number(word) }).filter(|choice| choice.number > 0).collect();
    let total = targets.len();
    let rows = listed(&targets, &open, &hours, now, &filter);
    let page = Page {
        chrome: Chrome::new(&state, &identity, "overview", answer.sentence.trim_end_matches('.')),
        answer,
        query: shown::plain(&filter.q),
        tags: all_tags.into_iter().map(shown::plain).collect(),
        chosen_tag: shown::plain(&filter.tag),
        states,
        chosen_state: filter.state.clone(),
        shown: if rows.len() == total {
            String::new()
        } else {
            format!("{} of {} shown", shown::thousands(rows.len()), shown::thousands(total))
        },
        empty: if total == 0 {
            "No targets yet: add them to the configuration file or through the API.".to_owned()
        } else {
            "No target matches the filter.".to_owned()
        },
        rows,
    };
    Ok(html(&page))
}

/// The rows of some targets, for a page that is open already.
pub(in crate::web) async fn rows(Shared(state): Shared<State>, Query(filter): Query<Filter>) -> Result<Response, Fault> {
    let Known { targets, open, hours, now } = known(&state).await?;
    let answer = Answer { alarm: alarm(&state).await?, ..answer(&targets, now) };
    let fragment = Fragment { answer, rows: listed(&targets, &open, &hours, now, &filter) };
    Ok(html(&fragment))
}

/// What is wrong with the monitor, not with its targets.
async fn alarm(state: &State) -> Result<String, Fault> {
    if let Some(trouble) = state.worker_health.report().trouble {
        return Ok(format!("Results cannot be written: {}.", shown::plain(&trouble.why)));
    }
    let overdue = state.store.overdue_page(state.now()).await?;
    let overdue = overdue.map(|waited| format!("No channel has accepted a page for {}.", shown::span(waited)));
    let rejected = state.worker_health.rejection();
    let rejected =
        rejected.map(|why| format!("The configuration file was not applied, and an earlier version is in use: {}.", shown::plain(&why)));
    Ok(overdue.into_iter().chain(rejected).collect::<Vec<_>>().join(" "))
}

struct Known {
    targets: Vec<TargetRow>,
    /// By subject.
    open: BTreeMap<String, Vec<IncidentRow>>,
    hours: Arc<BTreeMap<String, Strip>>,
    now: Moment,
}

async fn known(state: &State) -> Result<Known, Fault> {
    let now = state.now();
    let targets = state.targets().await?;
    let mut open: BTreeMap<String, Vec<IncidentRow>> = BTreeMap::new();
    for incident in state.live().incidents(Which::Open, None, 1_000).await? {
        open.entry(incident.subject.clone()).or_default().push(incident);
    }
    Ok(Known { targets, open, hours: hours(state, now).await?, now })
}

/// The last 24 hours of all targets.
async fn hours(state: &State, now: Moment) -> Result<Arc<BTreeMap<String, Strip>>, Fault> {
    if let Some((at, hours)) = &state.inner.glance.lock().expect("no thread panics while it holds the lock").hours
        && now.since(*at) < FRESH
        && now >= *at
    {
        return Ok(hours.clone());
    }
    let from = Axis::until(now, HOUR, 24).from;
    let strips = state.store.strips(HOUR, from).await;
    if strips.is_err() && state.stands_in() {
        return Ok(Arc::default());
    }
    let hours = Arc::new(strips?);
    state.inner.glance.lock().expect("no thread panics while it holds the lock").hours = Some((now, hours.clone()));
    Ok(hours)
}

fn listed(
    targets: &[TargetRow],
    open: &BTreeMap<String, Vec<IncidentRow>>,
    hours: &BTreeMap<String, Strip>,
    now: Moment,
    filter: &Filter,
) -> Vec<Row> {
    let axis = Axis::until(now, HOUR, 24);
    let words: Vec<String> = filter.q.split_whitespace().map(str::to_lowercase).collect();
    let names: Option<BTreeSet<String>> = filter.names.as_ref().map(|names| serde_json::from_str(names).unwrap_or_default());
    let mut rows: Vec<Row> = targets
        .iter()
        .filter(|target| names.as_ref().is_none_or(|names| names.contains(&target.name)))
        .filter(|target| filter.tag.is_empty() || target.tags.contains(&filter.tag))
        .filter(|target| filter.state.is_empty() || shown::availability(target.availability).word == filter.state)
        .filter_map(|target| {
            let open = open.get(&target.name).map_or(&[][..], Vec::as_slice);
            let haystack = haystack(target, open);
            let fits = words.iter().all(|word| haystack.contains(word.as_str()));
            // The rest of a row costs more than to find out whether it is wanted.
            fits.then(|| row(target, open, haystack, hours.get(&target.name), axis, now))
        })
        .collect();
    rows.sort_by(|one, other| (one.rank, &one.name).cmp(&(other.rank, &other.name)));
    rows
}

/// What a search finds a target by.
fn haystack(target: &TargetRow, open: &[IncidentRow]) -> String {
    let tags = target.tags.iter().map(String::as_str);
    let titles = open.iter().take(PROBLEMS).map(|incident| incident.title.as_str());
    let words = [target.name.as_str(), shown::availability(target.availability).word];
    let all: Vec<String> = words.into_iter().chain(tags).chain(titles).map(shown::plain).collect();
    all.join(" ").to_lowercase()
}

fn row(target: &TargetRow, open: &[IncidentRow], haystack: String, strip: Option<&Strip>, axis: Axis, now: Moment) -> Row {
    let mark = shown::availability(target.availability);
    let pieces = axis.sort(strip.map_or(&[][..], |strip| &strip.hours));
    let mut sum = crate::store::read::Bucket::default();
    pieces.iter().for_each(|piece| sum.add(piece));
    let latency = match (sum.latency.quantile(0.5), sum.latency.quantile(0.95)) {
        (Some(p50), Some(p95)) => format!("{}, {}", shown::micros(p50), shown::micros(p95)),
        _ => "–".to_owned(),
    };
    let problems: Vec<Problem> =
        open.iter().take(PROBLEMS).map(|incident| Problem { id: shown::segment(&incident.id), title: told(incident) }).collect();
    let name = shown::plain(&target.name);
    let tags: Vec<String> = target.tags.iter().map(|tag| shown::plain(tag)).collect();
    Row {
        id: format!("t-{}", shown::segment(&target.name)),
        haystack,
        link: shown::segment(&target.name),
        rank: shown::rank(target.availability, target.surface),
        mark,
        surface: shown::surface(target.surface),
        tags,
        muted: target.muted_until > now,
        problems,
        strip: chart::strip(&pieces),
        latency,
        seen: shown::when(now, target.last_result),
        name,
    }
}

/// What is wrong, and why, if that is known.
fn told(incident: &IncidentRow) -> String {
    let title = shown::plain(&incident.title);
    match &incident.detail.because_of {
        Some(cause) => format!("{title} (because of {})", shown::plain(cause)),
        None => title,
    }
}

/// One sentence for somebody who looks for a second.
fn answer(targets: &[TargetRow], now: Moment) -> Answer {
    let of = |wanted: &[Availability]| targets.iter().filter(|target| wanted.contains(&target.availability)).collect::<Vec<_>>();
    let down = of(&[Availability::Down, Availability::Flapping]);
    let blind = of(&[Availability::Blind]);
    let checking = of(&[Availability::Suspect, Availability::Recovering]);
    let waiting = of(&[Availability::Unknown]);
    let changed = targets.iter().filter(|target| shown::surface(target.surface).is_some()).count();
    let muted = targets.iter().filter(|target| target.muted_until > now).count();
    let all = targets.len();
    let mut more = Vec::new();
    let mut also = |number: usize, text: &str| {
        if number > 0 {
            more.push(format!("{} {text}", shown::thousands(number)));
        }
    };
    also(checking.len(), "being probed again");
    also(waiting.len(), "without a result yet");
    also(changed, "with another contract than before");
    also(muted, "muted");
    let (class, shape, sentence) = match () {
        () if all == 0 => ("idle", "○", "No targets are monitored yet.".to_owned()),
        () if !down.is_empty() => {
            ("bad", "■", format!("{} of {} down: {}.", shown::thousands(down.len()), shown::count(all, "target"), names(&down)))
        }
        () if blind.len() == all => ("idle", "◌", "Unknown: no results are coming in.".to_owned()),
        () if !blind.is_empty() => {
            ("idle", "◌", format!("No results from {} of {}.", shown::thousands(blind.len()), shown::count(all, "target")))
        }
        () if waiting.len() == all => ("idle", "○", format!("Waiting for the first results of {}.", shown::count(all, "target"))),
        () if all == 1 && checking.is_empty() => ("good", "●", "The only target is up.".to_owned()),
        () if checking.is_empty() && waiting.is_empty() => ("good", "●", format!("All {} are up.", shown::count(all, "target"))),
        () => ("good", "●", "Nothing is down.".to_owned()),
    };
    if !down.is_empty() && !blind.is_empty() {
        more.insert(0, format!("{} without results", shown::thousands(blind.len())));
    }
    Answer { class, shape, sentence, more: more.join(", "), alarm: String::new() }
}

fn names(targets: &[&TargetRow]) -> String {
    let mut names: Vec<String> = targets.iter().take(NAMES).map(|target| mcproof_report::escape_line(&target.name, 60)).collect();
    if targets.len() > NAMES {
        names.push(format!("and {} more", shown::thousands(targets.len() - NAMES)));
    }
    names.join(", ")
}
