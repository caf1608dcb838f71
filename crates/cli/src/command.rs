//! The commands, one file each. What they share lies beside this folder.

mod call;
mod check;
mod demo;
mod diff;
mod drive;
mod explain;
mod hash;
mod init;
pub(crate) mod inspect;
mod list;
mod lock;
mod mcp;
mod ping;
mod plan;
mod probe;
mod prompt;
mod read;
mod review;
mod schema;
mod test;
mod watch;

pub(crate) use check::unknown_rule;

use crate::authorization;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::later::Later;
use crate::printing::OutputArgs;
use crate::target::TargetArgs;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run suites over the real wire
    Test(Later<test::Arguments>),
    /// Show which tests would run
    Plan(Later<plan::Arguments>),
    /// Look at snapshots that are new or differ
    Review(Later<review::Arguments>),
    /// Find out what is wrong with a server
    Check(Later<check::Arguments>),
    /// Write a first suite, and what CI needs to run it, from a live server
    Init(Later<init::Arguments>),
    /// Explain a rule of `check`
    Explain(Later<explain::Arguments>),
    /// Write down what a server promises, or verify that it still does
    Lock(Later<lock::Arguments>),
    /// Tell what changed between two servers, locks or traces, and what it breaks
    Diff(Later<diff::Arguments>),
    /// Print the hash of what a server promises
    Hash(Later<hash::Arguments>),
    /// See whether a server works, and how long each part takes: one line, one exit code
    Probe(Later<probe::Arguments>),
    /// Watch servers: probe them on a timer, tell people when they fail, and show it
    Watch(Later<watch::Arguments>),
    /// Send one request and print its answer; takes the flags of MCP Inspector's CLI
    // Not later: what was typed is held against its flags before it is parsed.
    Inspect(Box<inspect::Arguments>),
    /// List the tools of a server
    Tools(Later<list::Arguments>),
    /// List the prompts of a server
    Prompts(Later<list::Arguments>),
    /// List the resources of a server
    Resources(Later<list::Arguments>),
    /// List the resource templates of a server
    Templates(Later<list::Arguments>),
    /// Call a tool
    Call(Later<call::Arguments>),
    /// Read a resource
    Read(Later<read::Arguments>),
    /// Get a prompt
    Prompt(Later<prompt::Arguments>),
    /// Ask whether a server answers
    Ping(Later<ping::Arguments>),
    /// Print the JSON Schema of a format, for editors and other programs
    Schema(Later<schema::Arguments>),
    /// Serve a test library of another language
    Drive(Later<drive::Arguments>),
    /// Serve these commands to a coding agent, as an MCP server over stdio
    Mcp(Later<mcp::Arguments>),
    /// Run a built-in demo server
    Demo(Later<demo::Arguments>),
}

impl Command {
    pub(crate) fn run(&self, watching: Watching) -> Result<Exit, Failure> {
        if let Some(shared) = self.shared().filter(|shared| shared.target.authorization.list_stored_auth) {
            let printer = shared.output.printer();
            return printer.settle(authorization::list(printer.form));
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
            Self::Watch(arguments) => watch::run(arguments, watching),
            Self::Inspect(arguments) => inspect::run(arguments, watching),
            Self::Tools(arguments) => list::run("tools/list", arguments, watching),
            Self::Prompts(arguments) => list::run("prompts/list", arguments, watching),
            Self::Resources(arguments) => list::run("resources/list", arguments, watching),
            Self::Templates(arguments) => list::run("resources/templates/list", arguments, watching),
            Self::Call(arguments) => call::run(arguments, watching),
            Self::Read(arguments) => read::run(arguments, watching),
            Self::Prompt(arguments) => prompt::run(arguments, watching),
            Self::Ping(arguments) => ping::run(arguments, watching),
            Self::Schema(arguments) => schema::run(arguments),
            Self::Drive(arguments) => drive::run(arguments),
            Self::Mcp(arguments) => mcp::run(arguments),
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
            Self::Test(_)
            | Self::Check(_)
            | Self::Lock(_)
            | Self::Diff(_)
            | Self::Hash(_)
            | Self::Init(_)
            | Self::Explain(_)
            | Self::Probe(_)
            | Self::Watch(_)
            | Self::Plan(_)
            | Self::Review(_)
            | Self::Schema(_)
            | Self::Drive(_)
            | Self::Mcp(_)
            | Self::Demo(_) => None,
        }
    }
}

/// The flags of each command that asks a server one thing.
#[derive(Debug, clap::Args)]
pub(crate) struct SharedArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl SharedArgs {
    /// Parts the positional words: first TARGET, unless `--` or a flag names the server, then the command's own. A URL before
    /// others is where the command of `--` will listen.
    fn part<'a>(&self, words: &'a [String]) -> (&'a [String], &'a [String]) {
        let is_url = |word: &String| word.starts_with("http://") || word.starts_with("https://");
        let names_target = !self.target.names_server() || (words.len() > 1 && is_url(&words[0]));
        words.split_at(usize::from(names_target && !words.is_empty()))
    }
}
