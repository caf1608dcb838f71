//! Driver methods that compare values, transcripts, snapshots, contracts and rules with expectations. Sends requests to servers only for
//! contracts and checks.

use crate::error::DriveError;
use crate::targets::{ResolvedTarget, duration};
use crate::{Context, Drive};
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_check::{CheckOptions, Explored, Permission, explore, take_of};
use mcproof_client::Tap;
use mcproof_client::redaction::REDACTED;
use mcproof_contract::{self as contract, CaptureFailure};
use mcproof_protocol::EraChoice;
use mcproof_record::drive::{
    CheckFinding, CheckParams, CheckResult, ContractParams, ContractResult, Denied, DiffParams, DiffResult, DriveTarget, ExpectParams,
    Expected, HashResult, SnapshotParams, SnapshotResult, SnapshotState, TranscriptParams, TranscriptResult,
};
use mcproof_record::{ChangeLevel, Conclusion, Conversation, Diagnostic, Finding, FrameId, RuleResult, Severity, Transcript};
use mcproof_report::{check, contract as shown_contract, diagnostic};
use mcproof_rules::hosts::HOST_STARTS_SERVER;
use mcproof_rules::{self as rules, Rule, Strictness, UnknownRule};
use mcproof_suite::judge::{self, Numbers, Payload};
use mcproof_suite::run::{Snapshots, snapshot};
use mcproof_suite::step::redactions;
use serde_json::Value;
use std::fs;
use std::path::Path;

impl Drive {
    pub(crate) async fn transcript(&self, params: TranscriptParams) -> Result<TranscriptResult, DriveError> {
        let (tap, faults) = match (&params.session, &params.server) {
            (Some(session), None) => {
                let seat = self.seat_or_past(session)?;
                let faults = seat.faults().await;
                (seat.tap.clone(), faults)
            }
            (None, Some(server)) => (self.servers.tap(server)?, Vec::new()),
            _ => return Err(DriveError::bad("bad-params", "`session` or `server` is required, but not both")),
        };
        let mut transcript = tap.transcript();
        if let Some(since) = params.since {
            transcript.frames.retain(|frame| frame.id >= FrameId(since));
        }
        if let Some(last) = params.last {
            let surplus = transcript.frames.len().saturating_sub(last);
            transcript.frames.drain(..surplus);
        }
        let text = (params.text != Some(false)).then(|| self.shown(&transcript));
        let dropped = transcript.dropped;
        Ok(TranscriptResult { frames: (params.frames != Some(false)).then_some(transcript.frames), dropped, text, faults })
    }

    /// The wire as failures show it, with what the process said where it said it.
    fn shown(&self, transcript: &Transcript) -> String {
        diagnostic::render_frames(&transcript.frames, &self.style.get())
    }

    pub(crate) fn expect(&self, params: ExpectParams) -> Result<Expected, DriveError> {
        let payload = match (params.value, &params.result) {
            (Some(value), None) => Payload::of(value),
            (None, Some(result)) => Payload::from_call_result(result),
            // An absent value and `null` look alike.
            (None, None) => Payload::of(Value::Null),
            _ => return Err(DriveError::bad("bad-params", "`value` or `result` is required, but not both")),
        };
        let what = params.what.as_deref().unwrap_or("response");
        let found = judge::expect(&params.expectation, &payload, what, params.vars.as_ref()).map_err(DriveError::bad_input)?;
        let unexpected = params.result.as_ref().filter(|result| !params.allow_error && is_tool_error(result));
        let found = if unexpected.is_some() { Some(unexpected_error(&payload)) } else { found };
        let Some(found) = found else {
            return Ok(Expected { ok: true, differences: Vec::new(), diagnostic: None, text: None });
        };
        let mut found = self.redacted_diagnostic(found);
        if let Some(session) = &params.session {
            let transcript = self.seat_or_past(session)?.tap.transcript();
            found.evidence = Some(diagnosis::evidence(&transcript, params.frame.map(FrameId)));
        }
        if found.hint.is_none() && found.differences.iter().any(|difference| difference.actual.contains(REDACTED)) {
            found.hint = Some("a secret is redacted in the response: open the session with `show_secrets` to compare it".into());
        }
        let text = diagnostic::render(&found, &self.style.get());
        Ok(Expected { ok: false, differences: found.differences.clone(), diagnostic: Some(found), text: Some(text) })
    }

    pub(crate) fn snapshot(&self, params: SnapshotParams) -> Result<SnapshotResult, DriveError> {
        let rules = redactions(&params.redact).map_err(DriveError::bad_input)?;
        let mode = if params.update { Snapshots::Update } else { Snapshots::Compare };
        // It goes into a repository.
        let value = self.redacted_value(params.value);
        let compared = snapshot::compare(Path::new(&params.file), &value, Numbers::Rounded, &rules, mode);
        let (state, diagnostic) = match compared.map_err(|diagnostic| DriveError::bad_input(vec![diagnostic]))? {
            snapshot::Compared::Same => (SnapshotState::Same, None),
            snapshot::Compared::Written => (SnapshotState::Written, None),
            snapshot::Compared::New(diagnostic) => (SnapshotState::New, Some(diagnostic)),
            snapshot::Compared::Differs(diagnostic) => (SnapshotState::Differs, Some(diagnostic)),
        };
        let diagnostic = diagnostic.map(|diagnostic| self.redacted_diagnostic(diagnostic));
        let text = diagnostic.as_ref().map(|diagnostic| diagnostic::render(diagnostic, &self.style.get()));
        Ok(SnapshotResult { state, diagnostic, text })
    }

    pub(crate) async fn check(&self, params: CheckParams, context: &Context) -> Result<CheckResult, DriveError> {
        let mut chosen = rules::select(&params.only, &params.skip).map_err(unknown_rule)?;
        let of_hosts = if params.hosts { rules::of_hosts(&params.skip).map_err(unknown_rule)? } else { Vec::new() };
        let is_hosts = |id: &str| of_hosts.iter().any(|rule| rule.id == id);
        chosen.retain(|rule| !is_hosts(rule.id));
        chosen.extend(&of_hosts);
        let (target, conversations) = match (&params.target, &params.session) {
            (Some(target), None) => (name_of(target), context.unless_canceled(Box::pin(self.explore(target, &params, &chosen))).await?),
            (None, Some(session)) => (session.clone(), vec![self.take(session).await?]),
            _ => return Err(DriveError::bad("bad-params", "`target` or `session` is required, but not both")),
        };
        let strictness = if params.strict { Strictness::Strict } else { Strictness::Tolerant };
        let mut report = rules::report(target, &chosen, conversations, strictness);
        let style = self.style.get();
        let findings = report.findings().map(|(ruling, finding)| CheckFinding {
            rule: ruling.rule.clone(),
            severity: finding.severity,
            message: finding.message.clone(),
            remedy: finding.remedy.clone(),
            text: diagnostic::render(&check::diagnosed(&report, ruling, finding), &style),
        });
        let findings: Vec<CheckFinding> = findings.collect();
        let least = if params.strict { Severity::Warning } else { Severity::Error };
        let fails = |ruling: &RuleResult, finding: &Finding| finding.severity >= least || (params.strict && is_hosts(&ruling.rule));
        let (ok, text) = (report.conclusion(fails) == Conclusion::Passed, check::render(&report, &style));
        if !params.conversations {
            report.conversations.clear();
        }
        Ok(CheckResult { ok, findings, report, text })
    }

    async fn explore(&self, target: &DriveTarget, params: &CheckParams, chosen: &[&Rule]) -> Result<Vec<Conversation>, DriveError> {
        if target.relay.is_some() {
            return Err(DriveError::bad(
                "bad-target",
                "a server behind a relay cannot be explored: pass its `session` to judge its traffic",
            ));
        }
        let address = target.spawned.as_ref().map(|spawned| self.servers.address(spawned, target.path.as_deref())).transpose()?;
        let resolved = self.targets.resolve(target, address, EraChoice::Auto, None, &params.timeouts)?;
        let permission = params.call.as_deref().map(str::parse::<Permission>).transpose();
        let calls = permission.map_err(|error| DriveError::bad("bad-params", format!("`call`: {error}")))?.unwrap_or_default();
        let host_start = match chosen.iter().any(|rule| rule.id == HOST_STARTS_SERVER) {
            true => self.targets.host_start(target, &params.timeouts, &resolved.target)?,
            false => None,
        };
        let ResolvedTarget { target, options, secrets, timeout, tap } = resolved;
        let check_options =
            CheckOptions { calls, as_browser: params.browser, host_start, ..CheckOptions::new(target, options, secrets, tap, timeout) };
        match explore(&check_options).await {
            Explored { conversations, unreachable: None } => Ok(conversations),
            Explored { conversations, unreachable: Some(failure) } => {
                let transcript = conversations.into_iter().next().map(|take| take.transcript).unwrap_or_default();
                let keeper = Tap::with(check_options.tap, check_options.secrets.clone(), None);
                let diagnostic = diagnosis::of_connect_failure(&failure, &check_options.target, &transcript, Audience::Driver);
                Err(DriveError::not_open(diagnostic.map_text(|text| keeper.redacted(text))))
            }
        }
    }

    /// What was on the wire of a session so far, as a conversation that rules can judge.
    async fn take(&self, name: &str) -> Result<Conversation, DriveError> {
        let seat = self.seat(name)?;
        self.with(&seat, async |session| Ok(take_of(session))).await
    }

    pub(crate) async fn contract(&self, params: ContractParams, context: &Context) -> Result<ContractResult, DriveError> {
        let seat = self.seat(&params.session)?;
        let timeout = duration("timeout_ms", params.timeout_ms, seat.timeout)?;
        let captures = self.with(&seat, async |session| match contract::of_session(session, timeout).await {
            Ok(shown) => Ok(shown),
            Err(CaptureFailure::List { method, failure }) => {
                let scene = Scene::of(session, &seat.tap, Audience::Driver).await;
                Err(DriveError::unanswered(diagnosis::of_list_failure(&failure, method, &scene)))
            }
            Err(failure) => Err(DriveError::unanswered(Diagnostic::error("unstable-lists", failure.to_string()))),
        });
        let (key, contract) = context.unless_canceled(captures).await?;
        let hashes = HashResult { tools: contract.hashes.tools.clone(), full: contract.hashes.full.clone() };
        Ok(ContractResult { key, contract, hashes })
    }

    pub(crate) async fn diff(&self, params: DiffParams, context: &Context) -> Result<DiffResult, DriveError> {
        let text = fs::read_to_string(&params.lock).map_err(|error| contract::unreadable(&params.lock, &error));
        let saved = text.and_then(|text| contract::read_saved(&params.lock, &text));
        let locked = saved.map_err(|diagnostic| DriveError::bad_input(vec![diagnostic]))?.into_contracts();
        let taken = self.contract(ContractParams { session: params.session.clone(), timeout_ms: params.timeout_ms }, context).await?;
        let Some(diff) = contract::kept(&locked, &params.lock, &(taken.key, taken.contract), &params.session) else {
            let message = format!("{} has no contract for this era", params.lock);
            return Err(DriveError::bad("nothing-locked", message));
        };
        let is_broken = match params.deny {
            Denied::Breaking => diff.reaches(ChangeLevel::Breaking),
            Denied::Any => diff.is_drift(),
        };
        let text = shown_contract::terminal(&diff, &self.style.get());
        Ok(DiffResult { ok: !is_broken && !diff.inconclusive, diff, text })
    }
}

fn is_tool_error(result: &Value) -> bool {
    result.get("isError") == Some(&Value::Bool(true))
}

/// Of a call that failed, where its payload or its text is expected: in suites, too, that says that it succeeds.
fn unexpected_error(payload: &Payload) -> Diagnostic {
    let text = payload.text.clone().unwrap_or_else(|| payload.value.to_string());
    let message = format!("expected success, found an `isError` result: {text}");
    Diagnostic { actual: Some(judge::pretty(&payload.value)), ..Diagnostic::error("unexpected-outcome", message) }
}

fn unknown_rule(unknown: UnknownRule) -> DriveError {
    DriveError::bad_input(vec![unknown.diagnostic()])
}

/// As a person would name it.
fn name_of(target: &DriveTarget) -> String {
    let named = target.url.as_ref().or(target.spawned.as_ref()).or(target.server.as_ref());
    named.cloned().unwrap_or_else(|| target.command.join(" "))
}
