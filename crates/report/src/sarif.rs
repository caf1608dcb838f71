//! The result of a check as SARIF 2.1.0, which code scanning services read. The format is a JSON document without behavior,
//! so it is written as one; the libraries for it generate their types at build time, at many times the cost of this file.

use mcproof_record::{CheckReport, Finding, Gap, Judged, RuleResult, Severity, without_numbers};
use serde_json::{Value, json};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// `file` is where findings are shown: services want one, and a server on a wire has none.
pub fn document(report: &CheckReport, file: &str) -> Value {
    let found = report.rules.iter().enumerate();
    let mut found: Vec<_> =
        found.flat_map(|(index, rule_result)| findings(rule_result).iter().map(move |finding| (index, rule_result, finding))).collect();
    // Known defects come last, grouped by SDK.
    found.sort_by_key(|(_, _, finding)| finding.defect.as_ref().map(|defect| &defect.sdk));
    let results: Vec<Value> =
        found.into_iter().map(|(index, rule_result, finding)| result(report, index, rule_result, finding, file)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "mcproof", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": report.rules.iter().map(rule).collect::<Vec<_>>() } },
            "results": results,
            "invocations": [{ "executionSuccessful": report.gaps.is_empty(), "toolExecutionNotifications": report.gaps.iter().map(notification).collect::<Vec<_>>() }],
        }],
    })
}

/// Why there is no verdict.
fn notification(gap: &Gap) -> Value {
    json!({ "level": "error", "message": { "text": format!("inconclusive: {}", gap.message) }, "descriptor": { "id": "inconclusive" } })
}

fn findings(rule_result: &RuleResult) -> &[Finding] {
    match &rule_result.judged {
        Judged::Broken { findings } => findings,
        _ => &[],
    }
}

fn rule(rule_result: &RuleResult) -> Value {
    let first = findings(rule_result).first();
    let mut rule = json!({
        "id": rule_result.rule,
        "shortDescription": { "text": rule_result.requirement },
        "properties": { "tags": [rule_result.area] },
    });
    if let Some(finding) = first {
        rule["help"] = json!({ "text": finding.remedy });
        if !finding.source.is_empty() {
            rule["helpUri"] = json!(finding.source);
        }
    }
    rule
}

fn result(report: &CheckReport, index: usize, rule_result: &RuleResult, finding: &Finding, file: &str) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let conversation = &report.conversations[finding.conversation];
    let mut result = json!({
        "ruleId": rule_result.rule,
        "ruleIndex": index,
        "level": level,
        "message": { "text": format!("{} ({} {})", finding.message, conversation.transport, conversation.revision) },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": file }, "region": { "startLine": 1 } },
            "logicalLocations": [{ "name": report.target, "kind": "resource" }],
        }],
        "partialFingerprints": { "mcproof/v1": format!("{}:{}", rule_result.rule, without_numbers(&finding.message)) },
        "properties": { "frames": finding.frames, "conversation": conversation.name },
    });
    if let Some(cause) = &finding.cause {
        result["properties"]["cause"] = json!(cause);
        result["message"]["text"] =
            json!(format!("{} ({} {}); follows from {cause}", finding.message, conversation.transport, conversation.revision));
    }
    if let Some(defect) = &finding.defect {
        result["properties"]["defect"] = json!(defect);
        let text = format!("{} ({} {})", finding.message, conversation.transport, conversation.revision);
        result["message"]["text"] = json!(format!("{text}; a known defect of {}, not your code; {}", defect.sdk, defect.advice));
    }
    if finding.accepted {
        result["suppressions"] = json!([{ "kind": "external", "justification": "in the baseline" }]);
    }
    result
}
