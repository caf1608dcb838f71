//! One step: does its action, as often as it says, waits for what is to follow, and judges all of it.

mod act;
mod awaited;
mod client_answers;
mod judge;
mod outputs;
mod rehearsal;
mod request;

pub(super) use outputs::Outputs;

use super::expand::asked;
use super::resilience::Policy;
use super::sessions::{Open, Sessions};
use super::{command, federation, snapshot};
use crate::plan::{Action, Isolation, Repeat, Spanned, Step};
use act::act;
pub(super) use act::{Answer, ErrorResponse, answer, scene};
pub(super) use awaited::Waiting;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use mcproof_analysis::diagnosis;
use mcproof_client::{Answers, AskedLog, Deadline};
use mcproof_protocol::Transport;
use mcproof_record::{Diagnostic, Exchange, FrameId, Severity};
pub use rehearsal::{MadeEvent, MadeExchange, MadeSession, Rehearsal, UnmadeStep, rehearse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A step that was run.
pub(super) struct StepRun {
    /// Empty when the step passed.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What is odd about a step that passed.
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) exchanges: Vec<Exchange>,
}

impl StepRun {
    fn of(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics, warnings: Vec::new(), exchanges: Vec::new() }
    }
}

/// Values that the step saves go into `scope`.
pub(super) async fn run_step(step: &Step, sessions: &mut Sessions<'_>, scope: &mut Map<String, Value>) -> StepRun {
    let suite = &sessions.work.suite;
    for leaf in step.leaves() {
        for server in asked(suite, leaf) {
            let ready = match step.action {
                Action::Restart => sessions.restart(server).await,
                _ if leaf.session.is_some() => sessions.ready(leaf).await,
                _ => sessions.of(server).await.map(drop),
            };
            if let Err(diagnostic) = ready {
                return StepRun::of(vec![*diagnostic]);
            }
        }
    }
    if let Action::Restart = step.action {
        return StepRun::of(Vec::new());
    }
    let policies = &sessions.work.case().answers;
    let asked = AskedLog::judged_by(client_answers::flaw);
    let answers = step.answers.clone().map_or_else(|| policies.clone(), |answers| answers.or(policies));
    let answers = Answers { asked: Some(asked.clone()), ..answers };
    // Also those that the step does not ask: what they ask now is asked during it.
    sessions.open.values().for_each(|open| open.session.set_client_responses(answers.clone()));
    let (sessions, before) = (&*sessions, &*scope);
    let all = join_all(step.leaves().iter().map(|leaf| run_leaf(leaf, sessions, before))).await;
    let mut run = StepRun::of(Vec::new());
    let first = step.leaves().iter().find_map(Step::conversation);
    for (leaf, Leaf { diagnostics, warnings, mut exchanges, saved }) in step.leaves().iter().zip(all) {
        // Frames are told by their numbers in the transcript of the step's server.
        if leaf.conversation() != first {
            exchanges.iter_mut().for_each(|exchange| exchange.frame = None);
        }
        run.diagnostics.extend(diagnostics);
        run.warnings.extend(warnings);
        run.exchanges.extend(exchanges);
        scope.extend(saved);
    }
    let asked = asked.all();
    run.diagnostics.extend(client_answers::invalid(step, &answers, &asked));
    if run.diagnostics.is_empty() {
        let misspelled = client_answers::misspelled(step, &answers, &asked).into_iter();
        let (errors, warnings): (Vec<_>, Vec<_>) = misspelled.partition(|diagnostic| diagnostic.severity == Severity::Error);
        run.diagnostics.extend(errors);
        run.warnings.extend(warnings.into_iter().chain(client_answers::unused(step, &asked)));
    }
    run
}

struct Leaf {
    diagnostics: Vec<Diagnostic>,
    /// What is odd, if there are no diagnostics.
    warnings: Vec<Diagnostic>,
    exchanges: Vec<Exchange>,
    saved: Map<String, Value>,
}

/// One time that the action of a step was done.
struct Attempt {
    answer: Option<Answer>,
    diagnostics: Vec<Diagnostic>,
    /// One for each time that it was tried.
    exchanges: Vec<Exchange>,
    saved: Map<String, Value>,
}

async fn run_leaf(step: &Step, sessions: &Sessions<'_>, scope: &Map<String, Value>) -> Leaf {
    let Some(conversation) = step.conversation() else { return run_without_server(step, sessions, scope).await };
    let open = sessions.opened(&conversation);
    let deadline = sessions.deadline(step);
    let case = sessions.work.case();
    let policy = (step.retry.as_ref().or(case.retry.as_ref()), case.breaker.as_ref());
    let waiting = sessions.waiting(step);
    let since = newest(step, open);
    let begun = open.tap.mark();
    let mut attempts = match &step.repeat {
        None => vec![attempt(step, open, scope, deadline, policy).await],
        Some(Repeat { times, concurrency: 1, .. }) => {
            let mut attempts: Vec<Attempt> = Vec::new();
            for n in 1..=*times {
                let (scope, since) = (counted(scope, n), newest(step, open));
                // What comes late is in the list of the next run.
                let waiting = if n < *times { Waiting { settle: Duration::ZERO, ..waiting } } else { waiting };
                let mut attempt = attempt(step, open, &scope, deadline, policy).await;
                // What did not come is not waited for as often.
                let are_flawless = attempts.iter().chain([&attempt]).all(|attempt| attempt.diagnostics.is_empty());
                if let (true, Some(matcher)) = (are_flawless, &step.expect.notifications) {
                    attempt.diagnostics.extend(awaited::notifications(matcher, open, since, &scope, waiting).await);
                }
                attempts.push(attempt);
            }
            attempts
        }
        Some(Repeat { times, concurrency, .. }) => {
            let concurrency = usize::try_from(*concurrency).unwrap_or(usize::MAX);
            let runs = stream::iter(1..=*times).map(|n| {
                let scope = counted(scope, n);
                async move { attempt(step, open, &scope, deadline, policy).await }
            });
            runs.buffered(concurrency).collect().await
        }
    };
    let are_told_apart = matches!(step.repeat, Some(Repeat { concurrency: 1, .. }));
    let mut diagnostics = match &step.repeat {
        None => std::mem::take(&mut attempts[0].diagnostics),
        Some(repeat) => of_all(step, repeat, &mut attempts),
    };
    if diagnostics.is_empty()
        && !are_told_apart
        && let Some(matcher) = &step.expect.notifications
    {
        diagnostics.extend(awaited::notifications(matcher, open, since, scope, waiting).await);
    }
    if diagnostics.is_empty()
        && let Some(exit) = &step.expect.exit
    {
        diagnostics.extend(awaited::exit(exit, &step.action, open, scope).await);
    }
    if diagnostics.is_empty()
        && let (Some(snapshot), Some(Attempt { answer: Some(answer), .. })) = (&step.snapshot, attempts.first())
    {
        diagnostics.extend(snapshot::check(snapshot, &answer.payload, sessions));
    }
    if diagnostics.iter().any(|diagnostic| diagnostic.evidence.is_none()) {
        let transcript = open.tap.transcript();
        let end = attempts.iter().find_map(|attempt| attempt.answer.as_ref()?.frame);
        // What is waited for comes after the response.
        let end = end.filter(|_| step.expect.notifications.is_none() && step.expect.exit.is_none());
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.evidence.is_none()) {
            diagnostic.evidence = Some(diagnosis::evidence(&transcript, end));
        }
    }
    if case.isolation == Isolation::File {
        // What came before may be another test's.
        diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.evidence.as_mut()).for_each(|evidence| evidence.begin_at(begun));
    }
    let first = attempts.first().and_then(|attempt| attempt.answer.as_ref()).filter(|_| diagnostics.is_empty());
    let warnings = first.map(|answer| judge::near_names(step, answer)).unwrap_or_default();
    let mut leaf = Leaf { diagnostics, warnings, exchanges: Vec::new(), saved: Map::new() };
    for Attempt { exchanges, saved, .. } in attempts {
        leaf.exchanges.extend(exchanges);
        leaf.saved.extend(saved);
    }
    leaf
}

/// The newest notification so far, where somebody looks: later ones are news.
fn newest(step: &Step, open: &Open) -> Option<FrameId> {
    step.expect.notifications.as_ref()?;
    open.session.notifications().last().map(|notification| notification.frame)
}

/// What one of several runs of a step may use.
fn counted(scope: &Map<String, Value>, n: u32) -> Map<String, Value> {
    let mut scope = scope.clone();
    scope.insert(crate::COUNTER.to_owned(), json!(n));
    scope
}

/// A step that talks to no server, or to all of them.
async fn run_without_server(step: &Step, sessions: &Sessions<'_>, scope: &Map<String, Value>) -> Leaf {
    let mut leaf = Leaf { diagnostics: Vec::new(), warnings: Vec::new(), exchanges: Vec::new(), saved: Map::new() };
    let (options, started, deadline) = (sessions.options, Instant::now(), sessions.deadline(step).idle);
    let judged = match &step.action {
        Action::Run(launch) => {
            let payload = command::run(launch, options.mcproof.as_deref(), scope, &options.guardian, deadline, &sessions.keeper).await;
            sessions.open.values().for_each(|open| open.tap.keep_secrets_of(&sessions.keeper));
            let is_judged = [&step.expect.payload, &step.expect.result].into_iter().flatten().any(|matcher| matcher.speaks_of("code"));
            payload.and_then(|payload| match command::failure(launch, &payload).filter(|_| !is_judged) {
                Some(failure) => Err(failure),
                None => Ok((payload.value.clone(), payload)),
            })
        }
        Action::Federation(clashes) => federation::list(*clashes, sessions, deadline, &mut leaf.exchanges).await,
        _ => unreachable!("the parser gives a server to all others"),
    };
    match judged {
        Err(diagnostic) => leaf.diagnostics.push(diagnostic.at(step.place.clone())),
        Ok((result, payload)) => {
            let answer = Answer { result: Ok(result), payload, frame: None, elapsed: started.elapsed() };
            leaf.diagnostics = judge::judge(step, &answer, scope);
            if let (true, Some(snapshot)) = (leaf.diagnostics.is_empty(), &step.snapshot) {
                leaf.diagnostics.extend(snapshot::check(snapshot, &answer.payload, sessions));
            }
            if leaf.diagnostics.is_empty() {
                (leaf.saved, leaf.diagnostics) = judge::save(step, &answer);
            }
        }
    }
    leaf
}

async fn attempt(step: &Step, open: &Open, scope: &Map<String, Value>, deadline: Deadline, policy: Policy<'_>) -> Attempt {
    let done = act(step, open, scope, deadline, policy).await;
    let mut attempt = Attempt { answer: None, diagnostics: Vec::new(), exchanges: done.exchanges, saved: Map::new() };
    let is_expected = done.retry_cause.is_some_and(|retry_cause| judge::expects(step, retry_cause));
    let mut answer = match done.outcome {
        Ok(Some(answer)) => answer,
        Ok(None) => return attempt,
        Err(_) if is_expected && !has_died(step, open) => return attempt,
        Err(mut diagnostic) => {
            if is_expected {
                let hint = "`no_response: true` does not expect that the server ends; `no_response: reset` does";
                diagnostic.hint = Some(hint.to_owned());
            }
            // What has a place knows it better.
            let place = diagnostic.place.clone().unwrap_or_else(|| step.place.clone());
            attempt.diagnostics.push(diagnostic.at(place));
            return attempt;
        }
    };
    answer.payload.numbers = act::numbers(&step.action, &answer, open);
    attempt.diagnostics = judge::judge(step, &answer, scope);
    if attempt.diagnostics.is_empty() {
        attempt.diagnostics.extend(open.outputs.check(step, &done.target, &answer, open, deadline.idle).await);
    }
    if let (true, Some(tool)) = (attempt.diagnostics.is_empty(), &done.target) {
        attempt.diagnostics.extend(open.outputs.misspelled(step, tool, &answer, open, deadline.idle).await);
        attempt.diagnostics.extend(open.outputs.misspelled_other(step, tool, &answer, open, deadline.idle).await);
        if let (true, Some(Exchange { arguments, .. })) = (attempt.diagnostics.is_empty(), attempt.exchanges.last()) {
            attempt.diagnostics.extend(open.outputs.misspelled_argument(step, tool, arguments, open, deadline.idle).await);
        }
    }
    if attempt.diagnostics.is_empty() {
        (attempt.saved, attempt.diagnostics) = judge::save(step, &answer);
    }
    if !attempt.diagnostics.is_empty() {
        let transcript = open.tap.transcript();
        for diagnostic in &mut attempt.diagnostics {
            diagnostic.evidence = Some(diagnosis::evidence(&transcript, answer.frame));
        }
        if let (Action::Call { .. }, Some(tool), [diagnostic @ Diagnostic { hint: None, .. }]) =
            (&step.action, &done.target, attempt.diagnostics.as_mut_slice())
        {
            diagnostic.hint = open.outputs.unknown_tool(tool, &answer, open, deadline.idle).await;
        }
    }
    attempt.answer = Some(answer);
    attempt
}

/// Whether the server is gone although nothing told it to end, no fault was injected, and the step does not say that it may be.
fn has_died(step: &Step, open: &Open) -> bool {
    if step.may_end_server() || open.injector.is_some() || open.told_to_end.load(Ordering::Relaxed) {
        return false;
    }
    match open.session.handshake().transport {
        Transport::Stdio => open.session.closed_because().is_some(),
        // The command of a server at a URL may only have started it.
        _ => open.session.exit().is_some_and(|exit| exit.code != Some(0)),
    }
}

/// The first run that failed, which others did, and whether the responses differ where they have to.
fn of_all(step: &Step, repeat: &Repeat, attempts: &mut [Attempt]) -> Vec<Diagnostic> {
    let failed: Vec<usize> = (0..attempts.len()).filter(|index| !attempts[*index].diagnostics.is_empty()).collect();
    let Some(first) = failed.first() else {
        return repeat.distinct.as_ref().map(|path| judge_distinct(path, attempts)).unwrap_or_default();
    };
    let mut diagnostics = std::mem::take(&mut attempts[*first].diagnostics);
    for diagnostic in &mut diagnostics {
        diagnostic.message = format!("run {} of {}: {}", first + 1, repeat.times, diagnostic.message);
    }
    if failed.len() > 1 {
        let message = format!("{} of {} runs failed: {}", failed.len(), repeat.times, numbers(failed.iter().map(|index| index + 1)));
        diagnostics.push(Diagnostic::error("runs-failed", message).at(step.place.clone()));
    }
    diagnostics
}

fn judge_distinct(path: &Spanned<crate::judge::JsonPath>, attempts: &[Attempt]) -> Vec<Diagnostic> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (answer, n) in attempts.iter().zip(1..).filter_map(|(attempt, n)| Some((attempt.answer.as_ref()?, n))) {
        let result = answer.result.as_ref().map_or(Value::Null, Clone::clone);
        match path.value.select(&answer.payload, &result) {
            Ok(value) => found.entry(value.to_string()).or_default().push(n),
            Err(error) => {
                let message = format!("run {n}: there is nothing to compare: {error}");
                let mut diagnostic = Diagnostic::error("nothing-to-compare", message).at(path.place.clone());
                diagnostic.actual = Some(crate::judge::pretty(&answer.payload.value));
                diagnostic.hint = error.hint;
                return vec![diagnostic];
            }
        }
    }
    let shared = found.into_iter().filter(|(_, runs)| runs.len() > 1);
    let tell = |(value, runs): (String, Vec<usize>)| {
        let message = format!("`{}` is {value} in runs {}", path.value, numbers(runs.into_iter()));
        Diagnostic::error("not-distinct", message).at(path.place.clone())
    };
    shared.map(tell).take(MOST_SHARED).collect()
}

/// More values that occur twice than a person reads.
const MOST_SHARED: usize = 5;

fn numbers(all: impl Iterator<Item = usize>) -> String {
    const MOST: usize = 12;
    let all: Vec<String> = all.map(|number| number.to_string()).collect();
    let more = if all.len() > MOST { format!(" and {} more", all.len() - MOST) } else { String::new() };
    format!("{}{more}", all[..all.len().min(MOST)].join(", "))
}
