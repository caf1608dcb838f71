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

/// What Java servers depend on.
const MAVEN: [&str; 3] = ["io.modelcontextprotocol", "spring-ai-starter-mcp-server", "quarkus-mcp-server"];

/// The usual names of a main module.
const MODULES: [&str; 4] = ["server.py", "main.py", "app.py", "src/server.py"];

/// A server that this folder seems to have.
#[derive(Debug, PartialEq, Eq)]
struct Guess {
    /// The file that it was seen in, and what has to be done before it can be started.
    from: String,
    /// What names it on the command line of mcproof.
    target: String,
}

/// How a server is started.
#[derive(Debug, PartialEq, Eq)]
struct Start {
    command: String,
    /// A file that is not there yet, and the command that makes it.
    after: Option<(String, &'static str)>,
}

impl Start {
    fn now(command: impl Into<String>) -> Self {
        Self { command: command.into(), after: None }
    }
}

pub(crate) fn show() -> Result<(), Failure> {
    let here = settings::current_folder();
    let has_suites = fs::read_dir(&here).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(".mcproof.yaml"))))
    });
    let guess = match target::names_here().into_iter().next() {
        Some((from, name)) => Some(Guess { from, target: quoted(&name) }),
        None => guess(&here),
    };
    output::show(&text(has_suites, guess))
}

fn text(has_suites: bool, guess: Option<Guess>) -> String {
    let mut lines =
        vec![format!("mcproof {}: tests, checks and monitors MCP servers over their real transports", env!("CARGO_PKG_VERSION"))];
    let mut commands = Vec::new();
    if has_suites {
        lines.push("\nThis folder has test suites:".to_owned());
        commands.push(("test".to_owned(), "run them"));
    }
    match guess {
        Some(Guess { from, target }) => {
            if !has_suites {
                lines.push(format!("\nFrom {from}:"));
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
    let found = |file: &str, Start { command, after }: Start| {
        let after = after.map(|(made, build)| format!(", once `{build}` has made {made}")).unwrap_or_default();
        Guess { from: format!("{file}{after}"), target: format!("-- {command}") }
    };
    if let Some(start) = read("package.json").and_then(|text| javascript(&text, &exists)) {
        return Some(found("package.json", start));
    }
    if let Some(command) = read("pyproject.toml").and_then(|text| python(&text, &exists)) {
        return Some(found("pyproject.toml", Start::now(command)));
    }
    if let Some(command) = read("requirements.txt").and_then(|text| script(text.lines(), &exists)) {
        return Some(found("requirements.txt", Start::now(command)));
    }
    if read("Cargo.toml").is_some_and(|text| text.parse::<toml::Table>().is_ok_and(|manifest| depends_on_rmcp(&manifest))) {
        return Some(found("Cargo.toml", Start::now("cargo run --quiet")));
    }
    let is_go = |text: &String| text.contains("github.com/modelcontextprotocol/go-sdk") || text.contains("github.com/mark3labs/mcp-go");
    if read("go.mod").as_ref().is_some_and(is_go) {
        return Some(found("go.mod", Start::now("go run .")));
    }
    let is_dotnet = |file: &String| read(file).is_some_and(|text| text.contains("ModelContextProtocol"));
    if let Some(project) = files_in(folder, ".csproj").into_iter().find(is_dotnet) {
        return Some(found(&quoted(&project), Start::now(format!("dotnet run --project {}", quoted(&project)))));
    }
    read("pom.xml").filter(|text| MAVEN.iter().any(|name| text.contains(name)))?;
    // The name of what is built is known only when it is there.
    let is_program = |file: &String| !["-sources.jar", "-javadoc.jar"].iter().any(|end| file.ends_with(end));
    let program = files_in(&folder.join("target"), ".jar").into_iter().find(is_program)?;
    Some(found("pom.xml", Start::now(format!("java -jar {}", quoted(&format!("target/{program}"))))))
}

/// The names of files with this ending, in order.
fn files_in(folder: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(ending));
    names.sort();
    names
}

/// The command of a package that depends on an MCP SDK: its executable, its main module, the usual name of a main module, or its script
/// `start`. A file that is not there is named only if the package says how it is built.
fn javascript(text: &str, exists: &dyn Fn(&str) -> bool) -> Option<Start> {
    let manifest: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let dependencies = manifest.get("dependencies")?;
    NPM.iter().find(|name| dependencies.get(**name).is_some())?;
    let file = match manifest.get("bin") {
        Some(Value::String(file)) => Some(file.as_str()),
        Some(Value::Object(files)) => files.values().next().and_then(Value::as_str),
        _ => manifest.get("main").and_then(Value::as_str),
    };
    let file = file.map(|file| file.trim_start_matches("./"));
    if let Some(file) = file.filter(|file| exists(file)) {
        return Some(Start::now(format!("node {}", quoted(file))));
    }
    // `npm init` names `index.js`, whether there is one or not.
    if let Some(usual) = ["server.js", "server.mjs", "index.mjs", "src/index.js"].into_iter().find(|name| exists(name)) {
        return Some(Start::now(format!("node {usual}")));
    }
    let has_script = |name: &str| manifest.pointer(&format!("/scripts/{name}")).is_some();
    match file {
        Some(file) if has_script("build") => {
            Some(Start { command: format!("node {}", quoted(file)), after: Some((quoted(file), "npm run build")) })
        }
        _ => has_script("start").then(|| Start::now("npm run --silent start")),
    }
}

/// The command of a project that requires an MCP SDK: its script, or the usual name of a main module.
fn python(text: &str, exists: &dyn Fn(&str) -> bool) -> Option<String> {
    let manifest: toml::Table = text.parse().ok()?;
    let project = manifest.get("project");
    let listed = project.and_then(|project| project.get("dependencies")?.as_array());
    let required = listed.into_iter().flatten().filter_map(toml::Value::as_str).any(is_sdk);
    let poetry = manifest.get("tool").and_then(|tool| tool.get("poetry")?.get("dependencies")?.as_table());
    let required_by_poetry = poetry.is_some_and(|poetry| poetry.keys().any(|name| is_sdk(name)));
    if !required && !required_by_poetry {
        return None;
    }
    let runner = if exists("uv.lock") { "uv run " } else { "" };
    let scripts = project.and_then(|project| project.get("scripts")?.as_table());
    if let Some(script) = scripts.and_then(|scripts| scripts.keys().next()) {
        return Some(format!("{runner}{}", quoted(script)));
    }
    main_module(exists).map(|module| format!("{runner}python {module}"))
}

/// The same of requirements, one a line.
fn script<'a>(mut requirements: impl Iterator<Item = &'a str>, exists: &dyn Fn(&str) -> bool) -> Option<String> {
    requirements.find(|requirement| is_sdk(requirement))?;
    main_module(exists).map(|module| format!("python {module}"))
}

fn main_module(exists: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    MODULES.into_iter().find(|name| exists(name))
}

/// Whether a requirement, such as `mcp[cli]>=1.2`, is one of an MCP SDK.
fn is_sdk(requirement: &str) -> bool {
    let is_name = |at: char| at.is_ascii_alphanumeric() || matches!(at, '-' | '_' | '.');
    let name = requirement.trim().split(|at| !is_name(at)).next().unwrap_or_default().to_ascii_lowercase();
    PYPI.contains(&name.as_str())
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
        let check = |manifest: &str, files: &[&str], expected: Option<&str>| {
            let start = javascript(manifest, &|name| files.contains(&name)).map(|start| {
                let after = start.after.map(|(made, build)| format!(" after {build} of {made}")).unwrap_or_default();
                start.command + &after
            });
            assert_eq!(start.as_deref(), expected, "{manifest}");
        };
        let fresh = r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"main":"index.js"}"#;
        check(fresh, &["server.js"], Some("node server.js"));
        check(fresh, &["server.js", "index.js"], Some("node index.js"));
        check(fresh, &[], None);
        let built =
            r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"bin":{"shop":"./dist/index.js"},"scripts":{"build":"tsc","start":"x"}}"#;
        check(built, &[], Some("node dist/index.js after npm run build of dist/index.js"));
        check(built, &["dist/index.js"], Some("node dist/index.js"));
        check(&built.replace("build", "compile"), &[], Some("npm run --silent start"));
        check(r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"bin":"my server.js"}"#, &["my server.js"], Some("node 'my server.js'"));
        check(r#"{"dependencies":{"fastmcp":"1"},"scripts":{"start":"tsx a.ts"}}"#, &[], Some("npm run --silent start"));
        check(r#"{"dependencies":{"express":"5"},"main":"a.js"}"#, &["a.js"], None);
        check("{", &[], None);
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
        check("[tool.poetry.dependencies]\npython = \"^3.12\"\nmcp = \"^1\"\n", &["src/server.py"], Some("python src/server.py"));
        check("[project]\ndependencies = [\"mcp-gateway\"]\n", &["main.py"], None);
        let listed = |text: &str| script(text.lines(), &|name| name == "server.py");
        assert_eq!(listed("# servers\nhttpx\nmcp>=1.2\n").as_deref(), Some("python server.py"));
        assert_eq!(listed("httpx\n"), None);
    }

    #[test]
    fn every_line_begins_with_what_to_type() {
        let known = text(false, Some(Guess { from: "mcp.json".to_owned(), target: "shop".to_owned() }));
        assert!(known.contains("From mcp.json:\n  mcproof tools shop  list"), "{known}");
        assert!(text(true, None).contains("mcproof test  run them"));
        assert!(text(false, None).contains("mcproof init -- node server.js"));
    }
}
