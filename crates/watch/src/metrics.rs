//! What machines ask of the monitor, as OpenMetrics. Gauges are read from the store when somebody asks; results are counted as
//! they come in. Labels hold no hashes: each would be a new series.

use crate::incident::{Class, Severity};
use crate::moment::Moment;
use crate::otlp::ExportFailure;
use crate::store::StoreFailure;
use crate::store::read::{ResultRow, TargetRow};
use crate::web::{Fault, State};
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is counted while this process runs.
#[derive(Debug, Default)]
pub struct Metrics {
    results: Mutex<BTreeMap<Outcome, u64>>,
    exports: Mutex<Exports>,
}

/// How the collector of OTLP takes what it is sent.
#[derive(Debug, Default)]
struct Exports {
    failed: u64,
    /// Why it did not take the last export.
    trouble: Option<String>,
}

/// What a probe came to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) target: String,
    pub(crate) verdict: String,
    pub(crate) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Target {
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseOf {
    target: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeOf {
    target: String,
    level: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    class: &'static str,
    severity: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// One look at the store.
#[derive(Debug, Default)]
pub struct Readings {
    pub targets: Vec<TargetRow>,
    /// The last result of each target.
    pub newest: BTreeMap<String, ResultRow>,
    /// Target, level, number.
    pub changes: Vec<(String, String, i64)>,
    /// When the certificate of a target ends.
    pub certificates: BTreeMap<String, Moment>,
    /// Incidents that are open.
    pub open: BTreeMap<(Class, Severity), i64>,
    /// Delay of the most overdue probe.
    pub lag: Duration,
    /// Age of the oldest undelivered notification.
    pub unsent: Duration,
    /// The file of the configuration was not applied.
    pub is_rejected: bool,
}

impl Metrics {
    /// Counts a result that was written.
    pub fn observe(&self, result: &ResultRow) {
        let outcome = Outcome { target: result.target.clone(), verdict: result.verdict.word().to_owned(), reason: result.reason.clone() };
        *self.results.lock().expect("no thread panics while it holds the lock").entry(outcome).or_default() += 1;
    }

    pub(crate) fn counted(&self) -> Vec<(Outcome, u64)> {
        self.results
            .lock()
            .expect("no thread panics while it holds the lock")
            .iter()
            .map(|(outcome, count)| (outcome.clone(), *count))
            .collect()
    }

    /// An export is over, and failed for this reason if there is one.
    pub(crate) fn exported(&self, failure: Option<&ExportFailure>) {
        let mut exports = self.exports.lock().expect("no thread panics while it holds the lock");
        exports.failed += u64::from(failure.is_some());
        exports.trouble = failure.map(ToString::to_string);
    }

    /// Why the collector of OTLP did not take what it was sent last.
    pub fn trouble_with_collector(&self) -> Option<String> {
        self.exports.lock().expect("no thread panics while it holds the lock").trouble.clone()
    }

    /// The exposition.
    pub fn text(&self, readings: &Readings) -> String {
        let success = Family::<Target, Gauge>::default();
        let durations = Family::<PhaseOf, Seconds>::default();
        let certificates = Family::<Target, Gauge>::default();
        for target in &readings.targets {
            let Some(result) = readings.newest.get(&target.name) else { continue };
            success.get_or_create(&Target { target: target.name.clone() }).set(i64::from(result.verdict.is_up()));
            // A phase that was not reached took no time: it is not there.
            for (phase, micros) in &result.phases {
                let seconds = *micros as f64 / 1e6;
                durations.get_or_create(&PhaseOf { target: target.name.clone(), phase: phase.clone() }).set(seconds);
            }
        }
        for (name, ends) in &readings.certificates {
            certificates.get_or_create(&Target { target: name.clone() }).set(ends.0 / 1_000);
        }
        let open = Family::<Kind, Gauge>::default();
        for (class, severity, count) in readings.open_by_kind() {
            open.get_or_create(&Kind { class: class.word(), severity: severity.word() }).set(count);
        }
        let mut registry = Registry::with_prefix("mcproof");
        registry.register("probe_success", "Whether the last probe of the target found it up", success);
        registry.register_with_unit(
            "probe_duration",
            "Duration of each phase of the last probe; phases that were not reached are omitted",
            Unit::Seconds,
            durations,
        );
        registry.register_collector(Box::new(Counts {
            name: "probe_results",
            help: "Results since the start of this process",
            counts: self.counted(),
        }));
        let failed = self.exports.lock().expect("no thread panics while it holds the lock").failed;
        registry.register("otlp_export_failures", "Exports that the collector rejected", ConstCounter::new(failed));
        registry.register_with_unit(
            "tls_cert_not_after_timestamp",
            "Expiry of the certificate of the target, as a Unix time",
            Unit::Seconds,
            certificates,
        );
        registry.register("incidents_open", "Open incidents, including the members of storms", open);
        registry.register_with_unit(
            "schedule_lag",
            "Delay of the most overdue probe",
            Unit::Seconds,
            ConstGauge::new(readings.lag.as_secs_f64()),
        );
        registry.register_with_unit(
            "outbox_oldest_age",
            "Age of the oldest undelivered notification",
            Unit::Seconds,
            ConstGauge::new(readings.unsent.as_secs_f64()),
        );
        registry.register(
            "configuration_rejected",
            "Whether the configuration file was changed and not applied, so that an earlier version is in use",
            ConstGauge::new(i64::from(readings.is_rejected)),
        );
        let change = |(target, level, count): &(String, String, i64)| {
            (ChangeOf { target: target.clone(), level: level.clone() }, u64::try_from(*count).unwrap_or(0))
        };
        let counts = readings.changes.iter().map(change).collect();
        registry.register_collector(Box::new(Counts { name: "contract_changes", help: "Contract changes of a target", counts }));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a String takes all text");
        text
    }
}

impl Readings {
    /// Each class with each severity: one that is over is zero, not gone.
    pub(crate) fn open_by_kind(&self) -> impl Iterator<Item = (Class, Severity, i64)> {
        let kinds = Class::ALL.into_iter().flat_map(|class| Severity::ALL.map(|severity| (class, severity)));
        kinds.map(|kind| (kind.0, kind.1, self.open.get(&kind).copied().unwrap_or(0)))
    }
}

/// A counter whose numbers are known from elsewhere.
#[derive(Debug)]
struct Counts<Labels> {
    name: &'static str,
    help: &'static str,
    counts: Vec<(Labels, u64)>,
}

impl<Labels: EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static> Collector for Counts<Labels> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Counter)?;
        for (labels, count) in &self.counts {
            ConstCounter::new(*count).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}

/// # Errors
/// The database does not respond.
pub async fn read(state: &State) -> Result<Readings, StoreFailure> {
    let now = (state.now)();
    let since = |moment: Option<Moment>| moment.map_or(Duration::ZERO, |moment| now.since(moment));
    let live = state.live();
    Ok(Readings {
        targets: state.targets().await?,
        newest: live.newest_results().await?,
        changes: state.store.contract_changes_by_level().await?,
        certificates: state.store.certificates().await?,
        open: live.open_incidents().await?,
        lag: since(live.oldest_due(now).await?),
        unsent: since(live.oldest_unsent().await?),
        is_rejected: state.worker_health.rejection().is_some(),
    })
}

pub(crate) async fn page(Shared(state): Shared<State>) -> Result<Response, Fault> {
    let readings = read(&state).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], state.metrics.text(&readings)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Availability, Surface, Verdict};

    #[test]
    fn phases_that_were_not_reached_are_missing_and_hostile_names_stay_labels() {
        let name = "a\"b\\c\nd";
        let target = TargetRow {
            name: name.to_owned(),
            source: "config".into(),
            host: String::new(),
            every: 60_000,
            tags: vec![],
            public: false,
            availability: Availability::Down,
            surface: Surface::Ok,
            contract: None,
            last_slot: Moment(0),
            last_result: Moment(0),
            muted_until: Moment(0),
            since: Moment(0),
        };
        let result = ResultRow {
            target: name.to_owned(),
            slot: Moment(0),
            region: "eu".into(),
            attempt: 0,
            at: Moment(0),
            verdict: Verdict::Down,
            reason: "tls-expired".into(),
            duration: 2_500,
            phases: vec![("dns".into(), 1_500), ("connect".into(), 1_000)],
            contract: None,
            evidence: None,
        };
        let metrics = Metrics::default();
        metrics.observe(&result);
        metrics.exported(Some(&ExportFailure::Status(503)));
        let readings = Readings {
            targets: vec![target],
            newest: BTreeMap::from([(name.to_owned(), result)]),
            changes: vec![("a".into(), "breaking".into(), 2)],
            certificates: BTreeMap::from([("a".to_owned(), Moment(5_000))]),
            open: BTreeMap::from([((Class::Storm, Severity::Page), 2)]),
            lag: Duration::from_millis(1_500),
            unsent: Duration::ZERO,
            is_rejected: true,
        };
        let text = metrics.text(&readings);
        let name = r#"target="a\"b\\c\nd""#;
        for line in [
            format!("mcproof_probe_success{{{name}}} 0"),
            format!("mcproof_probe_duration_seconds{{{name},phase=\"dns\"}} 0.0015"),
            format!("mcproof_probe_results_total{{{name},verdict=\"down\",reason=\"tls-expired\"}} 1"),
            "mcproof_tls_cert_not_after_timestamp_seconds{target=\"a\"} 5".to_owned(),
            "mcproof_contract_changes_total{target=\"a\",level=\"breaking\"} 2".to_owned(),
            "mcproof_incidents_open{class=\"storm\",severity=\"page\"} 2".to_owned(),
            "mcproof_incidents_open{class=\"availability\",severity=\"page\"} 0".to_owned(),
            "mcproof_otlp_export_failures_total 1".to_owned(),
            "mcproof_schedule_lag_seconds 1.5".to_owned(),
            "mcproof_outbox_oldest_age_seconds 0.0".to_owned(),
            "mcproof_configuration_rejected 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("phase=\"tls\""));
        assert_eq!(metrics.trouble_with_collector().as_deref(), Some("the collector returned 503"));
        metrics.exported(None);
        assert_eq!(metrics.trouble_with_collector(), None);
        assert!(text.ends_with("# EOF\n"));
    }
}
