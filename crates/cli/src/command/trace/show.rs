//! `mcproof trace show FILE [ID]`.

use super::lines::{Findings, InOrder, Tree, header};
use super::{Reopenable, filter, open, told, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings, shown_contract};
use mcproof_report::{escape_block, escape_line, frame_line};
use mcproof_trace::calls::{Call, CallKey};
use mcproof_trace::filter::Filter;
use mcproof_trace::{CONTRACT, CallStream, Item, MarkBody, PROBE};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Show the calls of a trace, or one of them as a whole
///
/// A call is a request with its response, or a notification. What happened during a call is indented below it. Times count from the
/// start of the session.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Trace file, or `-` for stdin
    file: PathBuf,
    /// Number of a call, to show all of it: messages and frames
    id: Option<u64>,
    /// Show only calls that match; see `mcproof trace --help`
    #[arg(long, value_name = "FILTER", conflicts_with = "id")]
    filter: Option<String>,
    /// Show every frame instead of calls
    #[arg(long, conflicts_with_all = ["id", "filter", "json"])]
    frames: bool,
    /// Print calls as JSON, one a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.frames {
        return frames(&arguments.file);
    }
    match arguments.id {
        Some(id) => one(arguments, CallKey(id)),
        None => all(arguments),
    }
}

fn all(arguments: &Arguments) -> Result<Exit, Failure> {
    let chosen = arguments.filter.as_deref().map_or_else(|| Ok(Filter::parse("").expect("an empty filter is one")), filter)?;
    let style = settings::style();
    let (mut stream, mut order, mut tree) = (CallStream::new(open(&arguments.file)?), InOrder::new(), Tree::new(&style));
    let (mut damage, mut omitted, mut reader) = (None, 0, output::ReaderWatch::default());
    let (mut contract, mut attached, mut findings) = (None, Vec::new(), Findings::default());
    while let Some(item) = stream.next() {
        if reader.has_gone() {
            return Ok(Exit::Passed);
        }
        match item {
            Ok(Item::Call(call)) => {
                let key = call.key;
                let matches = chosen.matches(&call, stream.session(call.session));
                for call in order.push(key, matches.then_some(*call)) {
                    print(&call, &stream, &mut tree, &mut findings, arguments.json)?;
                }
            }
            Ok(Item::Mark(mark)) if !arguments.json && arguments.filter.is_none() => {
                if let MarkBody::Finding { rule, message, frame, .. } = &mark.body {
                    let text = format!("       finding  {}  {}\n", escape_line(rule, 80), escape_line(message, 300));
                    if let Some(text) = findings.push(mark.session, *frame, text) {
                        output::show(&tree.beside(mark.session, stream.session(mark.session), &text))?;
                    }
                }
            }
            Ok(Item::Attachment(file)) if file.name == CONTRACT => contract = shown_contract::read(file.bytes.as_bytes()),
            Ok(Item::Attachment(file)) if file.name != PROBE => {
                attached.push(format!("{} ({} bytes)", escape_line(&file.name, 80), file.bytes.as_bytes().len()));
            }
            Ok(Item::Omitted(left_out)) => omitted += left_out.frames,
            Ok(_) => {}
            Err(error) => damage = Some(unreadable(&arguments.file, &error)),
        }
    }
    let ending = stream.ending();
    for call in order.rest() {
        print(&call, &stream, &mut tree, &mut findings, arguments.json)?;
    }
    for (session, text) in findings.rest() {
        output::show(&tree.beside(session, stream.session(session), &text))?;
    }
    if let Some(damage) = damage {
        return Err(damage);
    }
    if omitted > 0 {
        output::talk(&format!("{} not stored, because a limit was reached\n", mcproof_record::counted(omitted, "frame")));
    }
    told(ending).into_iter().for_each(output::talk);
    if let Some(lock) = contract.filter(|_| !arguments.json && arguments.filter.is_none()) {
        let keys: Vec<String> = lock.contracts.keys().map(|key| escape_line(key, 80)).collect();
        output::talk(&format!("contract: {} (`mcproof trace export FILE --lock` writes it)\n", keys.join(", ")));
    }
    if !attached.is_empty() && !arguments.json && arguments.filter.is_none() {
        output::talk(&format!("attachments: {}\n", attached.join(", ")));
    }
    Ok(Exit::Passed)
}

fn print(call: &Call, stream: &CallStream, tree: &mut Tree<'_>, findings: &mut Findings, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let text = serde_json::to_string(call).expect("a call has text keys only");
        return output::json(&format!("{text}\n"));
    }
    let session = stream.session(call.session);
    for text in findings.before(call) {
        output::show(&tree.beside(call.session, session, &text))?;
    }
    output::show(&tree.line(call, session))?;
    for text in findings.after(call) {
        output::show(&tree.beside(call.session, session, &text))?;
    }
    Ok(())
}

fn frames(path: &Path) -> Result<Exit, Failure> {
    let style = settings::style();
    let (mut session, mut reader) = (None, output::ReaderWatch::default());
    let mut stream = CallStream::new(open(path)?);
    while let Some(item) = stream.next() {
        if reader.has_gone() {
            return Ok(Exit::Passed);
        }
        let Item::Frame(frame) = item.map_err(|error| unreadable(path, &error))? else { continue };
        if session != Some(frame.session) {
            let gap = if session.is_none() { "" } else { "\n" };
            output::show(&format!("{gap}{}\n", header(frame.session, stream.session(frame.session))))?;
            session = Some(frame.session);
        }
        output::show(&frame_line(&frame.into_frame(), &style))?;
    }
    told(stream.ending()).into_iter().for_each(output::talk);
    Ok(Exit::Passed)
}

fn one(arguments: &Arguments, key: CallKey) -> Result<Exit, Failure> {
    let file = Reopenable::of(&arguments.file)?;
    let mut stream = CallStream::new(open(file.path())?);
    let mut last = 0;
    let found = loop {
        match stream.next() {
            Some(Ok(Item::Call(call))) if call.key == key => break *call,
            Some(Ok(Item::Call(call))) => last = last.max(call.key.0),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(unreadable(&arguments.file, &error)),
            None => {
                let failure = Failure::bad_input("no-such-call", format!("the trace has no call {key}; it has {last}"));
                return Err(failure.hint("list them with `mcproof trace show FILE`"));
            }
        }
    };
    if arguments.json {
        let text = serde_json::to_string_pretty(&found).expect("a call has text keys only");
        output::json(&format!("{text}\n"))?;
        return Ok(Exit::Passed);
    }
    let style = settings::style();
    output::show(&Tree::new(&style).line(&found, stream.session(found.session)))?;
    for (title, message) in [("request", Some(&found.request)), ("response", found.response.as_ref())] {
        if let Some(message) = message.filter(|message| !message.is_empty()) {
            let text = match serde_json::from_slice::<Value>(message.as_bytes()) {
                Ok(value) => format!("{value:#}"),
                Err(_) => message.to_text().into_owned(),
            };
            output::show(&format!("\n{title}\n{}\n", escape_block(&text)))?;
        }
    }
    output::show("\nframes\n")?;
    let wanted: BTreeSet<_> = found.frames.iter().copied().collect();
    for item in CallStream::new(open(file.path())?) {
        let Item::Frame(frame) = item.map_err(|error| unreadable(&arguments.file, &error))? else { continue };
        if frame.session == found.session && wanted.contains(&frame.id) {
            output::show(&frame_line(&frame.into_frame(), &style))?;
        }
    }
    Ok(Exit::Passed)
}
