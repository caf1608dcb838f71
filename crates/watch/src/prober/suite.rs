//! The suite of a target: its cases that change nothing, run after a probe that went well.

use super::{Prepared, Prober, lock};
use crate::config::load_read_only;
use crate::state::Verdict;
use mcproof_client::{ShutdownTimeouts, Startup, inherited_secrets};
use mcproof_record::{Diagnostic, Event, Severity, Verdict as CaseVerdict};
use mcproof_suite::plan::{Server, Timeouts};
use mcproof_suite::run::{CoverageMode, Grace, Plan, RunOptions, Selection, Snapshots, Start, Transcripts, plan, run};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::runtime::Builder;

impl Prober {
    /// What is wrong, if anything is, and what that says of the target. While its file has errors, the last suite that had none is run; a
    /// suite that never ran says nothing of the server, and that must not look as if it had passed.
    pub(super) async fn run_suite(
        &self,
        prepared: &Arc<Prepared>,
        path: &Path,
        server: &Server,
        now: SystemTime,
    ) -> Option<(Verdict, Diagnostic)> {
        let (prober, prepared, path, server) = (self.clone(), Arc::clone(prepared), path.to_owned(), server.clone());
        // A run stays on its thread, since its events go to whoever listens there.
        let ran = tokio::task::spawn_blocking(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(prober.run_cases(&prepared, &path, &server, now)),
                Err(error) => Some(not_run(format!("cannot start a thread for the suite: {error}"))),
            }
        });
        ran.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    async fn run_cases(&self, prepared: &Prepared, path: &Path, server: &Server, now: SystemTime) -> Option<(Verdict, Diagnostic)> {
        let (suite, flaw) = match load_read_only(path, &self.variables, server, &prepared.options.network.tls) {
            Ok(suite) => {
                let suite = Arc::new(suite);
                lock(&prepared.suite).replace(Arc::clone(&suite));
                (suite, None)
            }
            Err(flaw) => match lock(&prepared.suite).clone() {
                Some(last) => (last, Some(*flaw)),
                None => {
                    let (verdict, diagnostic) = not_run(format!("{} was not run: {}", path.display(), flaw.message));
                    return Some((verdict, Diagnostic { hint: flaw.hint, ..diagnostic }));
                }
            },
        };
        let timeouts = suite.timeouts.clone();
        let plan = match plan(&[suite], &Selection::default()) {
            Ok(plan) => plan,
            Err(flaw) => return Some(not_run(format!("{} was not run: {}", path.display(), flaw.message))),
        };
        let found = self.run_plan(prepared, path, (&plan, &timeouts), now).await;
        found.or_else(|| {
            let flaw = flaw?;
            let message = format!("{} was changed and cannot be run: {}; its last version was run", path.display(), flaw.message);
            Some((Verdict::Warning, Diagnostic { hint: flaw.hint, ..Diagnostic::warning("suite-unusable", message) }))
        })
    }

    async fn run_plan(
        &self,
        prepared: &Prepared,
        path: &Path,
        (plan, timeouts): (&Plan, &Timeouts),
        now: SystemTime,
    ) -> Option<(Verdict, Diagnostic)> {
        // What the suite says of its own server goes before what is usual for probes.
        let unless = |is_said: bool| (!is_said).then_some(prepared.spec.timeout);
        let options = RunOptions {
            jobs: 1,
            fail_fast: None,
            start: Start::Cold,
            era: None,
            protocol_version: None,
            connect_timeout: unless(timeouts.says_connect),
            // An outage is told, not waited for.
            startup: Startup::Over,
            request_timeout: unless(timeouts.says_request),
            mcproof: self.own_binary.clone(),
            launcher: None,
            patience: ShutdownTimeouts::default(),
            guardian: self.guardian.clone(),
            limits: Default::default(),
            network: prepared.options.network.clone(),
            authorization: prepared.options.authorization.clone(),
            transcripts: Transcripts::OfFailures,
            // An oddity is not an outage.
            judge: None,
            coverage: CoverageMode::Off,
            snapshots: Snapshots::Compare,
            audit: None,
            secrets: inherited_secrets(&*self.variables),
            began: now,
            watcher: None,
        };
        // A suite that is too slow is ended at once.
        let most = prepared.spec.suite_time();
        let stop = async move {
            tokio::time::sleep(most).await;
            Grace(std::future::ready(()))
        };
        let (mut failed, mut has_run) = (None, false);
        let summary = run(plan, options, stop, &mut |event: &Event| {
            if let Event::CaseFinished(outcome) = event {
                has_run |= outcome.verdict != CaseVerdict::Skipped;
                if outcome.verdict == CaseVerdict::Fail && failed.is_none() {
                    failed = Some(outcome.clone());
                }
            }
        })
        .await;
        let name = |id| summary.planned.iter().find(|case| case.id == id).map(|case| case.name.clone()).unwrap_or_default();
        if let Some(outcome) = failed {
            let name = name(outcome.id);
            let cause = outcome.diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error);
            let cause = cause.unwrap_or_else(|| Diagnostic::error("suite-failed", "it failed"));
            return Some((Verdict::Down, Diagnostic { message: format!("`{name}`: {}", cause.message), ..cause }));
        }
        let Some(unfinished) = summary.planned.iter().find(|case| !summary.outcomes.contains_key(&case.id)) else {
            return (!has_run).then(|| not_run(format!("all tests of {} were skipped, so nothing was tested", path.display())));
        };
        let message = format!("`{}` did not finish within {} s", unfinished.name, prepared.spec.suite_time().as_secs());
        Some((Verdict::Down, Diagnostic::error("suite-slow", message).hint("increase `timeout` of the target, or shorten the suite")))
    }
}

/// Nothing is known of the server.
fn not_run(message: String) -> (Verdict, Diagnostic) {
    (Verdict::Inconclusive, Diagnostic::error("suite-unusable", message).hint("correct the suite, or remove `suite`"))
}
