//! `mcproof diff OLD NEW`: the changes between two servers, locks, traces or checks, and which of them break callers.

use super::lock::{out_of_reach, permit_own, visitors_of};
use crate::contracts::{self, CaptureExtent, CapturedContracts, ClientArgs, Contracts};
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities::StrictArgs;
use crate::target::{TargetArgs, Words, names_here};
use crate::{output, settings};
use mcproof_contract::{Extent, Profile, Saved, Side, Visitor, diff};
use mcproof_protocol::Transport;
use mcproof_record::{ChangeLevel, ContractDiff, Diagnostic};
use mcproof_report::contract;
use mcproof_system::commands;
use std::path::Path;

/// Compare the contracts of two servers, locks or traces
///
/// Each change is breaking, compatible or cosmetic for callers of the server. As with `lock --verify`, the exit code is 1 if anything
/// except the server's version changed, or if a change matches --deny. A trace, a check or the lock of a trace shows a part of the
/// contract: the rest is named (`not compared`), and if the server did not return a list that was requested, the exit code is 1 as well.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcproof diff [OPTIONS] OLD NEW\n       mcproof diff [OPTIONS] OLD -- COMMAND [ARGUMENT]...\n       mcproof diff [OPTIONS] OLD URL -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  mcproof diff mcproof.lock -- node server.js
  mcproof diff mcproof.lock https://example.com/mcp --deny breaking
  mcproof diff mcproof.lock 'http://127.0.0.1:${port}/mcp' -- node server.js --port '${port}'
  mcproof diff 'npx -y my-server@1' 'npx -y my-server@2' --markdown
  mcproof diff old.lock session.mcptrace"
)]
pub(crate) struct Arguments {
    /// Lock files, traces (from --trace), URLs, names of servers in .mcp.json, or quoted commands
    ///
    /// The new side may be a command after `--`. With a URL and a command, the command starts the server at the URL, and `${port}` in
    /// both is a free port.
    #[arg(value_name = "OLD NEW", num_args = 0..=2)]
    sides: Vec<String>,
    /// Old side; a command with its arguments is one quoted word
    #[arg(long, value_name = "SIDE")]
    old: Option<String>,
    /// New side; a command with its arguments is one quoted word
    #[arg(long, value_name = "SIDE")]
    new: Option<String>,
    /// Changes that fail
    #[arg(long, value_name = "LEVEL", default_value = "any")]
    deny: Deny,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    strict: StrictArgs,
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    server: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Deny {
    /// Changes that break callers, and hidden text that addresses models
    Breaking,
    /// Any change except that of the server's version
    Any,
    /// No change; fail only if the comparison is impossible
    None,
}

/// The output format of a diff.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatArgs {
    /// Print the changes as JSON
    #[arg(long)]
    json: bool,
    /// Print the changes as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

impl FormatArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

/// One side as it was typed.
enum SideSource {
    File(String),
    /// A URL or the name of a server.
    Word(String),
    Command(Vec<String>),
    /// A URL, and the command that starts what listens there.
    Started(String, Vec<String>),
}

/// One side with its contracts.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) contracts: Contracts,
    pub(super) extent: Extent,
    /// `None` for files.
    pub(super) transport: Option<Transport>,
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let (old, new) = arguments.sides()?;
    // Files first: they say as which kinds of clients a server is to be visited.
    let (before, after) = (saved(&old)?, saved(&new)?);
    let mut unseen = Vec::new();
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (Ok(before), Ok(after)),
        (Some(mut before), None) => {
            let visitors = arguments.visitors(Some(&before))?;
            unseen = before.keep_eras_of(&visitors.0);
            let after = arguments.live(&new, &visitors, watching)?;
            (Ok(before), after)
        }
        (None, Some(mut after)) => {
            let visitors = arguments.visitors(Some(&after))?;
            unseen = after.keep_eras_of(&visitors.0);
            (arguments.live(&old, &visitors, watching)?, Ok(after))
        }
        (None, None) => {
            let visitors = arguments.visitors(None)?;
            match arguments.live(&old, &visitors, watching)? {
                Ok(before) => (Ok(before), arguments.live(&new, &visitors, watching)?),
                Err(exit) => return Ok(exit),
            }
        }
    };
    match (before, after) {
        (Ok(before), Ok(after)) => {
            let mut found = compared(before, after);
            found.not_compared.extend(unseen);
            judge(&found, arguments.deny, &arguments.format)
        }
        (Err(exit), _) | (_, Err(exit)) => Ok(exit),
    }
}

/// All changes from one side to the other.
pub(super) fn compared(mut before: Shown, mut after: Shown) -> ContractDiff {
    let mut unseen = after.transport.map(|transport| out_of_reach(&mut before.contracts, transport)).unwrap_or_default();
    unseen.extend(before.transport.map(|transport| out_of_reach(&mut after.contracts, transport)).unwrap_or_default());
    let mut found = diff(before.side(), after.side());
    found.not_compared.extend(unseen);
    found
}

/// Prints a diff and says what comes of it. Where nothing was compared, or a server did not give what was requested, nothing is green.
pub(super) fn judge(found: &ContractDiff, deny: Deny, format: &FormatArgs) -> Result<Exit, Failure> {
    if found.keys.is_empty() && found.changes.is_empty() {
        let reason = found.not_compared.join("; ");
        let diagnostic = Diagnostic::error("nothing-in-common", format!("nothing to compare: {reason}"));
        return Err(Failure::new(Exit::NothingSelected, diagnostic));
    }
    match (format.json, format.markdown) {
        (true, _) => {
            let text = serde_json::to_string_pretty(found).expect("a diff has text keys only");
            output::json(&format!("{text}\n"))?;
        }
        (_, true) => output::plain(&contract::markdown(found))?,
        _ => output::show(&contract::terminal(found, &settings::style()))?,
    }
    match is_denied(found, deny) {
        true => Ok(Exit::Failed),
        // What is unknown is not green.
        false if found.inconclusive => Err(Failure::new(Exit::Failed, inconclusive())),
        false => Ok(Exit::Passed),
    }
}

fn inconclusive() -> Diagnostic {
    Diagnostic::error("inconclusive-diff", "the comparison is inconclusive: a list was requested, and the server did not return it")
        .hint("record the trace or the check again when the server returns all of its lists")
}

fn is_denied(found: &ContractDiff, deny: Deny) -> bool {
    match deny {
        Deny::Breaking => found.reaches(ChangeLevel::Breaking),
        Deny::Any => found.is_drift(),
        Deny::None => false,
    }
}

impl Arguments {
    fn sides(&self) -> Result<(SideSource, SideSource), Failure> {
        let mut words = self.sides.iter();
        let mut flagged = |flag: &Option<String>, name: &str| match flag {
            Some(text) => {
                typed(text).map(Some).map_err(|failure| failure.hint(format!("{name} accepts a file, a URL, a name or a command")))
            }
            None => words.next().map(String::as_str).map(positional).transpose(),
        };
        let (old, new) = (flagged(&self.old, "--old")?, flagged(&self.new, "--new")?);
        let too_many = || Failure::bad_input("bad-arguments", "more than two sides to compare");
        if words.next().is_some() {
            return Err(too_many());
        }
        match (old, new, self.server.command.is_empty()) {
            (Some(old), Some(new), true) => Ok((old, new)),
            (Some(old), None, false) => Ok((old, SideSource::Command(self.server.command.clone()))),
            (Some(old), Some(SideSource::Word(url)), false) if url.contains("://") => {
                Ok((old, SideSource::Started(url, self.server.command.clone())))
            }
            (Some(_), Some(_), false) => Err(too_many()),
            _ => Err(Failure::bad_input("bad-arguments", "missing side to compare")
                .hint("usage: mcproof diff OLD NEW, mcproof diff OLD -- COMMAND, or mcproof diff 'OLD COMMAND' 'NEW COMMAND'")),
        }
    }

    /// As whom to visit a server: as those that the other side is about.
    fn visitors(&self, other: Option<&Shown>) -> Result<(Vec<Visitor>, CaptureExtent), Failure> {
        let Some(other) = other.filter(|_| self.clients.clients.is_empty()) else {
            return Ok((self.clients.visitors(&self.server)?, CaptureExtent::Whole));
        };
        let mut visitors = visitors_of(&other.contracts)?;
        if other.extent == Extent::Whole {
            permit_own(&visitors, &self.server, &other.name)?;
            return Ok((visitors, CaptureExtent::Again));
        }
        // A trace or check shows what it happened to list, and does not say what a client of no profile declared.
        visitors.retain(|visitor| visitor.profile != Profile::Own || self.server.capabilities.is_some());
        match visitors.is_empty() {
            true => Ok((self.clients.visitors(&self.server)?, CaptureExtent::Whole)),
            // These were let in when the trace was recorded: silence now says nothing of the contract.
            false => Ok((visitors, CaptureExtent::Again)),
        }
    }

    fn live(
        &self,
        side: &SideSource,
        (visitors, effort): &(Vec<Visitor>, CaptureExtent),
        watching: Watching,
    ) -> Result<Result<Shown, Exit>, Failure> {
        let mut server = self.server.clone();
        server.command.clear();
        let (name, words) = match side {
            SideSource::File(path) => return Err(Failure::bad_input("bad-arguments", format!("{path} is a file, not a server"))),
            SideSource::Word(word) => (word.clone(), vec![word.clone()]),
            SideSource::Command(command) => {
                server.command.clone_from(command);
                (command.join(" "), Vec::new())
            }
            SideSource::Started(url, command) => {
                server.command.clone_from(command);
                (url.clone(), vec![url.clone()])
            }
        };
        // The other side may need what this one cannot take.
        match side {
            SideSource::Word(word) if word.contains("://") => {
                server.env.clear();
                server.cwd = None;
            }
            SideSource::Command(_) => server.header.clear(),
            SideSource::File(_) | SideSource::Word(_) | SideSource::Started(..) => {}
        }
        let resolved = server.resolve(&words, Words::Name)?.judged(self.strict);
        let identity = self.clients.identity.as_deref();
        Ok(contracts::take(&resolved, visitors, identity, *effort, watching)?.map(|CapturedContracts { contracts, transport }| Shown {
            name,
            contracts,
            extent: Extent::Whole,
            transport: Some(transport),
        }))
    }
}

impl Shown {
    /// A lock, a trace or a check.
    pub(super) fn of_file(name: String, path: &Path) -> Result<Self, Failure> {
        let (contracts, extent) = match contracts::read(path)? {
            Saved::Lock(lock) => (lock.contracts, Extent::Whole),
            Saved::Trace(contracts) => (contracts, Extent::Part),
        };
        Ok(Self { name, contracts, extent, transport: None })
    }

    /// Leaves the contracts with clients of the eras in which a server is visited, and names the others.
    fn keep_eras_of(&mut self, visitors: &[Visitor]) -> Vec<String> {
        let is_visited =
            |key: &String| Visitor::of_key(key).is_ok_and(|(known, _)| visitors.iter().any(|visitor| visitor.era == known.era));
        let others = self.contracts.keys().filter(|key| !is_visited(key));
        let unseen = others.map(|key| format!("`{key}` of {}: the server was not visited as a client of this era", self.name)).collect();
        self.contracts.retain(|key, _| is_visited(key));
        unseen
    }

    fn side(&self) -> Side<'_> {
        Side { name: &self.name, contracts: &self.contracts, extent: self.extent }
    }
}

/// A side in one word, as a flag takes it.
fn typed(text: &str) -> Result<SideSource, Failure> {
    let words = shlex::split(text).ok_or_else(|| Failure::bad_input("bad-arguments", format!("`{text}` has an unclosed quote")))?;
    match words.as_slice() {
        [] => Err(Failure::bad_input("bad-arguments", "side to compare is empty")),
        [word] if word.contains("://") => Ok(SideSource::Word(word.clone())),
        // A program that lies here is one to run.
        [word] if Path::new(word).is_file() && !commands::is_executable(Path::new(word)) => Ok(SideSource::File(word.clone())),
        [word] if settings::program_exists(word) => Ok(SideSource::Command(words)),
        [word] => Ok(SideSource::Word(word.clone())),
        _ => Ok(SideSource::Command(words)),
    }
}

/// A side as an argument: a command, too, if it cannot be anything else.
fn positional(word: &str) -> Result<SideSource, Failure> {
    match word {
        _ if Path::new(word).is_file() => Ok(SideSource::File(word.to_owned())),
        _ if word.contains(' ') && !word.contains("://") && !names_here().iter().any(|(_, name)| name == word) => typed(word),
        _ => Ok(SideSource::Word(word.to_owned())),
    }
}

fn saved(side: &SideSource) -> Result<Option<Shown>, Failure> {
    let SideSource::File(path) = side else { return Ok(None) };
    Shown::of_file(path.clone(), Path::new(path)).map(Some)
}
