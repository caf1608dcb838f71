//! What `mcproof` prints without arguments on a terminal: what it is, and what to type next in this folder.

use crate::failure::Failure;
use crate::{output, settings, target};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Larger files are no manifests.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// npm packages that servers are made with.
const NPM: [&str; 4] = ["@modelcontextprotocol/sdk", "@modelcontextprotocol/server", "fastmcp", "mcp-framework"];

/// Requirements of PyPI that servers are made with.
const PYPI: [&str; 3] = ["mcp", "fastmcp", "mcp-server"];

/// A server that this folder seems to have.
#[derive(Debug, PartialEq, Eq)]
struct Guess {
    /// The file that it was seen in.
    file: &'static str,
    /// What names it on the command line of mcproof.
    target: String,
}

pub(crate) fn show() -> Result<(), Failure> {
    let here = settings::current_folder();
    let has_suites = fs::read_dir(&here).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(".mcproof.yaml"))))
    });
    let guess = match target::names_here().into_iter().next() {
        Some((file, name)) => Some((file, quoted(&name))),
        None => guess(&here).map(|guess| (guess.file.to_owned(), guess.target)),
    };
    output::show(&text(has_suites, guess))
}

fn text(has_suites: bool, guess: Option<(String, String)>) -> String {
    let mut lines =
        vec![format!("mcproof {}: tests, checks and monitors MCP servers over their real transports", env!("CARGO_PKG_VERSION"))];
    let mut commands = Vec::new();
    if has_suites {
        lines.push("\nThis folder has test suites:".to_owned());
        commands.push(("test".to_owned(), "run them"));
    }
    match guess {
        Some((file, target)) => {
            if !has_suites {
                lines.push(format!("\nFrom {file}:"));
            }
            commands.push((format!("tools {target}"), "list the tools of the server"));
            commands.push((format!("check {target}"), "check it against the MCP specification"));
            if !has_suites {
                commands.push((format!("init {target}"), "write a first test suite"));
            }
        }
        None if has_suites => {}
        None => {
            lines.push("\nEverything after `--` starts your server; a URL works as well:".to_owned());
            commands.push(("tools -- node server.js".to_owned(), "list the tools of a server"));
            commands.push(("check http://127.0.0.1:3000/mcp".to_owned(), "check it against the MCP specification"));
            commands.push(("init -- node server.js".to_owned(), "write a first test suite"));
            if cfg!(feature = "servers") {
                commands.push(("check -- mcproof demo shop".to_owned(), "try it on a built-in server"));
            }
        }
    }
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default().min(60);
    lines.extend(commands.iter().map(|(command, purpose)| format!("  mcproof {command:<width$}  {purpose}")));
    lines.push("\n`mcproof --help` lists all commands, `mcproof doctor` what this machine has.\n".to_owned());
    lines.join("\n")
}

fn guess(folder: &Path) -> Option<Guess> {
    let read = |name: &str| {
        let path = folder.join(name);
        let is_small = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST_MANIFEST);
        is_small.then(|| fs::read_to_string(path).ok()).flatten()
    };
    let exists = |name: &str| folder.join(name).is_file();
    let found = |file, command: String| Guess { file, target: format!("-- {command}") };
    if let Some(command) = read("package.json").and_then(|text| javascript(&text, &exists)) {
        return Some(found("package.json", command));
    }
    if let Some(command) = read("pyproject.toml").and_then(|text| python(&text, &exists)) {
        return Some(found("pyproject.toml", command));
    }
    if read("Cargo.toml").is_some_and(|text| text.parse::<toml::Table>().is_ok_and(|manifest| depends_on_rmcp(&manifest))) {
        return Some(found("Cargo.toml", "cargo run --quiet".to_owned()));
    }
    let is_go = |text: &String| text.contains("github.com/modelcontextprotocol/go-sdk") || text.contains("github.com/mark3labs/mcp-go");
    read("go.mod").filter(is_go).map(|_| found("go.mod", "go run .".to_owned()))
}

/// The command of a package that depends on an MCP SDK: its executable, its main module, its script `start`, or the usual name of a main
/// module. A file that is built only later is named all the same, unless one of the usual ones is there.
fn javascript(text: &str, exists: &dyn Fn(&str) -> bool) -> Option<String> {
    let manifest: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let dependencies = manifest.get("dependencies")?;
    NPM.iter().find(|name| dependencies.get(**name).is_some())?;
    let file = match manifest.get("bin") {
        Some(Value::String(file)) => Some(file.as_str()),
        Some(Value::Object(files)) => files.values().next().and_then(Value::as_str),
        _ => manifest.get("main").and_then(Value::as_str),
    };
    let file = file.map(|file| file.trim_start_matches("./"));
    let usual = || ["server.js", "server.mjs", "index.mjs", "src/index.js"].into_iter().find(|name| exists(name));
    match file {
        // `npm init` names `index.js`, whether there is one or not.
        Some(file) if !exists(file) && usual().is_some() => usual().map(|name| format!("node {name}")),
        Some(file) => Some(format!("node {}", quoted(file))),
        None if manifest.pointer("/scripts/start").is_some() => Some("npm run --silent start".to_owned()),
        None => usual().map(|name| format!("node {name}")),
    }
}

/// The command of a project that requires an MCP SDK: its script, or the usual name of a main module.
fn python(text: &str, exists: &dyn Fn(&str) -> bool) -> Option<String> {
    let manifest: toml::Table = text.parse().ok()?;
    let project = manifest.get("project")?;
    let requirements = project.get("dependencies")?.as_array()?.iter().filter_map(toml::Value::as_str);
    let is_name = |at: char| at.is_ascii_alphanumeric() || matches!(at, '-' | '_' | '.');
    let mut names = requirements.map(|text| text.trim().split(|at| !is_name(at)).next().unwrap_or_default().to_ascii_lowercase());
    names.find(|name| PYPI.contains(&name.as_str()))?;
    let runner = if exists("uv.lock") { "uv run " } else { "" };
    if let Some(script) = project.get("scripts").and_then(toml::Value::as_table).and_then(|scripts| scripts.keys().next()) {
        return Some(format!("{runner}{}", quoted(script)));
    }
    let module = ["server.py", "main.py", "app.py"].into_iter().find(|name| exists(name))?;
    Some(format!("{runner}python {module}"))
}

fn depends_on_rmcp(manifest: &toml::Table) -> bool {
    manifest.get("dependencies").and_then(toml::Value::as_table).is_some_and(|dependencies| dependencies.contains_key("rmcp"))
}

fn quoted(word: &str) -> String {
    let word = mcproof_report::escape(word);
    shlex::try_quote(&word).map_or_else(|_| word.to_string(), |quoted| quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_an_sdk_is_started_as_its_manifest_says() {
        let check =
            |manifest: &str, expected: Option<&str>| assert_eq!(javascript(manifest, &|_| false).as_deref(), expected, "{manifest}");
        let fresh = r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"main":"index.js"}"#;
        assert_eq!(javascript(fresh, &|name| name == "server.js").as_deref(), Some("node server.js"));
        assert_eq!(javascript(fresh, &|_| true).as_deref(), Some("node index.js"));
        check(r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"bin":{"shop":"./dist/index.js"}}"#, Some("node dist/index.js"));
        check(r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"bin":"my server.js"}"#, Some("node 'my server.js'"));
        check(r#"{"dependencies":{"fastmcp":"1"},"main":"a.js"}"#, Some("node a.js"));
        check(r#"{"dependencies":{"fastmcp":"1"},"scripts":{"start":"tsx a.ts"}}"#, Some("npm run --silent start"));
        check(r#"{"dependencies":{"express":"5"},"main":"a.js"}"#, None);
        check("{", None);
    }

    #[test]
    fn a_project_that_requires_an_sdk_is_started_by_its_script() {
        let check = |manifest: &str, files: &[&str], expected: Option<&str>| {
            assert_eq!(python(manifest, &|name| files.contains(&name)).as_deref(), expected, "{manifest}");
        };
        let project = |rest: &str| format!("[project]\nname = \"a\"\ndependencies = [\"mcp[cli]>=1.2\"]\n{rest}");
        check(&project("[project.scripts]\nshop = \"shop:main\"\n"), &["uv.lock"], Some("uv run shop"));
        check(&project("[project.scripts]\nshop = \"shop:main\"\n"), &[], Some("shop"));
        check(&project(""), &["main.py"], Some("python main.py"));
        check(&project(""), &[], None);
        check("[project]\ndependencies = [\"mcp-gateway\"]\n", &["main.py"], None);
    }

    #[test]
    fn every_line_begins_with_what_to_type() {
        let known = text(false, Some(("mcp.json".to_owned(), "shop".to_owned())));
        assert!(known.contains("From mcp.json:\n  mcproof tools shop  list"), "{known}");
        assert!(text(true, None).contains("mcproof test  run them"));
        assert!(text(false, None).contains("mcproof init -- node server.js"));
    }
}
