//! `mcproof call TARGET TOOL k=v …`.

use super::SharedArgs;
use crate::arguments;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_shot;
use crate::request::Request;
use crate::target::Words;
use mcproof_protocol::methods;
use serde_json::{Map, Value};
use std::io::Read as _;

/// Arguments are small; a stream that never ends is a mistake.
const LARGEST_INPUT: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcproof call [OPTIONS] TARGET TOOL [NAME=VALUE]...\n       mcproof call [OPTIONS] TOOL [NAME=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  mcproof call http://127.0.0.1:3000/mcp echo message=hello
  mcproof call create_issue title='It breaks' labels:='[\"bug\"]' -- python server.py
  mcproof call tracker create_issue --args @issue.json
  mcproof call build target=all --task --timeout 10m -- node server.js
"
)]
pub(crate) struct Arguments {
    /// URL or name of the server, unless a command follows `--`; then the tool and its arguments
    ///
    /// key=value takes its type from the tool's schema; key:=JSON is JSON.
    #[arg(value_name = "TARGET TOOL NAME=VALUE", required = true, num_args = 1..)]
    words: Vec<String>,
    /// Arguments as one JSON object, as @FILE, or as - for stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Call the tool as a task, wait for its end within --timeout, and print its result
    #[arg(long)]
    task: bool,
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
        let Some((tool, given)) = rest.split_first() else {
            return Err(Failure::bad_input("bad-arguments", "missing tool name")
                .hint("usage: mcproof call TARGET TOOL key=value, or mcproof call TOOL key=value -- COMMAND"));
        };
        let mut request = Request::new(methods::TOOLS_CALL).with("name", tool.as_str());
        request.arguments = arguments::parse(given)?;
        request.as_task = arguments.task;
        let base = arguments.args.as_deref().map(read_arguments).transpose()?;
        request = request.with("arguments", base.unwrap_or_default());
        let resolved =
            arguments.shared.target.resolve(target, Words::Name).map_err(|failure| match (target.first(), tool.contains("://")) {
                (Some(first), true) => failure.hint(format!("the server comes first: mcproof call {tool} {first}")),
                _ => failure,
            })?;
        one_shot::run(&resolved, &request, &printer, watching)
    })())
}

fn read_arguments(text: &str) -> Result<Map<String, Value>, Failure> {
    let unreadable = |error: std::io::Error| Failure::bad_input("cannot-read", format!("cannot read --args {text}: {error}"));
    let text = match text.strip_prefix('@') {
        Some(path) => mcproof_suite::bounds::read_text(std::path::Path::new(path)).map_err(unreadable)?,
        None if text == "-" => {
            let mut input = String::new();
            std::io::stdin().take(LARGEST_INPUT).read_to_string(&mut input).map_err(unreadable)?;
            input
        }
        None => text.to_owned(),
    };
    arguments::parse_object("--args", &text)
}
