//! `mcproof doctor`: what this machine has of all that mcproof and servers under test use; with a target, a connection with it, step by step.

use crate::conversation::Interrupts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::{TargetArgs, Words};
use crate::{conversation, network, output, present, settings};
use futures_util::future::join_all;
use mcproof_client::{Guardian, Launch, Proxy, Tap, TapBounds, Target, run_command};
use mcproof_doctor::{Examination, StepId, StepState, examine};
use mcproof_record::{FrameBody, Transcript};
use mcproof_report::escape;
use serde::Serialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Report what mcproof finds on this machine; with a server, connect step by step and name the step that fails
///
/// Without a server: runtimes, browser, proxies, certificates, shell. A program that is missing is no problem by itself: only what is
/// configured and does not work is one. Exits with 1 if there is a problem.
///
/// With a server: the command, its start, DNS, TCP, TLS, the path, authorization, transport, stdout, handshake, lists and end. Exits with 3 if
/// no connection is possible.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof doctor
  mcproof doctor --json
  mcproof doctor https://example.com/mcp
  mcproof doctor -- node server.js")]
pub(crate) struct Arguments {
    /// URL, or name of a server in .mcp.json; a command comes last, after `--`
    target: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: TargetArgs,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: String,
    state: State,
    /// A version, a path, or what is wrong.
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// It is not there, and nothing asks for it.
    Missing,
    /// It is configured, and does not work.
    Problem,
}

/// Programs that start servers, the flag that prints their version, and what needs them.
const PROGRAMS: [(&str, &str, &str); 10] = [
    ("node", "--version", "servers in JavaScript and TypeScript"),
    ("npx", "--version", "servers published on npm"),
    ("python3", "--version", "servers in Python"),
    ("uv", "--version", "Python projects managed by uv"),
    ("uvx", "--version", "servers published on PyPI"),
    ("go", "version", "servers in Go"),
    ("cargo", "--version", "servers in Rust"),
    ("dotnet", "--version", "servers in C#"),
    ("java", "-version", "servers in Java and Kotlin"),
    ("docker", "--version", "servers in container images"),
];

/// A program that has not printed its version by then hangs.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.target.is_some() || arguments.server.names_server() {
        return connection(arguments);
    }
    let mut findings = vec![own()];
    findings.extend(conversation::run(programs())?);
    findings.push(shell());
    findings.push(browser());
    findings.extend(proxies());
    findings.push(certificates());
    findings.push(state_folder());
    findings.push(temporary_folder());
    if arguments.json {
        let report = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "findings": findings });
        output::json(&format!("{report:#}\n"))?;
    } else {
        output::show(&shown(&findings))?;
    }
    Ok(if findings.iter().any(|finding| finding.state == State::Problem) { Exit::Failed } else { Exit::Passed })
}

/// Connects with a server, step by step.
fn connection(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.server.trace.is_some() {
        return Err(Failure::bad_input("bad-flag", "`--trace` cannot be used with `doctor`")
            .hint("`mcproof tools --trace FILE` records a connection"));
    }
    let resolved = arguments.server.resolve(arguments.target.as_slice(), Words::Name)?;
    let tap = Tap::with(resolved.tap, resolved.secrets.clone(), None);
    let examined = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let examination = examine(&resolved.target, &resolved.options, &tap, |program| find(program, &resolved.target));
        Ok::<_, Failure>(interrupts.or_end(&resolved.options.guardian, examination).await)
    })??;
    let examination = match examined {
        Ok(examination) => examination,
        Err(exit) => return Ok(exit),
    };
    if arguments.json {
        let report = serde_json::to_value(&examination).expect("a report has text keys only");
        output::json(&format!("{report:#}\n"))?;
    } else {
        output::show(&told(&examination))?;
    }
    Ok(match examination.failed() {
        None if examination.is_healthy() => Exit::Passed,
        Some(step) if matches!(step.id, StepId::Stdout | StepId::Lists | StepId::End) => Exit::Failed,
        _ => Exit::Unreachable,
    })
}

/// The file of a program, as the server's own surroundings find it.
pub(super) fn find(program: &str, target: &Target) -> Option<PathBuf> {
    let (Target::Stdio(launch) | Target::Http { launch: Some(launch), .. }) = target else { return None };
    if program.contains('/') {
        let path = launch.folder.as_ref().map_or_else(|| PathBuf::from(program), |folder| folder.join(program));
        return path.is_file().then_some(path);
    }
    let own = launch.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    settings::find_program(program, &own.or_else(|| settings::variable("PATH")).unwrap_or_default())
}

fn told(examination: &Examination) -> String {
    let style = settings::style();
    let width = examination.steps.iter().map(|step| step.title.len()).max().unwrap_or_default();
    let mut text = String::new();
    for step in &examination.steps {
        let state = match step.state {
            StepState::Passed => State::Ok,
            StepState::Failed => State::Problem,
            StepState::Skipped => State::Missing,
        };
        let took = step.elapsed_us.filter(|_| step.state == StepState::Passed).map(|micros| format!(" ({:.1} ms)", micros as f64 / 1e3));
        let detail = if step.state == StepState::Skipped {
            "not reached".to_owned()
        } else {
            escape(&step.detail).into_owned() + &took.unwrap_or_default()
        };
        text += &present::finding_line(state.mark(&style), step.title, width, &detail, step.hint.as_deref().map(escape).as_deref());
    }
    if !examination.stderr.is_empty() {
        text += "\nstderr\n";
        for line in &examination.stderr {
            text += &format!("  {}\n", escape(line));
        }
    }
    text
}

impl Finding {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Ok, detail: detail.into(), hint: None }
    }

    fn missing(name: &str, detail: impl Into<String>) -> Self {
        Self { state: State::Missing, ..Self::ok(name, detail) }
    }

    fn problem(name: &str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: State::Problem, hint: Some(hint.into()), ..Self::ok(name, detail) }
    }
}

fn own() -> Finding {
    let place = settings::own_binary().map_or_else(|| "at an unknown path".to_owned(), |path| path.display().to_string());
    Finding::ok("mcproof", format!("{}, {place}", env!("CARGO_PKG_VERSION")))
}

async fn programs() -> Vec<Finding> {
    let guardian = Guardian::of_whole_process();
    let path = settings::variable("PATH").unwrap_or_default();
    join_all(PROGRAMS.map(|(name, flag, needed_for)| program(name, flag, needed_for, &path, &guardian))).await
}

async fn program(name: &str, flag: &str, needed_for: &str, path: &str, guardian: &Guardian) -> Finding {
    let Some(place) = settings::find_program(name, path) else {
        return Finding::missing(name, format!("not on PATH; needed for {needed_for}"));
    };
    let shown = place.display();
    let tap = Tap::with(TapBounds::default(), Vec::new(), None);
    let launch = Launch { command: vec![place.display().to_string(), flag.to_owned()], ..Launch::default() };
    let reinstall = format!("run `{name} {flag}` by hand, and reinstall `{name}` if that fails");
    match run_command(&launch, guardian, &tap, VERSION_WITHIN).await {
        Err(failure) => Finding::problem(name, format!("{shown} does not start: {failure}"), reinstall),
        Ok(None) => Finding::problem(name, format!("{shown} {flag} did not end within {} s", VERSION_WITHIN.as_secs()), reinstall),
        Ok(Some(exit)) if exit.code != Some(0) => {
            let why = exit.code.map_or_else(|| "was killed by a signal".to_owned(), |code| format!("exited with code {code}"));
            Finding::problem(name, format!("{shown} {flag} {why}"), reinstall)
        }
        Ok(Some(_)) => {
            Finding::ok(name, format!("{}, {shown}", version(&tap.transcript()).unwrap_or_else(|| "unknown version".to_owned())))
        }
    }
}

/// The first word with a dot and a digit in the first line that was printed.
fn version(transcript: &Transcript) -> Option<String> {
    let line = transcript.frames.iter().find_map(|frame| match &frame.body {
        FrameBody::Stdout { bytes } | FrameBody::Stderr { bytes } => Some(String::from_utf8_lossy(bytes.as_bytes()).into_owned()),
        _ => None,
    })?;
    version_in(&line)
}

fn version_in(line: &str) -> Option<String> {
    let trimmed = line.split_whitespace().map(|word| word.trim_matches(|at: char| matches!(at, '"' | ',' | '(' | ')')));
    let mut words = trimmed.map(|word| word.trim_start_matches("go").trim_start_matches('v'));
    words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.')).map(str::to_owned)
}

fn shell() -> Finding {
    match settings::variable("SHELL") {
        None => Finding::missing("shell", "SHELL is not set"),
        Some(shell) if Path::new(&shell).is_file() => Finding::ok("shell", shell),
        Some(shell) => Finding::problem("shell", format!("SHELL is {shell}, which does not exist"), "set SHELL to the path of a shell"),
    }
}

fn browser() -> Finding {
    let commands = settings::browsers();
    let Some(command) = commands.first() else {
        return Finding::missing(
            "browser",
            "no xdg-open, and BROWSER is not set; needed to sign in with OAuth: open the printed URL by hand",
        );
    };
    if settings::program_exists(&command[0]) {
        return Finding::ok("browser", command.join(" "));
    }
    Finding::problem("browser", format!("BROWSER names `{}`, which is not on PATH", command[0]), "correct or unset BROWSER")
}

fn proxies() -> Vec<Finding> {
    let variables = network::proxy_variables();
    let named = [("http_proxy", &variables.http), ("https_proxy", &variables.https), ("all_proxy", &variables.all)];
    let mut findings: Vec<Finding> = named.into_iter().filter_map(|(name, value)| Some(proxy(name, value.as_deref()?))).collect();
    if findings.is_empty() {
        findings.push(Finding::ok("proxy", "none; connections are direct"));
    } else if let Some(except) = &variables.no {
        findings.push(Finding::ok("no_proxy", except.as_str()));
    }
    findings
}

fn proxy(name: &str, value: &str) -> Finding {
    match Proxy::parse(value) {
        Ok(_) => Finding::ok(name, without_password(value)),
        Err(failure) => Finding::problem(name, failure.to_string(), "set it to http://HOST:PORT, or unset it"),
    }
}

fn without_password(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) if url.password().is_some() => {
            // A URL with a password has a host, so that a new one can be set.
            let _ = url.set_password(Some("***"));
            url.to_string()
        }
        Ok(url) if url.has_host() => text.to_owned(),
        // Without a scheme, `user:password@host` is read as the scheme `user`.
        _ => text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned(),
    }
}

fn certificates() -> Finding {
    let found = rustls_native_certs::load_native_certs();
    let set = |name: &str| Some((name.to_owned(), settings::variable(name)?));
    let variables: Vec<(String, String)> = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(set).collect();
    let named: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let source = if named.is_empty() { "the system's store".to_owned() } else { named.join(" and ") };
    if let Some((name, value)) = variables.iter().find(|(_, value)| !std::env::split_paths(value).any(|path| path.exists())) {
        return Finding::problem("certificates", format!("{name} is {value}, which does not exist"), format!("correct or unset {name}"));
    }
    let hint = "install the package `ca-certificates`, or set SSL_CERT_FILE to a PEM file";
    match (found.certs.len(), found.errors.first()) {
        (0, None) => Finding::problem("certificates", format!("no certificate authority in {source}"), hint),
        (0, Some(error)) => Finding::problem("certificates", format!("no certificate authority in {source}: {error}"), hint),
        (count, _) => Finding::ok("certificates", format!("{count} certificate authorities in {source}")),
    }
}

fn state_folder() -> Finding {
    let Some(folder) = settings::state_folder() else {
        return Finding::problem(
            "state directory",
            "neither XDG_STATE_HOME nor HOME is set",
            "set one of them: sign-ins are not kept otherwise",
        );
    };
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(&folder);
    writable("state directory", existing, &folder)
}

fn temporary_folder() -> Finding {
    let folder = settings::temporary_folder();
    writable("temporary directory", &folder, &folder)
}

/// Bytes that are written for a try: on a full disk, a file can often be made and not written.
static TRIED: [u8; 64 << 10] = [0; 64 << 10];

fn writable(name: &str, existing: &Path, shown: &Path) -> Finding {
    match tempfile::tempfile_in(existing).and_then(|mut file| file.write_all(&TRIED)) {
        Ok(()) => Finding::ok(name, shown.display().to_string()),
        Err(error) => {
            let reason = error.get_ref().and_then(|inner| inner.source()).map_or_else(|| error.to_string(), ToString::to_string);
            Finding::problem(
                name,
                format!("cannot write to {}: {reason}", existing.display()),
                "make it writable, or free space on its disk",
            )
        }
    }
}

fn shown(findings: &[Finding]) -> String {
    let style = settings::style();
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for finding in findings {
        text += &present::finding_line(finding.state.mark(&style), &finding.name, width, &finding.detail, finding.hint.as_deref());
    }
    text
}

impl State {
    fn mark(self, style: &mcproof_report::Style) -> &'static str {
        let unicode = style.charset == mcproof_report::Charset::Unicode;
        match (self, unicode) {
            (Self::Ok, true) => "✓",
            (Self::Ok, false) => "ok",
            (Self::Missing, true) => "·",
            (Self::Missing, false) => "--",
            (Self::Problem, true) => "✗",
            (Self::Problem, false) => "!!",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (line, expected) in [
            ("v20.20.2", Some("20.20.2")),
            ("Python 3.11.7", Some("3.11.7")),
            ("go version go1.24.1 linux/amd64", Some("1.24.1")),
            ("openjdk version \"17.0.15\" 2025-04-15", Some("17.0.15")),
            ("Docker version 28.2.2, build e6534b4", Some("28.2.2")),
            ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", Some("1.95.0")),
            ("usage: thing", None),
        ] {
            assert_eq!(version_in(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_proxy_is_shown_without_its_password() {
        assert_eq!(without_password("http://me:secret@proxy:3128"), "http://me:***@proxy:3128/");
        assert_eq!(without_password("me:secret@proxy:3128"), "proxy:3128");
        assert_eq!(without_password("http://proxy:3128"), "http://proxy:3128");
    }
}
