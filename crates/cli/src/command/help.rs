//! `mcproof help`: the help of a command, or a page of the documentation, which is part of the program.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings};
use clap::Command;
use mcproof_guide::{Found, Search, TOPICS, Topic, find, render, search, suggest};
use mcproof_report::{Style, explain};
use mcproof_rules as rules;
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
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
    /// List the lines of all pages that contain these words
    #[arg(short, long, value_name = "WORDS", num_args = 1.., allow_hyphen_values = true, conflicts_with = "topic")]
    search: Vec<String>,
}

/// Lines that a search prints; more would hide the best ones.
const MOST_FOUND: usize = 40;

pub(crate) fn run(arguments: &Arguments, mut grammar: Command) -> Result<Exit, Failure> {
    let style = settings::style();
    if !arguments.search.is_empty() {
        return searched(&arguments.search, &style);
    }
    let Some(first) = arguments.topic.first() else {
        output::show(&listing(&grammar, &style))?;
        return Ok(Exit::Passed);
    };
    grammar.build();
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
    } else if let Ok([rule]) = rules::select(std::slice::from_ref(first), &[]).as_deref() {
        output::show(&explain::terminal(&rule.page(), &style))?;
    } else {
        return Err(unknown(&typed, &grammar));
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

fn unknown(typed: &str, grammar: &Command) -> Failure {
    let commands = grammar.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let failure = Failure::bad_input("unknown-topic", format!("no page or command is named `{}`", mcproof_report::escape(typed)));
    match suggest(typed, commands) {
        Some(near) => failure.hint(format!("did you mean `mcproof help {near}`?")),
        None => failure.hint("list all with `mcproof help`, or search the pages with `mcproof help -s WORDS`"),
    }
}

fn listing(grammar: &Command, style: &Style) -> String {
    let mut text = String::from("Usage: mcproof help [TOPIC]\n");
    let mut section = "";
    let widest = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
    let row = |text: &mut String, name: &str, about: &str| writeln!(text, "  {name:<widest$}  {about}").expect("a String takes all text");
    for topic in TOPICS {
        if topic.section != section {
            section = topic.section;
            write!(text, "\n{}\n", heading(style, title(section))).expect("a String takes all text");
        }
        row(&mut text, topic.name, topic.title());
    }
    write!(text, "\n{}\n", heading(style, "Commands")).expect("a String takes all text");
    for command in grammar.get_subcommands().filter(|command| !command.is_hide_set()) {
        row(&mut text, command.get_name(), &command.get_about().map(ToString::to_string).unwrap_or_default());
    }
    text += "\nSearch the pages with `mcproof help -s WORDS`; explain a rule of `check` with `mcproof explain RULE`.\n";
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

fn searched(words: &[String], style: &Style) -> Result<Exit, Failure> {
    let found = match search(words) {
        Search::Lines(found) => found,
        Search::Pages(pages) if pages.is_empty() => {
            let message = format!("no page contains `{}`", mcproof_report::escape(&words.join(" ")));
            return Err(Failure::bad_input("nothing-found", message).hint("use fewer words, or list all pages with `mcproof help`"));
        }
        Search::Pages(pages) => {
            let widest = pages.iter().map(|topic| topic.path().len()).max().unwrap_or_default();
            let mut text = String::from("No line contains all of these words. Pages that contain most of them:\n\n");
            for topic in pages {
                writeln!(text, "mcproof help {:<widest$}  {}", topic.path(), heading(style, topic.title()))
                    .expect("a String takes all text");
            }
            output::show(&text)?;
            return Ok(Exit::Passed);
        }
    };
    let mut text = String::new();
    let mut last: Option<&Topic> = None;
    for Found { topic, heading: above, line } in found.iter().take(MOST_FOUND) {
        if last != Some(topic) {
            let gap = if last.is_some() { "\n" } else { "" };
            writeln!(text, "{gap}mcproof help {}  {}", topic.path(), heading(style, topic.title())).expect("a String takes all text");
            last = Some(topic);
        }
        let place = if *above == topic.title() || line.starts_with(above) { String::new() } else { format!("{above}: ") };
        let line: String = format!("  {place}{line}").chars().take(style.width).collect();
        writeln!(text, "{}", line.trim_end()).expect("a String takes all text");
    }
    if found.len() > MOST_FOUND {
        writeln!(text, "\n{} more lines; add a word to narrow the search", found.len() - MOST_FOUND).expect("a String takes all text");
    }
    output::show(&text)?;
    Ok(Exit::Passed)
}
