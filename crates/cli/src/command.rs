//! The commands, one file each. Shared code is beside this directory.

mod call;
mod check;
mod completions;
#[cfg(feature = "servers")]
mod demo;
mod diff;
mod doctor;
mod drive;
mod explain;
mod hash;
mod help;
mod init;
pub(crate) mod inspect;
mod licenses;
mod list;
mod lock;
#[cfg(feature = "servers")]
mod mcp;
mod mock;
mod ping;
mod plan;
mod probe;
mod prompt;
mod proxy;
mod read;
mod reference;
mod review;
mod schema;
mod test;
pub(crate) mod trace;
#[cfg(feature = "ui")]
mod ui;
mod upgrade;
#[cfg(feature = "monitor")]
mod watch;

use crate::authorization;
use crate::conversation::Watching;
use crate::deferred::Deferred;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printing::OutputArgs;
use crate::target::TargetArgs;
use mcproof_protocol::methods;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run test suites
    Test(Deferred<test::Arguments>),
    /// List the tests that would run
    Plan(Deferred<plan::Arguments>),
    /// Review new and changed snapshots
    Review(Deferred<review::Arguments>),
    /// Check a server against the MCP specification
    Check(Deferred<check::Arguments>),
    /// Create a first suite and CI configuration from a running server
    Init(Deferred<init::Arguments>),
    /// Explain the rules of `check`
    Explain(Deferred<explain::Arguments>),
    /// Lock the contract of a server, or verify it
    Lock(Deferred<lock::Arguments>),
    /// Compare the contracts of two servers, locks or traces
    Diff(Deferred<diff::Arguments>),
    /// Print the hash of a server's contract
    Hash(Deferred<hash::Arguments>),
    /// Probe a server once and print its health and latency
    Probe(Deferred<probe::Arguments>),
    #[cfg(feature = "monitor")]
    /// Monitor servers: probe on a schedule, send alerts, serve a dashboard
    Watch(Deferred<watch::Arguments>),
    /// Show, view, search, compare, export and redact traces
    Trace(Deferred<trace::Arguments>),
    #[cfg(feature = "ui")]
    /// Explore servers in the browser: call tools, watch the traffic, keep tests
    Ui(Deferred<ui::Arguments>),
    /// Send one request and print the result, with the flags of the MCP Inspector CLI
    // Not deferred: the typed words are compared with its flags before they are parsed.
    Inspect(Box<inspect::Arguments>),
    /// List the tools of a server
    Tools(Deferred<list::Arguments>),
    /// List the prompts of a server
    Prompts(Deferred<list::Arguments>),
    /// List the resources of a server
    Resources(Deferred<list::Arguments>),
    /// List the resource templates of a server
    Templates(Deferred<list::Arguments>),
    /// Call a tool
    Call(Deferred<call::Arguments>),
    /// Read a resource
    Read(Deferred<read::Arguments>),
    /// Get a prompt
    Prompt(Deferred<prompt::Arguments>),
    /// Check that a server responds
    Ping(Deferred<ping::Arguments>),
    /// Record the traffic between a client and a server
    Proxy(Deferred<proxy::Arguments>),
    /// Run a server that replays recorded responses
    Mock(Deferred<mock::Arguments>),
    /// Report what mcproof finds on this machine
    Doctor(Deferred<doctor::Arguments>),
    /// Print the JSON Schema of a file format or output
    Schema(Deferred<schema::Arguments>),
    /// Print the completion script of a shell
    Completions(Deferred<completions::Arguments>),
    /// Print how to upgrade mcproof, and whether a newer version exists
    Upgrade(Deferred<upgrade::Arguments>),
    /// Print the licenses of mcproof and of what is part of it
    Licenses(Deferred<licenses::Arguments>),
    /// Show the help of a command, or a page of the documentation
    Help(Deferred<help::Arguments>),
    /// Write the man pages
    #[command(hide = true)]
    Man(Deferred<completions::ManArguments>),
    /// Write the generated pages of the documentation
    #[command(hide = true)]
    Reference(Deferred<reference::Arguments>),
    /// Run the driver of the test libraries, as JSON-RPC over stdio
    Drive(Deferred<drive::Arguments>),
    /// Serve these commands to coding agents, as an MCP server over stdio
    #[cfg(feature = "servers")]
    Mcp(Deferred<mcp::Arguments>),
    /// Run a demo server
    #[cfg(feature = "servers")]
    Demo(Deferred<demo::Arguments>),
}

impl Command {
    /// `grammar` makes the grammar of the whole command line.
    pub(crate) fn run(&self, watching: Watching, grammar: fn() -> clap::Command) -> Result<Exit, Failure> {
        if let Some(shared) = self.shared().filter(|shared| shared.target.authorization.list_stored_auth) {
            let printer = shared.output.printer();
            return printer.settle(authorization::list(printer.form));
        }
        if let Some(shared) = self.shared()
            && let Err(refused) = shared.target.permit_outputs(shared.output.file())
        {
            return shared.output.printer().settle(Err(refused));
        }
        match self {
            Self::Test(arguments) => test::run(arguments, watching),
            Self::Plan(arguments) => plan::run(arguments),
            Self::Review(arguments) => review::run(arguments),
            Self::Check(arguments) => check::run(arguments),
            Self::Init(arguments) => init::run(arguments, watching),
            Self::Explain(arguments) => explain::run(arguments),
            Self::Lock(arguments) => lock::run(arguments, watching),
            Self::Diff(arguments) => diff::run(arguments, watching),
            Self::Hash(arguments) => hash::run(arguments, watching),
            Self::Probe(arguments) => probe::run(arguments, watching),
            #[cfg(feature = "monitor")]
            Self::Watch(arguments) => watch::run(arguments, watching),
            Self::Trace(arguments) => trace::run(arguments),
            #[cfg(feature = "ui")]
            Self::Ui(arguments) => ui::run(arguments),
            Self::Inspect(arguments) => inspect::run(arguments, watching),
            Self::Tools(arguments) => list::run(methods::TOOLS_LIST, arguments, watching),
            Self::Prompts(arguments) => list::run(methods::PROMPTS_LIST, arguments, watching),
            Self::Resources(arguments) => list::run(methods::RESOURCES_LIST, arguments, watching),
            Self::Templates(arguments) => list::run(methods::RESOURCES_TEMPLATES_LIST, arguments, watching),
            Self::Call(arguments) => call::run(arguments, watching),
            Self::Read(arguments) => read::run(arguments, watching),
            Self::Prompt(arguments) => prompt::run(arguments, watching),
            Self::Ping(arguments) => ping::run(arguments, watching),
            Self::Proxy(arguments) => proxy::run(arguments, watching),
            Self::Mock(arguments) => mock::run(arguments),
            Self::Doctor(arguments) => doctor::run(arguments),
            Self::Schema(arguments) => schema::run(arguments),
            Self::Completions(arguments) => completions::run(arguments, &grammar()),
            Self::Upgrade(arguments) => upgrade::run(arguments),
            Self::Licenses(arguments) => licenses::run(arguments),
            Self::Help(arguments) => help::run(arguments, grammar()),
            Self::Reference(arguments) => reference::run(arguments, grammar()),
            Self::Man(arguments) => completions::man(arguments, grammar()),
            Self::Drive(arguments) => drive::run(arguments),
            #[cfg(feature = "servers")]
            Self::Mcp(arguments) => mcp::run(arguments),
            #[cfg(feature = "servers")]
            Self::Demo(arguments) => demo::run(arguments),
        }
    }

    fn shared(&self) -> Option<&SharedArgs> {
        match self {
            Self::Inspect(arguments) => Some(arguments.shared()),
            Self::Tools(arguments) | Self::Prompts(arguments) | Self::Resources(arguments) | Self::Templates(arguments) => {
                Some(arguments.shared())
            }
            Self::Call(arguments) => Some(arguments.shared()),
            Self::Read(arguments) => Some(arguments.shared()),
            Self::Prompt(arguments) => Some(arguments.shared()),
            Self::Ping(arguments) => Some(arguments.shared()),
            _ => None,
        }
    }
}

/// The flags of every command that sends one request.
#[derive(Debug, clap::Args)]
pub(crate) struct SharedArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl SharedArgs {
    /// Splits the positional words: first TARGET, unless `--` or a flag names the server, then those of the command. A URL before
    /// others is where the command after `--` will listen.
    fn part<'a>(&self, words: &'a [String]) -> (&'a [String], &'a [String]) {
        let is_url = |word: &String| word.starts_with("http://") || word.starts_with("https://");
        let names_target = !self.target.names_server() || (words.len() > 1 && is_url(&words[0]));
        words.split_at(usize::from(names_target && !words.is_empty()))
    }
}
