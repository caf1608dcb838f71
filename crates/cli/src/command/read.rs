//! `mcproof read TARGET URI`.

use super::SharedArgs;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_shot;
use crate::request::Request;
use crate::target::Words;
use mcproof_protocol::methods;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcproof read [OPTIONS] TARGET URI\n       mcproof read [OPTIONS] URI -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  mcproof read http://127.0.0.1:3000/mcp issues://1
  mcproof read issues://1 -- mcproof demo tracker
"
)]
pub(crate) struct Arguments {
    /// URL or name of the server, unless a command follows `--`; then the URI of the resource
    #[arg(value_names = ["TARGET", "URI"], required = true, num_args = 1..=2)]
    words: Vec<String>,
    #[command(flatten)]
    shared: SharedArgs,
}

impl Arguments {
    pub(super) fn shared(&self) -> &SharedArgs {
        &self.shared
    }
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let printer = arguments.shared.output.printer();
    printer.settle((|| {
        let (target, rest) = arguments.shared.part(&arguments.words);
        let [uri] = rest else {
            return Err(
                Failure::bad_input("bad-arguments", "missing URI").hint("usage: mcproof read TARGET URI, or mcproof read URI -- COMMAND")
            );
        };
        let resolved = arguments.shared.target.resolve(target, Words::Name)?;
        one_shot::run(&resolved, &Request::new(methods::RESOURCES_READ).with("uri", uri.as_str()), &printer, watching)
    })())
}
