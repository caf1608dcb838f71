//! Saves a test from the page to a suite below the folder where `mcproof ui` was started, and nowhere else. Also writes a session as a trace, which the
//! page downloads.

use crate::command::trace::suite::translate;
use crate::failure::Failure;
use crate::shown_contract::ShownContract;
use crate::{recording, whole_file};
use mcproof_record::Diagnostic;
use mcproof_suite::bounds::{MOST_BYTES, read_file};
use mcproof_suite::document::{self, Node};
use mcproof_suite::source::Source;
use mcproof_system::files::without_dots;
use mcproof_trace::{Manifest, SessionInfo};
use mcproof_ui::{NewTest, OTHER_SERVER, SavedTest, SessionSteps, SharedSession, SuiteChange};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use tempfile::NamedTempFile;

/// Suites that the page offers.
const MOST_SUITES: usize = 200;

/// The suites below a folder, as their paths from there.
pub(super) fn suites(folder: &Path) -> Vec<String> {
    let found = mcproof_suite::discover(&[folder.to_owned()]).map(|found| found.suites).unwrap_or_default();
    let inside = found.iter().filter_map(|path| path.strip_prefix(folder).ok()).map(|path| path.display().to_string());
    inside.take(MOST_SUITES).collect()
}

/// Appends a test to a suite that there is, or begins a suite with it.
pub(super) fn save(folder: &Path, test: &NewTest) -> Result<SavedTest, Box<Diagnostic>> {
    let file = test.file.as_str();
    // What is not valid makes no folder.
    tree(file, &test.whole)?;
    make_parents(folder, file)?;
    let path = inside(folder, file)?;
    let before = current(&path, file)?;
    let text = match &before {
        Some(before) => {
            if !test.anyway {
                of_one_server(folder, file, before, &test.whole)?;
            }
            appended(file, before, &test.test)?
        }
        None => test.whole.clone(),
    };
    whole_file::write(&path, &text).map_err(|error| cannot_write(file, &error))?;
    Ok(SavedTest { file: file.to_owned(), is_new: before.is_none() })
}

/// A session as the bytes of a trace file.
pub(super) fn trace(session: &SharedSession) -> Result<Vec<u8>, Failure> {
    let file = trace_file(session)?;
    fs::read(file.path()).map_err(|error| Failure::cannot_write(file.path(), &error))
}

/// The requests of a session as the steps of a test, which `mcproof trace export --suite` writes for its trace.
pub(super) fn steps(session: &SharedSession) -> Result<SessionSteps, Box<Diagnostic>> {
    let cannot = |failure: Failure| failure.diagnostic;
    let file = trace_file(session).map_err(cannot)?;
    let suite = translate(file.path(), None, None).map_err(cannot)?;
    let mut steps = SessionSteps { left_out: suite.left_out, uncompared: suite.uncompared, stale: suite.stale, ..SessionSteps::default() };
    if suite.tests > 0 {
        let mut whole = tree("the suite of the session", &suite.text)?.to_value();
        if let Some(test) = whole.pointer_mut("/tests/0").and_then(Value::as_object_mut) {
            steps.answers = test.remove("answers");
            steps.steps = match test.remove("steps") {
                Some(Value::Array(steps)) => steps,
                _ => Vec::new(),
            };
        }
    }
    Ok(steps)
}

/// A session as a trace. What was typed on the command line stays out of it.
fn trace_file(session: &SharedSession) -> Result<NamedTempFile, Failure> {
    let file = NamedTempFile::new().map_err(|error| Failure::cannot_write(Path::new("a temporary file"), &error))?;
    let writer = recording::create(file.path(), Manifest { mcproof: env!("CARGO_PKG_VERSION").to_owned(), ..Manifest::default() })?;
    let info = SessionInfo {
        server: session.title.clone(),
        transport: session.transport.clone(),
        era: session.era.clone(),
        revision: session.revision.clone(),
        client: Some("mcproof".to_owned()),
        ..SessionInfo::default()
    };
    let mut shown = ShownContract::default();
    recording::add_transcript(&writer, &mut shown, info, &session.transcript);
    shown.attach(&writer);
    recording::finish(writer, file.path())?;
    Ok(file)
}

/// The text of a suite below the folder.
pub(super) fn text(folder: &Path, file: &str) -> Result<String, Box<Diagnostic>> {
    let file = plain(folder, file);
    current(&inside(folder, file)?, file)?.ok_or_else(|| refusal(format!("{file} does not exist"), "choose another file"))
}

/// Writes a suite that was edited, if nobody else has changed it meanwhile. It need not be valid: a run says what is wrong with it.
pub(super) fn change(folder: &Path, change: &SuiteChange) -> Result<(), Box<Diagnostic>> {
    let file = plain(folder, &change.file);
    if text(folder, file)? != change.before {
        return Err(refusal(format!("{file} was changed by another program"), "choose which text stays"));
    }
    whole_file::write(&inside(folder, file)?, &change.after).map_err(|error| cannot_write(file, &error))
}

/// Runs name a suite as its path was typed: with `./` in front, or from the root.
fn plain<'a>(folder: &Path, file: &'a str) -> &'a str {
    let below = Path::new(file).strip_prefix(folder).ok().and_then(Path::to_str);
    below.unwrap_or_else(|| file.strip_prefix("./").unwrap_or(file))
}

/// What a file has, if it is there.
fn current(path: &Path, file: &str) -> Result<Option<String>, Box<Diagnostic>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(refusal(format!("{file} is not a regular file"), "choose another file")),
        Ok(_) => {
            let read = read_file(path, MOST_BYTES).and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()));
            read.map(Some).map_err(|why| refusal(format!("{file} {why}"), "choose another file"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_write(file, &error)),
    }
}

fn cannot_write(file: &str, error: &io::Error) -> Box<Diagnostic> {
    refusal(format!("cannot write {file}: {error}"), "choose another file")
}

fn refusal(message: String, hint: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("cannot-save", message).hint(hint))
}

/// Makes the folders of a new suite, as far as they stand below the folder. What [`inside`] refuses is not made.
fn make_parents(folder: &Path, file: &str) -> Result<(), Box<Diagnostic>> {
    named(file)?;
    let root = folder.canonicalize().map_err(|error| cannot_write(file, &error))?;
    let mut at = root.clone();
    for part in Path::new(file).parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match at.canonicalize() {
            Ok(real) if real.starts_with(&root) => at = real,
            // A link that leads elsewhere.
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&at).map_err(|error| cannot_write(file, &error))?,
            Err(error) => return Err(cannot_write(file, &error)),
        }
    }
    Ok(())
}

/// The path of a file that stands below the folder, also once links are followed.
fn inside(folder: &Path, file: &str) -> Result<PathBuf, Box<Diagnostic>> {
    let (relative, name) = named(file)?;
    let path = folder.join(relative);
    let parent = path.parent().unwrap_or(folder);
    let real =
        parent.canonicalize().map_err(|error| refusal(format!("cannot open {}: {error}", parent.display()), "create the folder first"))?;
    let root =
        folder.canonicalize().map_err(|error| refusal(format!("cannot open {}: {error}", folder.display()), "start mcproof ui again"))?;
    if !real.starts_with(&root) {
        return Err(refusal(format!("`{file}` leads out of this folder"), "name a file in this folder"));
    }
    Ok(real.join(name))
}

/// The path and the name of a file that is called as a suite below the folder is.
fn named(file: &str) -> Result<(&Path, &str), Box<Diagnostic>> {
    let relative = Path::new(file);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_))) && !file.contains(['\0', '\\']);
    let name = relative.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_plain || file.is_empty() {
        return Err(refusal(format!("`{file}` is not a path below this folder"), "name a file such as tests/shop.mcproof.yaml"));
    }
    if !(name.ends_with(".mcproof.yaml") || name.ends_with(".mcproof.yml") || matches!(name, "mcproof.yaml" | "mcproof.yml")) {
        return Err(refusal(format!("`{file}` is not called as a suite"), "end the name with .mcproof.yaml"));
    }
    Ok((relative, name))
}

fn tree(file: &str, text: &str) -> Result<Node, Box<Diagnostic>> {
    let (tree, mistakes) = document::parse(&Source::new(file, text), 0);
    match (tree, mistakes.into_iter().next()) {
        (Some(tree), None) => Ok(tree),
        (_, Some(mistake)) => Err(refusal(format!("{file} is not valid YAML: {}", mistake.message), "mend it in an editor first")),
        (None, None) => Err(refusal(format!("{file} is empty"), "remove it, or write a suite")),
    }
}

/// The text of a suite with one test more, and otherwise as it was: comments and layout stay.
fn appended(file: &str, text: &str, test: &str) -> Result<String, Box<Diagnostic>> {
    let odd = || {
        refusal(
            format!("the tests of {file} are not a list of lines that begin with `- `, below `tests:`"),
            "copy the suite from the page, and paste the test by hand",
        )
    };
    let mut before = tree(file, text)?.to_value();
    let name = tree(file, test).ok().and_then(|test| test.to_value().get(0)?.get("name").cloned());
    let tests = before.get("tests").and_then(Value::as_array);
    if name.is_some() && tests.into_iter().flatten().any(|known| known.get("name") == name.as_ref()) {
        return Err(refusal(format!("{file} has a test of this name already"), "choose another name: reports tell tests apart by it"));
    }
    let is_empty = before.get("tests").is_none_or(|tests| tests.is_null() || tests.as_array().is_some_and(Vec::is_empty));
    // Lines end as those that are there.
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = lines.iter().position(|line| line.starts_with("tests:"));
    let (mut made, indent, rest) = match head {
        None if is_empty => (text.to_owned(), "  ", String::new()),
        Some(head) if is_empty => {
            let comment = lines[head].find(" #").map_or("", |at| lines[head][at..].trim_end());
            (lines[..head].concat() + "tests:" + comment + end, "  ", lines[head + 1..].concat())
        }
        None => return Err(odd()),
        Some(head) => {
            let is_inside = |line: &&str| line.starts_with([' ', '-', '#', '\t', '\r', '\n']);
            let next = head + 1 + lines[head + 1..].iter().take_while(|line| is_inside(line)).count();
            // What is blank or a comment at the end belongs to what follows.
            let last =
                (head + 1..next).rev().find(|&at| !matches!(lines[at].trim_start().chars().next(), None | Some('#'))).ok_or_else(odd)?;
            let item = lines[head + 1..=last].iter().find(|line| line.trim_start().starts_with("- ")).ok_or_else(odd)?;
            let indent = &item[..item.len() - item.trim_start().len()];
            (lines[..=last].concat(), indent, lines[last + 1..].concat())
        }
    };
    if !made.is_empty() && !made.ends_with('\n') {
        made.push_str(end);
    }
    if head.is_none() {
        made += &format!("tests:{end}");
    }
    for line in test.lines() {
        made += &format!("{indent}{line}{end}");
    }
    made += &rest;
    // It is the same suite with one test more, or nothing is written.
    let mut after = tree(file, &made).map_err(|_| odd())?.to_value();
    let taken = after.get_mut("tests").and_then(Value::as_array_mut).and_then(Vec::pop);
    for suite in [&mut before, &mut after] {
        if let Some(suite) = suite.as_object_mut().filter(|_| is_empty) {
            suite.retain(|name, tests| name != "tests" || tests.as_array().is_some_and(|tests| !tests.is_empty()));
        }
    }
    if taken.is_none() || after != before {
        return Err(odd());
    }
    Ok(made)
}

/// A way to reach a server, as far as it tells servers apart.
#[derive(PartialEq, Eq)]
struct Way {
    command: Vec<String>,
    /// Where the command runs.
    folder: PathBuf,
    url: Option<String>,
}

impl Way {
    /// The ways of the server of a suite; `file` is the one in which it stands.
    fn all(suite: &Value, folder: &Path, file: &str) -> Vec<Self> {
        let server = suite.get("server").and_then(Value::as_object).into_iter().flatten();
        let ways = server.filter(|(name, _)| matches!(name.as_str(), "stdio" | "http" | "sse"));
        ways.map(|(transport, way)| Self::of(transport, way, &folder.join(file))).collect()
    }

    fn of(transport: &str, way: &Value, file: &Path) -> Self {
        let text = |key: &str| way.get(key).and_then(Value::as_str);
        // A text alone is the command, or over HTTP the URL.
        let command = match way.get("command").or(Some(way).filter(|_| transport == "stdio")) {
            Some(Value::String(line)) => shlex::split(line).unwrap_or_else(|| vec![line.clone()]),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let url = text("url").or_else(|| way.as_str().filter(|_| transport != "stdio"));
        let folder = match command.is_empty() {
            true => PathBuf::new(),
            false => without_dots(&file.parent().unwrap_or(file).join(text("cwd").unwrap_or_default())),
        };
        Self { command, folder, url: url.map(|url| url.trim_end_matches('/').to_owned()) }
    }

    fn shown(&self) -> String {
        let words = self.command.iter().map(String::as_str).chain(self.url.as_deref());
        format!("`{}`", words.collect::<Vec<_>>().join(" "))
    }
}

/// Refuses to append a test of another server than that of the suite. One that says no server gets it from the command line.
fn of_one_server(folder: &Path, file: &str, before: &str, whole: &str) -> Result<(), Box<Diagnostic>> {
    let (before, whole) = (tree(file, before)?.to_value(), tree(file, whole)?.to_value());
    let (known, new) = (Way::all(&before, folder, file), Way::all(&whole, folder, file));
    // A server of which the page knows no command is described by hand.
    let Some(new) = new.first().filter(|new| new.command != ["…"]) else { return Ok(()) };
    let several = before.get("servers").and_then(Value::as_object);
    if several.is_none() && (known.is_empty() || known.contains(new)) {
        return Ok(());
    }
    let theirs: Vec<String> = match several {
        Some(several) => several.keys().map(|name| format!("`{name}`")).collect(),
        None => known.iter().map(Way::shown).collect(),
    };
    let message = format!("{file} tests {}, and these steps are of {}", theirs.join(" and "), new.shown());
    Err(Box::new(Diagnostic::error(OTHER_SERVER, message).hint("choose another file, or append them anyway")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "- name: one more\n  steps:\n    - call: echo\n      with: {\"text\":\"- x\"}";

    fn new(file: &str) -> NewTest {
        NewTest {
            file: file.to_owned(),
            whole: format!("server: {{ stdio: x }}\ntests:\n  {}\n", TEST.replace('\n', "\n  ")),
            test: TEST.to_owned(),
            anyway: false,
        }
    }

    #[test]
    fn a_test_is_appended_and_the_rest_stays() {
        for (before, expected) in [
            ("tests:\n  - name: a\n    steps: []\n", "tests:\n  - name: a\n    steps: []\n  - name: one more\n"),
            ("tests:\n- name: a\n  steps: []", "tests:\n- name: a\n  steps: []\n- name: one more\n"),
            (
                "# why\nserver: { stdio: x } # here\ntests:\n    # first\n    - name: a\n      steps: []\n\n# the end\ntimeouts: {}\n",
                "      steps: []\n    - name: one more\n      steps:\n",
            ),
            ("server: { stdio: x }\n", "server: { stdio: x }\ntests:\n  - name: one more\n"),
            ("server: { stdio: x }\ntests: [] # none yet\n# the end\n", "\ntests: # none yet\n  - name: one more\n"),
            ("tests:\n", "tests:\n  - name: one more\n"),
            ("text: |\n  tests:\n    - x\ntests: []\n", "    - x\ntests:\n  - name: one more\n"),
            ("tests:\r\n  - name: a\r\n    steps: []\r\n", "    steps: []\r\n  - name: one more\r\n    steps:\r\n"),
        ] {
            let after = appended("a.mcproof.yaml", before, TEST).unwrap();
            assert!(after.contains(expected), "{before:?}: {after:?}");
            let is_kept = |line: &&str| line.starts_with("tests: []") || after.lines().any(|other| other == *line);
            assert!(before.lines().all(|line| is_kept(&line)), "{before:?}: {after:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for before in ["tests: [{ name: a, steps: [] }]\n", "{ server: { stdio: x } }\n", "tests:\n  []\n", "a: [\n", "tests: 1\n"] {
            assert!(appended("a.mcproof.yaml", before, TEST).is_err(), "{before:?}");
        }
        assert!(appended("a.mcproof.yaml", "tests:\n  - name: a\n    steps: []\n", "- name: a\nserver: { stdio: evil }").is_err());
        assert!(appended("a.mcproof.yaml", "tests:\n  - name: a\n    steps: []\n", "- name: a\n- name: b").is_err());
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        fs::write(outside.path().join("theirs.mcproof.yaml"), "tests:\n  - name: a\n    steps: []\n").unwrap();
        std::os::unix::fs::symlink(outside.path().join("theirs.mcproof.yaml"), folder.path().join("mine.mcproof.yaml")).unwrap();
        let absolute = outside.path().join("a.mcproof.yaml").display().to_string();
        for file in [
            "../a.mcproof.yaml",
            "a/../../b.mcproof.yaml",
            "link/a.mcproof.yaml",
            "mine.mcproof.yaml",
            absolute.as_str(),
            "",
            ".",
            "a.yaml",
            ".bashrc",
            "link/missing/a.mcproof.yaml",
            "missing/../../a.mcproof.yaml",
            "a\0.mcproof.yaml",
            "./a.mcproof.yaml/",
        ] {
            // `./a` is the same as `a`, and `a/` too: neither leads out.
            if !file.starts_with("./") {
                assert!(save(folder.path(), &new(file)).is_err(), "{file}");
            }
        }
        let names: Vec<_> = fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["theirs.mcproof.yaml"]);
        assert!(!fs::read_to_string(outside.path().join("theirs.mcproof.yaml")).unwrap().contains("one more"));
    }

    #[test]
    fn a_suite_begins_and_grows() {
        let folder = tempfile::tempdir().unwrap();
        assert!(save(folder.path(), &new("a.mcproof.yaml")).unwrap().is_new);
        // A suite with two tests of one name would not run.
        assert!(save(folder.path(), &new("a.mcproof.yaml")).unwrap_err().message.contains("name already"));
        let another = NewTest { test: TEST.replace("one more", "another one"), ..new("a.mcproof.yaml") };
        assert!(!save(folder.path(), &another).unwrap().is_new);
        let text = fs::read_to_string(folder.path().join("a.mcproof.yaml")).unwrap();
        assert_eq!((text.matches("one more").count(), text.matches("another one").count()), (1, 1), "{text}");
        assert_eq!(suites(folder.path()), ["a.mcproof.yaml"]);
    }

    #[test]
    fn a_suite_of_another_server_asks() {
        let check = |file: &str, suite: &str, mine: &str, expected: Result<(), &str>| {
            let whole = format!("server: {mine}\ntests: []\n");
            let asked = of_one_server(Path::new("/work"), file, &format!("{suite}\ntests: []\n"), &whole);
            match (asked, expected) {
                (Ok(()), Ok(())) => {}
                (Err(asked), Err(part)) => {
                    assert_eq!(asked.code, OTHER_SERVER);
                    assert!(asked.message.contains(part), "{}", asked.message);
                }
                (asked, expected) => panic!("{suite} and {mine}: {asked:?}, expected {expected:?}"),
            }
        };
        let node = r#"{ stdio: { command: "node a.js" } }"#;
        check("a.mcproof.yaml", "server: { stdio: node a.js }", node, Ok(()));
        check("a.mcproof.yaml", "server: { stdio: { command: [node, a.js], cwd: . } }", node, Ok(()));
        check("a.mcproof.yaml", "server: { http: { url: http://h/mcp }, stdio: node a.js }", node, Ok(()));
        check("a.mcproof.yaml", "# from the command line", node, Ok(()));
        check("a.mcproof.yaml", "server: { stdio: node b.js }", node, Err("tests `node b.js`, and these steps are of `node a.js`"));
        check("a.mcproof.yaml", "servers: { one: { stdio: node a.js } }", node, Err("tests `one`"));
        let inside = r#"{ stdio: { command: "node a.js", cwd: ".." } }"#;
        check("tests/a.mcproof.yaml", "server: { stdio: { command: node a.js, cwd: ../. } }", inside, Ok(()));
        check("tests/a.mcproof.yaml", "server: { stdio: { command: node a.js } }", inside, Err("node a.js"));
        let url = r#"{ http: { url: "https://staging.example/mcp" } }"#;
        check("a.mcproof.yaml", "server: { http: { url: https://staging.example/mcp/ } }", url, Ok(()));
        check("a.mcproof.yaml", "server: { http: https://staging.example/mcp }", url, Ok(()));
        check("a.mcproof.yaml", "server: { http: { url: https://example.com/mcp } }", url, Err("`https://example.com/mcp`, and these"));
    }

    #[test]
    fn a_test_of_another_server_is_appended_to_a_suite_that_the_user_insists_on() {
        let folder = tempfile::tempdir().unwrap();
        let suite = "server: { stdio: other }\ntests: []\n";
        fs::write(folder.path().join("a.mcproof.yaml"), suite).unwrap();
        assert_eq!(save(folder.path(), &new("a.mcproof.yaml")).unwrap_err().code, OTHER_SERVER);
        assert_eq!(fs::read_to_string(folder.path().join("a.mcproof.yaml")).unwrap(), suite);
        assert!(!save(folder.path(), &NewTest { anyway: true, ..new("a.mcproof.yaml") }).unwrap().is_new);
    }

    #[test]
    fn the_folders_of_a_new_suite_are_made() {
        let folder = tempfile::tempdir().unwrap();
        assert!(save(folder.path(), &new("tests/deep/a.mcproof.yaml")).unwrap().is_new);
        assert!(folder.path().join("tests/deep/a.mcproof.yaml").is_file());
        assert!(save(folder.path(), &new("other/a.yaml")).is_err());
        assert!(!folder.path().join("other").exists(), "nothing is made for what is refused");
    }

    /// A session over stdio with these messages: those of the client begin with `>`.
    fn session(lines: &[&str]) -> SharedSession {
        use mcproof_record::{Direction, FrameBody};
        let tap = mcproof_client::Tap::new();
        tap.record(Direction::Local, FrameBody::Spawned { pid: 1, command: vec!["shop".to_owned()] });
        for line in lines {
            let (direction, text) = match line.strip_prefix('>') {
                Some(text) => (Direction::ToServer, text),
                None => (Direction::FromServer, *line),
            };
            tap.record(direction, FrameBody::Line { bytes: text.into(), unterminated: false });
        }
        SharedSession { title: "shop".to_owned(), transport: "stdio".to_owned(), era: None, revision: None, transcript: tap.transcript() }
    }

    #[test]
    fn a_session_becomes_a_trace() {
        assert!(trace(&session(&[])).unwrap().starts_with(b"PK"));
    }

    #[test]
    fn a_session_becomes_steps_that_go_on_with_what_the_server_makes() {
        let steps = steps(&session(&[
            r#">{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"put","arguments":{"text":"a"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"id":"fefe4abe-28cc-4c8a-9d1f-6a8f0b6f3a11"}}}"#,
            r#">{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get","arguments":{"id":"fefe4abe-28cc-4c8a-9d1f-6a8f0b6f3a11"}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"a"}]}}"#,
            r#">{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get","arguments":{"id":"nope"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"isError":true,"content":[{"type":"text","text":"no such id nope"}]}}"#,
            r#">{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"waits","arguments":{}}}"#,
        ]))
        .unwrap();
        let written = serde_json::to_string(&steps).unwrap();
        assert_eq!(steps.steps.len(), 3, "{written}");
        assert!(steps.steps[0]["save"].is_object() && !written.contains("fefe4abe"), "{written}");
        assert!(steps.steps[1]["with"]["id"].as_str().is_some_and(|id| id.starts_with("${")), "{written}");
        assert!(steps.steps[2]["tool_error"].to_string().contains("no such id"), "{written}");
        assert_eq!(steps.left_out.values().sum::<usize>(), 1, "{written}");
        // A session in which nothing was called has no steps.
        assert!(super::steps(&session(&[])).unwrap().steps.is_empty());
    }
}
