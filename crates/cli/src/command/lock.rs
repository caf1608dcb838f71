//! `mcproof lock TARGET` and `lock --verify`: writes the contract to a file, and compares a server with it.

use super::diff::{Deny, FormatArgs, judge};
use crate::contracts::{self, CaptureExtent, CapturedContracts, ClientArgs, Contracts};
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities::StrictArgs;
use crate::target::{Resolved, TargetArgs, Words};
use crate::{output, printing, settings, whole_file};
use mcproof_contract::{self as contract, Extent, Profile, Side, Visitor, diff};
use mcproof_protocol::{Era, Transport};
use mcproof_record::{ChangeLevel, Contract, ContractLock, Diagnostic, LockedTarget, Place, counted};
use mcproof_report::contract::terminal;
use mcproof_report::{diagnostic, escape_line};
use mcproof_suite::restriction::{Restriction, UrlOwner};
use std::path::PathBuf;

/// Lock the contract of a server, or verify it
///
/// The lock holds tools with their schemas and annotations, prompts, resources, templates, capabilities, instructions, revisions and
/// two hashes, for each client kind. It is not modified if nothing changed. A breaking change is shown, and written only with --update.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof lock -- node server.js
  # accept breaking changes
  mcproof lock --update -- node server.js
  mcproof lock --verify
  mcproof lock --verify https://example.com/mcp --deny breaking --markdown
  mcproof lock --as full,minimal --identity admin --bearer env:TOKEN https://example.com/mcp")]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json [default with --verify: from the lock]
    ///
    /// A command comes last, after `--`. With a URL and a command, the command starts the server at the URL, and `${port}` in both is a
    /// free port.
    target: Option<String>,
    /// Compare the server with the lock, and fail if they differ
    #[arg(long)]
    verify: bool,
    /// Write the lock even if the server has breaking changes
    #[arg(long, alias = "force", conflicts_with = "verify")]
    update: bool,
    /// Path of the lock
    #[arg(long, alias = "lock", value_name = "FILE", default_value = "mcproof.lock")]
    output: PathBuf,
    /// With --verify, the changes that fail
    #[arg(long, value_name = "LEVEL", default_value = "any", requires = "verify")]
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

/// Characters of a name that are shown.
const LONGEST_NAME: usize = 200;

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    // The summary of a job takes whatever is said in Markdown; who reads JSON has to get it.
    if arguments.format.is_json() && !arguments.verify {
        let failure = Failure::bad_input("bad-flag", "`--json` requires --verify");
        return Err(failure.hint("it is about the changes that --verify finds; the lock itself is a JSON file: see --output"));
    }
    if let Some(restriction) = arguments.server.restriction()? {
        let path = &arguments.output;
        restriction.path(path, &path.display().to_string()).map_err(|refused| Failure::new(Exit::BadInput, refused))?;
    }
    if arguments.verify { verify(arguments, watching) } else { write(arguments, watching) }
}

fn write(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let path = &arguments.output;
    let identity = arguments.clients.identity.as_deref();
    // A file that is no lock is not overwritten, and tells so before a server is started.
    let earlier = match mcproof_suite::bounds::read_text(path) {
        Ok(text) => Some((contracts::read_lock(path, &text)?, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::bad_input("cannot-read", format!("cannot read {}: {error}", path.display()))),
    };
    let visitors = arguments.clients.visitors(&arguments.server)?;
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?.judged(arguments.strict);
    let CapturedContracts { contracts: taken, .. } = match contracts::take(&resolved, &visitors, identity, CaptureExtent::Whole, watching)?
    {
        Ok(taken) => taken,
        Err(exit) => return Ok(exit),
    };
    let promised = earlier.iter().flat_map(|(lock, _)| &lock.contracts).filter(|(key, _)| identity_of(key) == identity);
    let promised: Contracts = promised.map(|(key, contract)| (key.clone(), contract.clone())).collect();
    if !promised.is_empty() {
        tell_changes(arguments, &promised, &taken)?;
    }
    let mut all = taken.clone();
    // What others are offered was not looked at.
    let others = earlier.iter().flat_map(|(lock, _)| &lock.contracts).filter(|(key, _)| identity_of(key) != identity);
    all.extend(others.map(|(key, contract)| (key.clone(), contract.clone())));
    let lock = ContractLock::new(locked_target(&arguments.server, arguments.target.as_ref()), all);
    let text = contract::write(&lock);
    let mut told: String = taken.iter().map(|(key, contract)| described(key, contract)).collect();
    if earlier.as_ref().is_some_and(|(_, known)| *known == text) {
        told += &format!("{} is up to date\n", path.display());
    } else {
        whole_file::write(path, &text).map_err(|error| Failure::cannot_write(path, &error))?;
        told += &format!("wrote {}\n", path.display());
    }
    if lock.target.is_none() && arguments.names_a_server() {
        told += "the lock does not record the server, because its command or URL contains a secret: pass the server to `lock --verify`\n";
    }
    output::show(&told)?;
    // A server may take one client only; the lock is written all the same.
    match contracts::unstable(resolved, &taken, &text, watching) {
        Ok(Ok(unstable)) => unstable.iter().for_each(|warning| output::talk(&diagnostic::render(warning, &settings::style()))),
        Ok(Err(exit)) => return Ok(exit),
        Err(failure) => {
            printing::report(&failure);
            output::talk("whether the contract is the same in another session is not known\n");
        }
    }
    Ok(Exit::Passed)
}

/// Shows how the server differs from an earlier lock, before that is overwritten.
///
/// # Errors
/// The contract is no longer kept, and --update is not given.
fn tell_changes(arguments: &Arguments, promised: &Contracts, taken: &Contracts) -> Result<(), Failure> {
    let shown = arguments.output.display().to_string();
    let name = arguments.name();
    let old = Side { name: &shown, contracts: promised, extent: Extent::Whole };
    let found = diff(old, Side { name: &name, contracts: taken, extent: Extent::Whole });
    if !found.changes.is_empty() {
        output::show(&terminal(&found, &settings::style()))?;
    }
    let lost: Vec<&str> = promised.keys().filter(|key| !taken.contains_key(*key)).map(String::as_str).collect();
    let reason = match (found.reaches(ChangeLevel::Breaking), lost.as_slice()) {
        (true, _) => "the server has breaking changes".to_owned(),
        (false, []) => return Ok(()),
        (false, lost) => format!("it would lose {}", lost.join(", ")),
    };
    if arguments.update {
        return Ok(());
    }
    let diagnostic = Diagnostic::error("lock-broken", format!("{shown} was not modified: {reason}"));
    Err(Failure::new(Exit::Failed, diagnostic.hint("write it anyway with `mcproof lock --update`")))
}

fn verify(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let path = &arguments.output;
    let shown = path.display().to_string();
    let text = mcproof_suite::bounds::read_text(path).map_err(|error| {
        Failure::bad_input("cannot-read", format!("cannot read {shown}: {error}")).hint("create it with `mcproof lock TARGET`")
    })?;
    let lock = contracts::read_lock(path, &text)?;
    let identity = arguments.clients.identity.as_deref();
    let mut promised: Contracts = lock.contracts.into_iter().filter(|(key, _)| identity_of(key) == identity).collect();
    if !arguments.clients.clients.is_empty() {
        let wanted: Vec<String> = arguments.clients.visitors(&arguments.server)?.iter().map(|visitor| visitor.key(identity)).collect();
        promised.retain(|key, _| wanted.contains(key));
    }
    if promised.is_empty() {
        let whom = identity.map_or("no identity".to_owned(), |identity| format!("`{identity}`"));
        return Err(Failure::bad_input("nothing-locked", format!("{shown} has no matching contract for {whom}"))
            .hint("lock it first, with the same --as and --identity"));
    }
    let visitors = visitors_of(&promised)?;
    permit_own(&visitors, &arguments.server, &shown)?;
    let (resolved, name) = arguments.resolve(lock.target.as_ref(), &shown, &text)?;
    let resolved = resolved.judged(arguments.strict);
    let CapturedContracts { contracts: taken, transport } =
        match contracts::take(&resolved, &visitors, identity, CaptureExtent::Again, watching)? {
            Ok(taken) => taken,
            Err(exit) => return Ok(exit),
        };
    let unseen = out_of_reach(&mut promised, transport);
    let old = Side { name: &shown, contracts: &promised, extent: Extent::Whole };
    let mut found = diff(old, Side { name: &name, contracts: &taken, extent: Extent::Whole });
    found.not_compared.extend(unseen);
    judge(&found, arguments.deny, &arguments.format)
}

/// Whether the server may be reached that a lock names. Whoever wrote the lock did not type it.
fn permit(restriction: &Restriction, locked: &LockedTarget) -> Result<(), Diagnostic> {
    let folder = locked.folder.as_ref().map_or_else(settings::current_folder, PathBuf::from);
    if let Some(command) = &locked.command {
        restriction.command(command)?;
        restriction.path(&folder, &folder.display().to_string())?;
    }
    locked.variables.iter().try_for_each(|name| restriction.variable(name))?;
    let owner = if locked.command.is_some() { UrlOwner::Suite } else { UrlOwner::Others };
    locked.url.iter().try_for_each(|url| restriction.url(url, owner))
}

/// The line with which a lock begins to say how the server is reached.
fn place_of_target(lock: &str, text: &str) -> Place {
    let found = text.lines().zip(1..).find_map(|(line, number)| Some((number, line.find("\"target\"")?, line)));
    let (line, column, text) = found.unwrap_or((1, 0, ""));
    let column = u32::try_from(column).unwrap_or(0) + 1;
    Place { file: lock.to_owned(), line, column, length: 8, text: text.to_owned() }
}

/// HTTP+SSE belongs to the legacy era: it shows nothing of the modern one.
pub(super) fn out_of_reach(contracts: &mut Contracts, transport: Transport) -> Vec<String> {
    let is_reached =
        |key: &String| transport != Transport::Sse || Visitor::of_key(key).is_ok_and(|(visitor, _)| visitor.era == Era::Legacy);
    let unseen = contracts.keys().filter(|key| !is_reached(key)).map(|key| format!("`{key}` is not reachable over HTTP+SSE")).collect();
    contracts.retain(|key, _| is_reached(key));
    unseen
}

/// The kinds of clients that contracts are with.
pub(super) fn visitors_of(contracts: &Contracts) -> Result<Vec<Visitor>, Failure> {
    let visitor = |key: &String| match Visitor::of_key(key) {
        Ok((visitor, _)) => Ok(visitor),
        Err(error) => Err(Failure::bad_input("bad-lock", format!("{error}: `{}`", escape_line(key, LONGEST_NAME)))),
    };
    contracts.keys().map(visitor).collect()
}

/// Whether it is known what such clients declare: a file names those of no profile, and does not say what they had.
pub(super) fn permit_own(visitors: &[Visitor], server: &TargetArgs, shown: &str) -> Result<(), Failure> {
    if server.capabilities.is_some() || visitors.iter().all(|visitor| visitor.profile != Profile::Own) {
        return Ok(());
    }
    let message = format!("{shown} was made with a client whose capabilities it does not record");
    Err(Failure::bad_input("own-capabilities", message)
        .hint("declare the same ones with --capabilities, or compare as another client with --as"))
}

fn identity_of(key: &str) -> Option<&str> {
    Visitor::of_key(key).ok().and_then(|(_, identity)| identity)
}

/// A contract in one line.
pub(super) fn described(key: &str, contract: &Contract) -> String {
    let count = |list: &Option<Vec<serde_json::Value>>, what: &str| Some(counted(list.as_ref()?.len(), what));
    let lists = [
        count(&contract.tools, "tool"),
        count(&contract.prompts, "prompt"),
        count(&contract.resources, "resource"),
        count(&contract.resource_templates, "template"),
    ];
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    format!("{key}: {}, {}\n", lists.join(", "), contract.hashes.tools)
}

/// How the server was reached, without secrets.
pub(super) fn locked_target(server: &TargetArgs, named: Option<&String>) -> Option<LockedTarget> {
    let url = server.server_url.as_ref().or(named.filter(|named| named.contains("://")));
    let name = server.server.as_ref().or(named.filter(|named| !named.contains("://")));
    let mut target = LockedTarget { variables: server.env.iter().map(|(name, _)| name.clone()).collect(), ..LockedTarget::default() };
    target.folder = server.cwd.as_ref().map(|folder| folder.display().to_string());
    if !server.command.is_empty() {
        target.command = (!contracts::hold_secret(&server.command)).then(|| server.command.clone());
        target.command.as_ref()?;
    }
    if let Some(url) = url {
        target.url = (!contracts::text_holds_secret(url)).then(|| url.clone());
        target.url.as_ref()?;
    } else if target.command.is_none() {
        target.server = Some(name?.clone());
    }
    Some(target)
}

impl Arguments {
    fn names_a_server(&self) -> bool {
        self.target.is_some() || self.server.names_server()
    }

    /// What to call the server that is typed.
    fn name(&self) -> String {
        let name = self.target.clone().or_else(|| self.server.server.clone()).or_else(|| self.server.server_url.clone());
        name.unwrap_or_else(|| self.server.command.join(" "))
    }

    /// The server to verify, and what to call it: the one that is typed, else that of the lock.
    fn resolve(&self, locked: Option<&LockedTarget>, lock: &str, text: &str) -> Result<(Resolved, String), Failure> {
        let locked = match locked {
            Some(locked) if !self.names_a_server() => locked,
            _ => {
                let resolved = self.server.resolve(self.target.as_slice(), Words::Name);
                let hint = format!("{lock} does not record the server: pass a URL, or a command after `--`");
                let resolved = if self.names_a_server() { resolved } else { resolved.map_err(|failure| failure.hint(hint)) };
                return Ok((resolved?, self.name()));
            }
        };
        if let Some(restriction) = self.server.restriction()? {
            permit(&restriction, locked).map_err(|refused| Failure::new(Exit::BadInput, refused.at(place_of_target(lock, text))))?;
        }
        let mut server = self.server.clone();
        let mut name = String::new();
        if let Some(command) = &locked.command {
            server.command.clone_from(command);
            name = command.join(" ");
        }
        for wanted in locked.variables.iter().filter(|wanted| !server.env.iter().any(|(known, _)| known == *wanted)) {
            // A variable of our own environment is the server's as well.
            if settings::variable(wanted).is_none() {
                return Err(Failure::bad_input("variable-missing", format!("{lock} requires the variable `{wanted}`, which is not set"))
                    .hint(format!("set it, or pass -e {wanted}=…")));
            }
        }
        server.cwd = server.cwd.or_else(|| locked.folder.as_ref().map(PathBuf::from));
        server.server.clone_from(&locked.server);
        if let Some(other) = locked.url.as_ref().or(locked.server.as_ref()) {
            name.clone_from(other);
        }
        Ok((server.resolve(locked.url.as_slice(), Words::Name)?, name))
    }
}
