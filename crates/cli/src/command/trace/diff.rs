//! `mcproof trace diff OLD NEW`.

use super::{filter, open, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_report::escape_line;
use mcproof_trace::diff::{ComparedTrace, OneSided, TraceDiff, diff};
use std::path::PathBuf;

/// Compare two traces: exit code 1 if they differ
///
/// Requests are matched by method, name and arguments, the nth of one trace with the nth of the other; notifications by what they say. Lines
/// from the server that are not messages, responses without a request, and a server that exited by itself or failed are compared as well.
/// Ids and times are ignored. With a filter, only calls that match it are compared; see `mcproof trace --help`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof trace diff before.mcptrace after.mcptrace
  mcproof trace diff before.mcptrace after.mcptrace kind:request
  mcproof trace diff before.mcptrace after.mcptrace '-method:notifications/progress'")]
pub(super) struct Arguments {
    /// The trace that is compared with
    old: PathBuf,
    /// The trace that is compared
    new: PathBuf,
    /// Compare only the calls that match this filter
    #[arg(allow_hyphen_values = true)]
    filter: Option<String>,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let wanted = arguments.filter.as_deref().map(filter).transpose()?;
    let read = |path: &PathBuf| ComparedTrace::read(open(path)?, wanted.as_ref()).map_err(|error| unreadable(path, &error));
    let found = diff(&read(&arguments.old)?, &read(&arguments.new)?);
    if arguments.json {
        let text = serde_json::to_string_pretty(&found).expect("a comparison has text keys only");
        output::json(&format!("{text}\n"))?;
    } else {
        output::show(&text_of(&found))?;
    }
    Ok(if found.is_empty() { Exit::Passed } else { Exit::Failed })
}

fn text_of(found: &TraceDiff) -> String {
    let mut text = String::new();
    let title = |method: &str, target: Option<&String>| match target {
        Some(target) => format!("{} {}", escape_line(method, 100), escape_line(target, 100)),
        None => escape_line(method, 100),
    };
    for call in &found.changed {
        let calls = match (call.old, call.new) {
            (Some(old), Some(new)) => format!(" (call {old} and {new})"),
            _ => String::new(),
        };
        text += &format!("changed  {}{calls}\n", title(&call.method, call.target.as_ref()));
        for difference in &call.differences {
            let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), |value| escape_line(value, 300));
            let pointer = if difference.pointer.is_empty() { "what it says" } else { &difference.pointer };
            text += &format!("         {}: {} is now {}\n", escape_line(pointer, 200), shown(&difference.old), shown(&difference.new));
        }
        if call.more > 0 {
            text += &format!("         … and {} more differences\n", call.more);
        }
    }
    let one_sided = |word: &str, call: &OneSided| {
        let number = call.call.map(|call| format!(" (call {call})")).unwrap_or_default();
        let arguments = escape_line(&call.arguments.to_string(), 200);
        let mut line = format!("{word}  {} {arguments}{number}\n", title(&call.method, call.target.as_ref()));
        if let Some(nearest) = &call.nearest {
            line += &format!(
                "         the other trace has call {}, whose arguments differ at {}\n",
                nearest.call,
                escape_line(&nearest.pointer, 200)
            );
        }
        line
    };
    text.extend(found.removed.iter().map(|call| one_sided("removed", call)));
    text.extend(found.added.iter().map(|call| one_sided("added  ", call)));
    let TraceDiff { same, changed, removed, added } = found;
    text + &format!("{same} the same, {} changed, {} removed, {} added\n", changed.len(), removed.len(), added.len())
}
