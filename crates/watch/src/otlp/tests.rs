#[path = "../../tests/receiver/mod.rs"]
mod receiver;
#[path = "../../tests/receivers/mod.rs"]
mod receivers;

use super::*;
use crate::metrics::Outcome;
use crate::state::{Availability, Surface, Verdict};
use crate::store::read::TargetRow;
use receiver::{Receiver, Reply};
use std::collections::BTreeMap;

fn result(slot: i64) -> ResultRow {
    ResultRow {
        target: "a".into(),
        slot: Moment(slot),
        region: "eu".into(),
        attempt: 0,
        at: Moment(1_000),
        verdict: Verdict::Down,
        reason: "tls-expired".into(),
        duration: 3_000,
        phases: vec![("dns".into(), 1_000), ("connect".into(), 2_000)],
        contract: None,
        evidence: None,
    }
}

#[test]
fn a_probe_is_a_span_with_its_phases_one_after_the_other() {
    let spans = spans(&result(0));
    assert_eq!(spans.len(), 3);
    assert_eq!((spans[0]["traceId"].as_str().unwrap().len(), spans[0]["spanId"].as_str().unwrap().len()), (32, 16));
    assert_eq!((&spans[0]["startTimeUnixNano"], &spans[0]["endTimeUnixNano"]), (&json!("1000000000"), &json!("1003000000")));
    assert_eq!((&spans[2]["startTimeUnixNano"], &spans[2]["parentSpanId"]), (&spans[1]["endTimeUnixNano"], &spans[0]["spanId"]));
    assert_eq!(spans[0]["status"], json!({ "code": 2, "message": "tls-expired" }));
    assert_ne!(super::spans(&result(1))[0]["traceId"], spans[0]["traceId"]);
    assert_eq!(super::spans(&result(0)), spans);
}

#[test]
fn what_a_collector_did_not_take_waits_and_the_oldest_is_given_up_first() {
    let queue = Queue::default();
    (0..MOST as i64 + 5).for_each(|slot| queue.push(&result(slot)));
    let taken = queue.take();
    assert_eq!((taken.len(), taken[0].slot), (BATCH, Moment(5)));
    queue.put_back(taken);
    assert_eq!(queue.take()[0].slot, Moment(5));
}

/// A target with everything that there is to tell.
fn readings() -> Readings {
    let target = TargetRow {
        name: "a".into(),
        source: "config".into(),
        host: "a:443".into(),
        every: 60_000,
        tags: Vec::new(),
        public: false,
        availability: Availability::Ok,
        surface: Surface::Ok,
        contract: None,
        last_slot: Moment(0),
        last_result: Moment(1_000),
        muted_until: Moment(0),
        since: Moment(0),
    };
    Readings {
        targets: vec![target],
        newest: [("a".to_owned(), result(0))].into(),
        changes: vec![("a".into(), "breaking".into(), 2)],
        certificates: [("a".to_owned(), Moment(1_800_000_000_000))].into(),
        open: BTreeMap::new(),
        lag: Duration::from_millis(120),
        unsent: Duration::from_secs(3),
        is_rejected: false,
    }
}

async fn told(collector: &Receiver, queue: &Queue) -> Result<(), ExportFailure> {
    let outcome = Outcome { target: "a".into(), verdict: "down".into(), reason: "tls-expired".into() };
    let origin = Origin { instance: "eu/host/7".into(), began: Moment(500) };
    export(&collector.url(""), &Network::default(), queue, &readings(), &[(outcome, 7)], &origin, Moment(2_000)).await
}

fn queue_of(slots: i64) -> Queue {
    let queue = Queue::default();
    (0..slots).for_each(|slot| queue.push(&result(slot)));
    queue
}

#[tokio::test]
async fn what_a_collector_is_sent_is_what_the_official_messages_allow() {
    let collector = Receiver::http().await;
    told(&collector, &queue_of(2)).await.unwrap();
    let heard = collector.heard();
    assert_eq!(heard.iter().map(|heard| heard.path.as_str()).collect::<Vec<_>>(), ["/v1/metrics", "/v1/traces"]);
    assert!(heard.iter().all(|heard| heard.header("content-type") == "application/json"));
    let lines: Vec<String> = heard.iter().map(|heard| json!({ "path": heard.path, "body": heard.body }).to_string()).collect();
    let held = receivers::judge("otlp.py", &lines.join("\n"));
    assert_eq!(
        held["metrics"],
        json!([
            ["mcproof_probe_success", "gauge", 1],
            ["mcproof_probe_duration_seconds", "gauge", 2],
            ["mcproof_probe_results_total", "sum", 1],
            ["mcproof_tls_cert_not_after_timestamp_seconds", "gauge", 1],
            ["mcproof_contract_changes_total", "sum", 1],
            ["mcproof_incidents_open", "gauge", 39],
            ["mcproof_schedule_lag_seconds", "gauge", 1],
            ["mcproof_outbox_oldest_age_seconds", "gauge", 1],
            ["mcproof_configuration_rejected", "gauge", 1],
        ])
    );
    let of_a_probe = ["mcproof.probe", "mcproof.dns", "mcproof.connect"];
    assert_eq!(held["spans"], json!([of_a_probe, of_a_probe].concat()));
    assert_eq!(held["resources"].as_array().unwrap().len(), 2);
    for resource in held["resources"].as_array().unwrap() {
        assert_eq!(resource["service.name"], "mcproof-watch");
        assert_eq!(resource["service.instance.id"], "eu/host/7");
        assert_eq!(resource["process.creation.time"], "1970-01-01T00:00:00Z");
    }
}

#[tokio::test]
async fn what_a_collector_refuses_for_good_is_not_sent_again() {
    for (status, is_kept) in [(400, false), (413, false), (500, false), (429, true), (502, true), (503, true), (504, true)] {
        let collector = Receiver::http().await;
        collector.will([Reply::Accept, Reply::Status(status, "")]);
        let queue = queue_of(3);
        assert!(matches!(told(&collector, &queue).await, Err(ExportFailure::Status(found)) if found == status));
        assert_eq!(queue.take().len(), if is_kept { 3 } else { 0 }, "{status}");
    }
}
