//! `mcproof tools|prompts|resources|templates TARGET`.

use super::SharedArgs;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_shot;
use crate::request::Request;
use crate::target::Words;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    target: Option<String>,
    #[command(flatten)]
    shared: SharedArgs,
}

impl Arguments {
    pub(super) fn shared(&self) -> &SharedArgs {
        &self.shared
    }
}

pub(crate) fn run(method: &str, arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let printer = arguments.shared.output.printer();
    let outcome = arguments
        .shared
        .target
        .resolve(arguments.target.as_slice(), Words::Name)
        .and_then(|resolved| one_shot::run(&resolved, &Request::new(method), &printer, watching));
    printer.settle(outcome)
}
