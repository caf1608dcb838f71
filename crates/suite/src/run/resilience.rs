//! What the client does when no response comes: tries again, or stops asking for a while. Each attempt is on the wire; what
//! was decided in between is a note in the transcript.

use super::sessions::Open;
use super::step::scene;
use crate::plan::{Breaker, Retry, RetryCause};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use mcproof_analysis::diagnosis;
use mcproof_client::{CallFailure, HttpHead, ListFailure, Reply, Tap, Unanswered};
use mcproof_protocol::methods;
use mcproof_record::{Diagnostic, counted};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// What a step, or its case, says about responses that do not come.
pub(super) type Policy<'a> = (Option<&'a Retry>, Option<&'a Breaker>);

/// Why a request has no response.
pub(super) enum RequestError {
    Call(CallFailure),
    List(ListFailure),
    /// The breaker was open, and will be for so long.
    Open {
        left: Duration,
        failures: u32,
    },
}

/// A request after all its attempts.
pub(super) struct RetriedRequest<T> {
    pub(super) outcome: Result<T, RequestError>,
    pub(super) retry_cause: Option<RetryCause>,
    /// How long each attempt before the last one took.
    pub(super) earlier: Vec<Duration>,
    /// How long the last one took.
    pub(super) last: Duration,
    /// Why it was not tried again, where somebody may wonder.
    pub(super) given_up: Option<String>,
}

/// The state that the requests of a session share.
#[derive(Default)]
pub(super) struct RetryState {
    breaker: Mutex<BreakerState>,
    /// Which tools may be called twice, once they were listed.
    repeatable: tokio::sync::Mutex<Option<BTreeMap<String, bool>>>,
}

#[derive(Default)]
struct BreakerState {
    failures: u32,
    /// Set while it is open, or while a trial decides whether it stays so.
    opened: Option<Instant>,
    on_trial: bool,
}

/// Sends a request, and again as `retry` says. `retry_cause_in` finds what is wrong with a response that did come.
pub(super) async fn persist<T, Asked: Future<Output = Result<T, RequestError>>>(
    open: &Open,
    (retry, breaker): Policy<'_>,
    tool: Option<&str>,
    deadline: Duration,
    request: impl Fn() -> Asked,
    retry_cause_in: impl Fn(&T) -> Option<(RetryCause, Option<Duration>)>,
) -> RetriedRequest<T> {
    let retries = retry.map_or(0, |retry| retry.most);
    let mut delays = ExponentialBuilder::new()
        .with_min_delay(retry.map_or(Duration::ZERO, |retry| retry.delay))
        .with_max_times(usize::try_from(retries).unwrap_or(usize::MAX))
        .with_jitter()
        .build();
    let mut persisted = RetriedRequest {
        outcome: Err(RequestError::Open { left: Duration::ZERO, failures: 0 }),
        retry_cause: None,
        earlier: Vec::new(),
        last: Duration::ZERO,
        given_up: None,
    };
    loop {
        let started = Instant::now();
        let entered = breaker.map_or(Ok(()), |breaker| open.guard.enter(breaker, &open.tap));
        let was_sent = entered.is_ok();
        persisted.outcome = match entered {
            Ok(()) => request().await,
            Err(refused) => Err(refused),
        };
        persisted.last = started.elapsed();
        let retry_cause = match &persisted.outcome {
            Ok(answer) => retry_cause_in(answer),
            Err(request_error) => request_error.retry_cause(),
        };
        if let (Some(breaker), true) = (breaker, was_sent) {
            open.guard.leave(breaker, retry_cause.is_none(), &open.tap);
        }
        persisted.retry_cause = retry_cause.map(|(retry_cause, _)| retry_cause);
        let (Some((retry_cause, retry_after)), Some(retry)) = (retry_cause, retry) else { return persisted };
        if !retry.on.contains(&retry_cause) {
            return persisted;
        }
        if open.session.closed_because().is_some() {
            persisted.given_up = Some("not tried again: the session is over, and another one would need another handshake".into());
            return persisted;
        }
        // Before the first retry, whatever was sent: what was not sent may be sent again.
        if was_sent
            && !retry.force
            && let Some(tool) = tool
            && !open.guard.is_repeatable(open, tool, deadline).await
        {
            persisted.given_up = Some(format!(
                "not tried again: `{tool}` declares neither `readOnlyHint` nor `idempotentHint`, so that it may do its work twice; `retry: {{ force: true }}` repeats it all the same"
            ));
            return persisted;
        }
        let Some(delay) = delays.next() else { return persisted };
        let delay = delay.max(retry_after.unwrap_or_default());
        persisted.earlier.push(persisted.last);
        let (number, word) = (persisted.earlier.len(), retry_cause.word());
        open.tap.note(format!("retry {number} of {retries} in {} ms: {word}", delay.as_millis()));
        sleep(delay).await;
    }
}

/// How many faults were injected so far.
pub(super) fn faults_so_far(open: &Open) -> usize {
    open.injector.as_ref().map_or(0, |injector| injector.done().len())
}

/// Why there is no response, after all attempts and with what was done to it on the way.
pub(super) async fn explain(
    request_error: RequestError,
    method: &str,
    open: &Open,
    attempts: usize,
    faults_before: usize,
    given_up: Option<String>,
) -> Diagnostic {
    let mut diagnostic = match request_error {
        RequestError::Call(failure) => diagnosis::of_call_failure(&failure, method, &scene(open).await),
        RequestError::List(failure) => diagnosis::of_list_failure(&failure, method, &scene(open).await),
        RequestError::Open { left, failures } => {
            let left = left.as_millis();
            let message = format!(
                "`{method}` was not sent: {} in a row got no response, and the breaker stays open for another {left} ms",
                counted(failures, "request")
            );
            let diagnostic = Diagnostic::error("breaker-open", message);
            let diagnostic =
                diagnostic.hint("find out why the earlier requests got no response, or expect this with `no_response: breaker`");
            diagnostic.evidence(diagnosis::evidence(&open.tap.transcript(), None))
        }
    };
    if attempts > 1 {
        diagnostic.message += &format!("; it was tried {attempts} times");
    }
    if let Some(injector) = &open.injector
        && let [first, rest @ ..] = &injector.done()[faults_before..]
    {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", counted(rest.len(), "fault")) };
        diagnostic.message += &format!("; `faults` {first}{more}");
        diagnostic.hint = Some("let the client try again with `retry`, or expect this with `no_response`".into());
    }
    if given_up.is_some() {
        diagnostic.hint = given_up;
    }
    diagnostic
}

/// What is wrong with a reply that carries an error and a status that says to come back later.
pub(super) fn retry_cause_of(reply: &Reply) -> Option<(RetryCause, Option<Duration>)> {
    let head = reply.http.as_ref().filter(|_| reply.answer.is_err())?;
    of_head(head)
}

impl RequestError {
    /// With the time after which the server wants to be asked again.
    fn retry_cause(&self) -> Option<(RetryCause, Option<Duration>)> {
        let failure = match self {
            Self::Open { left, .. } => return Some((RetryCause::Breaker, Some(*left))),
            Self::Call(failure) | Self::List(ListFailure::Call(failure)) => failure,
            Self::List(_) => return None,
        };
        match failure {
            CallFailure::TimedOut { .. } => Some((RetryCause::Timeout, None)),
            CallFailure::Closed(_)
            | CallFailure::NotAnAnswer(_)
            | CallFailure::Lost(_)
            | CallFailure::Unanswered(Unanswered::Unreachable(_)) => Some((RetryCause::Reset, None)),
            CallFailure::Unanswered(Unanswered::Response { head, broken, .. }) => {
                of_head(head).or((broken.is_some() || head.status < 300).then_some((RetryCause::Reset, None)))
            }
            CallFailure::Cancelled { .. } | CallFailure::Unauthorized { .. } => None,
        }
    }
}

fn of_head(head: &HttpHead) -> Option<(RetryCause, Option<Duration>)> {
    let retry_cause = match head.status {
        429 => RetryCause::TooMany,
        500.. => RetryCause::ServerError,
        _ => return None,
    };
    let after = head.header("retry-after").and_then(|seconds| seconds.trim().parse().ok());
    Some((retry_cause, after.map(Duration::from_secs).map(|after| after.min(LONGEST_WAIT))))
}

/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl RetryState {
    fn enter(&self, breaker: &Breaker, tap: &Tap) -> Result<(), RequestError> {
        let mut state = self.state();
        let Some(opened) = state.opened else { return Ok(()) };
        let left = breaker.open.saturating_sub(opened.elapsed());
        if left.is_zero() && !state.on_trial {
            state.on_trial = true;
            tap.note("breaker: half open, one request is let through");
            return Ok(());
        }
        Err(RequestError::Open { left, failures: state.failures })
    }

    fn leave(&self, breaker: &Breaker, answered: bool, tap: &Tap) {
        let mut state = self.state();
        if answered {
            if state.opened.is_some() {
                tap.note("breaker: closed after a response");
            }
            *state = BreakerState::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if std::mem::take(&mut state.on_trial) || (state.opened.is_none() && state.failures >= breaker.failures) {
            state.opened = Some(Instant::now());
            let (failures, open) = (state.failures, breaker.open.as_millis());
            tap.note(format!("breaker: open for {open} ms after {} in a row without a response", counted(failures, "request")));
        }
    }

    async fn is_repeatable(&self, open: &Open, tool: &str, deadline: Duration) -> bool {
        let mut known = self.repeatable.lock().await;
        if known.is_none() {
            // A question of ours, which is no part of the test.
            open.injector.iter().for_each(|injector| injector.pause());
            let listed = open.session.list(methods::TOOLS_LIST, "tools", deadline).await;
            open.injector.iter().for_each(|injector| injector.resume());
            *known = listed.ok().map(|listed| listed.items.iter().filter_map(declared).collect());
        }
        known.as_ref().and_then(|known| known.get(tool)).copied().unwrap_or(false)
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a tool, and whether it says that a second call does no harm (2025-03-26 and later, schema,
/// `ToolAnnotations`).
fn declared(tool: &Value) -> Option<(String, bool)> {
    let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")) == Some(&Value::Bool(true));
    Some((tool.get("name")?.as_str()?.to_owned(), hint("readOnlyHint") || hint("idempotentHint")))
}
