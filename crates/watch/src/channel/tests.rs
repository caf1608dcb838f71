//! What each service is sent, for a message that a hostile server had a hand in.

use super::*;
use crate::incident::{Class, Detail, Severity};
use crate::moment::{Moment, span};
use std::time::Duration;

const BEGIN: Moment = Moment(1_767_225_600_000);

fn secret(text: &str) -> Secret {
    Secret(text.to_owned())
}

fn channels() -> Vec<ChannelSpec> {
    let url = || secret("https://hooks.example.com/x?key=1");
    vec![
        ChannelSpec::PagerDuty { routing_key: secret("r0uting"), url: "https://events.example.com/v2/enqueue".into() },
        ChannelSpec::Jira { url: "https://api.example.com/v2/alerts".into(), api_key: secret("api-key") },
        ChannelSpec::Alertmanager { url: secret("http://alertmanager:9093/prefix/") },
        ChannelSpec::Slack { url: url() },
        ChannelSpec::Discord { url: url() },
        ChannelSpec::Teams { url: url() },
        ChannelSpec::Smtp {
            url: secret("smtp://localhost"),
            from: "mcproof <watch@example.com>".into(),
            to: vec!["ann@example.com".into(), "Bob <bob@example.com>".into()],
        },
        ChannelSpec::Webhook { url: url(), secret: Some(secret("whsec-example")) },
    ]
}

fn message(kind: Kind) -> Message {
    Message {
        id: "01976a3b-0000-7000-8000-000000000002".into(),
        kind,
        incident: "01976a3b-0000-7000-8000-000000000001".into(),
        subject: "shop".into(),
        class: Class::Availability,
        severity: Severity::Page,
        title: "shop is down: connection refused".into(),
        detail: Detail {
            layer: Some("connect".into()),
            reason: Some("connection-refused".into()),
            message: "hey <!channel> @everyone <at>all</at> [free](http://evil) **x** \u{1b}[31m\r\nBcc: eve@example.com".into(),
            hint: Some("start the server, or open its port".into()),
            members: Vec::new(),
        },
        since: BEGIN,
        resolved: (kind == Kind::Resolve).then(|| BEGIN + Duration::from_secs(754)),
        acknowledged_by: (kind == Kind::Acknowledge).then(|| "ann".into()),
        evidence: Some("ev-1".into()),
        public_url: Some("https://status.example.com".into()),
        now: BEGIN + Duration::from_secs(760),
    }
}

/// As it goes over the wire, without what a library invents.
fn shown(parcel: &Parcel) -> String {
    match parcel {
        Parcel::Nothing => "nothing".to_owned(),
        Parcel::Mail(mail) => format!("{:?}\n{}", mail.envelope, String::from_utf8(mail.letter.clone()).unwrap().replace('\r', "")),
        Parcel::Post(post) => {
            let headers: String = post.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.0)).collect();
            let body: Value = serde_json::from_slice(&post.body).unwrap();
            format!("POST {}\n{headers}{body:#}", post.url.0)
        }
    }
}

#[test]
fn each_service_gets_what_it_documents() {
    for channel in channels() {
        let mut text = String::new();
        for kind in Kind::ALL {
            text += &format!("### {kind}\n{}\n\n", shown(&pack(&channel, &message(kind)).unwrap()));
        }
        insta::assert_snapshot!(channel.service(), text);
    }
}

#[test]
fn nothing_that_a_server_said_is_markup() {
    for channel in channels() {
        let parcel = pack(&channel, &message(Kind::Trigger)).unwrap();
        let text = shown(&parcel);
        assert!(!text.contains('\u{1b}'), "{text}");
        let forbidden: &[&str] = match channel {
            // There it stands in plain text, or nobody looks for markup.
            ChannelSpec::Slack { .. } => &["<http://evil", "\"mrkdwn\", \"text\": \"hey"],
            ChannelSpec::Discord { .. } => &["@everyone ", "[free]", "**x**"],
            ChannelSpec::Jira { .. } => &["<at>", "<!channel>"],
            ChannelSpec::Smtp { .. } => &["\nBcc"],
            _ => &[],
        };
        for part in forbidden {
            assert!(!text.contains(part) || part.contains("@everyone") && text.contains("\\\\@everyone"), "{part}: {text}");
        }
    }
}

#[test]
fn no_text_is_longer_than_its_service_takes() {
    let mut message = message(Kind::Trigger);
    let long = "ö<&>\u{7}".repeat(20_000);
    message.subject = long.clone();
    message.title = long.clone();
    message.detail.message = long.clone();
    message.detail.hint = Some(long.clone());
    message.detail.reason = Some(long.clone());
    message.detail.layer = Some(long.clone());
    message.detail.members = vec![long; 300];
    let length = |value: &Value| value.as_str().unwrap().chars().count();
    for channel in channels() {
        let Parcel::Post(post) = pack(&channel, &message).unwrap() else { continue };
        let body: Value = serde_json::from_slice(&post.body).unwrap();
        match channel {
            ChannelSpec::PagerDuty { .. } => {
                assert!(post.body.len() < 512 * 1024, "{}", post.body.len());
                assert!(length(&body["payload"]["summary"]) <= 1024);
                assert!(length(&body["payload"]["source"]) <= 1024);
            }
            ChannelSpec::Jira { .. } => {
                assert!(length(&body["message"]) <= 130);
                assert!(length(&body["description"]) <= 15_000);
                let details: usize = body["details"].as_object().unwrap().values().map(length).sum();
                assert!(details <= 8000, "{details}");
            }
            ChannelSpec::Slack { .. } => {
                assert!(length(&body["blocks"][0]["text"]["text"]) <= 150);
                for field in body["blocks"][2]["fields"].as_array().unwrap() {
                    assert!(length(&field["text"]) <= 2000);
                }
            }
            ChannelSpec::Discord { .. } => {
                let embed = &body["embeds"][0];
                let fields = embed["fields"].as_array().unwrap();
                assert!(length(&embed["title"]) <= 256 && length(&embed["description"]) <= 4096 && fields.len() <= 25);
                let all: usize = fields.iter().map(|field| length(&field["name"]) + length(&field["value"])).sum();
                assert!(length(&embed["title"]) + length(&embed["description"]) + all <= 6000);
            }
            ChannelSpec::Teams { .. } => assert!(post.body.len() < 28 * 1024, "{}", post.body.len()),
            _ => assert!(post.body.len() < 512 * 1024, "{}: {}", channel.service(), post.body.len()),
        }
    }
}

#[test]
fn the_webhook_is_signed_as_documented() {
    let check = |secret: &str, now: i64, body: &str, expected: &str| {
        assert_eq!(signature(&Secret(secret.into()), Moment(now), body.as_bytes()), expected);
    };
    check(
        "whsec-example",
        1_767_225_600_999,
        r#"{"version":1}"#,
        "t=1767225600,v1=f77825d5018c406c10087d25a0f4d032388434f992efc115535b4ec8315e2a6b",
    );
}

#[test]
fn spans_are_told_in_their_two_largest_units() {
    let check = |seconds: u64, expected: &str| assert_eq!(span(Duration::from_secs(seconds)), expected);
    check(0, "0 s");
    check(59, "59 s");
    check(60, "1 min 0 s");
    check(754, "12 min 34 s");
    check(3_600, "1 h 0 min");
    check(90_000, "1 d 1 h");
}

#[test]
fn what_a_service_repeats_of_our_secrets_is_not_told() {
    let check = |channel: &ChannelSpec, said: &str, expected: &str| {
        let Parcel::Post(post) = pack(channel, &message(Kind::Trigger)).unwrap() else { panic!() };
        assert_eq!(post.redacted(said), expected);
    };
    let pagerduty = ChannelSpec::PagerDuty { routing_key: secret("r0uting-key"), url: "https://events.example.com/v2/enqueue".into() };
    check(&pagerduty, "bad key r0uting-key", "bad key ***");
    check(&ChannelSpec::Jira { url: "https://x.example/v2".into(), api_key: secret("api-key") }, "no api-key", "no ***");
    let slack = ChannelSpec::Slack { url: secret("https://hooks.example.com/services/T0/B1?x=2") };
    check(&slack, "cannot POST /services/T0/B1?x=2", "cannot POST ***");
}
