//! One who calls the same tool again and again, and counts what the server's processes hold in between. Knows how to count, not what
//! is too much.

use super::calls::Callable;
use super::explorer::Explorer;
use mcproof_analysis::probes::GROWTH_ROUNDS;
use mcproof_analysis::probes::{AT_REST, GROWTH_CALLS};
use mcproof_client::transport::ResourceUsage;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For all calls together.
const BUDGET: Duration = Duration::from_secs(2);
/// For each of the calls that have no other purpose than to be many.
const PATIENCE: Duration = Duration::from_millis(1600);
/// How long what is let go in time may be kept: connections that wait for the next call, for the most part.
const REST: Duration = Duration::from_secs(6);
/// The least moment in which a process that has done its work is gone.
const MOMENT: Duration = Duration::from_millis(30);

/// Whether a tool may be called that often: it changes nothing, and asks nobody else.
pub(super) fn is_harmless(tool: &Callable) -> bool {
    let hint = |name: &str| tool.tool.pointer(&format!("/annotations/{name}")).and_then(serde_json::Value::as_bool);
    hint("readOnlyHint") == Some(true) && hint("openWorldHint") == Some(false)
}

/// Of a process of ours, which nobody else talks to.
pub(super) async fn take(explorer: &mut Explorer<'_>, tool: &Callable) {
    if explorer.session().resource_usage().is_none() {
        return;
    }
    let until = Instant::now() + BUDGET;
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for _ in 0..=GROWTH_ROUNDS {
        if explorer.is_over() || !call(explorer, tool, until).await {
            return;
        }
        sleep(MOMENT).await;
        let Some(count) = count(explorer, "holding", tool) else { return };
        counts.push(count);
    }
    let grows = |of: fn(&(usize, usize)) -> usize| counts.windows(2).all(|pair| of(&pair[1]) >= of(&pair[0]) + GROWTH_CALLS);
    if grows(|count| count.0) || grows(|count| count.1) {
        if explorer.check_options.budget.left() < REST {
            return;
        }
        sleep(REST).await;
        count(explorer, AT_REST, tool);
    }
}

/// Calls the other tools as often, in a process of ours: what each call takes and none gives back is used up at some time, and then calls
/// get no response.
pub(super) async fn exhaust<'t>(explorer: &mut Explorer<'_>, tools: impl Iterator<Item = &'t Callable>) {
    let until = Instant::now() + BUDGET;
    for tool in tools {
        if explorer.is_over() || explorer.session().resource_usage().is_none() || Instant::now() >= until {
            return;
        }
        let calls = vec![tool.call("call-often", tool.arguments.clone()); GROWTH_CALLS * (GROWTH_ROUNDS + 1)];
        explorer.request_in_parallel(&calls, PATIENCE, until).await;
    }
}

/// Whether all were answered in time.
async fn call(explorer: &mut Explorer<'_>, tool: &Callable, until: Instant) -> bool {
    let calls: Vec<_> = (0..GROWTH_CALLS).map(|_| tool.call("call-repeated", tool.arguments.clone())).collect();
    explorer.request_in_parallel(&calls, BUDGET, until).await.iter().all(|outcome| matches!(outcome.response, Some(Ok(_))))
}

/// Processes and open file descriptors, where the system tells.
fn count(explorer: &mut Explorer<'_>, probe: &str, tool: &Callable) -> Option<(usize, usize)> {
    let ResourceUsage { processes, descriptors, .. } = explorer.session().resource_usage()?;
    let (processes, descriptors) = (processes.values().sum(), descriptors.values().sum());
    explorer.record_observation(
        probe,
        &format!("{processes} processes and {descriptors} file descriptors after {GROWTH_CALLS} calls of `{}`", tool.name),
    );
    Some((processes, descriptors))
}
