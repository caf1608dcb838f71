//! `mcproof help`: the help of a command, or a page of the documentation, which is part of the program.

use super::reference::capitalized;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::offered::offered;
use crate::{CommandLine, output, settings};
use clap::builder::StringValueParser;
use clap::{Command, CommandFactory as _};
use mcproof_guide::{Document, Fit, Found, Search, TOPICS, Topic, find, pages, render, search, suggest};
use mcproof_record::RulePage;
use mcproof_report::{Style, explain};
use mcproof_rules as rules;
use std::collections::HashSet;
use std::fmt::Write as _;

/// Show the help of a command, or a page of the documentation
///
/// The pages are part of this program; nothing is fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof help                      list the pages and commands
  mcproof help parametrize          show a page
  mcproof help test                 show the help of a command
  mcproof help -s login             find the pages that mention a login")]
pub(crate) struct Arguments {
    /// Command, page or rule [default: list all pages and commands]
    #[arg(value_name = "TOPIC", value_parser = offered(StringValueParser::new(), topics), hide_possible_values = true)]
    topic: Vec<String>,
    /// List the lines of all pages, commands and rules that contain these words
    #[arg(short, long, value_name = "WORDS", num_args = 1.., allow_hyphen_values = true, conflicts_with = "topic")]
    search: Vec<String>,
}

/// Lines that a search prints; more would hide the best ones.
const MOST_FOUND: usize = 40;
/// And of one page, where there are others.
const MOST_OF_ONE: usize = 5;

/// The names in the list.
fn topics() -> Vec<String> {
    let grammar = CommandLine::command();
    let commands = grammar.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| command.get_name().to_owned());
    TOPICS.iter().map(|topic| listed_name(topic, &grammar)).chain(commands).collect()
}

/// The name of a command shows its help, not the page.
fn listed_name(topic: &Topic, grammar: &Command) -> String {
    if grammar.find_subcommand(topic.name).is_some() { topic.path() } else { topic.name.to_owned() }
}

pub(crate) fn run(arguments: &Arguments, mut grammar: Command) -> Result<Exit, Failure> {
    let style = settings::style();
    let Some(first) = arguments.topic.first().or(arguments.search.first()) else {
        output::show(&listing(&grammar, &style))?;
        return Ok(Exit::Passed);
    };
    grammar.build();
    if !arguments.search.is_empty() {
        return searched(&arguments.search, &grammar, &style);
    }
    if let Some(command) = subcommand(&mut grammar, &arguments.topic)? {
        let mut text = command.render_long_help().ansi().to_string();
        if let Some(topic) = find(first) {
            write!(text, "\nGuide: mcproof help {}\n", topic.path()).expect("a String takes all text");
        }
        output::show(&text)?;
        return Ok(Exit::Passed);
    }
    // Words of a title may be typed with spaces, too.
    let typed = arguments.topic.join("-");
    if let Some(topic) = find(&typed) {
        output::show(&render(topic.text, &style))?;
    } else if typed == "rules" {
        output::show(&super::explain::listing()?)?;
    } else if let Ok([rule]) = rules::select(std::slice::from_ref(first), &[]).as_deref() {
        output::show(&explain::terminal(&[rule.page()], &style))?;
    } else {
        output::show(&mentions(&arguments.topic, &typed, &grammar, &style)?)?;
    }
    Ok(Exit::Passed)
}

/// The command that the words name, one below the other; nothing if the first one names none.
fn subcommand<'a>(grammar: &'a mut Command, words: &[String]) -> Result<Option<&'a mut Command>, Failure> {
    let mut command = grammar;
    for (at, word) in words.iter().enumerate() {
        if command.find_subcommand(word).is_none() {
            if at == 0 {
                return Ok(None);
            }
            let outer = words[..at].join(" ");
            return Err(Failure::bad_input("unknown-topic", format!("`mcproof {outer}` has no command `{word}`"))
                .hint(format!("list its commands with `mcproof help {outer}`")));
        }
        command = command.find_subcommand_mut(word).expect("it was found just now");
    }
    Ok(Some(command))
}

/// What a search finds for a word that names no page: most subjects have no page of their own.
///
/// # Errors
/// Nothing is about it, or no more than begins like it while a name is near.
fn mentions(topic: &[String], typed: &str, grammar: &Command, style: &Style) -> Result<String, Failure> {
    let commands = grammar.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let near = suggest(typed, commands).map(|near| format!("did you mean `mcproof help {near}`?"));
    let message = format!("no page or command is named `{}`", mcproof_report::escape(typed));
    let (pages, others) = (pages(), commands_and_rules(grammar));
    let found = search(topic, &pages, &others);
    let best = match &found {
        Search::Lines(lines) => lines.first().map(|best| best.fit),
        Search::Documents(documents) => documents.first().map(|_| Fit::Words),
    };
    let opening = match (best, near) {
        (None, near) | (Some(Fit::Beginnings), near @ Some(_)) => {
            let hint = near.unwrap_or_else(|| "list all with `mcproof help`, or search the pages with `mcproof help -s WORDS`".to_owned());
            return Err(Failure::bad_input("unknown-topic", message).hint(hint));
        }
        (Some(Fit::Words), Some(near)) => format!("{message}; {near}"),
        _ => format!("{message}."),
    };
    Ok(format!("{} These mention it:\n\n{}", capitalized(&opening), shown(&found, style)))
}

fn listing(grammar: &Command, style: &Style) -> String {
    let mut text = String::from("Usage: mcproof help [TOPIC]\n");
    let mut section = "";
    let widest = TOPICS.iter().map(|topic| listed_name(topic, grammar).len()).max().unwrap_or_default();
    let row = |text: &mut String, name: &str, about: &str| writeln!(text, "  {name:<widest$}  {about}").expect("a String takes all text");
    for topic in TOPICS {
        if topic.section != section {
            section = topic.section;
            write!(text, "\n{}\n", heading(style, title(section))).expect("a String takes all text");
        }
        row(&mut text, &listed_name(topic, grammar), topic.title());
    }
    write!(text, "\n{}\n", heading(style, "Commands")).expect("a String takes all text");
    for command in grammar.get_subcommands().filter(|command| !command.is_hide_set()) {
        row(&mut text, command.get_name(), &command.get_about().map(ToString::to_string).unwrap_or_default());
    }
    text += "\nSearch the pages, commands and rules with `mcproof help -s WORDS`; explain a rule of `check` with `mcproof explain RULE`.\n";
    text
}

fn title(section: &str) -> &'static str {
    match section {
        "tutorial" => "Tutorials",
        "guide" => "Guides",
        "reference" => "Reference",
        _ => "Background",
    }
}

fn heading(style: &Style, text: &str) -> String {
    match style.color {
        mcproof_report::Color::Ansi => format!("\u{1b}[1m{text}\u{1b}[0m"),
        mcproof_report::Color::Plain => text.to_owned(),
    }
}

/// The help of each command that is listed, and the explanation of each rule, as texts to search.
fn commands_and_rules(grammar: &Command) -> Vec<Document<'static>> {
    let mut documents = Vec::new();
    let mut known = HashSet::new();
    add_commands(&mut documents, &mut known, grammar, "mcproof");
    for rule in rules::all() {
        let RulePage { id, requirement, why, remedy, .. } = rule.page();
        let text = format!("# {id}\n{requirement}\n{why}\n{remedy}\n");
        documents.push(Document { command: format!("mcproof explain {id}"), title: id.into(), text: text.into() });
    }
    documents
}

/// A flag that several commands share is found in the first one.
fn add_commands(documents: &mut Vec<Document<'static>>, known: &mut HashSet<String>, command: &Command, path: &str) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let long = [command.get_long_about(), command.get_after_help()].into_iter().flatten().map(ToString::to_string);
    let mut lines: Vec<String> = long.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let name = argument.get_long().map_or_else(|| argument.get_id().to_string(), |long| format!("--{long}"));
        let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
        lines.push(format!("{name}  {}", help.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    lines.retain(|line| known.insert(line.clone()));
    documents.push(Document {
        command: format!("{path} --help"),
        text: format!("# {about}\n{}", lines.join("\n")).into(),
        title: about.into(),
    });
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        add_commands(documents, known, inner, &format!("{path} {}", inner.get_name()));
    }
}

fn searched(words: &[String], grammar: &Command, style: &Style) -> Result<Exit, Failure> {
    let (pages, others) = (pages(), commands_and_rules(grammar));
    let found = search(words, &pages, &others);
    if matches!(&found, Search::Documents(documents) if documents.is_empty()) {
        let message = format!("no page, command or rule contains `{}`", mcproof_report::escape(&words.join(" ")));
        return Err(Failure::bad_input("nothing-found", message).hint("use fewer words, or list all pages with `mcproof help`"));
    }
    output::show(&shown(&found, style))?;
    Ok(Exit::Passed)
}

fn shown(found: &Search<'_>, style: &Style) -> String {
    let found = match found {
        Search::Lines(found) => found,
        Search::Documents(documents) => {
            let widest = documents.iter().map(|document| document.command.len()).max().unwrap_or_default();
            let mut text = String::from("No line contains all of these words. These contain most of them:\n\n");
            for Document { command, title, .. } in documents {
                writeln!(text, "{command:<widest$}  {}", heading(style, title)).expect("a String takes all text");
            }
            return text;
        }
    };
    let one_document = |one: &Found<'_>, other: &Found<'_>| std::ptr::eq(one.document, other.document);
    let most = if found.chunk_by(one_document).count() == 1 { MOST_FOUND } else { MOST_OF_ONE };
    let mut text = String::new();
    let (mut printed, mut seen) = (0, 0);
    for lines in found.chunk_by(one_document) {
        let Some(Found { document: Document { command, title, .. }, .. }) = lines.first().filter(|_| printed < MOST_FOUND) else { break };
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}{command}  {}", heading(style, title)).expect("a String takes all text");
        for Found { heading: above, line, .. } in lines.iter().take(most) {
            let place = if *above == title || line.starts_with(above) { String::new() } else { format!("{above}: ") };
            let line: String = format!("  {place}{line}").chars().take(style.width).collect();
            writeln!(text, "{}", line.trim_end()).expect("a String takes all text");
        }
        if lines.len() > most {
            let more = lines.len() - most;
            writeln!(text, "  and {more} more {}", if more == 1 { "line" } else { "lines" }).expect("a String takes all text");
        }
        printed += lines.len().min(most);
        seen += lines.len();
    }
    if found.len() > seen {
        writeln!(text, "\n{} more lines elsewhere; add a word to narrow the search", found.len() - seen).expect("a String takes all text");
    }
    text
}
