//! `mcproof watch test-alert CONFIG`: whether each channel takes a page and its end, tried for real.

use super::log::Form;
use super::{AlertArguments, ConfigOverrides, reading};
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{network, output, settings, suggest};
use mcproof_client::Network;
use mcproof_report::escape;
use mcproof_watch::channel::{DeliveryClient, DeliveryFailure, Kind, Message, Payload, pack};
use mcproof_watch::config::{ChannelSpec, Config};
use mcproof_watch::incident::{Class, Detail, Severity};
use mcproof_watch::moment::Moment;
use serde_json::json;
use std::time::{Duration, Instant};

/// What became of one message.
struct AlertOutcome {
    channel: String,
    service: &'static str,
    kind: Kind,
    outcome: Result<String, String>,
    took: Duration,
}

pub(super) fn run(arguments: &AlertArguments) -> Result<Exit, Failure> {
    let as_it_stands = ConfigOverrides { listen: None, database: None, region: None };
    let Some(config) = reading::read(&arguments.config, &as_it_stands)?.or_tell(Form::Text) else { return Ok(Exit::BadInput) };
    let channels = chosen(&config, &arguments.channels)?;
    let delivery_client = DeliveryClient::new(Network { proxies: network::of_environment(), ..Network::default() });
    let told = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        tokio::select! {
            told = tell_all(&config, &channels, &delivery_client) => Ok(Ok(told)),
            exit = interrupts.next() => Ok(Err(exit)),
        }
    })??;
    let told = match told {
        Ok(told) => told,
        Err(exit) => return Ok(exit),
    };
    let width = told.iter().map(|one| one.channel.chars().count()).max().unwrap_or(0);
    for one in &told {
        let AlertOutcome { channel, service, kind, took, .. } = one;
        let millis = took.as_secs_f64() * 1e3;
        if arguments.json {
            let (said, failed) = (one.outcome.as_ref().ok(), one.outcome.as_ref().err());
            let line = json!({ "channel": channel, "service": service, "kind": kind.word(), "answer": said, "error": failed, "duration_ms": millis });
            output::data(format!("{line}\n").as_bytes())?;
        } else {
            let (word, said) = match &one.outcome {
                Ok(said) => ("sent", said),
                Err(why) => ("FAILED", why),
            };
            output::show(&format!("{:width$}  {service:12}  {kind:8}  {word:6}  {} ({millis:.0} ms)\n", escape(channel), escape(said)))?;
        }
    }
    Ok(if told.iter().all(|one| one.outcome.is_ok()) { Exit::Passed } else { Exit::Failed })
}

fn chosen(config: &Config, named: &[String]) -> Result<Vec<(String, ChannelSpec)>, Failure> {
    let all: Vec<&str> = config.channels.keys().map(String::as_str).collect();
    if all.is_empty() {
        let failure = Failure::new(
            Exit::NothingSelected,
            mcproof_record::Diagnostic::error("no-channels-configured", "the configuration has no channels"),
        );
        return Err(failure.hint("add `channels`"));
    }
    for name in named {
        if !config.channels.contains_key(name) {
            let failure = Failure::bad_input("unknown-channel", format!("unknown channel `{name}`"));
            return Err(failure.hint(suggest::hint(name, &all).unwrap_or_else(|| format!("known: {}", all.join(", ")))));
        }
    }
    let is_chosen = |name: &String| named.is_empty() || named.contains(name);
    Ok(config.channels.iter().filter(|(name, _)| is_chosen(name)).map(|(name, spec)| (name.clone(), spec.clone())).collect())
}

async fn tell_all(config: &Config, channels: &[(String, ChannelSpec)], delivery_client: &DeliveryClient) -> Vec<AlertOutcome> {
    let mut told = Vec::new();
    let since = Moment::from(settings::now());
    for (name, spec) in channels {
        for kind in [Kind::Trigger, Kind::Resolve] {
            let began = Instant::now();
            let now = Moment::from(settings::now());
            let (outcome, is_begun) = match pack(spec, &message(config, name, kind, since, now)) {
                Ok(payload) => deliver(delivery_client, &payload, now).await,
                Err(why) => (Err(why), false),
            };
            told.push(AlertOutcome { channel: name.clone(), service: spec.service(), kind, outcome, took: began.elapsed() });
            // What never began has no end.
            if !is_begun {
                break;
            }
        }
    }
    told
}

/// What came of it, and whether anybody has it: a mail that some of its recipients do not get has failed.
async fn deliver(delivery_client: &DeliveryClient, payload: &Payload, now: Moment) -> (Result<String, String>, bool) {
    match delivery_client.deliver(payload, now, &|| true).await {
        Ok(said) => (Ok(said), true),
        Err(DeliveryFailure::Partly { said, left }) if left.is_empty() => (Err(said), true),
        Err(DeliveryFailure::Partly { said, left }) => {
            (Err(format!("{said}; a test is sent once, an alert is tried again for {}", left.join(", "))), true)
        }
        Err(DeliveryFailure::Passing { why, .. } | DeliveryFailure::Refused(why)) => (Err(why), false),
        Err(DeliveryFailure::TooLate) => (Err("it was too late".to_owned()), false),
    }
}

fn message(config: &Config, channel: &str, kind: Kind, since: Moment, now: Moment) -> Message {
    let key = format!("mcproof-test-{channel}-{}", since.0);
    Message {
        id: format!("{key}-{kind}"),
        kind,
        incident: key,
        alerts: 0..=0,
        subject: "a test".into(),
        class: Class::Availability,
        severity: Severity::Page,
        title: "this is a test of `mcproof watch`".into(),
        detail: Detail {
            layer: Some("none".into()),
            reason: Some("test-alert".into()),
            message: "nothing is wrong: this alert was sent by `mcproof watch test-alert`".into(),
            hint: Some("nothing to do".into()),
            ..Detail::default()
        },
        since,
        resolved: (kind == Kind::Resolve).then_some(now),
        acknowledged_by: None,
        evidence: None,
        public_url: config.public_url.clone(),
        templates: config.templates.get(channel).cloned(),
        known_at: now,
        now,
    }
}
