//! From suites to the cases of a run: each test once for each transport that its server declares.

use crate::suite::plan::{Binding, Case, Server, Suite};
use mcproof_client::TransportKind;
use mcproof_record::{CaseId, CasePlan};
use std::sync::Arc;

/// One case of a run.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) plan: CasePlan,
    pub(super) suite: Arc<Suite>,
    /// Index into the suite's cases.
    index: usize,
    pub(super) transport: TransportKind,
}

impl Work {
    pub(super) fn case(&self) -> &Case {
        &self.suite.cases[self.index]
    }
}

/// In the order of the files, then of the tests; the transports of a test stand together.
pub(super) fn expand(suites: &[Arc<Suite>], only: &[TransportKind]) -> Vec<Work> {
    let mut all = Vec::new();
    for suite in suites {
        for (index, case) in suite.cases.iter().enumerate() {
            for transport in transports(suite, case) {
                if only.is_empty() || only.contains(&transport) {
                    let id = CaseId(u32::try_from(all.len()).expect("a run has fewer than 2^32 cases"));
                    let plan = CasePlan {
                        id,
                        suite: suite.file.clone(),
                        name: case.name.clone(),
                        transport: transport.to_string(),
                        line: case.place.line,
                        tags: Vec::new(),
                        servers: servers(case),
                    };
                    all.push(Work { plan, suite: Arc::clone(suite), index, transport });
                }
            }
        }
    }
    all
}

fn servers(case: &Case) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for step in &case.steps {
        if !names.contains(&step.server) {
            names.push(step.server.clone());
        }
    }
    names
}

/// The transports of the first server that the case talks to; the others follow where they can.
fn transports(suite: &Suite, case: &Case) -> Vec<TransportKind> {
    let first = case.steps.first().and_then(|step| suite.servers.get(&step.server));
    first.map(|server| server.bindings.iter().map(|binding| binding.transport).collect()).unwrap_or_default()
}

/// How to reach a server in a case that runs over `transport`: the same way, or its first one if it has no such.
pub(super) fn binding(server: &Server, transport: TransportKind) -> &Binding {
    let same = server.bindings.iter().find(|binding| binding.transport == transport);
    same.or(server.bindings.first()).expect("the parser takes no server without a transport")
}
