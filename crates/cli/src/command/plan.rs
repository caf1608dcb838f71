//! `mcproof plan`: lists the tests that `mcproof test` would run.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::last_run::Memory;
use crate::selection::{Scope, SelectionArgs};
use crate::suites::SuiteArgs;
use crate::{output, settings};
use mcproof_client::Tls;
use mcproof_suite::run::FILTER_HELP;

/// List the tests that would run
///
/// Accepts the paths and selection flags of `mcproof test`. Starts no server.
#[derive(Debug, clap::Args)]
#[command(after_help = FILTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    suites: SuiteArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(loaded) = arguments.suites.load(arguments.suites.server()?, &Tls::default())? else { return Ok(Exit::BadInput) };
    let plan = arguments.selection.plan(&arguments.suites, loaded, Scope::AsTyped, &Memory::of_current_folder())?;
    let planned = plan.describe();
    if arguments.json {
        let text = serde_json::to_string_pretty(&planned).expect("a plan has text keys only");
        output::json(&format!("{text}\n"))?;
    } else {
        output::show(&mcproof_report::plan::render(&planned, &settings::style()))?;
    }
    Ok(Exit::Passed)
}
