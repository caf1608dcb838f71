//! `mcproof test --watch`: runs again when a file changes or a key is pressed.

use super::{Arguments, CommonOptions};
use crate::changes::Changes;
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::selection::Scope;
use crate::suites::Read;
use crate::{output, printing};
use mcproof_report::terminal::Detail;
use std::io::{BufRead as _, IsTerminal as _};
use tokio::sync::mpsc;

/// Ends with Ctrl-C. What a run came to decides nothing: the next one may come to something else.
pub(super) async fn run(arguments: &Arguments, given: &CommonOptions, detail: Detail) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new()?;
    let mut changes = Changes::new(arguments.suites.folders()?, arguments.suites.files()?)?;
    let mut commands = commands();
    let commands_of_terminal = commands.is_some();
    let mut scope = Scope::AsTyped;
    loop {
        if output::stdout_is_terminal() && output::colors_are_on() {
            output::show("\x1b[2J\x1b[3J\x1b[H")?;
        }
        let read = changes.settled(|| arguments.read(given), |read| matches!(read, Ok(Read::Flawless(_)))).await;
        let ran = match read.and_then(|read| arguments.plan_of(read, scope)) {
            Ok(Some(plan)) => arguments.pass(&plan, given, detail, &mut interrupts).await,
            Ok(None) => Ok(Exit::BadInput),
            Err(failure) => Err(failure),
        };
        match ran {
            Ok(exit @ (Exit::Interrupted | Exit::Terminated)) => return Ok(exit),
            Ok(_) => {}
            Err(failure) => printing::report(&failure),
        }
        for path in changes.end_run() {
            output::talk(&format!("{} changes in every run and is no longer watched; exclude it with .gitignore\n", path.display()));
        }
        output::talk(match commands.is_some() {
            true => "\nwatching; press Enter to run all tests, f to run failed tests, q or Ctrl-C to quit\n",
            false => "\nwatching; press Ctrl-C to quit\n",
        });
        scope = tokio::select! {
            changed = changes.next() => {
                changed?;
                Scope::AsTyped
            }
            command = next(&mut commands) => match command {
                KeyPress::Rerun(scope) => scope,
                KeyPress::Quit => return Ok(Exit::Passed),
            },
            exit = interrupts.next() => return Ok(exit),
            () = conversation::terminal_end(), if commands_of_terminal => return Ok(Exit::Terminated),
        };
    }
}

enum KeyPress {
    Rerun(Scope),
    Quit,
}

/// What is typed, line by line; nothing unless a person can type.
fn commands() -> Option<mpsc::UnboundedReceiver<KeyPress>> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    // A thread of its own: a read of a terminal cannot be cancelled, and must not keep the program from ending.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let typed = match line.trim() {
                "" | "r" => KeyPress::Rerun(Scope::AsTyped),
                "f" => KeyPress::Rerun(Scope::Unfinished),
                "q" => KeyPress::Quit,
                _ => continue,
            };
            if sender.send(typed).is_err() {
                return;
            }
        }
    });
    Some(receiver)
}

/// Never returns if stdin is not interactive, or is closed.
async fn next(commands: &mut Option<mpsc::UnboundedReceiver<KeyPress>>) -> KeyPress {
    if let Some(receiver) = commands {
        if let Some(typed) = receiver.recv().await {
            return typed;
        }
        *commands = None;
    }
    std::future::pending().await
}
