//! `mcproof schema`: the JSON Schemas of input and output formats, generated from the code.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_record::schema;
use mcproof_suite::schema::suite_schema;

/// Print the JSON Schema of a file format or output
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof schema > suite.schema.json

First line of a suite, for editors with a YAML language server:
  # yaml-language-server: $schema=suite.schema.json
")]
pub(crate) struct Arguments {
    /// Format to describe
    #[arg(value_name = "FORMAT", default_value = "suite")]
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Suite files, `*.mcproof.yaml`
    Suite,
    /// Lines of `--reporter json`
    Events,
    /// Lines of the audit file, from `audit` or `--audit`
    Audit,
    /// Lines of a trace, from `--trace` and `trace export --jsonl`
    Trace,
    /// Output of `check --json` and `check --trace FILE.json`
    Check,
    /// Accepted findings, for `check --baseline`
    Baseline,
    /// mcproof.lock
    Lock,
    /// Output of `diff --json` and `lock --verify --json`
    Diff,
    /// Output of `probe --json`
    Probe,
    /// Configuration of `mcproof watch`
    #[cfg(feature = "monitor")]
    Watch,
    /// Mocks that are written by hand, for `mcproof mock FILE.yaml`
    Mock,
    /// Messages of `mcproof drive`
    Drive,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let schema = match arguments.what {
        What::Suite => suite_schema(),
        What::Events => schema::events(),
        What::Audit => schema::audit(),
        What::Trace => mcproof_trace::trace_schema(),
        What::Check => schema::check(),
        What::Baseline => schema::baseline(),
        What::Lock => schema::lock(),
        What::Diff => schema::diff(),
        What::Probe => schema::probe(),
        #[cfg(feature = "monitor")]
        What::Watch => mcproof_watch::config::config_schema(),
        What::Mock => super::mock::written_schema(),
        What::Drive => schema::drive(),
    };
    output::data(format!("{schema:#}\n").as_bytes())?;
    Ok(Exit::Passed)
}
