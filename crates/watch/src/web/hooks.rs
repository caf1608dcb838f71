//! Where services tell us that somebody has acknowledged: PagerDuty by a webhook, Slack by a button. Each call is signed by the service
//! with a secret of its channel, is new, and is taken once. What they do stands in the audit log like everything else that people do.

use super::decisions::{Decision, HAS_CHANGED};
use super::{Peer, State};
use crate::channel::{ACKNOWLEDGE, of_alert_key};
use crate::config::{ChannelSpec, Secret};
use crate::moment::{DAY, Moment};
use crate::store::StoreFailure;
use crate::store::audit::{self, AuditEvent};
use axum::body::Bytes;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use ring::hmac;
use serde_json::Value;
use std::time::Duration;

/// Bytes of a body.
pub(super) const LARGEST: usize = 256 * 1024;
/// Between the time that Slack signs and ours, <https://docs.slack.dev/authentication/verifying-requests-from-slack>.
const SLACK_TOLERANCE: Duration = Duration::from_secs(300);
/// Of the name of whoever acknowledges.
const LONGEST_NAME: usize = 100;

/// What somebody has done at a service.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    /// The same each time that this is told.
    id: String,
    via: &'static str,
    /// Nothing if it is nothing that we do.
    acknowledges: Option<Acknowledgement>,
}

#[derive(Debug, PartialEq, Eq)]
struct Acknowledgement {
    incident: String,
    /// How often it had become more severe when what they acknowledge was sent, if that is known.
    alert: Option<usize>,
    who: String,
    /// As of when they knew what it was.
    seen: Option<Moment>,
}

/// Why a call is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookRejection {
    Unsigned,
    Old,
    /// It is signed, and is nothing that the service is known to send.
    Strange,
}

pub(super) async fn take(
    Shared(state): Shared<State>,
    peer: Option<Extension<Peer>>,
    Path(channel): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let config = state.config();
    let now = state.now();
    let read = match config.channels.get(&channel) {
        Some(ChannelSpec::PagerDuty { webhook_secret: Some(secret), .. }) => of_pagerduty(secret, &headers, &body, now),
        Some(ChannelSpec::Slack { signing_secret: Some(secret), .. }) => of_slack(secret, &headers, &body, now),
        // Which channels there are is nobody's business.
        _ => Err(HookRejection::Unsigned),
    };
    let call = match read {
        Ok(call) => call,
        Err(refusal) => {
            if refusal == HookRejection::Unsigned && state.inner.refusals.count(peer.map(|Extension(peer)| peer), now) {
                return (StatusCode::TOO_MANY_REQUESTS, "too many wrong signatures: wait a minute\n").into_response();
            }
            let (status, text) = match refusal {
                HookRejection::Unsigned => (StatusCode::UNAUTHORIZED, "no channel of this name has the secret of this signature\n"),
                HookRejection::Old => (StatusCode::UNAUTHORIZED, "the signature is too old, or the clock of the sender is wrong\n"),
                HookRejection::Strange => (StatusCode::BAD_REQUEST, "unknown body format\n"),
            };
            return (status, text).into_response();
        }
    };
    match take_once(&state, &channel, &call, now).await {
        Ok(response) => response,
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not accept it: send it again\n").into_response(),
    }
}

async fn take_once(state: &State, channel: &str, call: &Call, now: Moment) -> Result<Response, StoreFailure> {
    let Some(Acknowledgement { incident, alert, who, seen }) = &call.acknowledges else { return Ok("nothing to do\n".into_response()) };
    let Some(row) = state.incident(incident).await? else {
        // Another monitor may have this channel, too.
        return Ok("no such incident\n".into_response());
    };
    let id = format!("{} {channel} {}", call.via, call.id);
    if !state.decide(Decision::TakeCall { id: &id }).await?.is_done {
        return Ok((StatusCode::CONFLICT, "already received\n").into_response());
    }
    let done = async {
        // What it became since has an alert of its own.
        let became = match alert {
            Some(alert) => state.raised(&row.id).await?.get(*alert).copied(),
            None => None,
        };
        acknowledge(state, call.via, &row.id, who, seen.iter().copied().chain(became).min(), now).await
    };
    let done = done.await;
    if done.is_err() {
        // If that fails as well, somebody has to acknowledge again.
        let _ = state.decide(Decision::GiveBackCall { id: &id }).await;
    }
    let refusal = done?;
    let _ = state.bell.send(row.subject);
    Ok(format!("{}\n", refusal.unwrap_or("acknowledged")).into_response())
}

/// Why it was not acknowledged, if so.
async fn acknowledge(
    state: &State,
    via: &'static str,
    incident: &str,
    who: &str,
    seen: Option<Moment>,
    now: Moment,
) -> Result<Option<&'static str>, StoreFailure> {
    let (entry, who_there) = (&audit::new_id(now), format!("{who} ({via})"));
    let event = AuditEvent { who, via, action: "acknowledge", subject: incident };
    state.decide(Decision::WriteDown { entry, event }).await?;
    let is_new = state.decide(Decision::Acknowledge { incident, who: &who_there, seen }).await?.is_done;
    let refusal = if is_new {
        None
    } else if state.is_waiting(incident).await {
        Some(HAS_CHANGED)
    } else {
        Some("it is resolved or already acknowledged")
    };
    let outcome = refusal.map_or_else(|| "done".to_owned(), |why| format!("refused: {why}"));
    // That somebody tried is written down already.
    let _ = state.decide(Decision::WriteOutcome { entry, event, outcome: &outcome }).await;
    Ok(refusal)
}

/// A webhook of V3. While a secret is replaced there are several signatures of which one is right.
/// <https://developer.pagerduty.com/docs/verifying-signatures>, <https://developer.pagerduty.com/docs/webhooks-overview>
fn of_pagerduty(secret: &Secret, headers: &HeaderMap, body: &[u8], now: Moment) -> Result<Call, HookRejection> {
    let mut signatures = header(headers, "x-pagerduty-signature").split(',').filter_map(|one| one.trim().strip_prefix("v1="));
    if !signatures.any(|signature| is_signed(secret, &[body], signature)) {
        return Err(HookRejection::Unsigned);
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| HookRejection::Strange)?;
    let event = &body["event"];
    let (Some(id), Some(kind)) = (event["id"].as_str(), event["event_type"].as_str()) else { return Err(HookRejection::Strange) };
    let occurred = event["occurred_at"].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok()).ok_or(HookRejection::Strange)?;
    let occurred = Moment(occurred.as_millisecond());
    // PagerDuty tries again for some time. What is older than what is remembered could come twice.
    if now.since(occurred) > DAY || occurred > now + DAY {
        return Err(HookRejection::Old);
    }
    // A clock that is ahead of ours has not seen what is to come.
    let seen = Some(occurred.min(now));
    // What our own messages do there is done by a service, and nobody has acknowledged anything by that.
    let agent = &event["agent"];
    let is_person = agent["type"].as_str() == Some("user_reference");
    let does = matches!(kind, "incident.acknowledged" | "incident.resolved") && is_person;
    let acknowledges = event["data"]["incident_key"].as_str().filter(|_| does).map(|key| {
        let (incident, alert) = of_alert_key(key);
        let who = name(agent["summary"].as_str().or_else(|| agent["id"].as_str()));
        Acknowledgement { incident: incident.to_owned(), alert: Some(alert), who, seen }
    });
    Ok(Call { id: id.to_owned(), via: "pagerduty", acknowledges })
}

/// A button of a message. <https://docs.slack.dev/authentication/verifying-requests-from-slack>,
/// <https://docs.slack.dev/reference/interaction-payloads/block_actions-payload>
fn of_slack(secret: &Secret, headers: &HeaderMap, body: &[u8], now: Moment) -> Result<Call, HookRejection> {
    let at = header(headers, "x-slack-request-timestamp");
    let signature = header(headers, "x-slack-signature");
    let hex = signature.strip_prefix("v0=").ok_or(HookRejection::Unsigned)?;
    if !is_signed(secret, &[b"v0:", at.as_bytes(), b":", body], hex) {
        return Err(HookRejection::Unsigned);
    }
    let at = at.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000)).map(Moment).ok_or(HookRejection::Strange)?;
    if now.since(at) > SLACK_TOLERANCE || at.since(now) > SLACK_TOLERANCE {
        return Err(HookRejection::Old);
    }
    let payload = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload").ok_or(HookRejection::Strange)?.1;
    let payload: Value = serde_json::from_str(&payload).map_err(|_| HookRejection::Strange)?;
    let mut actions = payload["actions"].as_array().into_iter().flatten().filter(|_| payload["type"].as_str() == Some("block_actions"));
    let pressed = actions.find(|action| action["action_id"].as_str() == Some(ACKNOWLEDGE)).and_then(|action| action["value"].as_str());
    let user = &payload["user"];
    let acknowledges = pressed.map(|pressed| {
        // A button of an earlier version does not say when it was made. The message has the time at which Slack took it.
        let made = pressed.rsplit_once(' ').and_then(|(incident, at)| Some((incident, at.parse::<i64>().ok()?)));
        let (incident, seen) = match made {
            Some((incident, at)) => (incident, Some(Moment(at))),
            None => (pressed, taken_at(payload["message"]["ts"].as_str().or_else(|| payload["container"]["message_ts"].as_str()))),
        };
        let who = name(["name", "username", "id"].into_iter().find_map(|key| user[key].as_str()));
        Acknowledgement { incident: incident.to_owned(), alert: None, who, seen: seen.map(|seen| seen.min(now)) }
    });
    Ok(Call { id: hex.to_ascii_lowercase(), via: "slack", acknowledges })
}

/// The second of the time of a message, as Slack writes it: `1548261231.000200`.
fn taken_at(time: Option<&str>) -> Option<Moment> {
    time?.split('.').next()?.parse::<i64>().ok()?.checked_mul(1_000).map(Moment)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether this is the HMAC-SHA-256 of these parts, in hexadecimal. Its time tells nothing.
fn is_signed(secret: &Secret, parts: &[&[u8]], hex: &str) -> bool {
    let digits: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    digits.is_some_and(|signature| hmac::verify(&key, &parts.concat(), &signature).is_ok())
}

/// As it is shown and written down.
fn name(given: Option<&str>) -> String {
    given.map_or_else(|| "unknown".to_owned(), |name| mcproof_report::escape_line(name, LONGEST_NAME))
}
