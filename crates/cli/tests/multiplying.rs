//! Small files that come to much, and large ones: each is refused with its place, at once and in little memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
/// What a process may take for its data, in KiB, before it is refused more.
const MEMORY: usize = 380 << 10;
/// A debug build on a busy machine; a release build takes less than two seconds.
const TIME: Duration = Duration::from_secs(90);
const OWN: &str = "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [ping] }]\n";

fn plan(folder: &Path) -> Output {
    plan_within(folder, MEMORY)
}

fn plan_within(folder: &Path, memory: usize) -> Output {
    let started = Instant::now();
    let script = format!("ulimit -d {memory}; exec \"$0\" plan");
    let mut command = Command::new("sh");
    command.args(["-c", &script, MCPROOF]).current_dir(folder).env("XDG_STATE_HOME", "/nowhere").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(started.elapsed() < TIME, "{:?}", started.elapsed());
    output
}

/// Refused with these words, at a place of a file.
#[track_caller]
fn refused(files: &[(&str, &str)], message: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = plan(folder.path());
    let told = String::from_utf8_lossy(&output.stderr);
    let shown: String = told.chars().take(2000).collect();
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(told.contains(message), "{message} is not in\n{shown}");
    assert!(told.contains(".yaml:"), "no place:\n{shown}");
    assert!(told.len() < 2 << 20, "{} bytes are told", told.len());
}

/// Taken, although it is large.
#[track_caller]
fn taken(text: &str) {
    taken_within(text, MEMORY);
}

#[track_caller]
fn taken_within(text: &str, memory: usize) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.mcproof.yaml"), text).unwrap();
    let output = plan_within(folder.path(), memory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn levels(first: &str, level: impl Fn(&str) -> String) -> String {
    let mut vars = format!("vars:\n  a0: {first}\n");
    for number in 1..=12 {
        writeln!(vars, "  a{number}: {}", level(&format!("${{a{}}}", number - 1))).unwrap();
    }
    vars + OWN
}

#[test]
fn variables_that_multiply() {
    refused(
        &[("s.mcproof.yaml", &levels("xxxxxxxxxx", |below| format!("\"{}\"", below.repeat(10))))],
        "this suite takes more than 112 MiB",
    );
    refused(
        &[("s.mcproof.yaml", &levels("x", |below| format!("[{}]", vec![format!("\"{below}\""); 10].join(", "))))],
        "this suite takes more than 112 MiB",
    );
    refused(
        &[(
            "s.mcproof.yaml",
            &levels("x", |below| format!("{{ {} }}", (0..10).map(|key| format!("k{key}: \"{below}\"")).collect::<Vec<_>>().join(", "))),
        )],
        "this suite takes more than 112 MiB",
    );
    // In the steps of a test, and in what is expected.
    let text = "y".repeat(1 << 20);
    let steps = "{ call: a, with: { t: \"${big}\" }, expect: \"${big}\" }, ".repeat(200);
    let suite = format!("vars: {{ big: {text} }}\nserver: {{ stdio: mcproof demo shop }}\ntests: [{{ name: a, steps: [{steps}] }}]\n");
    refused(&[("s.mcproof.yaml", &suite)], "this suite takes more than 112 MiB");
}

#[test]
fn rows_that_multiply() {
    let rows: String = (0..20_000).map(|row| format!("{{ id: {row} }}, ")).collect();
    let suite = |head: &str, steps: &str| {
        format!("{head}server: {{ stdio: mcproof demo shop }}\ntests: [{{ name: \"${{id}}\", rows: [{rows}], steps: [{steps}] }}]\n")
    };
    taken(&suite("", "ping"));
    let rows: String = (0..50_000).map(|row| format!("      - {{ id: {row} }}\n")).collect();
    // Whoever has so many cases needs the memory for them.
    taken_within(&format!("server: {{ stdio: x }}\ntests:\n  - name: \"n ${{id}}\"\n    rows:\n{rows}    steps: [ping]\n"), 2 * MEMORY);
    refused(&[("s.mcproof.yaml", &suite("", &"ping, ".repeat(5000)))], "this suite takes more than 112 MiB");
    refused(
        &[("s.mcproof.yaml", &suite(&format!("vars: {{ big: {} }}\n", "y".repeat(1 << 20)), "ping"))],
        "this suite takes more than 112 MiB",
    );
    refused(
        &[("s.mcproof.yaml", &suite(&format!("before_each: [{}]\n", "ping, ".repeat(5000)), "ping"))],
        "this suite takes more than 112 MiB",
    );
}

#[test]
fn aliases_that_multiply() {
    let mut laughs = String::from("vars:\n  a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for number in 1..=12 {
        writeln!(laughs, "  a{number}: &a{number} [{}]", vec![format!("*a{}", number - 1); 9].join(", ")).unwrap();
    }
    refused(&[("s.mcproof.yaml", &(laughs + OWN))], "more than 300000 values");
    // Anchors within anchors are kept once each.
    let deep: String = (0..60).map(|level| format!("&b{level} [")).collect();
    let suite = format!("vars:\n  a: {deep}{}{}\n{OWN}", "x, ".repeat(50_000), "]".repeat(60));
    refused(&[("s.mcproof.yaml", &suite)], "more than 300000 values");
    let keys: String = (0..9_000).map(|key| format!("k{key}: 1, ")).collect();
    let merged = format!("vars:\n  a: &a {{ {keys} }}\n  b: {{ <<: [{}] }}\n{OWN}", "*a, ".repeat(60));
    refused(&[("s.mcproof.yaml", &merged)], "more than 300000 values");
}

#[test]
fn includes_that_multiply() {
    refused(&[("s.mcproof.yaml", &format!("include: [s.mcproof.yaml]\n{OWN}"))], "includes itself");
    let names: Vec<String> = (0..20).map(|number| format!("{number}.yaml")).collect();
    let texts: Vec<String> = (1..=20).map(|next| format!("include: [{next}.yaml, {next}.yaml]\n")).collect();
    let suite = format!("include: [0.yaml]\n{OWN}");
    let mut files: Vec<(&str, &str)> = vec![("s.mcproof.yaml", &suite), ("20.yaml", "vars: { a: 1 }\n")];
    files.extend(names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())));
    refused(&files, "includes more than 200 files");
    let suite = format!("include: [{}]\n{OWN}", "a.yaml, ".repeat(70_000));
    refused(&[("s.mcproof.yaml", &suite), ("a.yaml", "vars: { a: 1 }\n")], "includes more than 200 files");
    let suite = format!("include: [{}]\n{OWN}", "a.yaml, ".repeat(70_000));
    refused(&[("s.mcproof.yaml", &suite)], "cannot be read");
    let keys: String = (0..9_000).map(|key| format!("  k{key}: 1\n")).collect();
    let texts: Vec<String> = (0..30).map(|file| format!("vars:\n{}", keys.replace('k', &format!("k{file}x")))).collect();
    let names: Vec<String> = (0..30).map(|number| format!("{number}.yaml")).collect();
    let suite = format!("include: [{}]\n{OWN}", names.join(", "));
    let mut files = vec![("s.mcproof.yaml", suite.as_str())];
    files.extend(names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())));
    files.push(("31.yaml", ""));
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    plan(folder.path());
}

#[test]
fn files_without_end() {
    let large = format!("{OWN}# {}\n", "x".repeat(9 << 20));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.mcproof.yaml"), large).unwrap();
    let told = |output: Output| (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
    let (code, said) = told(plan(folder.path()));
    assert!(code == Some(2) && said.contains("`./s.mcproof.yaml` is too large: 8 MiB are read at most"), "{said}");
    for target in ["/dev/zero", "pipe"] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink(if target == "pipe" { pipe.as_path() } else { Path::new(target) }, folder.path().join("s.mcproof.yaml"))
            .unwrap();
        let (code, said) = told(plan(folder.path()));
        assert!(code == Some(2) && said.contains("not a regular file"), "{target}: {said}");
        std::fs::remove_file(folder.path().join("s.mcproof.yaml")).unwrap();
        std::fs::write(folder.path().join("s.mcproof.yaml"), format!("include: [{target}]\n{OWN}")).unwrap();
        let (code, said) = told(plan(folder.path()));
        assert!(code == Some(2) && said.contains("not a regular file"), "{target}: {said}");
    }
}

#[test]
fn lines_without_end() {
    refused(&[("s.mcproof.yaml", &"\n".repeat(8_000_000))], "more than 300000 lines");
    refused(&[("s.mcproof.yaml", &format!("{OWN}{}", "# x\n".repeat(500_000)))], "more than 300000 lines");
}

#[test]
fn nesting_without_end() {
    refused(&[("s.mcproof.yaml", &format!("vars: {{ a: {} }}\n{OWN}", "[".repeat(100_000)))], "recursion limit exceeded");
    refused(&[("s.mcproof.yaml", &format!("vars:\n  a:\n    {}x\n{OWN}", "- ".repeat(100_000)))], "more than 100 levels of nesting");
    refused(&[("s.mcproof.yaml", &format!("vars: {}1\n{OWN}", "{ a: ".repeat(100_000)))], "more than 100 levels of nesting");
    let parallel =
        format!("server: {{ stdio: x }}\ntests: [{{ name: a, steps: [{}ping{}] }}]\n", "{ parallel: [".repeat(40), "] }".repeat(40));
    refused(&[("s.mcproof.yaml", &parallel)], "cannot be one of the steps of `parallel`");
}

#[test]
fn one_line_of_megabytes() {
    let numbers = "1.10, ".repeat(200_000);
    taken(&format!("vars: {{ a: [{numbers}] }}\n{OWN}"));
    refused(&[("s.mcproof.yaml", &format!("vars: {{ a: [{}] }}\n{OWN}", "\"${nope}\", ".repeat(200_000)))], "undefined variable `${nope}`");
    let steps = "{ call: \"é${nope}\" }, ".repeat(9_000);
    refused(
        &[("s.mcproof.yaml", &format!("server: {{ stdio: x }}\ntests: [{{ name: a, steps: [{steps}] }}]\n"))],
        "undefined variable `${nope}`",
    );
    let steps = "{ call: 1.0, expect: { a: 1 } }, ".repeat(9_000);
    taken(&format!("server: {{ stdio: x }}\ntests: [{{ name: a, steps: [{steps}] }}]\n"));
    refused(
        &[("s.mcproof.yaml", &format!("server: {{ stdio: x }}\ntests: [{{ name: a, steps: [{}] }}]\n", "ping, ".repeat(20_000)))],
        "more than 10000 steps",
    );
    refused(&[("s.mcproof.yaml", &format!("vars: {{ {} }}\n{OWN}", "a: 1, ".repeat(100_000)))], "is already set in line");
    let keys: String = (0..20_000).map(|key| format!("k{key}: 1, ")).collect();
    refused(&[("s.mcproof.yaml", &format!("vars: {{ {keys} }}\n{OWN}"))], "more than 10000 keys");
    refused(
        &[("s.mcproof.yaml", &format!("{}{OWN}", (0..9_000).map(|key| format!("k{key}: 1\n")).collect::<String>()))],
        "has no key `k0`",
    );
}

#[test]
fn steps_that_save_for_one_another() {
    let steps: String = (0..5_000)
        .map(|step| format!("      - {{ call: a, save: {{ s{step}: id }}, with: {{ x: \"${{s{}}}\" }} }}\n", step.max(1) - 1))
        .collect();
    let suite = format!(
        "server: {{ stdio: x }}\ntests:\n  - name: a\n    steps:\n      - {{ call: a, save: {{ s0: id }} }}\n{}",
        steps.split_once('\n').unwrap().1
    );
    taken(&suite);
}

#[test]
fn patterns_that_are_large() {
    let suite = |pattern: &dyn Fn(usize) -> String| {
        let steps: String =
            (0..5_000).map(|step| format!("      - {{ ping: true, expect: {{ a: {{ $regex: '{}' }} }} }}\n", pattern(step))).collect();
        format!("server: {{ stdio: x }}\ntests:\n  - name: a\n    steps:\n{steps}")
    };
    taken(&suite(&|_| "\\w{50}".to_owned()));
    taken(&suite(&|step| format!("^id-{step}$")));
    refused(&[("s.mcproof.yaml", &suite(&|step| format!("\\w{{20}}{step}")))], "this pattern is not valid");
    refused(&[("s.mcproof.yaml", &suite(&|step| format!("(?:a{{1000}}){{1000}}{step}")))], "this pattern is not valid");
}

#[test]
fn many_tests() {
    let tests: String = (0..20_000).map(|test| format!("  - name: t{test}\n    steps: [ping]\n")).collect();
    taken(&format!("server: {{ stdio: x }}\ntests:\n{tests}"));
}
