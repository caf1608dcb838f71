//! `mcproof explain RULE`: the requirement, why it matters, a failing and a passing transcript, and the remedy.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::offered::offered;
use crate::{output, settings, whole_file};
use clap::builder::StringValueParser;
use mcproof_record::RulePage;
use mcproof_report::{Style, explain};
use mcproof_rules::{self as rules, Area, requirements};
use std::fs;
use std::path::{Path, PathBuf};

/// Explain the rules of `mcproof check`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Rule ids, areas, or globs such as `cors-*` [default: list all rules]
    #[arg(value_name = "RULE", value_parser = offered(StringValueParser::new(), names), hide_possible_values = true)]
    rules: Vec<String>,
    /// Explain every rule
    #[arg(long, conflicts_with = "rules")]
    all: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write a Markdown page for each rule, an index, and the requirements of the specification to this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// All areas and rules.
pub(super) fn names() -> Vec<String> {
    Area::EVERY.iter().map(|area| area.name().to_owned()).chain(rules::all().map(|rule| rule.id.to_owned())).collect()
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let pages = selected(&arguments.rules)?;
    if let Some(folder) = &arguments.output {
        write(folder, &pages).map_err(|error| Failure::cannot_write(folder, &error))?;
    } else if arguments.json {
        let mut text = serde_json::to_vec_pretty(&pages).expect("a page has text keys only");
        text.push(b'\n');
        output::data(&text)?;
    } else if arguments.rules.is_empty() && !arguments.all {
        output::show(&list(&pages))?;
    } else {
        output::show(&explain::terminal(&pages, &settings::style()))?;
    }
    Ok(Exit::Passed)
}

/// All rules, one a line.
pub(super) fn listing() -> Result<String, Failure> {
    Ok(list(&selected(&[])?))
}

fn selected(names: &[String]) -> Result<Vec<RulePage>, Failure> {
    let mut selected = rules::select(names, &[]).map_err(super::check::unknown_rule)?;
    if names.is_empty() {
        // A check leaves them out unless it is asked for hosts; whoever reads all rules wants them, too.
        let hosts = rules::of_hosts(&[]).map_err(super::check::unknown_rule)?;
        let new: Vec<_> = hosts.into_iter().filter(|rule| selected.iter().all(|known| known.id != rule.id)).collect();
        selected.extend(new);
    }
    Ok(selected.iter().map(|rule| rule.page()).collect())
}

fn list(pages: &[RulePage]) -> String {
    let style = settings::style();
    // Whoever searches the list in a pipe has to find the ends of the laws, too.
    let width = if output::stdout_is_terminal() { style.width } else { usize::from(u16::MAX) };
    explain::list(pages, &Style { width, ..style })
}

fn write(folder: &Path, pages: &[RulePage]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for page in pages {
        whole_file::write(folder.join(format!("{}.md", page.id)), explain::markdown(page))?;
    }
    let requirements: Vec<_> = requirements::all().collect();
    whole_file::write(folder.join("requirements.md"), explain::requirements(&requirements))?;
    whole_file::write(folder.join("README.md"), explain::index(pages) + &explain::coverage(&requirements))
}
