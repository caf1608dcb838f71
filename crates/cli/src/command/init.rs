//! `mcproof init TARGET`: writes a first suite and CI configuration from a running server.

mod files;
mod go;
mod install;
mod repository;

use crate::contracts::{self, CaptureExtent, ClientArgs, Contracts};
use crate::conversation::{self, Watching};
use crate::diagnosis;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities::{self, StrictArgs};
use crate::starter::{self, BaseEnvironment, Exploration, Explored, ServerSection, Stage, Started, StarterSuite};
use crate::status::Status;
use crate::target::{Resolved, TargetArgs, Words, host};
use crate::{output, printing, settings, traffic};
use files::{Planned, Scaffold, Written};
use install::Installation;
use mcproof_analysis::diagnosis::{Audience, evidence, of_list_failure};
use mcproof_analysis::oddities::{Odd, Oddities};
use mcproof_check::Permission;
use mcproof_client::redaction::Redactor;
use mcproof_client::{Handshake, Launch, Session, Target};
use mcproof_contract as contract;
use mcproof_record::{ContractLock, Conversation, Diagnostic, FrameId, Opened, counted};
use mcproof_report::{diagnostic, escape};
use mcproof_suite::run::Traffic;
use mcproof_suite::schema::suite_schema;
use repository::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Create a first suite and CI configuration from a running server
///
/// Read-only tools, and those of --call, are called twice: values that differ are matched by type. All other tools are only checked for
/// being listed. Parts of the suite that need a decision are marked `review`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof init -- node server.js
  mcproof init --call all,create_note -- python server.py
  mcproof init https://example.com/mcp --header 'Authorization: Bearer …' --dir my-server")]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    target: Option<String>,
    /// Directory to write to; what runs in CI goes to the root of its git repository, and runs in this directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Also call these tools: names separated by commas, or `all` for every tool that is not destructive [default: only read-only tools]
    #[arg(long, value_name = "TOOLS", value_parser = |text: &str| text.parse::<Permission>())]
    call: Option<Permission>,
    #[command(flatten)]
    strict: StrictArgs,
    #[command(flatten)]
    server: TargetArgs,
}

const LOCK: &str = "mcproof.lock";
/// Between both visits, so that a clock shows.
const PAUSE: Duration = Duration::from_millis(1_100);
/// The length below which values are not searched in responses.
const SHORTEST_PRIVATE: usize = 4;
/// Of the environment, where most values are no secrets.
const SHORTEST_VALUE: usize = 8;
/// Characters of the server's name in the names of files.
const LONGEST_NAME: usize = 40;
/// Paths that arguments are tried with.
const MOST_PATHS: usize = 4;

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    if arguments.server.capabilities.is_some() {
        let failure =
            Failure::bad_input("bad-flag", "`--capabilities` cannot be written to a suite, which declares client responses instead");
        return Err(failure.hint("add `answers:` to the suite"));
    }
    if arguments.server.launch == host::Style::Host {
        let failure = Failure::bad_input("bad-flag", "`--launch host` cannot be written to a suite");
        return Err(failure.hint("omit it, and pass it to `mcproof test`"));
    }
    let restriction = arguments.server.restriction()?;
    let permit = |path: &Path| {
        let refused = restriction.as_ref().map_or(Ok(()), |restriction| restriction.path(path, &path.display().to_string()));
        refused.map_err(|refused| Failure::new(Exit::BadInput, refused))
    };
    permit(&arguments.dir)?;
    let here = settings::current_folder();
    let home = settings::variables().get("HOME").map(PathBuf::from);
    let place = repository::find(&here.join(&arguments.dir), home.as_deref());
    if let Some(root) = &place.root {
        permit(root)?;
    }
    // Exploring a server takes a while: what is in the way of the files is told before.
    files::check_writable(&arguments.dir)?;
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?.judged(arguments.strict);
    let interview =
        Exploration { calls: arguments.call.clone().unwrap_or_default(), timeout: resolved.timeout, paths: paths(&resolved.target) };
    let interviewed = match visit_twice(resolved, &interview, watching)? {
        Ok(visited) => visited,
        Err(exit) => return Ok(exit),
    };
    let (resolved, interviewed, faults) = interviewed;
    if let Some(message) = interviewed.unknown_call() {
        return Err(Failure::bad_input("unknown-tool", format!("--call: {message}")));
    }
    let name = file_name(interviewed.handshake());
    let kind = interviewed.handshake().transport;
    let reaching = starter::reach(&resolved.target, &resolved.options, kind, arguments.started(), &arguments.dir, &here);
    let environment = settings::variables();
    let all = environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let secrets = Target::Stdio(Launch { env: all, ..Launch::default() }).secrets();
    let secrets = Redactor::new(secrets.into_iter().chain(resolved.secrets.iter().cloned()));
    let private = private(&resolved, &environment, &here);
    let surroundings = BaseEnvironment { now: settings::now(), private, secrets, environment };
    let mut suite = starter::write(&interviewed, &reaching, &surroundings, files::SCHEMA);
    suite.text = surroundings.secrets.text(&starter::accepting(&suite.text, &faults)).into_owned();
    if suite.tests == 0 {
        let diagnostic = Diagnostic::error("no-test", "no test could be written: the suite cannot reach the server");
        return Err(Failure::new(
            Exit::Failed,
            diagnostic.hint("if the URL contains `${port}`, the command or -e must contain it as well"),
        ));
    }
    let suite_file = format!("{name}.mcproof.yaml");
    let mut planned = vec![
        Planned { path: suite_file.clone().into(), text: suite.text.clone(), about: described(&suite) },
        Planned { path: files::SCHEMA.into(), text: format!("{:#}\n", suite_schema()), about: "schema of suites, for editors".into() },
    ];
    // A lock takes its time, and what was explored is not to be lost meanwhile.
    let is_new = planned.iter().all(|file| arguments.dir.join(&file.path).symlink_metadata().is_err());
    let first = match is_new {
        true => {
            planned.iter().try_for_each(|file| permit(&arguments.dir.join(&file.path)))?;
            files::write(&arguments.dir, &planned, &[], arguments.force)?.paths
        }
        false => Vec::new(),
    };
    output::talk("locking the contract for each client kind …\n");
    let mut exit = Exit::Passed;
    let installation = install::find(&arguments.dir, resolved.target.command());
    let locked = match lock(arguments, &resolved, &reaching, watching) {
        Ok(Ok(locked)) => if_stable(locked, resolved, watching),
        Ok(Err(exit)) => Ok(Err(exit)),
        Err(failure) => Err(failure),
    };
    let locked = match locked {
        Ok(Ok(locked)) => locked,
        Ok(Err(exit)) => return Ok(exit),
        Err(failure) => {
            printing::report(&failure);
            output::talk(&format!("skipped {LOCK}: the suite does not need it\n"));
            exit = failure.exit;
            None
        }
    };
    let verifies = locked.as_ref().is_some_and(|locked| locked.can_be_verified);
    planned.extend(locked.map(|locked| Planned { path: LOCK.into(), text: locked.text, about: "contract of the server".into() }));
    let scaffold = Scaffold { suite: &suite_file, variables: &reaching.variables, verifies, installation: &installation, place: &place };
    planned.extend(files::scaffold(&arguments.dir, &scaffold));
    planned.iter().try_for_each(|file| permit(&arguments.dir.join(&file.path)))?;
    let written = files::write(&arguments.dir, &planned, &first, arguments.force)?;
    output::show(&written.told)?;
    if !reaching.variables.is_empty() {
        let names = reaching.variables.join(", ");
        output::talk(&format!("set {names} before `mcproof test`: the values are not written to any file\n"));
    }
    if let Some(note) = before_the_push(&written, &installation, &place) {
        output::talk(&note);
    }
    let folder =
        if arguments.dir == here || arguments.dir == Path::new(".") { String::new() } else { format!(" {}", arguments.dir.display()) };
    for fault in &faults {
        output::talk(&format!(
            "the suite accepts this fault with `allow_faults`; remove the key when the server is fixed: {}\n",
            escape(&surroundings.secrets.text(fault))
        ));
    }
    for what in &suite.refused {
        output::talk(&format!("no test covers {}\n", escape(what)));
    }
    if suite.has_bad_lists {
        output::talk(
            "a list of the server is not valid or has items without a name or with the same name, and is not tested; see `mcproof check`\n",
        );
    }
    output::talk(&format!("next: run `mcproof test{folder}`\n"));
    Ok(exit)
}

/// Visits the server, and once more a moment later, in a process of its own if we start it. Gives what it said, or how the user
/// ended it. The trace is that of the first visit, which asks all that the second one asks.
fn visit_twice(resolved: Resolved, interview: &Exploration, watching: Watching) -> Result<Result<Visited, Exit>, Failure> {
    let mut said: Option<Explored> = None;
    let mut faults = Vec::new();
    output::talk("exploring the server and calling allowed tools …\n");
    let mut status = Status::new(watching);
    let exit = conversation::hold(&resolved, watching, async |session| {
        let asked = starter::interview(session, interview, &mut told(&mut status)).await;
        status.end();
        match asked {
            Ok(interviewed) => {
                oddities::warn(session);
                oddities::judge(session, resolved.oddities)?;
                session.settle().await;
                faults = faults_of(session);
                if let Some(closed) = session.closed_because() {
                    let message = format!("{closed} during exploration: items without a response are only listed");
                    let warning = Diagnostic::warning("server-gone", message).hint("find the tool that causes it with `mcproof call`");
                    let evidence = evidence(&session.tap().transcript(), None);
                    output::talk(&diagnostic::render(&warning.evidence(evidence), &settings::style()));
                }
                said = Some(interviewed);
                Ok(Exit::Passed)
            }
            Err((method, failure)) => {
                let scene = diagnosis::scene(session).await;
                Err(Failure::new(Exit::Failed, of_list_failure(&failure, method, &scene)))
            }
        }
    })?;
    let (Some(mut interviewed), Exit::Passed) = (said, exit) else { return Ok(Err(exit)) };
    output::talk("repeating all requests in a new session to find values that differ …\n");
    std::thread::sleep(PAUSE);
    let resolved = Resolved { trace: None, ..resolved };
    let exit = conversation::hold(&resolved, watching, async |session| {
        starter::interview_again(session, &mut interviewed, interview.timeout, &mut told(&mut status)).await;
        status.end();
        let new: Vec<String> = faults_of(session).into_iter().filter(|fault| !faults.contains(fault)).collect();
        faults.extend(new);
        Ok(Exit::Passed)
    })?;
    Ok(if exit == Exit::Passed { Ok((resolved, interviewed, faults)) } else { Err(exit) })
}

/// What the server said, and what it did wrong meanwhile.
type Visited = (Resolved, Explored, Vec<String>);

/// What fails a test in which it comes, whatever the responses are: a sentence about each kind.
fn faults_of(session: &Session) -> Vec<String> {
    let (tap, handshake) = (session.tap(), session.handshake());
    let transcript = tap.transcript();
    let is_whole = transcript.dropped == 0;
    let conversation = Conversation {
        name: "server".to_owned(),
        transport: handshake.transport.to_string(),
        revision: handshake.protocol_version.clone(),
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript,
    };
    let kinds = Odd::of(session, Audience::Suite, Oddities::Warn).kinds;
    let told: BTreeSet<String> = kinds.iter().map(|kind| kind.code.clone()).collect();
    let traffic = Traffic { conversation, is_whole, is_over: false, since: FrameId(0), skipped: Vec::new(), told };
    let broken = if is_whole { traffic::judge(&traffic) } else { Vec::new() };
    let all = kinds.into_iter().chain(broken.into_iter().map(|broken| broken.diagnostic));
    all.map(|diagnostic| diagnostic.map_text(|text| tap.redacted(text)).message).collect()
}

/// Shows the progress of the exploration.
fn told(status: &mut Status) -> impl FnMut(Stage<'_>) {
    let began = Instant::now();
    move |Stage { subject, number, of }| status.step(&format!("{number}/{of} {subject}"), began.elapsed())
}

struct Locked {
    contracts: Contracts,
    text: String,
    /// Whether `lock --verify` finds the server by the lock and the environment.
    can_be_verified: bool,
}

/// The contract with each kind of client that `mcproof lock` is by default.
fn lock(arguments: &Arguments, resolved: &Resolved, reaching: &ServerSection, watching: Watching) -> Result<Result<Locked, Exit>, Failure> {
    let visitors = ClientArgs::default().visitors(&arguments.server)?;
    let taken = match contracts::take(resolved, &visitors, None, CaptureExtent::Whole, watching)? {
        Ok(taken) => taken,
        Err(exit) => return Ok(Err(exit)),
    };
    let mut target = super::lock::locked_target(&arguments.server, arguments.target.as_ref());
    if let Some(target) = target.as_mut().filter(|target| target.command.is_some()) {
        target.folder = reaching.folder.clone();
    }
    let has_headers = matches!(&resolved.target, Target::Http { endpoint, .. } if !endpoint.headers.is_empty());
    let can_be_verified = target.is_some() && !has_headers;
    let lock = ContractLock::new(target, taken.contracts);
    Ok(Ok(Locked { text: contract::write(&lock), contracts: lock.contracts, can_be_verified }))
}

/// The lock, unless another session shows another contract.
fn if_stable(locked: Locked, resolved: Resolved, watching: Watching) -> Result<Result<Option<Locked>, Exit>, Failure> {
    Ok(match contracts::unstable(resolved, &locked.contracts, &locked.text, watching)? {
        Ok(None) => Ok(Some(locked)),
        Ok(Some(warning)) => {
            output::talk(&diagnostic::render(&warning, &settings::style()));
            output::talk(&format!("skipped {LOCK}: `lock --verify` would fail\n"));
            Ok(None)
        }
        Err(exit) => Err(exit),
    })
}

impl Arguments {
    /// A URL and the command that starts what listens there.
    fn started(&self) -> Option<Started<'_>> {
        let url = self.target.as_deref().filter(|target| target.contains("://") && !self.server.command.is_empty())?;
        Some(Started { url, command: &self.server.command, env: &self.server.env })
    }
}

/// What the jobs need from the user; nothing if they were there already.
fn before_the_push(written: &Written, installation: &Installation, place: &Place) -> Option<String> {
    let forms = files::jobs(place);
    let new: Vec<String> = forms.iter().filter(|form| written.paths.contains(form)).map(|form| form.display().to_string()).collect();
    if new.is_empty() {
        return None;
    }
    let mut text = String::from("for CI: ");
    if let Some(root) = &place.root {
        text += &format!("the jobs are in {}, the root of the repository, and run in {}; ", root.display(), place.within);
    }
    if let Some(commands) = installation.shown() {
        text += &format!("the jobs install the server with {commands}; ");
    }
    if installation.to_review {
        text += &format!("replace `# review` in {} with the commands that install the server; ", new.join(" and "));
    }
    text += "set the variable MCPROOF_REPOSITORY of the repository to the URL of the sources of mcproof\n";
    Some(text)
}

fn described(suite: &StarterSuite) -> String {
    let StarterSuite { tests, called, listed, to_review, .. } = suite;
    let (tests, called, to_review) = (counted(*tests, "test"), counted(*called, "tool"), counted(*to_review, "test"));
    format!("{tests}; {called} called, {listed} only listed; {to_review} marked `review`")
}

/// The server's own name, as a part of the names of files.
fn file_name(handshake: &Handshake) -> String {
    let named = handshake.server_info.as_ref().and_then(|info| info.get("name")).and_then(serde_json::Value::as_str);
    safe_name(named.unwrap_or_default())
}

fn safe_name(text: &str) -> String {
    let words: Vec<String> = text
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let name: String = words.join("-").chars().take(LONGEST_NAME).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

/// Folders and files that the command of the server names, and the folder that it runs in.
fn paths(target: &Target) -> Vec<String> {
    let Some((_, words)) = target.command().and_then(<[String]>::split_first) else { return Vec::new() };
    let mut found = Vec::new();
    for word in words.iter().filter(|word| Path::new(word).is_absolute()) {
        let path = Path::new(word);
        if path.is_dir() {
            found.push(word.clone());
            found.extend(first_file(path));
        }
    }
    found.extend(words.iter().filter(|word| Path::new(word).is_absolute() && Path::new(word).is_file()).cloned());
    found.truncate(MOST_PATHS - 1);
    found.push(".".to_owned());
    found
}

/// By name, so that it is the same one the next time.
fn first_file(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let is_plain = |path: &PathBuf| path.is_file() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_plain).collect();
    files.sort();
    files.first().map(|file| file.display().to_string())
}

/// The parts of a response that depend on this machine, or must not be written.
fn private(resolved: &Resolved, environment: &BTreeMap<String, String>, here: &Path) -> Vec<String> {
    let all = environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut private = Target::Stdio(Launch { env: all, ..Launch::default() }).secrets();
    private.extend(resolved.secrets.iter().cloned());
    if let Target::Stdio(launch) | Target::Http { launch: Some(launch), .. } = &resolved.target {
        private.extend(launch.env.iter().map(|(_, value)| value.clone()));
    }
    if let Target::Http { endpoint, .. } = &resolved.target {
        private.extend(endpoint.headers.iter().map(|(_, value)| value.clone()));
    }
    private.extend(environment.get("HOME").cloned());
    private.push(here.display().to_string());
    private.extend(environment.values().filter(|value| value.len() >= SHORTEST_VALUE).cloned());
    private.retain(|text| text.len() >= SHORTEST_PRIVATE);
    private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_server_is_called_its_file_is_named_safely() {
        let check = |name: &str, expected: &str| assert_eq!(safe_name(name), expected, "{name:?}");
        check("mcp-servers/everything", "mcp-servers-everything");
        check("Kubernetes MCP Server", "kubernetes-mcp-server");
        check("../../etc/passwd", "etc-passwd");
        check("", "server");
        check("日本", "server");
        check("\u{202e}a\nb\0", "a-b");
        check(&"long ".repeat(30), "long-long-long-long-long-long-long-long");
    }
}
