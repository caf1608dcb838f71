//! `mcproof trace diff OLD NEW`.

use super::{open, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_report::escape_line;
use mcproof_trace::diff::{OneSided, TraceDiff, diff};
use std::path::PathBuf;

/// Compare two traces: exit code 1 if they differ
///
/// Requests are matched by method, name and arguments, the nth of one trace with the nth of the other. Ids and times are no difference.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The trace that is compared with
    old: PathBuf,
    /// The trace that is compared
    new: PathBuf,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let found = diff(open(&arguments.old)?, open(&arguments.new)?);
    let found = found.map_err(|error| unreadable(&arguments.new, &error))?;
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
        text += &format!("changed  {} (call {} and {})\n", title(&call.method, call.target.as_ref()), call.old, call.new);
        for difference in &call.differences {
            let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), |value| escape_line(value, 300));
            let pointer = if difference.pointer.is_empty() { "the response" } else { &difference.pointer };
            text += &format!("         {}: {} is now {}\n", escape_line(pointer, 200), shown(&difference.old), shown(&difference.new));
        }
        if call.more > 0 {
            text += &format!("         … and {} more differences\n", call.more);
        }
    }
    let one_sided = |word: &str, call: &OneSided| {
        let mut line = format!(
            "{word}  {} {} (call {})\n",
            title(&call.method, call.target.as_ref()),
            escape_line(&call.arguments.to_string(), 200),
            call.call
        );
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
