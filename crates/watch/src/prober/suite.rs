//! The suite of a target: its cases that change nothing, run after a probe that went well.

use super::{Prepared, Prober};
use crate::config::load_read_only;
use mcproof_client::{ShutdownTimeouts, Startup, Tls, inherited_secrets};
use mcproof_record::{Diagnostic, Event, Severity, Verdict};
use mcproof_suite::plan::Server;
use mcproof_suite::run::{CoverageMode, RunOptions, Selection, Snapshots, Start, Transcripts, plan, run};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::runtime::Builder;

impl Prober {
    /// What is wrong, if anything is. A suite that cannot be run is a warning: it says nothing about the server.
    pub(super) async fn run_suite(&self, prepared: &Arc<Prepared>, path: &Path, server: &Server, now: SystemTime) -> Option<Diagnostic> {
        let (prober, prepared, path, server) = (self.clone(), Arc::clone(prepared), path.to_owned(), server.clone());
        // A run stays on its thread, since its events go to whoever listens there.
        let ran = tokio::task::spawn_blocking(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime =
                runtime.map_err(|error| Diagnostic::warning("suite-unusable", format!("cannot start a thread for the suite: {error}")));
            match runtime {
                Ok(runtime) => runtime.block_on(prober.run_cases(&prepared, &path, &server, now)),
                Err(diagnostic) => Some(diagnostic),
            }
        });
        ran.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    async fn run_cases(&self, prepared: &Prepared, path: &Path, server: &Server, now: SystemTime) -> Option<Diagnostic> {
        let plan = match self.plan(path, server, &prepared.options.network.tls) {
            Ok(plan) => plan,
            Err(diagnostic) => {
                let (code, message) = ("suite-unusable", format!("{} was not run: {}", path.display(), diagnostic.message));
                let diagnostic = Diagnostic { hint: diagnostic.hint, ..Diagnostic::warning(code, message) };
                return Some(diagnostic);
            }
        };
        let options = RunOptions {
            jobs: 1,
            fail_fast: None,
            start: Start::Cold,
            era: None,
            protocol_version: None,
            connect_timeout: Some(prepared.spec.timeout),
            // An outage is told, not waited for.
            startup: Startup::Over,
            request_timeout: Some(prepared.spec.timeout),
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
        };
        let stop = tokio::time::sleep(prepared.spec.suite_time());
        let mut failed = None;
        let summary = run(&plan, options, stop, &mut |event: &Event| {
            if let Event::CaseFinished(outcome) = event
                && outcome.verdict == Verdict::Fail
                && failed.is_none()
            {
                failed = Some(outcome.clone());
            }
        })
        .await;
        let name = |id| summary.planned.iter().find(|case| case.id == id).map(|case| case.name.clone()).unwrap_or_default();
        if let Some(outcome) = failed {
            let name = name(outcome.id);
            let cause = outcome.diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error);
            let cause = cause.unwrap_or_else(|| Diagnostic::error("suite-failed", "it failed"));
            return Some(Diagnostic { message: format!("`{name}`: {}", cause.message), ..cause });
        }
        let unfinished = summary.planned.iter().find(|case| !summary.outcomes.contains_key(&case.id))?;
        let message = format!("`{}` did not finish within {} s", unfinished.name, prepared.spec.suite_time().as_secs());
        Some(Diagnostic::error("suite-slow", message).hint("increase `timeout` of the target, or shorten the suite"))
    }

    fn plan(&self, path: &Path, server: &Server, tls: &Tls) -> Result<mcproof_suite::run::Plan, Diagnostic> {
        let suite = load_read_only(path, &self.variables, server, tls).map_err(|diagnostic| *diagnostic)?;
        plan(&[Arc::new(suite)], &Selection::default()).map_err(|diagnostic| *diagnostic)
    }
}
