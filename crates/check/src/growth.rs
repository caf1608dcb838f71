//! One who calls the same tool again and again, and measures what the server's processes hold in between. Knows how to measure, not what
//! is too much.

use super::calls::Callable;
use super::explorer::Explorer;
use mcproof_analysis::probes::{
    AT_REST, EXPLORED_IN_PART, GROWTH_CALLS, GROWTH_MEMORY, GROWTH_MOST_ROUNDS, GROWTH_ROUNDS, HOLDING, HOLDING_MEMORY,
};
use mcproof_client::transport::ResourceUsage;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For all calls of the first tool, and of all others together.
const BUDGET: Duration = Duration::from_secs(2);
/// For the calls that tell a leak from memory that is reclaimed in time.
const MEMORY_BUDGET: Duration = Duration::from_secs(4);
/// Rounds of calls until then, if memory goes on growing.
const MOST_ROUNDS: usize = 440;
/// For each of the calls.
const PATIENCE: Duration = Duration::from_millis(1600);
/// How long what is let go in time may be kept: connections that wait for the next call, for the most part.
const REST: Duration = Duration::from_secs(6);
/// The least moment in which a process that has done its work is gone.
const MOMENT: Duration = Duration::from_millis(30);

/// The program whose garbage grows to a quarter of the machine's memory before it is looked at: growth of its memory tells nothing.
const LAZY_RUNTIME: &str = "java";

/// Whether a tool may be called that often: it changes nothing, and asks nobody else.
pub(super) fn is_harmless(tool: &Callable) -> bool {
    let hint = |name: &str| tool.tool.pointer(&format!("/annotations/{name}")).and_then(serde_json::Value::as_bool);
    hint("readOnlyHint") == Some(true) && hint("openWorldHint") == Some(false)
}

/// What the processes of a server hold at one time.
#[derive(Clone, Copy)]
struct Held {
    processes: usize,
    descriptors: usize,
    /// In KiB. 0 where it tells nothing.
    memory: u64,
}

/// Calls the tools, in a process of ours which nobody else talks to: what each call takes and none gives back is counted, or is used up
/// at some time, and then calls get no response.
pub(super) async fn take<'t>(explorer: &mut Explorer<'_>, first: &'t Callable, others: impl Iterator<Item = &'t Callable>) {
    let mut suspects = Vec::new();
    let mut until = Instant::now() + BUDGET;
    for (place, tool) in std::iter::once(first).chain(others).enumerate() {
        if place == 1 {
            until = Instant::now() + BUDGET;
        }
        let growth = match explorer.is_over() || Instant::now() >= until {
            true => break,
            false => measure(explorer, tool, until).await,
        };
        suspects.extend(growth.of_counts.then_some(tool));
        if growth.of_memory {
            break;
        }
    }
    if suspects.is_empty() || explorer.check_options.budget.left() < REST {
        return;
    }
    sleep(REST).await;
    for tool in suspects {
        count(explorer, AT_REST, tool);
    }
}

/// What grew with each round of calls of a tool.
#[derive(Default)]
struct Growth {
    /// Processes or descriptors.
    of_counts: bool,
    /// By so much that a second tool would fill the machine.
    of_memory: bool,
}

/// Calls a tool in rounds.
async fn measure(explorer: &mut Explorer<'_>, tool: &Callable, until: Instant) -> Growth {
    let mut counts: Vec<Held> = Vec::new();
    while (counts.len() <= GROWTH_ROUNDS || grow(&counts) && counts.len() <= GROWTH_MOST_ROUNDS)
        && !explorer.is_over()
        && explorer.has_room()
        && call(explorer, tool, until).await
    {
        sleep(MOMENT).await;
        let Some(count) = count(explorer, HOLDING, tool) else { break };
        counts.push(count);
    }
    if counts.first().is_some_and(|held| held.memory == 0) {
        explorer.record_observation(EXPLORED_IN_PART, "the memory of the server was not judged: a Java VM lets garbage grow for long");
    }
    let of_counts = counts.len() > GROWTH_ROUNDS && grow(&counts);
    Growth { of_counts, of_memory: fill_memory(explorer, tool, counts.iter().map(|held| held.memory).collect()).await }
}

/// Whether there are more processes or descriptors after each round, one for each call.
fn grow(counts: &[Held]) -> bool {
    let grow = |of: fn(&Held) -> usize| counts.windows(2).all(|pair| of(&pair[1]) >= of(&pair[0]) + GROWTH_CALLS);
    grow(|held| held.processes) || grow(|held| held.descriptors)
}

/// Goes on while memory grows, until nothing of it will be reclaimed. Whether that came to be.
async fn fill_memory(explorer: &mut Explorer<'_>, tool: &Callable, mut memory: Vec<u64>) -> bool {
    let until = Instant::now() + MEMORY_BUDGET;
    while memory.len() < MOST_ROUNDS
        && GROWTH_MEMORY.is_open(&memory)
        && !explorer.is_over()
        && explorer.has_room()
        && call(explorer, tool, until).await
    {
        let Some(held) = count(explorer, HOLDING_MEMORY, tool) else { break };
        memory.push(held.memory);
    }
    GROWTH_MEMORY.is_leak(&memory)
}

/// Whether all were answered in time.
async fn call(explorer: &mut Explorer<'_>, tool: &Callable, until: Instant) -> bool {
    let calls: Vec<_> = (0..GROWTH_CALLS).map(|_| tool.call("call-repeated", tool.arguments.clone())).collect();
    explorer.request_in_parallel(&calls, PATIENCE, until).await.iter().all(|outcome| matches!(outcome.response, Some(Ok(_))))
}

/// What the processes hold, where the system tells.
fn count(explorer: &mut Explorer<'_>, probe: &str, tool: &Callable) -> Option<Held> {
    let ResourceUsage { processes, descriptors, resident } = explorer.session().resource_usage()?;
    let memory = if processes.contains_key(LAZY_RUNTIME) { 0 } else { resident >> 10 };
    let held = Held { processes: processes.values().sum(), descriptors: descriptors.values().sum(), memory };
    let Held { processes, descriptors, memory } = held;
    explorer.record_observation(
        probe,
        &format!("{processes} processes, {descriptors} file descriptors and {memory} KiB after {GROWTH_CALLS} calls of `{}`", tool.name),
    );
    Some(held)
}
