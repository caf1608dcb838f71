//! `mcproof hash TARGET`: prints the hash of a server's contract.

use crate::contracts::{self, CaptureExtent, ClientArgs};
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities::StrictArgs;
use crate::output;
use crate::target::{TargetArgs, Words};
use serde_json::json;

/// Print the hash of a server's contract
///
/// The hash is the SHA-256 of the canonical JSON (RFC 8785) of the array of [name, inputSchema] of all tools, sorted by name, or with
/// --full, of the whole contract. The client kind is full, in the newest era of the server, unless --as selects others; several kinds
/// are printed on one line each. `mcproof probe` uses another client kind and prints its name, which --as accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof hash -- node server.js
  mcproof hash http://127.0.0.1:3000/mcp --full
  mcproof hash tracker --as full,minimal
  # the hash that `mcproof probe` prints
  mcproof hash tracker --as modern/minimal")]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    ///
    /// With a URL and a command, the command starts the server at the URL, and `${port}` in both is a free port.
    target: Option<String>,
    /// Hash the whole contract: tools with annotations and descriptions, prompts, resources, capabilities, instructions and revisions
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print both hashes of each client kind as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    strict: StrictArgs,
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    server: TargetArgs,
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let visitors = arguments.clients.visitors(&arguments.server)?;
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?.judged(arguments.strict);
    let effort = match (arguments.clients.clients.is_empty(), arguments.full || arguments.json) {
        (false, _) => CaptureExtent::Whole,
        (true, true) => CaptureExtent::FirstWhole,
        (true, false) => CaptureExtent::FirstLists,
    };
    let taken = match contracts::take(&resolved, &visitors, arguments.clients.identity.as_deref(), effort, watching)? {
        Ok(taken) => taken,
        Err(exit) => return Ok(exit),
    };
    if arguments.json {
        let hashes = taken.contracts.iter().map(|(key, contract)| (key.clone(), json!(contract.hashes)));
        let hashes: serde_json::Map<String, serde_json::Value> = hashes.collect();
        output::json(&format!("{:#}\n", serde_json::Value::Object(hashes)))?;
        return Ok(Exit::Passed);
    }
    let hash = |hashes: &mcproof_record::ContractHashes| if arguments.full { hashes.full.clone() } else { hashes.tools.clone() };
    let lines = taken.contracts.iter().map(|(key, contract)| match taken.contracts.len() {
        1 => format!("{}\n", hash(&contract.hashes)),
        _ => format!("{}  {key}\n", hash(&contract.hashes)),
    });
    output::data(lines.collect::<String>().as_bytes())?;
    Ok(Exit::Passed)
}
