//! From suites to the cases of a run: each test once for each transport that its server declares.

use crate::plan::{Action, Binding, Case, Isolation, LeftOut, LeftOutBy, Server, Step, Suite};
use mcproof_protocol::Transport;
use mcproof_record::{CaseId, CasePlan};
use std::sync::Arc;

/// One case of a run.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) plan: CasePlan,
    pub(super) suite: Arc<Suite>,
    /// Index into the suite's cases.
    index: usize,
    pub(super) transport: Transport,
}

impl Work {
    /// The cases that share its server, if any do.
    pub(super) fn group(&self) -> Option<GroupKey> {
        let suite = self.plan.suite.clone();
        let repetition = self.plan.repetition;
        (self.case().isolation == Isolation::File).then_some(GroupKey { suite, transport: self.transport, repetition })
    }

    pub(super) fn case(&self) -> &Case {
        &self.suite.cases[self.index]
    }
}

/// The cases of one suite on one transport that share a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    suite: String,
    transport: Transport,
    repetition: u32,
}

/// All that the suites hold, in the order of the files, then of the tests; the transports of a test stand together.
pub(super) fn expand(suites: &[Arc<Suite>]) -> Vec<Work> {
    let mut all = Vec::new();
    for suite in suites {
        for (index, case) in suite.cases.iter().enumerate() {
            for transport in transports(suite, case) {
                all.push(Work { plan: plan(suite, case, transport, all.len()), suite: Arc::clone(suite), index, transport });
            }
        }
    }
    all
}

/// A case that its suite leaves out by itself.
pub(super) struct SetAside {
    pub(super) plan: CasePlan,
    pub(super) last_line: u32,
    pub(super) transport: Transport,
    pub(super) by: LeftOutBy,
}

/// What the suites leave out by themselves.
pub(super) fn expand_left_out(suites: &[Arc<Suite>]) -> Vec<SetAside> {
    let mut all = Vec::new();
    for suite in suites {
        for LeftOut { case, by } in &suite.left_out {
            let of = |transport| SetAside { plan: plan(suite, case, transport, 0), last_line: case.last_line, transport, by: *by };
            all.extend(transports(suite, case).into_iter().map(of));
        }
    }
    all
}

fn plan(suite: &Suite, case: &Case, transport: Transport, position: usize) -> CasePlan {
    CasePlan {
        id: case_id(position),
        suite: suite.file.clone(),
        name: case.name.clone(),
        transport: transport.to_string(),
        line: case.place.line,
        repetition: 0,
        tags: case.tags.clone(),
        servers: servers(suite, case),
    }
}

/// All cases once, then all of them again, and so on; each with an id of its own.
pub(super) fn repeat(cases: Vec<Work>, times: u32) -> Vec<Work> {
    let numbers = if times > 1 { 1..=times } else { 0..=0 };
    let mut all = Vec::new();
    for repetition in numbers {
        for work in &cases {
            let plan = CasePlan { id: case_id(all.len()), repetition, ..work.plan.clone() };
            all.push(Work { plan, ..work.clone() });
        }
    }
    all
}

fn case_id(position: usize) -> CaseId {
    CaseId(u32::try_from(position).expect("a run has fewer than 2^32 cases"))
}

/// The servers that a case names, each once.
fn servers(suite: &Suite, case: &Case) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in case.steps.iter().flat_map(Step::leaves).flat_map(|step| asked(suite, step)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The servers that a step talks to.
pub(super) fn asked<'a>(suite: &'a Suite, step: &'a Step) -> Vec<&'a String> {
    match step.action {
        Action::Federation(_) => suite.servers.keys().collect(),
        _ => step.server.iter().collect(),
    }
}

/// The transports of the first server that the case talks to; the others follow where they can.
fn transports(suite: &Suite, case: &Case) -> Vec<Transport> {
    let named = case.steps.iter().flat_map(Step::leaves).find_map(|step| step.server.as_ref());
    let first = named.and_then(|name| suite.servers.get(name)).or(suite.servers.values().next());
    first.map(|server| server.bindings.iter().map(|binding| binding.transport).collect()).unwrap_or_default()
}

/// How to reach a server in a case that runs over `transport`: the same way, or its first one if it has no such.
pub(super) fn binding(server: &Server, transport: Transport) -> &Binding {
    let same = server.bindings.iter().find(|binding| binding.transport == transport);
    same.or(server.bindings.first()).expect("the parser takes no server without a transport")
}
