//! What each service is sent, for a message that a hostile server had a hand in.

use super::*;
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde_json::json;
use std::time::Duration;

const BEGIN: Moment = Moment(1_767_225_600_000);

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

fn channels() -> Vec<ChannelSpec> {
    let url = || secret("https://hooks.example.com/x?key=1");
    vec![
        ChannelSpec::PagerDuty {
            routing_key: secret("r0uting"),
            url: "https://events.example.com/v2/enqueue".into(),
            webhook_secret: None,
        },
        ChannelSpec::Jira { url: "https://api.example.com/v2/alerts".into(), api_key: secret("api-key") },
        ChannelSpec::Alertmanager { url: secret("http://alertmanager:9093/prefix/") },
        ChannelSpec::Slack { url: url(), signing_secret: None },
        ChannelSpec::Slack { url: url(), signing_secret: Some(secret("slack-signs")) },
        ChannelSpec::Discord { url: url() },
        ChannelSpec::Teams { url: url() },
        ChannelSpec::Smtp {
            url: secret("smtp://localhost"),
            from: "mcproof <watch@example.com>".into(),
            to: vec!["ann@example.com".into(), "Bob <bob@example.com>".into()],
        },
        ChannelSpec::Webhook { url: url(), secret: Some(secret("whsec-example")) },
        ChannelSpec::Ntfy { url: "https://ntfy.example.com/".into(), topic: "alerts".into(), token: Some(secret("tk_secret")) },
        ChannelSpec::Telegram { url: "https://api.telegram.org".into(), token: secret("123:telegram"), chat: "-1001".into() },
        ChannelSpec::Matrix { url: "https://matrix.example.com".into(), token: secret("syt_secret"), room: "!a/b:example.com".into() },
        ChannelSpec::Pushover {
            url: "https://api.pushover.net/1/messages.json".into(),
            token: secret("app-token"),
            user: secret("user-key"),
        },
        ChannelSpec::GoogleChat { url: url() },
        ChannelSpec::Webex { url: url() },
        ChannelSpec::IncidentIo { url: "https://api.incident.io/v2/alert_events/http/01GW".into(), token: secret("source-token") },
        ChannelSpec::GrafanaOncall { url: url() },
        ChannelSpec::SplunkOncall { url: url() },
    ]
}

fn message(kind: Kind) -> Message {
    Message {
        id: "01976a3b-0000-7000-8000-000000000002".into(),
        kind,
        incident: "01976a3b-0000-7000-8000-000000000001".into(),
        alerts: 0..=0,
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
            ..Detail::default()
        },
        since: BEGIN,
        resolved: (kind == Kind::Resolve).then(|| BEGIN + Duration::from_secs(754)),
        acknowledged_by: (kind == Kind::Acknowledge).then(|| "ann".into()),
        evidence: Some("ev-1".into()),
        public_url: Some("https://status.example.com".into()),
        templates: None,
        known_at: BEGIN + Duration::from_secs(759),
        now: BEGIN + Duration::from_secs(760),
    }
}

#[test]
fn an_end_without_a_recovery_does_not_say_that_it_is_resolved() {
    let mut end = message(Kind::Resolve);
    assert_eq!(end.title(), format!("resolved after {}: shop is down: connection refused", span_of(754)));
    end.detail.is_unmonitored = true;
    let how = format!("no longer monitored, and not seen to recover, after {}", span_of(754));
    assert_eq!(end.title(), format!("{how}: shop is down: connection refused"));
    assert_eq!(end.headline(), format!("[{how}] shop is down: connection refused"));
}

fn span_of(seconds: u64) -> String {
    crate::moment::span(Duration::from_secs(seconds))
}

/// As it goes over the wire, without what a library invents.
fn shown(payload: &Payload) -> String {
    match payload {
        Payload::Nothing => "nothing".to_owned(),
        Payload::Posts(posts) => posts.iter().map(|(_, post)| shown(&Payload::Post(post.clone()))).collect::<Vec<_>>().join("\n"),
        Payload::Mail(mail) => format!("{:?}\n{}", mail.envelope, String::from_utf8(mail.letter.clone()).unwrap().replace('\r', "")),
        Payload::Post(post) => {
            let headers: String = post.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.expose())).collect();
            let body: Value = serde_json::from_slice(&post.body).unwrap();
            format!("{} {}\n{headers}{body:#}", post.method, post.url.expose())
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
        let signed = matches!(channel, ChannelSpec::Slack { signing_secret: Some(_), .. });
        insta::assert_snapshot!(if signed { "slack_with_a_button" } else { channel.service() }, text);
    }
}

#[test]
fn nothing_that_a_server_said_is_markup() {
    for channel in channels() {
        let payload = pack(&channel, &message(Kind::Trigger)).unwrap();
        let text = shown(&payload);
        assert!(!text.contains('\u{1b}'), "{text}");
        let forbidden: &[&str] = match channel {
            // There it stands in plain text, or nobody looks for markup.
            ChannelSpec::Slack { .. } => &["<http://evil", "\"mrkdwn\", \"text\": \"hey"],
            ChannelSpec::Discord { .. } => &["@everyone ", "[free]", "**x**"],
            ChannelSpec::Jira { .. } => &["<at>", "<!channel>"],
            ChannelSpec::Smtp { .. } => &["\nBcc"],
            ChannelSpec::Telegram { .. } | ChannelSpec::GoogleChat { .. } => &["<at>", "<!channel>"],
            ChannelSpec::Matrix { .. } => &["formatted_body"],
            ChannelSpec::Webex { .. } => &["markdown"],
            ChannelSpec::IncidentIo { .. } | ChannelSpec::GrafanaOncall { .. } => &["\"hey"],
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
        let Payload::Post(post) = pack(&channel, &message).unwrap() else { continue };
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

/// What the services document of a message, as JSON Schema: <https://docs.ntfy.sh/publish/#publish-as-json>,
/// <https://core.telegram.org/bots/api#sendmessage>, <https://spec.matrix.org/v1.11/client-server-api/#mtext>, <https://pushover.net/api>,
/// <https://developers.google.com/workspace/chat/api/reference/rest/v1/cards>,
/// <https://developer.webex.com/docs/api/v1/messages/create-a-message>, <https://docs.incident.io/api-reference/alert-events-v2/createhttp>,
/// <https://grafana.com/docs/oncall/latest/configure/integrations/references/webhook/>, and the REST endpoint of Splunk On-Call.
fn documented(service: &str) -> Option<Value> {
    let text = |least: u32, most: u32| json!({ "type": "string", "minLength": least, "maxLength": most });
    let link = || json!({ "type": "string", "pattern": "^https?://" });
    let action = json!({
        "type": "object", "required": ["action", "label", "url"], "additionalProperties": false,
        "properties": { "action": { "enum": ["view", "broadcast", "http"] }, "label": text(1, 200), "url": link() },
    });
    let widget = json!({
        "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
        "properties": {
            "textParagraph": { "type": "object", "required": ["text"], "additionalProperties": false, "properties": { "text": text(1, 18_000) } },
            "decoratedText": {
                "type": "object", "required": ["text"], "additionalProperties": false,
                "properties": { "topLabel": text(1, 200), "text": text(1, 18_000), "wrapText": { "type": "boolean" } },
            },
            "buttonList": {
                "type": "object", "required": ["buttons"], "additionalProperties": false,
                "properties": { "buttons": { "type": "array", "items": {
                    "type": "object", "required": ["text", "onClick"], "additionalProperties": false,
                    "properties": {
                        "text": text(1, 200),
                        "onClick": { "type": "object", "required": ["openLink"], "additionalProperties": false, "properties": {
                            "openLink": { "type": "object", "required": ["url"], "additionalProperties": false, "properties": { "url": link() } },
                        } },
                    },
                } } },
            },
        },
    });
    let card = json!({
        "type": "object", "required": ["header", "sections"], "additionalProperties": false,
        "properties": {
            "header": {
                "type": "object", "required": ["title"], "additionalProperties": false,
                "properties": { "title": text(1, 1_000), "subtitle": text(1, 1_000) },
            },
            "sections": { "type": "array", "minItems": 1, "maxItems": 100, "items": {
                "type": "object", "required": ["widgets"], "additionalProperties": false,
                "properties": { "widgets": { "type": "array", "minItems": 1, "maxItems": 100, "items": widget } },
            } },
        },
    });
    let (required, properties) = match service {
        "ntfy" => (
            json!(["topic"]),
            json!({
                "topic": { "type": "string", "pattern": "^[-_A-Za-z0-9]{1,64}$" },
                "title": text(1, 250), "message": text(1, 4_096), "priority": { "enum": [1, 2, 3, 4, 5] }, "click": link(),
                "tags": { "type": "array", "items": { "type": "string" } },
                "actions": { "type": "array", "maxItems": 3, "items": action },
            }),
        ),
        "telegram" => (
            json!(["chat_id", "text"]),
            json!({
                // Without markup it may have 4096.
                "chat_id": { "type": ["string", "integer"] }, "text": { "type": "string", "minLength": 1 },
                "parse_mode": { "enum": ["HTML", "MarkdownV2", "Markdown"] }, "disable_notification": { "type": "boolean" },
                "link_preview_options": { "type": "object", "properties": { "is_disabled": { "type": "boolean" } }, "additionalProperties": false },
            }),
        ),
        "matrix" => (
            json!(["msgtype", "body"]),
            json!({
                "msgtype": { "const": "m.text" }, "body": text(1, 60_000),
                "m.mentions": { "type": "object", "properties": { "user_ids": { "type": "array" }, "room": { "type": "boolean" } }, "additionalProperties": false },
            }),
        ),
        "pushover" => (
            json!(["token", "user", "message"]),
            json!({
                "token": text(1, 100), "user": text(1, 100), "message": text(1, 1_024), "title": text(1, 250),
                // 2 would have to say how often, and for how long.
                "priority": { "enum": [-2, -1, 0, 1] }, "timestamp": { "type": "integer" }, "url": text(1, 512), "url_title": text(1, 100),
            }),
        ),
        "google_chat" => (
            json!(["cardsV2"]),
            json!({
                "thread": { "type": "object", "properties": { "threadKey": text(1, 4_000) }, "additionalProperties": false },
                "cardsV2": { "type": "array", "minItems": 1, "maxItems": 100, "items": {
                    "type": "object", "required": ["card"], "additionalProperties": false, "properties": { "cardId": text(1, 100), "card": card },
                } },
            }),
        ),
        "webex" => (json!([]), json!({ "text": text(1, 7_439) })),
        "incident_io" => (
            json!(["title", "status", "deduplication_key"]),
            json!({
                "title": text(1, 250), "status": { "enum": ["firing", "resolved"] }, "deduplication_key": text(1, 250),
                "description": text(1, 20_000), "metadata": { "type": "object" }, "source_url": link(),
            }),
        ),
        "grafana_oncall" => (
            json!([]),
            json!({
                "alert_uid": text(1, 250), "title": text(1, 250), "state": { "enum": ["ok", "alerting"] }, "message": text(1, 20_000),
                "link_to_upstream_details": link(),
                // For routes of its own: other keys are passed on.
                "severity": { "enum": ["notify", "page", "security"] },
            }),
        ),
        "splunk_oncall" => (
            json!(["message_type"]),
            json!({
                "message_type": { "enum": ["CRITICAL", "WARNING", "ACKNOWLEDGEMENT", "INFO", "RECOVERY"] },
                "entity_id": text(1, 512), "entity_display_name": text(1, 250), "state_message": text(1, 20_000),
                "state_start_time": { "type": "integer" }, "monitoring_tool": { "const": "mcproof" }, "ack_author": text(1, 250),
            }),
        ),
        _ => return None,
    };
    Some(json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false }))
}

/// The largest body that is documented, in bytes.
fn largest(service: &str) -> usize {
    match service {
        "google_chat" => 32_000,
        "matrix" => 65_536,
        "ntfy" => 16_384,
        _ => 64_000,
    }
}

#[test]
fn what_is_sent_fits_what_the_services_document() {
    let mut long = message(Kind::Trigger);
    let endless = "ö<&>\u{7}😀\"".repeat(20_000);
    let mut bare = message(Kind::Trigger);
    (bare.public_url, bare.evidence, bare.detail) = (None, None, Detail::default());
    long.subject = endless.clone();
    long.title = endless.clone();
    long.detail = Detail {
        layer: Some(endless.clone()),
        reason: Some(endless.clone()),
        message: endless.clone(),
        hint: Some(endless.clone()),
        members: vec![endless; 300],
        ..Detail::default()
    };
    let mut checked = 0;
    for channel in channels() {
        let Some(schema) = documented(channel.service()) else { continue };
        let validator = jsonschema::draft202012::options().build(&schema).unwrap();
        let of_kind = Kind::ALL.map(|kind| Message { kind, ..long.clone() });
        let of_bare = Kind::ALL.map(|kind| Message { kind, ..bare.clone() });
        for message in Kind::ALL.map(message).iter().chain(&of_kind).chain(&of_bare) {
            let post = match pack(&channel, message).unwrap() {
                Payload::Post(post) => post,
                // It has no such message.
                Payload::Nothing if message.kind == Kind::Acknowledge => continue,
                other => panic!("{other:?}"),
            };
            let body: Value = serde_json::from_slice(&post.body).unwrap();
            let errors: Vec<String> = validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert_eq!(errors, Vec::<String>::new(), "{} {}", channel.service(), message.kind);
            assert!(post.body.len() <= largest(channel.service()), "{}: {} bytes", channel.service(), post.body.len());
            match channel {
                ChannelSpec::Telegram { .. } => {
                    let shown = body["text"]
                        .as_str()
                        .unwrap()
                        .replace("&lt;", "<")
                        .replace("&gt;", ">")
                        .replace("&quot;", "\"")
                        .replace("&amp;", "&");
                    assert!(shown.encode_utf16().count() <= 4_096, "{}", shown.encode_utf16().count());
                }
                ChannelSpec::Webex { .. } => assert!(body["text"].as_str().unwrap().len() <= 7_439),
                ChannelSpec::Ntfy { .. } => assert!(body["message"].as_str().unwrap().len() <= 4_096),
                _ => {}
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 3 * (9 * Kind::ALL.len() - 2));
}

#[test]
fn where_and_how_it_is_sent_is_as_documented() {
    let post = |channel: &ChannelSpec| match pack(channel, &message(Kind::Trigger)).unwrap() {
        Payload::Post(post) => post,
        _ => panic!(),
    };
    let found = |service: &str| post(channels().iter().find(|channel| channel.service() == service).unwrap());
    let matrix = found("matrix");
    assert_eq!(
        (matrix.method, matrix.url.expose()),
        (
            "PUT",
            "https://matrix.example.com/_matrix/client/v3/rooms/!a%2Fb:example.com/send/m.room.message/01976a3b-0000-7000-8000-000000000002"
        )
    );
    assert_eq!(matrix.headers, [("authorization".to_owned(), secret("Bearer syt_secret"))]);
    assert_eq!(found("telegram").url.expose(), "https://api.telegram.org/bot123:telegram/sendMessage");
    assert_eq!((found("ntfy").method, found("ntfy").url.expose()), ("POST", "https://ntfy.example.com/"));
    assert!(found("google_chat").url.expose().ends_with("/x?key=1&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"));
    let chat = |kind| match pack(&ChannelSpec::GoogleChat { url: secret("https://chat/x") }, &message(kind)).unwrap() {
        Payload::Post(post) => serde_json::from_slice::<Value>(&post.body).unwrap()["thread"].clone(),
        _ => panic!(),
    };
    assert_eq!(chat(Kind::Trigger), chat(Kind::Resolve), "an incident is one thread");
}

/// Where a service would add a message to an alert that somebody has acknowledged, and wake nobody.
#[test]
fn what_became_more_severe_is_an_alert_of_its_own_and_all_of_them_end() {
    let keys_of = |channel: &ChannelSpec, kind: Kind, alerts: std::ops::RangeInclusive<usize>| -> Vec<String> {
        let posts = match pack(channel, &Message { alerts, ..message(kind) }).unwrap() {
            Payload::Post(post) => vec![post],
            Payload::Posts(posts) => posts.into_iter().map(|(_, post)| post).collect(),
            Payload::Nothing => Vec::new(),
            Payload::Mail(_) => panic!(),
        };
        let key = |post: &Post| {
            let body: Value = serde_json::from_slice(&post.body).unwrap();
            let keys = ["dedup_key", "alias", "deduplication_key", "alert_uid", "entity_id"];
            let of_path = || post.url.expose().split('/').find(|part| part.starts_with("01976a3b")).unwrap().to_owned();
            keys.iter().find_map(|key| body[*key].as_str()).map_or_else(of_path, str::to_owned)
        };
        posts.iter().map(key).collect()
    };
    let incident = message(Kind::Trigger).incident;
    let numbered = |number: usize| format!("{incident}.{number}");
    for service in ["pagerduty", "jira", "incident_io", "grafana_oncall", "splunk_oncall"] {
        let channels = channels();
        let channel = channels.iter().find(|channel| channel.service() == service).unwrap();
        for kind in [Kind::Trigger, Kind::Update, Kind::Reminder, Kind::Escalation] {
            assert_eq!(keys_of(channel, kind, 0..=0), std::slice::from_ref(&incident), "{service} {kind}");
            assert_eq!(keys_of(channel, kind, 0..=2), [numbered(2)], "{service} {kind}");
        }
        assert_eq!(keys_of(channel, Kind::Resolve, 0..=2), [incident.clone(), numbered(1), numbered(2)], "{service}");
        assert_eq!(keys_of(channel, Kind::Resolve, 1..=1), [numbered(1)], "{service}");
        let acknowledged = keys_of(channel, Kind::Acknowledge, 0..=1);
        assert!(acknowledged.is_empty() || acknowledged == [incident.clone(), numbered(1)], "{service}: {acknowledged:?}");
    }
    for (key, expected) in [("a-b", ("a-b", 0)), ("a-b.2", ("a-b", 2)), ("a.b", ("a.b", 0)), ("", ("", 0))] {
        assert_eq!(of_alert_key(key), expected);
    }
}

#[test]
fn the_webhook_is_signed_as_documented() {
    let check = |secret: &str, now: i64, body: &str, expected: &str| {
        assert_eq!(signature(&Secret::new(secret), Moment(now), body.as_bytes()), expected);
    };
    check(
        "whsec-example",
        1_767_225_600_999,
        r#"{"version":1}"#,
        "t=1767225600,v1=f77825d5018c406c10087d25a0f4d032388434f992efc115535b4ec8315e2a6b",
    );
}

#[test]
fn what_a_service_repeats_of_our_secrets_is_not_told() {
    let check = |channel: &ChannelSpec, said: &str, expected: &str| {
        let Payload::Post(post) = pack(channel, &message(Kind::Trigger)).unwrap() else { panic!() };
        assert_eq!(post.redacted(said), expected);
    };
    let pagerduty = ChannelSpec::PagerDuty {
        routing_key: secret("r0uting-key"),
        url: "https://events.example.com/v2/enqueue".into(),
        webhook_secret: None,
    };
    check(&pagerduty, "bad key r0uting-key", "bad key ***");
    check(&ChannelSpec::Jira { url: "https://x.example/v2".into(), api_key: secret("api-key") }, "no api-key", "no ***");
    let slack = ChannelSpec::Slack { url: secret("https://hooks.example.com/services/T0/B1?x=2"), signing_secret: None };
    for channel in channels().iter().filter(|channel| documented(channel.service()).is_some()) {
        let Payload::Post(post) = pack(channel, &message(Kind::Trigger)).unwrap() else { panic!() };
        for part in ["tk_secret", "123:telegram", "syt_secret", "app-token", "user-key"] {
            let told = post.redacted(&format!("what is {part}?"));
            let sent = String::from_utf8_lossy(&post.body).contains(part)
                || format!("{} {:?}", post.url.expose(), post.headers.iter().map(|(_, value)| value.expose()).collect::<Vec<_>>())
                    .contains(part);
            assert!(!sent || !told.contains(part), "{} tells {part}", channel.service());
        }
    }
    check(&slack, "cannot POST /services/T0/B1?x=2", "cannot POST ***");
}
