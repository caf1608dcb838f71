//! Planned work: what the configuration says, what was announced, and a form to announce more.

use super::{Chrome, Fault, comma_list, html, lasting};
use crate::config::When;
use crate::moment::Moment;
use crate::store::operations::Announcement;
use crate::web::State;
use crate::web::api::operations::unknown_tag;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "maintenance.html")]
struct Page {
    chrome: Chrome,
    announced: Vec<Work>,
    configured: Vec<Work>,
}

struct Work {
    id: String,
    name: String,
    whom: String,
    when: Html,
    running: bool,
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, Extension(identity): Extension<Identity>) -> Result<Response, Fault> {
    let now = state.now();
    let announced = state.store.maintenance(now).await?;
    let config = state.config();
    let page = Page {
        chrome: Chrome::new(&state, &identity, "maintenance", "Maintenance"),
        announced: announced
            .iter()
            .map(|work| Work {
                id: shown::segment(&work.id),
                name: shown::plain(&work.name),
                whom: whom(&work.targets, &work.tags),
                when: Html(format!("{} to {}", shown::at(work.starts), shown::at(work.ends))),
                running: work.starts <= now,
            })
            .collect(),
        configured: config
            .maintenance
            .iter()
            .map(|window| {
                let when = match &window.when {
                    When::Once { from, until } => format!("{} to {}", shown::at(*from), shown::at(*until)),
                    When::Cron { expression, zone, lasts } => {
                        let escaped = askama::filters::escape(shown::plain(&format!("{expression} ({zone})")), askama::filters::Html)
                            .map(|safe| safe.to_string())
                            .unwrap_or_default();
                        format!("<code>{escaped}</code>, for {}", shown::span(*lasts))
                    }
                };
                Work {
                    id: String::new(),
                    name: shown::plain(&window.name),
                    whom: whom(&window.targets, &window.tags),
                    when: Html(when),
                    running: crate::maintenance::is_open(window, now),
                }
            })
            .collect(),
    };
    Ok(html(&page))
}

fn whom(targets: &[String], tags: &[String]) -> String {
    let list = |names: &[String]| names.iter().map(|name| shown::plain(name)).collect::<Vec<_>>().join(", ");
    match (targets.is_empty(), tags.is_empty()) {
        (true, true) => "all targets".to_owned(),
        (false, true) => list(targets),
        (true, false) => format!("all with the tag {}", list(tags)),
        (false, false) => format!("{}, if it has the tag {}", list(targets), list(tags)),
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Announce {
    name: String,
    /// Names with commas between them.
    #[serde(default)]
    targets: String,
    #[serde(default)]
    tags: String,
    /// `2026-11-21T14:00` in UTC; now if it is empty.
    #[serde(default)]
    starts: String,
    minutes: u32,
    /// There if the box is checked.
    #[serde(default)]
    future: Option<String>,
}

pub(in crate::web) async fn announce(Shared(state): Shared<State>, Form(form): Form<Announce>) -> Result<Redirect, Fault> {
    let refuse = |why: &str| Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, why.to_owned());
    let now = state.now();
    let starts = if form.starts.trim().is_empty() {
        now
    } else {
        let civil: jiff::civil::DateTime = form.starts.trim().parse().map_err(|_| refuse("the start is not a date and time"))?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| refuse("the start is out of range"))?;
        Moment(zoned.timestamp().as_millisecond())
    };
    if form.minutes == 0 || form.name.trim().is_empty() {
        return Err(refuse("planned work requires a name and a duration of at least a minute"));
    }
    let work = Announcement {
        name: form.name.trim().to_owned(),
        targets: comma_list(&form.targets),
        tags: comma_list(&form.tags),
        starts,
        ends: starts + lasting(form.minutes)?,
    };
    if work.ends <= now {
        return Err(refuse("the planned work is over already: check its start, which is in UTC"));
    }
    for target in &work.targets {
        if state.store.target(target).await?.is_none() {
            return Err(Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, format!("unknown target `{target}`")));
        }
    }
    if let Some(tag) = unknown_tag(&state, &work.tags).await?.filter(|_| form.future.is_none()) {
        let text = format!("no target has the tag `{tag}`: for targets to come, check the box below the tags");
        return Err(Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    state.store.announce(&work, now).await?;
    Ok(Redirect::to("/maintenance"))
}

pub(in crate::web) async fn end(Shared(state): Shared<State>, Path(id): Path<String>) -> Result<Redirect, Fault> {
    state.store.end_maintenance(&id, state.now()).await?;
    Ok(Redirect::to("/maintenance"))
}
