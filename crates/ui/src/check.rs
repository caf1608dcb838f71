//! `check` from a button, and the rules on what a session has shown so far.

use crate::connection::Recorded;
use crate::hub::{Hub, HubFailure};
use crate::spec::Prepared;
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_check::{Budget, CheckOptions, Explored, explore};
use mcproof_client::Tap;
use mcproof_client::redaction::Redactor;
use mcproof_record::{CheckReport, Conversation, Diagnostic, Opened, RulePage, Severity};
use mcproof_rules::{self as rules, Strictness};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Of each request of a check.
const REQUEST: Duration = Duration::from_secs(30);
/// Of the whole check.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub(crate) enum Checked {
    /// With the pages of the rules that were broken.
    Report {
        report: Box<CheckReport>,
        conclusion: &'static str,
        pages: Vec<RulePage>,
    },
    Unreachable {
        diagnostic: Box<Diagnostic>,
    },
}

/// Checks the server of a connection, in sessions of its own. Only tools that declare themselves read-only are called.
pub(crate) async fn check(hub: &Hub, id: u64) -> Result<Checked, HubFailure> {
    let spec = hub.state().connection(id).ok_or(HubFailure::NoConnection)?.spec.clone();
    let Prepared { target, options, secrets, tap, .. } = match hub.connector.prepare(&spec, None) {
        Ok(prepared) => prepared,
        Err(diagnostic) => return Ok(Checked::Unreachable { diagnostic }),
    };
    let check_options = CheckOptions { budget: Budget::of(DEADLINE), ..CheckOptions::new(target, options, secrets, tap, REQUEST) };
    let Explored { conversations, unreachable } = explore(&check_options).await;
    if let Some(failure) = unreachable {
        let transcript = conversations.into_iter().next().map(|take| take.transcript).unwrap_or_default();
        let diagnostic = diagnosis::of_connect_failure(&failure, &check_options.target, &transcript, Audience::CommandLine);
        let secrets = Redactor::new(check_options.secrets);
        return Ok(Checked::Unreachable { diagnostic: Box::new(diagnostic.map_text(|text| secrets.text(&text).into_owned())) });
    }
    // Judging takes all cores for a moment.
    let judged = tokio::task::spawn_blocking(move || judged(spec.title(), conversations)).await;
    Ok(judged.expect("judges do not panic"))
}

fn judged(title: String, conversations: Vec<Conversation>) -> Checked {
    let report = rules::report(title, &rules::all().collect::<Vec<_>>(), conversations, Strictness::Tolerant);
    let conclusion = match report.conclusion(|_, finding| finding.severity >= Severity::Error) {
        mcproof_record::Conclusion::Passed => "passed",
        mcproof_record::Conclusion::Failed => "failed",
        mcproof_record::Conclusion::Inconclusive => "inconclusive",
    };
    let pages = pages(&report);
    Checked::Report { report: Box::new(report), conclusion, pages }
}

fn pages(report: &CheckReport) -> Vec<RulePage> {
    let mut ids: Vec<&str> = report.findings().map(|(result, _)| result.rule.as_str()).collect();
    ids.dedup();
    ids.into_iter().filter_map(|id| rules::find(id)).map(rules::Rule::page).collect()
}

/// Connects step by step, in a session of its own.
pub(crate) async fn examine(hub: &Hub, id: u64) -> Result<Value, HubFailure> {
    let spec = hub.state().connection(id).ok_or(HubFailure::NoConnection)?.spec.clone();
    let prepared = match hub.connector.prepare(&spec, None) {
        Ok(prepared) => prepared,
        Err(diagnostic) => return Ok(json!({ "diagnostic": diagnostic })),
    };
    let tap = Tap::with(prepared.tap, prepared.secrets.clone(), None);
    let find = |program: &str| hub.connector.find_program(program, &prepared);
    let examination = mcproof_doctor::examine(&prepared.target, &prepared.options, &tap, find).await;
    let transcript = tap.transcript();
    Ok(json!({ "examination": examination, "frames": transcript.frames }))
}

/// What the rules say of the traffic of a session so far. What was not tried in it is not judged.
pub(crate) async fn findings(hub: &Hub, session: u64) -> Result<Value, HubFailure> {
    let Recorded { frames, .. } = hub.recorded(session)?;
    let handshake = hub.handshake(session);
    let text = |key: &str| handshake.as_ref().and_then(|handshake| handshake.get(key)?.as_str()).unwrap_or_default().to_owned();
    let conversation = Conversation {
        name: text("era"),
        transport: text("transport"),
        revision: text("protocolVersion"),
        opened: if handshake.is_some() { Opened::Yes } else { Opened::Bare },
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript: frames.transcript(),
    };
    let judged = tokio::task::spawn_blocking(move || {
        let report = rules::report(String::new(), &rules::all().collect::<Vec<_>>(), vec![conversation], Strictness::Tolerant);
        let pages = pages(&report);
        let findings: Vec<Value> = report
            .findings()
            .map(|(result, finding)| json!({ "rule": result.rule, "requirement": result.requirement, "finding": finding }))
            .collect();
        json!({ "findings": findings, "pages": pages })
    });
    Ok(judged.await.expect("judges do not panic"))
}
