//! Incidents: the list, and one with everything that somebody who was woken up wants to know.

use super::evidence::{Diagnosis, Proof};
use super::target::{Trouble, trouble};
use super::{Chrome, Fault, html};
use crate::moment::Moment;
use crate::store::read::{Delivery, EventRow, IncidentRow, Place, Which};
use crate::web::State;
use crate::web::decisions::{Decision, HAS_CHANGED, UNSTORED};
use crate::web::guard::Identity;
use crate::web::known::UNREAD_INCIDENT;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State as Shared};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use serde::Deserialize;

const PAGE: i64 = 100;

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Look {
    /// `open` or `all`.
    #[serde(default)]
    state: String,
    /// The place of the last one of the page before.
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "incidents.html")]
struct List {
    chrome: Chrome,
    all: bool,
    rows: Vec<Trouble>,
    before: Option<String>,
}

pub(in crate::web) async fn list(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Query(look): Query<Look>,
) -> Result<Response, Fault> {
    let now = state.now();
    let all = look.state == "all";
    let which = if all { Which::All } else { Which::Open };
    let before = look.before.as_deref().map(str::parse::<Place>).transpose();
    let before = before.map_err(|_| Fault::Refused(StatusCode::BAD_REQUEST, "`before` is not a position in the list".to_owned()))?;
    let incidents = state.incidents(which, before.as_ref(), PAGE).await?;
    let page = List {
        chrome: Chrome::new(&state, &identity, "incidents", "Incidents").following("*"),
        all,
        before: Place::after(&incidents, PAGE).map(|place| shown::segment(&place.to_string())),
        rows: incidents.iter().map(|incident| trouble(incident, now)).collect(),
    };
    Ok(html(&page))
}

#[derive(Template)]
#[template(path = "incident.html")]
struct Page {
    chrome: Chrome,
    id: String,
    title: String,
    mark: Mark,
    class: &'static str,
    /// As text, and as a link where it is a target.
    subject: String,
    link: Option<String>,
    state: String,
    since: Html,
    opened: Html,
    resolved: Option<Html>,
    acknowledged: Option<Html>,
    acknowledged_by: String,
    layer: String,
    reason: String,
    message: String,
    hint: String,
    members: Vec<(String, String)>,
    /// Of a storm or a group that it is a part of, or of what it depends on.
    parent: Option<String>,
    /// The target that is down, on which this one depends.
    because_of: String,
    /// What is told with this one, or not at all because of it.
    parts: Vec<Part>,
    events: Vec<Event>,
    messages: Vec<Message>,
    may_acknowledge: bool,
    /// When the page was made, in milliseconds.
    seen: i64,
    diagnoses: Vec<Diagnosis>,
    proof: Option<Proof>,
    evidence: Option<String>,
}

struct Part {
    id: String,
    title: String,
    open: bool,
}

struct Event {
    at: Html,
    kind: String,
    text: String,
}

struct Message {
    kind: String,
    created: Html,
    mark: Mark,
    told: String,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response, Fault> {
    let now = state.now();
    let store = state.knowing(&id).await?;
    let incident = store.incident(&id).await?.ok_or(Fault::NotFound("incident"))?;
    let events = store.incident_events(&id).await?;
    let deliveries = store.deliveries(&id).await?;
    let is_target = state.target(&incident.subject).await?.is_some();
    let proof = match &incident.evidence {
        Some(id) => state.evidence(id).await?.and_then(|(_, _, body)| Proof::read(id, &body)),
        None => None,
    };
    let parts = store.parts(&id).await?;
    let is_unstored = incident.acknowledged.is_some() && !state.is_acknowledgement_stored(&incident).await;
    let mut page = page_of(&state, &identity, incident, events, deliveries, is_target, proof, now);
    let part = |part: &IncidentRow| Part { id: shown::segment(&part.id), title: shown::plain(&part.title), open: part.resolved.is_none() };
    if is_unstored {
        page.state.push_str(&format!(" The acknowledgement is {UNSTORED}."));
    }
    page.parts = parts.iter().map(part).collect();
    Ok(html(&page))
}

#[expect(clippy::too_many_arguments, reason = "all that stands on one page, read one after the other")]
fn page_of(
    state: &State,
    identity: &Identity,
    incident: IncidentRow,
    events: Vec<EventRow>,
    deliveries: Vec<Delivery>,
    is_target: bool,
    proof: Option<(Vec<Diagnosis>, Proof)>,
    now: Moment,
) -> Page {
    let IncidentRow {
        id,
        subject,
        class,
        severity,
        title,
        detail,
        since,
        opened,
        resolved,
        acknowledged,
        acknowledged_by,
        parent,
        evidence,
    } = incident;
    let lasted = shown::span(resolved.unwrap_or(now).since(since));
    let told = match (resolved, acknowledged) {
        (Some(_), _) => format!("Resolved after {lasted}."),
        (None, Some(_)) => format!("Open for {lasted}, acknowledged."),
        (None, None) => format!("Open for {lasted}, not acknowledged."),
    };
    let (diagnoses, proof) = proof.map_or((Vec::new(), None), |(diagnoses, proof)| (diagnoses, Some(proof)));
    let optional = |text: Option<String>| text.map(|text| shown::plain(&text)).unwrap_or_default();
    Page {
        chrome: Chrome::new(state, identity, "incidents", shown::plain(&title)).following("*"),
        id: shown::segment(&id),
        title: shown::plain(&title),
        mark: shown::severity(severity),
        class: class.word(),
        link: is_target.then(|| shown::segment(&subject)),
        subject: shown::plain(&subject),
        state: told,
        since: shown::at(since),
        opened: shown::at(opened),
        resolved: resolved.map(shown::at),
        acknowledged: acknowledged.map(shown::at),
        acknowledged_by: optional(acknowledged_by),
        layer: optional(detail.layer),
        reason: optional(detail.reason),
        message: mcproof_report::escape_block(&detail.message).chars().take(2_000).collect(),
        hint: optional(detail.hint),
        members: detail.members.iter().take(1_000).map(|member| (shown::segment(member), shown::plain(member))).collect(),
        because_of: optional(detail.because_of),
        parent: parent.as_deref().map(shown::segment),
        parts: Vec::new(),
        events: events
            .iter()
            .map(|event| Event { at: shown::at(event.at), kind: shown::plain(&event.kind), text: shown::plain(&event.text) })
            .collect(),
        messages: deliveries.iter().map(|delivery| message(delivery, now)).collect(),
        seen: now.0,
        may_acknowledge: resolved.is_none() && acknowledged.is_none() && identity.role >= crate::role::Role::Operator,
        diagnoses,
        proof,
        evidence: evidence.as_deref().map(shown::segment),
    }
}

fn message(delivery: &Delivery, now: Moment) -> Message {
    let (mark, told) = match (&delivery.delivered, &delivery.last_error) {
        (Some(at), _) => {
            let by = delivery.delivered_by.as_deref().unwrap_or("nobody");
            (Mark { class: "good", shape: "●", word: "sent" }, format!("by {} at {}", shown::plain(by), shown::clock(*at)))
        }
        (None, Some(error)) => {
            let attempts = shown::count(usize::try_from(delivery.attempts).unwrap_or(0), "attempt");
            (Mark { class: "bad", shape: "■", word: "not sent" }, format!("after {attempts}: {}", shown::plain(error)))
        }
        (None, None) => (Mark { class: "idle", shape: "○", word: "waiting" }, String::new()),
    };
    Message { kind: shown::plain(&delivery.kind), created: shown::when(now, delivery.created), mark, told }
}

pub(in crate::web) async fn acknowledge(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Redirect, Fault> {
    let incident = match state.incident(&id).await {
        Ok(found) => found.ok_or(Fault::NotFound("incident"))?,
        Err(failure) if state.stands_in() => {
            let why = format!("the database does not respond: {failure}: {UNREAD_INCIDENT}");
            return Err(Fault::Refused(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        Err(failure) => return Err(failure.into()),
    };
    // Two people at once: the first one counts, and the page shows who it was. It also shows what became of it meanwhile.
    let id = incident.id;
    // When the page was made that the button stands on.
    let seen = url::form_urlencoded::parse(&body).find(|(name, _)| name == "seen").and_then(|(_, value)| value.parse::<i64>().ok());
    let decided = state.decide(Decision::Acknowledge { incident: &id, who: &identity.name, seen: seen.map(Moment) }).await?;
    if !decided.is_done && state.is_waiting(&id).await {
        return Err(Fault::Refused(StatusCode::CONFLICT, HAS_CHANGED.to_owned()));
    }
    let _ = state.bell.send(incident.subject);
    Ok(Redirect::to(&format!("/incidents/{}", shown::segment(&id))))
}
