//! Animals that do not end as processes should.

use super::twist::Twist;
use super::{ALL, Animal, BOTH, STDIO, animal};
use nix::sys::signal::{SigSet, Signal};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "outlives-its-input",
        "goes on when stdin has ended",
        "stdio-exits-on-end-of-input",
        STDIO,
        BOTH,
        Twist::End(|| {
            loop {
                sleep(Duration::from_secs(3600));
            }
        }),
    ),
    animal(
        "ignores-sigterm",
        "ignores SIGTERM",
        "process-ends-on-sigterm",
        ALL,
        BOTH,
        Twist::Start(|_| {
            // Blocked before there is a second thread, so that all inherit it.
            let mut signals = SigSet::empty();
            signals.add(Signal::SIGTERM);
            Ok(signals.thread_block()?)
        }),
    ),
    animal(
        "opens-files-for-good",
        "opens a file with each call and never closes it",
        "calls-leak-no-resources",
        STDIO,
        BOTH,
        Twist::Hears(|message| {
            if message["method"] == "tools/call" {
                std::mem::forget(std::fs::File::open("/dev/null"));
            }
        }),
    ),
    animal("leaves-a-child", "starts a process that stays", "process-leaves-no-children", ALL, BOTH, Twist::Start(|_| child(Group::Same))),
    animal(
        "leaves-a-child-of-its-own-group",
        "starts a process that stays, in a group of its own",
        "process-leaves-no-children",
        ALL,
        BOTH,
        Twist::Start(|_| child(Group::Own)),
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Same,
    Own,
}

fn child(group: Group) -> std::io::Result<()> {
    let mut command = Command::new("sleep");
    command.arg("3600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if group == Group::Own {
        command.process_group(0);
    }
    command.spawn()?;
    Ok(())
}
