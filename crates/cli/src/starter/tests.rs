use super::expectation::{Known, of_call, of_values, uncompared};
use super::now::Now;
use super::*;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// 2026-05-17, 12:00:00 UTC.
const NOON: u64 = 1_779_019_200;

fn now() -> Now {
    Now::of(UNIX_EPOCH + Duration::from_secs(NOON))
}

fn surroundings() -> BaseEnvironment {
    let environment = [("SHELL", "/bin/fish"), ("LEVEL", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    BaseEnvironment { now: UNIX_EPOCH, private: vec!["/home/me".to_owned()], environment: environment.into(), secrets: Redactor::default() }
}

#[test]
fn what_was_the_same_twice_is_expected_and_what_differed_is_typed() {
    let check = |first: Value, second: Value, expected: Value| {
        let arguments = json!({ "zone": "UTC" });
        let known = Known { arguments: &arguments, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: true };
        assert_eq!(of_values(&first, &second, &known), expected, "{first} {second}");
    };
    check(json!("a"), json!("a"), json!("a"));
    check(json!("a"), json!("b"), json!({ "$type": "string" }));
    check(json!("/a/"), json!("/a/"), json!({ "$type": "string" }));
    check(json!(1), json!(1), json!(1));
    check(json!(1), json!(2.5), json!({ "$type": "number" }));
    check(json!(1), json!("1"), json!({ "$type": ["number", "string"] }));
    check(json!(true), json!(true), json!(true));
    check(json!({}), json!({}), json!({ "$type": "object", "$len": 0 }));
    check(json!({ "a": 1 }), json!({ "b": 1 }), json!({ "$type": "object" }));
    check(
        json!({ "a": 1, "b": 2, "$c": null }),
        json!({ "a": 1, "b": 3, "$c": null }),
        json!({ "a": 1, "b": { "$type": "number" }, "$$c": null }),
    );
    check(json!([]), json!([]), json!([]));
    check(json!([1, 2]), json!([1, 3]), json!([1, { "$type": "number" }]));
    check(json!([1]), json!([1, 3]), json!({ "$type": "array", "$len": { "$gte": 1 }, "$all": { "$type": "number" } }));
    check(json!([1]), json!([]), json!({ "$type": "array" }));
    let row = |id: u32| json!({ "id": id, "name": "n".repeat(50) });
    let rows = Value::Array((0..8).map(row).collect());
    check(
        rows.clone(),
        rows,
        json!({
            "$type": "array", "$len": 8, "$all": { "id": { "$type": "number" }, "name": { "$type": "string" } },
            "$contains_all": [row(0), row(7)]
        }),
    );
    let numbers = json!([1, 1, 1, 1, 1, 1, 1, 1, 1]);
    check(numbers.clone(), numbers, json!({ "$type": "array", "$len": 9, "$all": { "$type": "number" }, "$contains_all": [1] }));
    let mut texts = vec!["n".repeat(50); 9];
    texts[0] = String::new();
    let kept = json!({ "$type": "array", "$len": 9, "$all": { "$type": "string" }, "$contains_all": ["n".repeat(50)] });
    check(json!(texts), json!(texts), kept);
    // It may have been another integer of as many digits.
    check(json!(1e30), json!(1e30), json!({ "$type": "number" }));
    // One second later it is another number.
    check(json!({ "uptime_s": 0, "up": 0 }), json!({ "uptime_s": 0, "up": 0 }), json!({ "uptime_s": { "$type": "number" }, "up": 0 }));
    let uuid = |last: u32| json!(format!("3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e4{last}"));
    check(uuid(1), uuid(2), json!({ "$uuid": true }));
    check(json!("2020-01-01T00:00:00Z"), json!("2020-01-01T00:00:01Z"), json!({ "$datetime": true }));
    check(json!("in /home/me/x"), json!("in /home/me/x"), json!({ "$type": "string" }));
    check(json!("/bin/fish"), json!("/bin/fish"), json!({ "$type": "string" }));
    check(json!({ "SHELL": "x", "LEVEL": "3" }), json!({ "SHELL": "x", "LEVEL": "3" }), json!({ "$type": "object" }));
    check(json!({ "LEVEL": "3", "level": "3" }), json!({ "LEVEL": "3", "level": "3" }), json!({ "level": "3" }));
    // It says what day it is, so tomorrow it will say something else.
    check(
        json!({ "zone": "UTC", "date": "2026-05-17T12:00:00Z", "day": "Sunday", "dst": false }),
        json!({ "zone": "UTC", "date": "2026-05-17T12:00:00Z", "day": "Sunday", "dst": false }),
        json!({ "zone": "UTC", "date": { "$datetime": true }, "day": { "$type": "string" }, "dst": { "$type": "boolean" } }),
    );
    // What it says elsewhere stays, unless it is a part of a date.
    let report = json!({
        "at": "2026-05-17T12:00:00Z", "open": true,
        "shop": { "name": "Corner", "items": 12345, "today": "on Sunday", "day": 17 },
        "rows": [{ "id": "a", "price": 9.5 }, { "id": "b", "at": NOON }]
    });
    check(
        report.clone(),
        report,
        json!({
            "at": { "$datetime": true }, "open": { "$type": "boolean" },
            "shop": { "name": "Corner", "items": 12345, "today": { "$type": "string" }, "day": { "$type": "number" } },
            "rows": [{ "id": "a", "price": 9.5 }, { "id": { "$type": "string" }, "at": { "$type": "number" } }]
        }),
    );
    check(json!(NOON), json!(NOON), json!({ "$type": "number" }));
    check(json!("at 1779019200.5 or so"), json!("at 1779019200.5 or so"), json!("at 1779019200.5 or so"));
    check(json!("2020-05-17"), json!("2020-05-17"), json!("2020-05-17"));
    let long = format!("# Title of it\n{}", "word ".repeat(60));
    check(json!(long), json!(long), json!({ "$contains": "# Title of it", "$len": 314 }));
    let measured = format!("# Title of it\nin 12 ms {}", "word ".repeat(60));
    check(json!(measured), json!(measured), json!({ "$contains": "# Title of it" }));
    check(json!("x".repeat(200)), json!("x".repeat(200)), json!({ "$type": "string", "$len": 200 }));
    let deep = json!({ "a": { "b": { "c": { "d": { "e": 1 } } } } });
    check(deep.clone(), deep, json!({ "a": { "b": { "c": { "d": { "e": { "$type": "number" } } } } } }));
}

#[test]
fn what_is_no_text_is_told_by_its_kind() {
    let arguments = json!({});
    let known = Known { arguments: &arguments, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: true };
    let image = json!({ "content": [{ "type": "image", "data": "aGk=", "mimeType": "image/png" }] });
    assert_eq!(
        of_call(&image, &image, &known),
        ("result", json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": { "$len": { "$gte": 1 } } }] }))
    );
    let nothing = json!({ "content": [] });
    assert_eq!(of_call(&nothing, &nothing, &known), ("result", json!({ "content": [] })));
    let text = json!({ "content": [{ "type": "text", "text": "{\"a\": 1}" }] });
    assert_eq!(of_call(&text, &text, &known), ("expect", json!({ "a": 1 })));
}

#[test]
fn what_comes_from_elsewhere_is_typed_unless_it_was_asked_for() {
    let arguments = json!({ "city": "Rome" });
    let known = Known { arguments: &arguments, now: &now(), surroundings: &surroundings(), is_open: true, was_repeated: true };
    let found = of_values(&json!({ "city": "Rome", "rain": 3 }), &json!({ "city": "Rome", "rain": 3 }), &known);
    assert_eq!(found, json!({ "city": "Rome", "rain": { "$type": "number" } }));
}

/// Texts that a hostile server would choose.
const HOSTILE: [&str; 24] = [
    "",
    " ",
    "plain",
    "no",
    "Yes",
    "null",
    "~",
    "0x1F",
    "1e3",
    "- a",
    "a: b",
    "a #b",
    "# a",
    "'",
    "\"\\",
    "a\nb: c\r\n---\n",
    "\u{85}\u{2028}\u{feff}",
    "\u{202e}olleh",
    "\u{1b}[31m",
    "${env.HOME}",
    "$${x}",
    "{a: [b]}",
    "*a &b !c %d @e `f`",
    "日本 \u{1f469}\u{200d}\u{1f680} z\u{300}",
];

#[test]
fn whatever_a_text_holds_it_is_read_back() {
    use mcproof_suite::document;
    use mcproof_suite::source::Source;
    let long = "x: ".repeat(100);
    let texts = || HOSTILE.into_iter().chain([long.as_str()]);
    let mut all: Vec<Value> = texts().map(|text| json!(text)).collect();
    all.extend(texts().map(|text| json!({ text: [text, { "k": [[text, {}], []] }] })));
    all.push(Value::Array(texts().map(|text| json!([text, { text: null }])).collect()));
    for value in all {
        let mut text = String::new();
        yaml::entry(&mut text, 2, "- key", &value, Some("review"));
        let (tree, diagnostics) = document::parse(&Source::new("f", &text), 0);
        assert!(diagnostics.is_empty(), "{text}\n{diagnostics:?}");
        assert_eq!(tree.unwrap().to_value(), json!({ "- key": value }), "{text}");
    }
}

/// One response, of which nobody knows how it would be next time: words stay, and what is volatile in them does not.
#[test]
fn a_text_that_came_once_is_expected_in_its_form() {
    let check = |value: Value, expected: Value| {
        let known = Known { arguments: &Value::Null, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: false };
        assert_eq!(of_values(&value, &fleeting::changed(&value, "", &[]), &known), expected, "{value}");
    };
    check(json!("Meeting on 2020-01-01 with Bob: 500 EUR"), json!({ "$regex": r"^Meeting on \S.* with Bob: [0-9]+ EUR$" }));
    check(json!("took 5 ms for 3 rows"), json!({ "$regex": r"^took \S.* for [0-9]+ rows$" }));
    check(json!("took 7 ms for 77 rows"), json!({ "$regex": r"^took \S.* for [0-9]+ rows$" }));
    check(json!("a path in /tmp/abc"), json!({ "$regex": r"^a path in \S.*$" }));
    check(json!("due on Monday, 2020-01-06"), json!({ "$regex": r"^due on \S.*, \S.*$" }));
    check(json!("12:30:05"), json!({ "$type": "string" }));
    check(json!("plain text with 5 words"), json!("plain text with 5 words"));
    check(json!("/a/"), json!({ "$regex": "^/a/$" }));
    let long = format!("head\n{}", "word ".repeat(400));
    check(json!(long), json!(long));
    check(
        json!("Roots (1 total):\n\n1. x\n   URI: file:///tmp/x\n\nNote: fixed."),
        json!({ "$regex": "^Roots \\(1 total\\):\n\n1\\. x\n   URI: file://\\S.*\n\nNote: fixed\\.$" }),
    );
    let lines = format!("{0}\nid 3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e41 of it\n{0}", "word ".repeat(50).trim_end());
    let words = "word ".repeat(50).trim_end().to_owned();
    check(json!(lines), json!({ "$contains_all": [words, "of it", words] }));
    // Beside the present time, words stay that tell none.
    check(
        json!({ "created_at": "2026-05-17T11:59:00Z", "status": "shipped", "greeting": "Good evening", "total": 5, "ok": true }),
        json!({
            "created_at": { "$datetime": true }, "status": "shipped", "greeting": { "$type": "string" },
            "total": { "$type": "number" }, "ok": { "$type": "boolean" }
        }),
    );
}

/// Of a value that a later step sends, the next one is another.
#[test]
fn what_is_saved_is_expected_in_its_form() {
    let check = |value: &str, expected: Value| {
        let known = Known { arguments: &Value::Null, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: false };
        let value = json!(value);
        assert_eq!(of_values(&value, &fleeting::changed(&value, "", &[&value]), &known), expected, "{value}");
    };
    check("ORD-17a", json!({ "$type": "string" }));
    check("3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e41", json!({ "$uuid": true }));
    check("doc://3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e41", json!({ "$regex": r"^doc://\S.*$" }));
}

#[test]
fn blocks_are_expected_with_what_they_say() {
    let check = |result: Value, expected: Value| {
        let known = Known { arguments: &Value::Null, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: true };
        assert_eq!(of_call(&result, &result, &known), ("result", expected), "{result}");
    };
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
    check(json!({ "content": [link] }), json!({ "content": [link] }));
    let resource = json!({ "type": "resource", "resource": { "uri": "file:///a", "mimeType": "text/plain", "text": "hello" } });
    check(json!({ "content": [resource] }), json!({ "content": [resource] }));
    let both = json!({ "content": [{ "type": "text", "text": "in other words" }], "structuredContent": { "a": 1 } });
    check(both.clone(), both);
}

/// A recording has one result of each call, and all of it is expected.
#[test]
fn all_blocks_of_a_recorded_result_are_expected() {
    let check = |result: Value, (key, expected): (&'static str, Value), open: &[&str]| {
        let known = Known { arguments: &Value::Null, now: &now(), surroundings: &surroundings(), is_open: false, was_repeated: false };
        let found = of_call(&result, &fleeting::changed(&result, "", &[]), &known);
        assert_eq!(found, (key, expected), "{result}");
        let places = uncompared(&found.1, if key == "result" { &result } else { &result["content"][0]["text"] });
        assert_eq!(places, open, "{result}");
    };
    let text = |text: &str| json!({ "type": "text", "text": text });
    let all = json!({ "content": [
        text("an image:"),
        { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
        { "type": "audio", "data": "12345678901234567890ABCDEFGHIJKL12345678", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "a://1", "name": "1", "description": "the first" },
        { "type": "resource", "resource": { "uri": "a://x", "text": "right" } },
        { "type": "resource", "resource": { "uri": "a://y", "blob": "aGk=" } }
    ] });
    check(all.clone(), ("result", all), &[]);
    check(json!({ "content": [text("plain")] }), ("expect", json!("plain")), &[]);
    let both = json!({ "content": [text("{\"b\": 1}")], "structuredContent": { "a": 1 } });
    check(both.clone(), ("result", both), &[]);
    check(json!({ "content": [text("12:30:05")] }), ("expect", json!({ "$type": "string" })), &[""]);
}
