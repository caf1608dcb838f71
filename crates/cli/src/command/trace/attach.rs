//! `mcproof trace attach FILE OTHER…`: files that belong to a recorded session, such as screenshots.

use super::{told, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_suite::bounds::read_input;
use mcproof_trace::{Ending, Trace, TraceError, attach_to};
use std::io::ErrorKind;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof trace attach a.mcptrace screenshot.png server.log
  mcproof trace attach a.mcptrace /tmp/1.png --name after-sign-in.png")]
pub(super) struct Arguments {
    /// Trace file
    file: PathBuf,
    /// Files to add, under their names
    #[arg(required = true, value_name = "OTHER")]
    others: Vec<PathBuf>,
    /// Name of the file in the trace, if there is only one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, others, name } = arguments;
    if name.is_some() && others.len() > 1 {
        return Err(Failure::bad_input("bad-arguments", "`--name` is for one file, and there are several"));
    }
    let mut files = Vec::new();
    for other in others {
        let named = name.clone().unwrap_or_else(|| other.file_name().unwrap_or_default().to_string_lossy().into_owned());
        files.push((named, read_input(other).map_err(|error| Failure::cannot_read(other, &error))?));
    }
    // What is no trace, or an unfinished one, is told as by the other commands.
    let mut trace = Trace::open(file).map_err(|error| unreadable(file, &error))?;
    for line in trace.by_ref() {
        line.map_err(|error| unreadable(file, &error))?;
    }
    if trace.ending() == Ending::CutOff {
        told(Ending::CutOff).into_iter().for_each(output::talk);
        let failure = Failure::bad_input("unfinished-trace", format!("{} is not finished, so that nothing can be added", file.display()));
        return Err(failure.hint("wait until the command that writes it has ended"));
    }
    attach_to(file, &files).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let failure = Failure::bad_input("name-is-taken", format!("{}: {error}", file.display()));
            failure.hint("choose another name with --name")
        }
        ErrorKind::InvalidData => unreadable(file, &TraceError::NotATrace("files are added to a .mcptrace only".into())),
        _ => Failure::cannot_write(file, &error),
    })?;
    Ok(Exit::Passed)
}
