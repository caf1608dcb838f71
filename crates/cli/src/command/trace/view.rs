//! `mcproof trace view [FILE]`: the calls of a trace in the terminal, also while it is being written.

mod reading;
mod screen;

use super::filter;
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_trace::filter::Filter;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use reading::{News, Reading, Wish};
use screen::{Reaction, Screen};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};
use tokio::task::JoinError;
use tokio::time::timeout;

/// View a trace in the terminal, also while it is being written
///
/// Lists calls as they happen, shows one of them as a whole, and filters as `trace show` does. Press `?` for the keys.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Trace file [default: the newest one of `mcproof proxy`]
    file: Option<PathBuf>,
    /// Show only calls that match; see `mcproof trace --help`
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let written = arguments.filter.clone().unwrap_or_default();
    let chosen = filter(&written)?;
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => newest()?,
    };
    // What is wrong with the file is said before the screen is taken.
    drop(super::open(&file)?);
    if !(output::stdout_is_terminal() && settings::stdin_is_terminal()) {
        let failure = Failure::bad_input("no-terminal", "`mcproof trace view` needs a terminal");
        return Err(failure.hint(format!("list the calls with `mcproof trace show {}`", file.display())));
    }
    conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let viewing = {
            let stopped = Arc::clone(&stopped);
            tokio::task::spawn_blocking(move || view(&file, chosen, written, &stopped))
        };
        tokio::pin!(viewing);
        let exit = tokio::select! {
            outcome = &mut viewing => return viewed(outcome, Exit::Passed),
            exit = interrupts.next() => exit,
            () = conversation::terminal_end() => Exit::Terminated,
        };
        stopped.store(true, Ordering::Relaxed);
        // Where the terminal is gone, whatever reads its keys never returns.
        match timeout(LEAVING, &mut viewing).await {
            Ok(outcome) => viewed(outcome, exit),
            Err(_) => {
                restore();
                Ok(exit)
            }
        }
    })?
}

/// How long the screen may take to be left.
const LEAVING: Duration = Duration::from_secs(1);

fn viewed(outcome: Result<io::Result<()>, JoinError>, exit: Exit) -> Result<Exit, Failure> {
    match outcome {
        Ok(Ok(())) => Ok(exit),
        Ok(Err(error)) => Err(Failure::bad_input("no-terminal", format!("cannot use the terminal: {error}"))),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Gives the terminal back. One that is gone takes nothing, and nobody reads why.
fn restore() {
    drop(ratatui::try_restore());
}

/// The trace that a proxy has written to last.
fn newest() -> Result<PathBuf, Failure> {
    let folder = settings::state_folder().map(|folder| folder.join("traces"));
    let traces = folder.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten().map(|entry| entry.path());
    let traces = traces.filter(|path| path.extension().is_some_and(|extension| extension == "mcptrace"));
    let newest = traces.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).max();
    newest.map(|(_, path)| path).ok_or_else(|| {
        let failure = Failure::bad_input("no-trace", "no proxy has written a trace yet");
        failure.hint("name a trace: `mcproof trace view FILE`; or record one with `mcproof proxy`")
    })
}

/// How long a key or news may wait.
const TICK: Duration = Duration::from_millis(50);

/// Returns when the user has seen enough, or `stopped` is set. The terminal is as before then.
fn view(file: &Path, filter: Filter, written: String, stopped: &AtomicBool) -> io::Result<()> {
    let reading = Reading::begin(file.to_owned(), filter, settings::style().charset);
    let mut screen = Screen::new(file.display().to_string(), written, output::colors_are_on());
    let mut terminal = ratatui::try_init()?;
    let outcome = (|| {
        let mut is_stale = true;
        while !stopped.load(Ordering::Relaxed) {
            while let Some(news) = reading.news() {
                match news {
                    News::Calls(calls) => screen.take(calls),
                    News::Whole(key, lines) => screen.take_whole(key, lines),
                }
                is_stale = true;
            }
            if let Some(key) = screen.wanted() {
                reading.wish(Wish::Whole(key));
            }
            if is_stale {
                terminal.draw(|frame| screen.draw(frame))?;
                is_stale = false;
            }
            if !event::poll(TICK)? {
                continue;
            }
            is_stale = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                match screen.press(key) {
                    Reaction::Nothing => {}
                    Reaction::Filter(filter) => reading.wish(Wish::Filter(filter)),
                    Reaction::Quit => break,
                }
            }
        }
        Ok(())
    })();
    restore();
    outcome
}
