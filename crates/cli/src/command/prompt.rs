//! `mcproof prompt TARGET NAME k=v …`.

use super::SharedArgs;
use crate::arguments;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_shot;
use crate::request::Request;
use crate::target::Words;
use mcproof_protocol::methods;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcproof prompt [OPTIONS] TARGET NAME [NAME=VALUE]...\n       mcproof prompt [OPTIONS] NAME [NAME=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  mcproof prompt http://127.0.0.1:3000/mcp greet name=Ada
  mcproof prompt greet name=Ada -- python server.py
"
)]
pub(crate) struct Arguments {
    /// URL or name of the server, unless a command follows `--`; then the prompt and its arguments
    #[arg(value_name = "TARGET NAME NAME=VALUE", required = true, num_args = 1..)]
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
        let Some((name, given)) = rest.split_first() else {
            return Err(Failure::bad_input("bad-arguments", "missing prompt name")
                .hint("usage: mcproof prompt TARGET NAME key=value, or mcproof prompt NAME key=value -- COMMAND"));
        };
        let given = arguments::to_strings(&arguments::parse(given)?);
        let mut request = Request::new(methods::PROMPTS_GET).with("name", name.as_str());
        if !given.is_empty() {
            request = request.with("arguments", given);
        }
        let resolved = arguments.shared.target.resolve(target, Words::Name)?;
        one_shot::run(&resolved, &request, &printer, watching)
    })())
}
