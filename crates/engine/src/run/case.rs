//! One case on one transport: runs its steps in order and collects the evidence.

use super::expand::Work;
use super::ports::Addresses;
use super::sessions::{Open, Sessions};
use super::step::{StepRun, run_step};
use super::{RunOptions, Transcripts};
use crate::diagnosis;
use mcproof_record::{CaseOutcome, Diagnostic, Proof, SessionTranscript, Severity, StepOutcome, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A case that has its verdict, and what is left to end.
pub(super) struct Finished {
    pub(super) outcome: CaseOutcome,
    pub(super) leftovers: Leftovers,
}

/// Sessions of a case that is over; its servers end while the next case runs.
pub(super) struct Leftovers(Vec<Open>);

impl Leftovers {
    pub(super) async fn end(self) {
        for Open { session, turn, .. } in self.0 {
            session.close().await;
            drop(turn);
        }
    }
}

pub(super) async fn run_case(work: Work, options: Arc<RunOptions>, addresses: Addresses) -> Finished {
    let started = Instant::now();
    let mut sessions = Sessions { work: &work, options: &options, addresses, open: BTreeMap::new(), failed: Vec::new() };
    let (steps, mut diagnostics) = run_steps(&work, &mut sessions, started).await;
    let duration = started.elapsed();
    let Sessions { open, failed, .. } = sessions;
    let mut transcripts = failed;
    let mut proof = Vec::new();
    for (name, Open { session, tap, .. }) in &open {
        let handshake = session.handshake();
        proof.push(Proof {
            server: name.clone(),
            transport: handshake.transport.to_string(),
            era: handshake.era.to_string(),
            protocol_version: handshake.protocol_version.clone(),
        });
        let transcript = tap.transcript();
        // One is enough: a server that prints noise prints it often. A missing answer is blamed on its fault already.
        let blamed = diagnostics.iter().any(|found| matches!(found.code.as_str(), "no-answer" | "no-answer-in-response" | "not-a-message"));
        if let Some(fault) = session.faults().first().filter(|_| !blamed) {
            diagnostics.push(diagnosis::of_fault(fault, &transcript));
        }
        transcripts.push(SessionTranscript { server: name.clone(), transcript });
    }
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let verdict = if failed { Verdict::Fail } else { Verdict::Pass };
    let keeps = failed || options.transcripts == Transcripts::OfAll;
    let transcripts = if keeps { transcripts } else { Vec::new() };
    let outcome = CaseOutcome { proof, diagnostics, steps, transcripts, ..CaseOutcome::new(work.plan.id, verdict, duration) };
    Finished { outcome, leftovers: Leftovers(open.into_values().collect()) }
}

/// Runs the steps until one fails: those after it mostly build on it.
async fn run_steps(work: &Work, sessions: &mut Sessions<'_>, started: Instant) -> (Vec<StepOutcome>, Vec<Diagnostic>) {
    let mut scope = work.case().variables.clone();
    let mut steps = Vec::new();
    for step in &work.case().steps {
        let deadline = step.timeout.or(sessions.options.request_timeout).unwrap_or(work.suite.timeouts.request);
        let at = started.elapsed();
        let StepRun { diagnostics, exchanges } = match sessions.of(&step.server).await {
            Ok(open) => run_step(step, &open.session, &open.tap, &mut scope, deadline).await,
            Err(diagnostic) => StepRun { diagnostics: vec![*diagnostic], exchanges: Vec::new() },
        };
        let passed = diagnostics.is_empty();
        steps.push(StepOutcome {
            title: step.action.title(),
            server: step.server.clone(),
            place: step.place.clone(),
            at,
            duration: started.elapsed().saturating_sub(at),
            passed,
            exchanges,
        });
        if !passed {
            return (steps, diagnostics);
        }
    }
    (steps, Vec::new())
}
