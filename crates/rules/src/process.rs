//! The end of a server's process.
//! Source: basic/lifecycle, shutdown; 2026-07-28, basic/transports/stdio, shutdown.

use super::answers::how_it_exited;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, ConversationView};
use mcproof_analysis::probes::{AT_REST, GROWTH_CALLS, GROWTH_MEMORY, GROWTH_ROUNDS, HOLDING, HOLDING_MEMORY};
use mcproof_protocol::methods;
use mcproof_record::{Frame, FrameBody, FrameId, Opened, ProbeOutcome};
use std::collections::BTreeSet;
use std::time::Duration;

const SHUTDOWN: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "basic/lifecycle#stdio" },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Should, source: "basic/transports/stdio#shutdown" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "stdio-exits-on-end-of-input",
        area: Area::Process,
        requirement: "a server exits soon after its stdin is closed",
        sources: SHUTDOWN,
        on: AppliesTo::Stdio,
        judge: Judge::Each(exits_on_end_of_input),
        why: "a host ends a server by closing stdin; a server that ignores it becomes an orphan or has to be killed",
        remedy: "exit when reading stdin returns end of file, even with active timers and open connections",
        sdks: &[("TypeScript", "`process.stdin.on('end', () => process.exit(0))`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "process-ends-on-sigterm",
        area: Area::Process,
        requirement: "a server exits soon after SIGTERM",
        sources: SHUTDOWN,
        judge: Judge::Each(ends_on_sigterm),
        why: "supervisors and containers stop services with SIGTERM; a server that ignores it is killed in the middle of its work and delays every restart",
        remedy: "handle SIGTERM by closing connections and exiting; as the first process of a container, the server has no default handler",
        sdks: &[("TypeScript", "`process.on('SIGTERM', () => process.exit(0))`"), ("Go", "`signal.NotifyContext(ctx, syscall.SIGTERM)`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "calls-leak-no-resources",
        area: Area::Process,
        requirement: "the processes and open files of a server do not grow with each call, nor does its memory by 160 KiB or more",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(calls_hold_nothing),
        why: "a server that a host runs all day reaches its limit of open files, processes or memory and stops responding",
        remedy: "close what a call opened when it ends, even if it fails (files, sockets, the pipes of processes), and bound what is kept between calls",
        sdks: &[
            ("TypeScript", "`finally { await handle.close() }`"),
            ("Python", "`with` and `async with`"),
            ("Go", "`defer file.Close()`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "process-leaves-no-children",
        area: Area::Process,
        requirement: "processes that a server starts end with it",
        sources: SHUTDOWN,
        judge: Judge::Each(leaves_no_children),
        why: "browsers, databases and watchers pile up with each session until the machine is full",
        remedy: "end all started processes before exiting, also on SIGTERM and when stdin is closed",
        ..Rule::DEFAULT
    },
];

/// The time limit for "soon", with some tolerance for a clock that was read a little early.
const SOON: Duration = Duration::from_millis(4900);

/// What the server's processes held at one time.
struct Counted {
    /// Processes and descriptors.
    held: [usize; 2],
    /// In KiB.
    memory: u64,
    /// Which tool had been called.
    tool: String,
    at: FrameId,
}

fn counted(conversation: &ConversationView<'_>, probe: &'static str) -> Vec<Counted> {
    let read = |attempt: &Attempt<'_, '_>| {
        let (counts, tool) = attempt.subject().split_once(" calls of ")?;
        let mut numbers = counts.split_ascii_whitespace().filter_map(|word| word.parse().ok());
        let (held, memory) = ([numbers.next()?, numbers.next()?], u64::try_from(numbers.next()?).ok()?);
        // Earlier versions recorded it in MiB.
        let memory = if counts.contains(" MiB") { memory << 10 } else { memory };
        Some(Counted { held, memory, tool: tool.to_owned(), at: attempt.probed.first })
    };
    conversation.probes(probe).filter_map(|attempt| read(&attempt)).collect()
}

fn of_tool<'c>(counts: &'c [Counted], tool: &str) -> Vec<&'c Counted> {
    counts.iter().filter(|count| count.tool == tool).collect()
}

/// Growth that happens once is chance, and what is released later is a cache: only what grew with each call and stays is reported.
fn calls_hold_nothing(conversation: &ConversationView<'_>) -> Judgment {
    let [holding, with_memory, at_rest] = [HOLDING, HOLDING_MEMORY, AT_REST].map(|probe| counted(conversation, probe));
    let tools: BTreeSet<&str> = holding.iter().map(|count| count.tool.as_str()).collect();
    let (mut judged, mut violations, mut untestable) = (false, Vec::new(), None);
    for tool in tools {
        let held = of_tool(&holding, tool);
        let measured: Vec<_> = held.iter().copied().chain(of_tool(&with_memory, tool)).collect();
        let memory: Vec<u64> = measured.iter().map(|count| count.memory).collect();
        let [first, .., last] = measured.as_slice() else { continue };
        let (is_leak, is_open) = (GROWTH_MEMORY.is_leak(&memory), GROWTH_MEMORY.is_open(&memory));
        if held.len() <= GROWTH_ROUNDS && !is_leak && !is_open {
            continue;
        }
        judged = true;
        let mut broken = |message: String, until: FrameId| {
            let calls = conversation.from_client().filter(|wire_message| wire_message.method() == Some(methods::TOOLS_CALL));
            let mut between = calls.map(|wire_message| wire_message.frame.id).filter(|frame| (first.at..until).contains(frame));
            violations.push(Violation::new(message, between.next().into_iter().chain(between.next_back())));
        };
        for (kind, what) in ["processes", "open file descriptors"].into_iter().enumerate() {
            if held.len() <= GROWTH_ROUNDS || !held.windows(2).all(|pair| pair[1].held[kind] >= pair[0].held[kind] + GROWTH_CALLS) {
                continue;
            }
            let (calls, before) = (GROWTH_CALLS * (held.len() - 1), first.held[kind]);
            match of_tool(&at_rest, tool).first() {
                None => untestable = Some(format!("the resources of the idle server were not counted again after the calls of {tool}")),
                Some(rest) if rest.held[kind] >= before + calls => {
                    let after = rest.held[kind];
                    broken(format!("after {calls} calls of {tool} there are {after} {what}; before them there were {before}"), rest.at);
                }
                Some(_) => {}
            }
        }
        if is_leak {
            let message =
                format!("with each call of {tool} the server's memory grew, by more than {} MiB in all", GROWTH_MEMORY.leak >> 10);
            broken(message, last.at);
        } else if is_open && !GROWTH_MEMORY.is_level_at_last(&memory) {
            untestable = Some(format!(
                "the server's memory grew with each call of {tool}, and there was no time, or no room, for enough calls to tell whether it is reclaimed"
            ));
        }
    }
    match untestable {
        _ if !judged => Judgment::NotTried("no tool was called repeatedly: this needs a server started by mcproof, and a tool with `readOnlyHint: true` and `openWorldHint: false` that returns a result within 300 ms, and 32 results within 2 s".into()),
        Some(why) if violations.is_empty() => Judgment::Untestable(why),
        _ => Judgment::from_violations(violations),
    }
}

fn exits_on_end_of_input(conversation: &ConversationView<'_>) -> Judgment {
    let frames = conversation.frames();
    let closed = frames.iter().rfind(|frame| matches!(&frame.body, FrameBody::Closed { pipe } if pipe == "stdin"));
    let Some(closed) = closed else { return Judgment::Untestable("its stdin was never closed while it ran".into()) };
    if matches!(conversation.conversation.opened, Opened::No { .. } | Opened::OtherEra) {
        return Judgment::Untestable("the handshake failed".into());
    }
    let later = || frames.iter().filter(|frame| frame.id > closed.id);
    match later().find(|frame| matches!(frame.body, FrameBody::Exited { .. } | FrameBody::Signalled { .. })) {
        Some(frame) if matches!(frame.body, FrameBody::Signalled { .. }) => {
            let waited = frame.at.saturating_sub(closed.at);
            if waited < SOON {
                return Judgment::Untestable("the time to wait for its exit was too short".into());
            }
            let message = format!("it was still running {:.0} s after its stdin was closed", waited.as_secs_f64());
            Judgment::Broken(vec![Violation::new(message, [closed.id, frame.id])])
        }
        Some(Frame { id, body: FrameBody::Exited { code, signal }, .. })
            if is_crash(*code, *signal) && !frames.iter().any(|frame| is_interpreter_at_its_end(&frame.body)) =>
        {
            let how = how_it_exited(*code, *signal);
            Judgment::Broken(vec![Violation::new(
                format!("it crashed after its stdin was closed: the process ended {how}"),
                [closed.id, *id],
            )])
        }
        Some(_) => Judgment::Pass,
        None => Judgment::Untestable("its exit was not awaited".into()),
    }
}

/// Whether a process ended as only a crash ends it, be it told by a shell: an illegal instruction, an abort, a fault of memory or of
/// arithmetic.
fn is_crash(code: Option<i32>, signal: Option<i32>) -> bool {
    const CRASHES: [i32; 6] = [4, 5, 6, 7, 8, 11];
    signal.or_else(|| code?.checked_sub(128)).is_some_and(|signal| CRASHES.contains(&signal))
}

/// CPython aborts if a thread that reads stdin wakes up while the interpreter ends, which is nobody's doing but its own.
fn is_interpreter_at_its_end(body: &FrameBody) -> bool {
    matches!(body, FrameBody::Stderr { bytes } if bytes.to_text().contains("Python runtime state: finalizing"))
}

fn ends_on_sigterm(conversation: &ConversationView<'_>) -> Judgment {
    let Some(probed) = conversation.conversation.probes.iter().find(|probed| probed.probe == "terminate") else {
        return Judgment::Untestable("mcproof did not start the server, or sent it no signal".into());
    };
    let within = |frame: &&Frame| probed.contains(frame.id);
    let signal = conversation.frames().iter().filter(within).find(|frame| matches!(frame.body, FrameBody::Signalled { .. }));
    match (signal, probed.outcome) {
        (None, _) => Judgment::Untestable("it exited before a signal could be sent".into()),
        (Some(_), ProbeOutcome::Done) => Judgment::Pass,
        (Some(signal), _) => {
            let next = conversation.frames().iter().find(|frame| frame.id >= probed.end);
            let waited = next.map(|frame| frame.at.saturating_sub(signal.at).as_secs_f64()).unwrap_or_default();
            let message = format!("it was still running {waited:.0} s after SIGTERM");
            Judgment::Broken(vec![Violation::new(message, std::iter::once(signal.id).chain(next.map(|frame| frame.id)))])
        }
    }
}

fn leaves_no_children(conversation: &ConversationView<'_>) -> Judgment {
    let Some(ending) = &conversation.conversation.ending else {
        return Judgment::Untestable("mcproof did not start the server, or it exited earlier".into());
    };
    if ending.ignored_terminate {
        return Judgment::Untestable("it had to be killed".into());
    }
    let exit = conversation.frames().iter().rfind(|frame| matches!(frame.body, FrameBody::Exited { .. }));
    match (ending.left_behind.as_slice(), exit) {
        ([], _) => Judgment::Pass,
        (_, None) => Judgment::Untestable("its exit was not observed".into()),
        (left, Some(exit)) => {
            let what = if left.len() == 1 {
                "a process that the server had started was".to_owned()
            } else {
                format!("{} processes that the server had started were", left.len())
            };
            Judgment::Broken(vec![Violation::new(format!("{what} still running after the server exited"), [exit.id])])
        }
    }
}
