//! A check of a server whose SDK has known defects, through every reporter: they stand at the end, under the SDK.

use super::plain;
use insta::assert_snapshot;
use mcproof_record::{CheckReport, Conclusion, Conversation, Defect, Finding, Judged, Opened, RuleResult, Sdk, Severity, Transcript};
use mcproof_report::github::Github;
use mcproof_report::junit::Junit;
use mcproof_report::{Repeat, Reporter as _, agent, check, sarif};
use serde_json::json;
use std::time::Duration;

fn finding(severity: Severity, message: &str, defect: Option<Defect>) -> Finding {
    Finding {
        severity,
        level: if severity == Severity::Error { "MUST" } else { "SHOULD" }.into(),
        tolerance: None,
        message: message.into(),
        conversation: 0,
        frames: Vec::new(),
        source: "https://modelcontextprotocol.io/specification/2025-11-25".into(),
        remedy: "mend it".into(),
        cause: None,
        defect,
        accepted: false,
    }
}

fn ruling(rule: &str, requirement: &str, findings: Vec<Finding>) -> RuleResult {
    RuleResult { rule: rule.into(), area: "modern".into(), requirement: requirement.into(), judged: Judged::Broken { findings } }
}

/// One finding of the author's; of the SDK's one that an update mends, in two conversations, and one that nothing mends; and one
/// that is accepted.
fn report() -> CheckReport {
    let sdk = Sdk { name: "TypeScript SDK".into(), package: "npm:@modelcontextprotocol/server".into(), version: "2.0.0".into() };
    let known =
        |fixed: Option<&str>, advice: &str| Some(Defect { sdk: sdk.clone(), fixed: fixed.map(str::to_owned), advice: advice.into() });
    let update = || known(Some("2.1.0"), "fixed in 2.1.0: update `@modelcontextprotocol/server`");
    let nothing = || known(None, "not fixed in 2.4.0, the newest tested version");
    let told = "`tools/list` without `MCP-Protocol-Version` got a result with status 200, not error -32020 with status 400";
    let lenient = Finding {
        tolerance: Some("every version of the SDK has it".into()),
        ..finding(Severity::Warning, "a request in an unknown version got a result, not error -32022", nothing())
    };
    let accepted = Finding { accepted: true, ..finding(Severity::Warning, "an unknown log level got error -32603", nothing()) };
    CheckReport {
        version: 1,
        target: "node server.js".into(),
        gaps: Vec::new(),
        sampled: Vec::new(),
        rules: vec![
            ruling(
                "header-version-is-checked",
                "a request without its header is refused",
                vec![finding(Severity::Error, told, update()), finding(Severity::Error, &told.replace("tools", "prompts"), update())],
            ),
            ruling("unsupported-version-error-names-versions", "an unknown version gets those that are supported", vec![lenient]),
            ruling("log-level-unknown-is-refused", "an unknown log level is refused", vec![accepted]),
            ruling("tool-has-description", "a tool has a description", vec![finding(Severity::Warning, "tool `echo` has none", None)]),
        ],
        conversations: vec![Conversation {
            name: "modern".into(),
            transport: "http".into(),
            revision: "2026-07-28".into(),
            opened: Opened::Yes,
            probes: Vec::new(),
            ending: None,
            sdks: vec![sdk],
            transcript: Transcript::default(),
        }],
    }
}

#[test]
fn known_defects_are_told_after_everything_else_and_counted_apart() {
    assert_snapshot!(check::render(&report(), &plain()));
}

#[test]
fn an_agent_reads_known_defects_last() {
    let mut text = Vec::new();
    agent::write_check(&mut text, &report(), Conclusion::Failed, &Repeat::default()).unwrap();
    assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn known_defects_are_a_suite_of_their_own() {
    let (mut junit, mut github) = (Junit::new(Vec::new()), Github::new(Vec::new(), Some(Vec::new()), String::new(), None));
    for event in check::as_run(&report(), Duration::ZERO) {
        junit.event(&event).unwrap();
        github.event(&event).unwrap();
    }
    let (commands, summary) = github.into_inner();
    assert_snapshot!(String::from_utf8(junit.into_inner()).unwrap());
    assert_snapshot!("known_defects_on_github", String::from_utf8([commands, summary.unwrap()].concat()).unwrap());
}

#[test]
fn sarif_tells_known_defects_last_and_which_sdk_has_them() {
    let document = sarif::document(&report(), "server.js");
    let results = document["runs"][0]["results"].as_array().unwrap();
    let rules: Vec<&str> = results.iter().map(|result| result["ruleId"].as_str().unwrap()).collect();
    let known = [
        "header-version-is-checked",
        "header-version-is-checked",
        "unsupported-version-error-names-versions",
        "log-level-unknown-is-refused",
    ];
    assert_eq!(rules, [&["tool-has-description"][..], &known].concat());
    assert_eq!(results[0]["properties"].get("defect"), None);
    assert_eq!(results[1]["properties"]["defect"]["fixed"], json!("2.1.0"));
    let text = results[1]["message"]["text"].as_str().unwrap();
    assert!(
        text.ends_with("; a known defect of TypeScript SDK 2.0.0, not your code; fixed in 2.1.0: update `@modelcontextprotocol/server`"),
        "{text}"
    );
    assert_eq!(results[4]["suppressions"][0]["kind"], "external");
}

#[test]
fn what_an_sdk_gets_wrong_fails_a_check_like_any_other_error() {
    let fails = |report: &CheckReport| report.conclusion(|_, finding| finding.severity >= Severity::Error);
    assert_eq!(fails(&report()), Conclusion::Failed);
    let mut mended = report();
    mended.rules.remove(0);
    assert_eq!(fails(&mended), Conclusion::Passed);
}
