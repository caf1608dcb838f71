//! Matchers as they are written, the responses they meet, and the differences that come out.

use super::{Matcher, Origin, Payload, Subject};
use crate::{document, source::Source};
use mcproof_record::Difference;
use serde_json::{Map, Value, json};

fn scope() -> Map<String, Value> {
    json!({"order": "ORD-1", "n": 2, "object": {"k": 1}, "empty": ""}).as_object().cloned().unwrap()
}

fn compile(matcher: &str) -> Matcher {
    let source = Source::new("f", matcher);
    let (node, mut diagnostics) = document::parse(&source, 0);
    let compiled = Matcher::compile(&node.unwrap(), Subject::Payload, &source, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{matcher}: {diagnostics:?}");
    compiled.unwrap()
}

/// `text:…` is a tool's result with one text block, `headers:…` an HTTP response with these headers, anything else a JSON value.
fn payload(written: &str) -> Payload {
    if let Some(headers) = written.strip_prefix("headers:") {
        let headers: Value = serde_json::from_str(headers).unwrap();
        return Payload { origin: Origin::Http, ..Payload::of(json!({"headers": headers, "body": {"X-B": 1}})) };
    }
    match written.strip_prefix("text:") {
        Some(text) => Payload::from_call_result(&json!({"content": [{"type": "text", "text": text}]})),
        None => Payload::of(serde_json::from_str(written).unwrap()),
    }
}

fn differences(matcher: &str, answer: &str) -> Vec<String> {
    let show = |difference: Difference| format!("{}: {} ≠ {}", difference.path, difference.expected, difference.actual);
    compile(matcher).compare(&payload(answer), &scope()).into_iter().map(show).collect()
}

/// A block of the table: a matcher, then answers indented by two, each with its differences indented by four.
fn render(block: &str) -> String {
    let matcher = block.lines().next().unwrap_or_default();
    let answers = block.lines().skip(1).filter(|line| !line.starts_with("    ")).map(str::trim_start);
    let mut rendered = matcher.to_owned();
    for answer in answers {
        rendered.push_str(&format!("\n  {answer}"));
        for difference in differences(matcher, answer) {
            rendered.push_str(&format!("\n    {difference}"));
        }
    }
    rendered
}

#[test]
fn matchers_find_exactly_these_differences() {
    for block in include_str!("tests/matchers.txt").trim_end().split("\n\n") {
        assert_eq!(render(block), block);
    }
}

#[test]
fn a_name_that_must_be_absent_is_told_where_one_like_it_is_there() {
    let check = |matcher: &str, answer: &str, expected: &[&str]| {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let found: Vec<String> = compile(matcher).near_names(&answer).into_iter().map(|found| found.message).collect();
        assert_eq!(found, expected, "{matcher} {answer}");
    };
    check("{pasword: {$absent: true}}", r#"{"password": "x"}"#, &["there is no `pasword`, but there is `password`"]);
    check("{$not: {stauts: failed}}", r#"{"status": "failed"}"#, &["there is no `stauts`, but there is `status`"]);
    check("{$not: {$contains: {stauts: 1}}}", r#"[{"status": 1}, {"status": 2}]"#, &["there is no `stauts`, but there is `status`"]);
    check("{password: {$absent: true}}", r#"{"name": "x"}"#, &[]);
    check("{errors: {$absent: true}, error: {$any: true}}", r#"{"error": 1}"#, &[]);
    check("{$not: {status: failed}}", r#"{"status": "done"}"#, &[]);
}

#[test]
fn a_notification_that_no_revision_has_is_told_if_one_is_like_it() {
    let check = |matcher: &str, expected: &[&str]| {
        let found: Vec<String> = compile(matcher).unknown_notifications().into_iter().filter_map(|found| found.hint).collect();
        assert_eq!(found, expected, "{matcher}");
    };
    check("{$not: {$contains: {method: notification/message}}}", &["did you mean `notifications/message`?"]);
    check("[{method: notifications/message, params: {method: notification/message}}]", &[]);
    check("[{method: example.org/progress-of-mine}]", &[]);
}

#[test]
fn a_sequence_may_have_others_between_its_parts() {
    let check = |matcher: &str, came: &str, expected: &[&str]| {
        let came: Vec<Value> = serde_json::from_str(came).unwrap();
        let found = compile(matcher).compare_in_order(&came, &scope());
        let shown: Vec<String> = found.into_iter().map(|found| format!("{} ≠ {}", found.expected, found.actual)).collect();
        assert_eq!(shown, expected, "{matcher} {came:?}");
    };
    check("[1, {a: 2}]", r#"[0, 1, 1, {"a": 2, "b": 3}, 5]"#, &[]);
    check("[1, 2]", "[2, 1]", &["2 ≠ missing after [1]"]);
    check("[3, 1]", "[1]", &["3 ≠ missing"]);
    check("[1, 1]", "[1]", &["1 ≠ missing after [0]"]);
    check("[1]", "[]", &["1 ≠ missing"]);
    check("{$exact: [1]}", "[1, 2]", &["1 element ≠ 2 elements: [1,2]"]);
}

#[test]
fn what_a_longer_list_changes_is_known() {
    let check = |matcher: &str, list: &str, survives: bool, is_lost: bool| {
        let (matcher, list): (Matcher, Vec<Value>) = (compile(matcher), serde_json::from_str(list).unwrap());
        assert_eq!((matcher.survives_growth(), matcher.is_lost(&list, &scope())), (survives, is_lost), "{matcher:?} {list:?}");
    };
    check("[]", "[1]", false, true);
    check("{$exact: [1, 2]}", "[1]", false, false);
    check("{$exact: [1, 2]}", "[2]", false, true);
    check("{$len: 2}", "[1]", false, false);
    check("{$len: 2}", "[1, 1, 1]", false, true);
    check("{$len: {$gte: 1, $lte: 2}}", "[1, 1, 1]", false, true);
    check("{$len: {$gte: 2}}", "[1]", true, false);
    check("{$contains: 1, $len: {$gt: 0}}", "[]", true, false);
    check("{$one_of: [{$contains: 1}, {$contains: 2}]}", "[3]", true, false);
    check("{$not: {$contains: 1}}", "[2, 1]", false, true);
    check("{$not: {$len: 0}}", "[]", false, false);
    check("{$all: 1}", "[]", false, false);
    check("{$all: 1}", "[1, 2]", false, true);
    check("{$any: true}", "[]", true, false);
}

#[test]
fn differences_are_bounded_in_number_and_size() {
    let wanted = format!("[{}]", vec!["1"; 200].join(", "));
    let found = differences(&wanted, &format!("[{}]", vec!["2"; 200].join(",")));
    assert_eq!(found.len(), 50);
    let found = differences("1", &Value::from("x".repeat(10_000)).to_string());
    assert!(found[0].len() < 2_000 && found[0].ends_with('…'), "{}", found[0].len());
}

#[test]
fn a_difference_points_at_its_expectation() {
    let matcher = "a:\n  b: 1\n  c: { $gt: 2, $lt: 9 }\n  d: [ü, {x: 3}]\n";
    let answer = Payload::of(json!({"a": {"b": 2, "c": 1, "d": ["ü", {}]}}));
    let places: Vec<(String, u32, u32, u32)> = compile(matcher)
        .compare(&answer, &scope())
        .into_iter()
        .map(|difference| (difference.path, difference.place.unwrap()))
        .map(|(path, place)| (path, place.line, place.column, place.length))
        .collect();
    assert_eq!(places, [("a.b".into(), 2, 6, 1), ("a.c".into(), 3, 8, 6), ("a.d[1].x".into(), 4, 14, 1)]);
}
