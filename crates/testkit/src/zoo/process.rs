//! Broken servers that do not exit as they should.

use super::deviation::Deviation;
use super::{ALL, BOTH, BrokenServer, STDIO, broken_server};
use mcproof_system::{commands, signals};
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "outlives-its-input",
        "goes on when stdin has ended",
        "stdio-exits-on-end-of-input",
        STDIO,
        BOTH,
        Deviation::End(|| {
            loop {
                sleep(Duration::from_secs(3600));
            }
        }),
    ),
    broken_server(
        "crashes-at-its-end",
        "aborts when stdin has ended",
        "stdio-exits-on-end-of-input",
        STDIO,
        BOTH,
        Deviation::End(|| std::process::abort()),
    ),
    broken_server(
        "cut-at-its-end",
        "exits in the middle of a message when stdin has ended",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::End(|| {
            let mut stdout = io::stdout();
            // The client may be gone.
            let _ = stdout.write_all(br#"{"jsonrpc":"2.0","method":"notifications/mess"#).and_then(|()| stdout.flush());
        }),
    ),
    broken_server(
        "ignores-sigterm",
        "ignores SIGTERM",
        "process-ends-on-sigterm",
        ALL,
        BOTH,
        Deviation::Start(|_| {
            // Blocked before there is a second thread, so that all inherit it.
            signals::block_termination()
        }),
    ),
    broken_server(
        "opens-files-for-good",
        "opens a file with each call and never closes it",
        "calls-leak-no-resources",
        ALL,
        BOTH,
        Deviation::Incoming(|message| {
            if message["method"] == "tools/call" {
                std::mem::forget(std::fs::File::open("/dev/null"));
            }
        }),
    ),
    broken_server(
        "keeps-memory-for-good",
        "keeps 1 MiB with each call and never frees them",
        "calls-leak-no-resources",
        ALL,
        BOTH,
        Deviation::Incoming(|message| {
            if message["method"] == "tools/call" {
                // Only what was written to is in memory.
                std::mem::forget(vec![1_u8; 1 << 20]);
            }
        }),
    ),
    broken_server(
        "leaves-a-child",
        "starts a process that stays",
        "process-leaves-no-children",
        ALL,
        BOTH,
        Deviation::Start(|_| child(Group::Same)),
    ),
    broken_server(
        "leaves-a-child-of-its-own-group",
        "starts a process that stays, in a group of its own",
        "process-leaves-no-children",
        ALL,
        BOTH,
        Deviation::Start(|_| child(Group::Own)),
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Same,
    Own,
}

fn child(group: Group) -> io::Result<()> {
    let mut command = Command::new("sleep");
    command.arg("3600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if group == Group::Own {
        commands::own_group(&mut command);
    }
    command.spawn()?;
    Ok(())
}
