//! The same numbers as `/metrics`, and a span for each probe with its phases, for a collector: OTLP over HTTP in its JSON form.
//! Written here, because the SDK brings a second HTTP client and gRPC with it.

use crate::metrics::Readings;
use crate::moment::Moment;
use crate::store::read::ResultRow;
use mcproof_client::{HttpCall, Network};
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::collections::VecDeque;
use std::hash::Hasher as _;
use std::sync::Mutex;
use std::time::Duration;
use url::Url;

/// Between two exports.
pub(crate) const EVERY: Duration = Duration::from_secs(15);
/// For one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Results that wait for a collector that does not answer; the oldest go first.
const MOST: usize = 20_000;
/// Spans in one request.
const BATCH: usize = 500;

/// Probes that no collector knows of yet.
#[derive(Debug, Default)]
pub(crate) struct Queue(Mutex<VecDeque<ResultRow>>);

impl Queue {
    pub(crate) fn push(&self, result: &ResultRow) {
        let mut waiting = self.0.lock().expect("no thread panics while it holds the lock");
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back(result.clone());
    }

    fn take(&self) -> Vec<ResultRow> {
        let mut waiting = self.0.lock().expect("no thread panics while it holds the lock");
        let most = waiting.len().min(BATCH);
        waiting.drain(..most).collect()
    }

    fn put_back(&self, results: Vec<ResultRow>) {
        let mut waiting = self.0.lock().expect("no thread panics while it holds the lock");
        for result in results.into_iter().rev() {
            if waiting.len() < MOST {
                waiting.push_front(result);
            }
        }
    }
}

/// A collector that did not take what it was sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    #[error("`otlp` is not a valid URL")]
    Url,
    #[error("cannot reach the collector: {0}")]
    Reach(String),
    #[error("the collector returned {0}")]
    Status(u16),
    #[error("no response from the collector within {} s", PATIENCE.as_secs())]
    Timeout,
}

impl ExportFailure {
    /// Whether the same request may be sent again (OTLP 1, "Retryable Response Codes").
    fn may_pass(&self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 429 | 502..=504),
            Self::Url | Self::Reach(_) | Self::Timeout => true,
        }
    }
}

/// Whose numbers and spans they are.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The same for as long as this process lives, and another one for each process.
    pub(crate) instance: String,
    /// When it began.
    pub(crate) began: Moment,
}

impl Origin {
    /// By the names of OpenTelemetry's semantic conventions.
    fn resource(&self) -> Value {
        json!({ "attributes": [
            text("service.name", "mcproof-watch"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &self.instance),
            text("process.creation.time", &self.began.to_string()),
        ] })
    }
}

/// Sends what waits, and the numbers of this moment.
///
/// # Errors
/// The collector took less than all; what it may take another time waits for that.
pub(crate) async fn export(
    root: &str,
    network: &Network,
    queue: &Queue,
    readings: &Readings,
    counted: &[(crate::metrics::Outcome, u64)],
    origin: &Origin,
    now: Moment,
) -> Result<(), ExportFailure> {
    post(root, "v1/metrics", network, &metrics(readings, counted, origin, now)).await?;
    loop {
        let results = queue.take();
        if results.is_empty() {
            return Ok(());
        }
        if let Err(failure) = post(root, "v1/traces", network, &traces(&results, origin)).await {
            // What is refused for good would hold up all that comes after it.
            if failure.may_pass() {
                queue.put_back(results);
            }
            return Err(failure);
        }
    }
}

async fn post(root: &str, path: &str, network: &Network, body: &Value) -> Result<(), ExportFailure> {
    let url = Url::parse(&format!("{}/{path}", root.trim_end_matches('/'))).map_err(|_| ExportFailure::Url)?;
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let call = async {
        let call = HttpCall::connect(&url, network).await.map_err(|broken| ExportFailure::Reach(broken.to_string()))?;
        let sent = call.send("POST", &headers, body.to_string().into_bytes()).await;
        let answer = sent.map_err(|broken| ExportFailure::Reach(broken.to_string()))?;
        if (200..300).contains(&answer.status) { Ok(()) } else { Err(ExportFailure::Status(answer.status)) }
    };
    tokio::time::timeout(PATIENCE, call).await.unwrap_or(Err(ExportFailure::Timeout))
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn scope() -> Value {
    json!({ "name": "mcproof", "version": env!("CARGO_PKG_VERSION") })
}

/// 64-bit integers are strings in the JSON of OTLP.
fn nanos(micros: i64) -> String {
    micros.saturating_mul(1_000).to_string()
}

/// A span for each probe, one below it for each phase.
fn traces(results: &[ResultRow], origin: &Origin) -> Value {
    let spans: Vec<Value> = results.iter().flat_map(spans).collect();
    json!({ "resourceSpans": [{ "resource": origin.resource(), "scopeSpans": [{ "scope": scope(), "spans": spans }] }] })
}

fn spans(result: &ResultRow) -> Vec<Value> {
    const CLIENT: u8 = 3;
    const INTERNAL: u8 = 1;
    let (trace, root) = (id(result, "trace"), &id(result, "probe")[..16]);
    let begin = result.at.0.saturating_mul(1_000);
    let status = if result.verdict.is_up() { json!({ "code": 1 }) } else { json!({ "code": 2, "message": result.reason }) };
    let mut spans = vec![json!({
        "traceId": trace, "spanId": root, "name": "mcproof.probe", "kind": CLIENT,
        "startTimeUnixNano": nanos(begin), "endTimeUnixNano": nanos(begin + result.duration),
        "attributes": [
            text("mcproof.target", &result.target), text("mcproof.region", &result.region), text("mcproof.verdict", result.verdict.word()),
            text("mcproof.reason", &result.reason), text("mcproof.slot", &result.slot.to_string()),
            json!({ "key": "mcproof.attempt", "value": { "intValue": result.attempt.to_string() } }),
        ],
        "status": status,
    })];
    let mut at = begin;
    for (phase, duration) in &result.phases {
        spans.push(json!({
            "traceId": trace, "spanId": &id(result, phase)[..16], "parentSpanId": root, "name": format!("mcproof.{phase}"), "kind": INTERNAL,
            "startTimeUnixNano": nanos(at), "endTimeUnixNano": nanos(at + duration),
        }));
        at += duration;
    }
    spans
}

/// The same whoever exports a result, and however often: a collector sees it once.
fn id(result: &ResultRow, part: &str) -> String {
    let mut hasher = SipHasher13::new();
    for text in [part, &result.target, &result.region] {
        hasher.write(text.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.write_i64(result.slot.0);
    hasher.write_i64(result.attempt);
    format!("{:032x}", hasher.finish128().as_u128())
}

fn metrics(readings: &Readings, counted: &[(crate::metrics::Outcome, u64)], origin: &Origin, now: Moment) -> Value {
    let at = nanos(now.0.saturating_mul(1_000));
    let whole =
        |target: &str, value: i64| json!({ "attributes": [text("target", target)], "timeUnixNano": at, "asInt": value.to_string() });
    let gauge = |name: &str, unit: &str, points: Vec<Value>| json!({ "name": name, "unit": unit, "gauge": { "dataPoints": points } });
    let seconds = |value: f64| vec![json!({ "timeUnixNano": at, "asDouble": value })];
    let newest = || readings.targets.iter().filter_map(|target| Some((&target.name, readings.newest.get(&target.name)?)));
    let success = newest().map(|(name, result)| whole(name, i64::from(result.verdict.is_up()))).collect();
    let phases = newest().flat_map(|(name, result)| {
        result.phases.iter().map(|(phase, micros)| {
            let seconds = *micros as f64 / 1e6;
            json!({ "attributes": [text("target", name), text("phase", phase)], "timeUnixNano": at, "asDouble": seconds })
        })
    });
    let sum = |name: &str, points: Vec<Value>| {
        const CUMULATIVE: u8 = 2;
        json!({ "name": name, "sum": { "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points } })
    };
    let begin = nanos(origin.began.0.saturating_mul(1_000));
    let results = counted.iter().map(|(outcome, count)| {
        json!({
            "attributes": [text("target", &outcome.target), text("verdict", &outcome.verdict), text("reason", &outcome.reason)],
            "startTimeUnixNano": begin, "timeUnixNano": at, "asInt": count.to_string(),
        })
    });
    let changes = readings.changes.iter().map(|(target, level, count)| {
        json!({ "attributes": [text("target", target), text("level", level)], "startTimeUnixNano": begin, "timeUnixNano": at, "asInt": count.to_string() })
    });
    let open = readings.open_by_kind().map(|(class, severity, count)| {
        let kind = [text("class", class.word()), text("severity", severity.word())];
        json!({ "attributes": kind, "timeUnixNano": at, "asInt": count.to_string() })
    });
    let all = json!([
        gauge("mcproof_probe_success", "1", success),
        gauge("mcproof_probe_duration_seconds", "s", phases.collect()),
        sum("mcproof_probe_results_total", results.collect()),
        gauge(
            "mcproof_tls_cert_not_after_timestamp_seconds",
            "s",
            readings.certificates.iter().map(|(name, ends)| whole(name, ends.0 / 1_000)).collect()
        ),
        sum("mcproof_contract_changes_total", changes.collect()),
        gauge("mcproof_incidents_open", "1", open.collect()),
        gauge("mcproof_schedule_lag_seconds", "s", seconds(readings.lag.as_secs_f64())),
        gauge("mcproof_outbox_oldest_age_seconds", "s", seconds(readings.unsent.as_secs_f64())),
        gauge(
            "mcproof_configuration_rejected",
            "1",
            vec![json!({ "timeUnixNano": at, "asInt": i64::from(readings.is_rejected).to_string() })]
        ),
    ]);
    json!({ "resourceMetrics": [{ "resource": origin.resource(), "scopeMetrics": [{ "scope": scope(), "metrics": all }] }] })
}

#[cfg(test)]
mod tests;
