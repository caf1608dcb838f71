//! `mcproof schema`: the JSON Schemas of what mcproof reads and writes, generated from the code.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_record::schema;
use mcproof_suite::schema::suite_schema;
use mcproof_watch::config::config_schema;

/// Print a JSON Schema
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof schema > suite.schema.json
and as the first line of a suite, for editors with a YAML language server:
  # yaml-language-server: $schema=suite.schema.json
")]
pub(crate) struct Arguments {
    /// Of what
    #[arg(value_name = "WHAT", default_value = "suite")]
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Suite files, `*.mcproof.yaml`
    Suite,
    /// The lines that `--reporter json` writes
    Events,
    /// The lines of the file that `audit` and `--audit` name
    Audit,
    /// The document that `check --json` and `check --trace` write
    Check,
    /// The file of accepted findings that `check --baseline` names
    Baseline,
    /// mcproof.lock
    Lock,
    /// What `diff --json` and `lock --verify --json` print
    Diff,
    /// What `probe --json` prints
    Probe,
    /// The configuration of `mcproof watch`
    Watch,
    /// The messages of `mcproof drive`
    Drive,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let schema = match arguments.what {
        What::Suite => suite_schema(),
        What::Events => schema::events(),
        What::Audit => schema::audit(),
        What::Check => schema::check(),
        What::Baseline => schema::baseline(),
        What::Lock => schema::lock(),
        What::Diff => schema::diff(),
        What::Probe => schema::probe(),
        What::Watch => config_schema(),
        What::Drive => schema::drive(),
    };
    output::data(format!("{schema:#}\n").as_bytes())?;
    Ok(Exit::Passed)
}
