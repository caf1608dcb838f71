//! `mcproof trace grep FILTER FILE…`.

use super::lines::line;
use super::{filter, open, told, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_trace::{CallStream, Item};
use std::path::PathBuf;

/// Search for calls: exit code 0 if there are any, 1 if there are none
///
/// Prints a line for each call that matches, in the order in which they ended. See `mcproof trace --help` for filters.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof trace grep 'tool:search duration:>500ms' a.mcptrace
  mcproof trace grep 'status:error OR http:>=500' mcproof-traces/*.mcptrace
  mcproof trace grep 'text:password' a.mcptrace --count")]
pub(super) struct Arguments {
    /// What to search for
    #[arg(allow_hyphen_values = true)]
    filter: String,
    /// Trace files, or `-` for stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print calls as JSON, one a line
    #[arg(long)]
    json: bool,
    /// Print only the number of calls that match
    #[arg(short, long, conflicts_with = "json")]
    count: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let wanted = filter(&arguments.filter)?;
    let style = settings::style();
    let (mut found, mut reader) = (0_u64, output::ReaderWatch::default());
    for path in &arguments.files {
        let name = if arguments.files.len() > 1 { format!("{}: ", path.display()) } else { String::new() };
        let mut stream = CallStream::new(open(path)?);
        while let Some(item) = stream.next() {
            if reader.has_gone() {
                return Ok(if found > 0 { Exit::Passed } else { Exit::Failed });
            }
            let Item::Call(call) = item.map_err(|error| unreadable(path, &error))? else { continue };
            if !wanted.matches(&call, stream.session(call.session)) {
                continue;
            }
            found += 1;
            if arguments.json {
                let text = serde_json::to_string(&call).expect("a call has text keys only");
                output::json(&format!("{text}\n"))?;
            } else if !arguments.count {
                output::show(&format!("{name}{}", line(&call, 0, &style)))?;
            }
        }
        told(stream.ending()).into_iter().for_each(output::talk);
    }
    if arguments.count {
        output::show(&format!("{found}\n"))?;
    }
    Ok(if found > 0 { Exit::Passed } else { Exit::Failed })
}
