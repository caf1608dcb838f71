//! The end of a server's process.
//! Source: basic/lifecycle, shutdown; 2026-07-28, basic/transports/stdio, shutdown.

use super::ConversationView;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::probes::{AT_REST, GROWTH_CALLS, GROWTH_ROUNDS};
use mcproof_protocol::methods;
use mcproof_record::{FrameBody, Opened, ProbeOutcome};
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
        requirement: "the processes and open files of a server do not grow with each call",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(calls_hold_nothing),
        why: "a server that a host runs all day reaches its limit of open files or processes and stops responding",
        remedy: "close what a call opened when it ends, even if it fails: files, sockets, and the pipes of processes",
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

/// The numbers of processes and descriptors at one time.
fn counted(counts: &str) -> Option<[usize; 2]> {
    let mut numbers = counts.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?])
}

/// Growth that happens once is chance, and what is released later is a cache: only what grew with each call and stays is reported.
fn calls_hold_nothing(conversation: &ConversationView<'_>) -> Judgment {
    let counts = |probe| conversation.probes(probe).filter_map(|attempt| Some((counted(attempt.subject())?, attempt.probed.first)));
    let counted: Vec<_> = counts("holding").collect();
    let (Some((first, begun)), true) = (counted.first(), counted.len() > GROWTH_ROUNDS) else {
        return Judgment::NotTried("no tool was called repeatedly: this needs a server started by mcproof, and a tool with `readOnlyHint: true` and `openWorldHint: false` that returns a result within 300 ms, and 32 results within 2 s".into());
    };
    let grows = |kind: usize| counted.windows(2).all(|pair| pair[1].0[kind] >= pair[0].0[kind] + GROWTH_CALLS);
    let Some((last, ended)) = counts(AT_REST).next() else {
        return match grows(0) || grows(1) {
            true => Judgment::Untestable("the resources of the idle server were not counted again".into()),
            false => Judgment::Pass,
        };
    };
    let mut violations = Vec::new();
    for (kind, what) in ["processes", "open file descriptors"].into_iter().enumerate() {
        if grows(kind) && last[kind] >= first[kind] + GROWTH_CALLS * GROWTH_ROUNDS {
            let calls = conversation.from_client().filter(|wire_message| wire_message.method() == Some(methods::TOOLS_CALL));
            let between: Vec<_> =
                calls.map(|wire_message| wire_message.frame.id).filter(|frame| *begun <= *frame && *frame < ended).collect();
            let message = format!(
                "after {} calls of a tool there are {} {what}; before them there were {}",
                GROWTH_CALLS * GROWTH_ROUNDS,
                last[kind],
                first[kind]
            );
            violations.push(Violation::new(message, between.first().into_iter().chain(between.last()).copied()));
        }
    }
    Judgment::from_violations(violations)
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
        Some(_) => Judgment::Pass,
        None => Judgment::Untestable("its exit was not awaited".into()),
    }
}

fn ends_on_sigterm(conversation: &ConversationView<'_>) -> Judgment {
    let Some(probed) = conversation.conversation.probes.iter().find(|probed| probed.probe == "terminate") else {
        return Judgment::Untestable("mcproof did not start the server, or sent it no signal".into());
    };
    let within = |frame: &&mcproof_record::Frame| probed.contains(frame.id);
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
