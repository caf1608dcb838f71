//! `mcproof schema`: the JSON Schemas of what mcproof reads and writes, generated from the code.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_record::schema;

/// Print a JSON Schema
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Of what: events are the lines that `--reporter json` writes
    #[arg(value_name = "WHAT")]
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Events,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let schema = match arguments.what {
        What::Events => schema::events(),
    };
    output::data(format!("{schema:#}\n").as_bytes())?;
    Ok(Exit::Passed)
}
