//! What a job in CI installs before the server starts, from the project files beside the suite. Knows package managers, no servers.

use super::go;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Where virtual environments of `uv sync` and `poetry install` have their programs.
const PROGRAMS: &str = ".venv/bin";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Node,
    Python,
    Go,
    Rust,
}

/// The steps that a job begins with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Installation {
    language: Option<Language>,
    /// What the step that brings the language keeps from one run to the next.
    cache: Option<&'static str>,
    commands: Vec<String>,
    /// Whether the commands install into `.venv`.
    has_environment: bool,
    /// Whether the user has to say what is installed.
    pub(super) to_review: bool,
    /// What that may be.
    example: Option<String>,
}

/// The folder that the files of the project are in.
struct Project<'a>(&'a Path);

/// What installs the server that this command starts. A server that only a URL names is installed elsewhere.
pub(super) fn find(folder: &Path, command: Option<&[String]>) -> Installation {
    let Some(command) = command else { return Installation::default() };
    let project = Project(folder);
    match named(command).or_else(|| project.only_language()) {
        Some(Language::Node) => project.node(command),
        Some(Language::Python) => project.python(command),
        Some(Language::Go) if project.has("go.mod") => project.go(command),
        Some(Language::Rust) if project.has("Cargo.toml") => {
            let is_release = command.iter().any(|word| word.contains("release"));
            Installation::of(Language::Rust, &[if is_release { "cargo build --release" } else { "cargo build" }])
        }
        language => Installation { language, to_review: true, ..Installation::default() },
    }
}

/// The language that the words of a command name.
fn named(command: &[String]) -> Option<Language> {
    let program = program(command);
    let extension = |known: &[&str]| {
        command.iter().any(|word| Path::new(word).extension().is_some_and(|extension| known.iter().any(|known| extension == *known)))
    };
    match program {
        "node" | "npm" | "npx" | "pnpm" | "pnpx" | "yarn" | "bun" | "bunx" | "tsx" | "ts-node" => Some(Language::Node),
        "uv" | "uvx" | "poetry" | "pipx" | "fastmcp" => Some(Language::Python),
        "go" => Some(Language::Go),
        "cargo" => Some(Language::Rust),
        _ if program.starts_with("python") || extension(&["py"]) => Some(Language::Python),
        _ if extension(&["js", "mjs", "cjs", "ts"]) => Some(Language::Node),
        _ if command.iter().any(|word| word.contains("target/debug/") || word.contains("target/release/")) => Some(Language::Rust),
        _ => None,
    }
}

fn program(command: &[String]) -> &str {
    command.first().and_then(|word| Path::new(word).file_name()).and_then(|name| name.to_str()).unwrap_or_default()
}

/// The folder of the virtual environment whose programs a command names, below the folder of the project.
fn virtual_environment(command: &[String]) -> Option<&str> {
    let (folder, _) = command.first()?.trim_start_matches("./").split_once("/bin/")?;
    matches!(folder, ".venv" | "venv" | "env" | ".env").then_some(folder)
}

impl Project<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.join(name).is_file()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// The language of all project files, if they are of one.
    fn only_language(&self) -> Option<Language> {
        let files = [
            ("package.json", Language::Node),
            ("pyproject.toml", Language::Python),
            ("requirements.txt", Language::Python),
            ("go.mod", Language::Go),
            ("Cargo.toml", Language::Rust),
        ];
        let mut found = files.into_iter().filter(|(file, _)| self.has(file)).map(|(_, language)| language);
        let first = found.next()?;
        found.all(|language| language == first).then_some(first)
    }

    fn node(&self, command: &[String]) -> Installation {
        let manifest: Value = serde_json::from_str(self.read("package.json").trim_start_matches('\u{feff}')).unwrap_or_default();
        let lists = |key: &str| manifest.get(key).and_then(Value::as_object).is_some_and(|packages| !packages.is_empty());
        let (cache, install, build): (_, &[&str], _) = if self.has("package-lock.json") || self.has("npm-shrinkwrap.json") {
            (Some("npm"), &["npm ci"], "npm run build")
        } else if self.has("pnpm-lock.yaml") {
            (None, &["npm install --global pnpm", "pnpm install --frozen-lockfile"], "pnpm run build")
        } else if self.has("yarn.lock") && self.read("yarn.lock").contains("__metadata:") {
            (None, &["npm install --global corepack", "corepack enable", "yarn install --immutable"], "yarn run build")
        } else if self.has("yarn.lock") {
            (None, &["npx --yes yarn@1 install --frozen-lockfile"], "npx --yes yarn@1 run build")
        } else if self.has("bun.lock") || self.has("bun.lockb") {
            (None, &["npm install --global bun", "bun install --frozen-lockfile"], "bun run build")
        } else if lists("dependencies") || lists("devDependencies") {
            (None, &["npm install"], "npm run build")
        } else {
            (None, &[], "npm run build")
        };
        let mut found = Installation { cache, ..Installation::of(Language::Node, install) };
        if manifest.pointer("/scripts/build").is_some() {
            found.commands.push(build.to_owned());
        }
        // These fetch what they start.
        found.to_review = found.commands.is_empty() && !matches!(program(command), "npx" | "pnpx" | "bunx");
        found
    }

    fn go(&self, command: &[String]) -> Installation {
        // It builds what it runs.
        if program(command) == "go" {
            return Installation::of(Language::Go, &["go build ./..."]);
        }
        match go::build(self.0, command.first().map_or("", String::as_str)) {
            Ok(build) => Installation::of(Language::Go, &[&build]),
            Err(example) => {
                Installation { to_review: true, example: Some(example), ..Installation::of(Language::Go, &["go mod download"]) }
            }
        }
    }

    fn python(&self, command: &[String]) -> Installation {
        let manifest: toml::Table = self.read("pyproject.toml").parse().unwrap_or_default();
        let has_poetry = || manifest.get("tool").is_some_and(|tools| tools.get("poetry").is_some());
        let is_package = manifest.contains_key("project") || manifest.contains_key("build-system");
        let environment = |commands: &[&str]| Installation { has_environment: true, ..Installation::of(Language::Python, commands) };
        if self.has("uv.lock") {
            return environment(&["pip install uv", "uv sync --locked"]);
        }
        if self.has("poetry.lock") || (has_poetry() && !self.has("requirements.txt")) {
            return environment(&["pip install poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"]);
        }
        let runner = match program(command) {
            "uv" | "uvx" => Some("pip install uv"),
            "pipx" => Some("pip install pipx"),
            _ => None,
        };
        let requirements = self.has("requirements.txt").then_some("pip install -r requirements.txt");
        let package = is_package.then_some("pip install .");
        let commands: Vec<&str> = runner.into_iter().chain(requirements).chain(package).collect();
        let mut found = Installation { to_review: commands.is_empty(), ..Installation::of(Language::Python, &commands) };
        // The command starts the Python of an environment that no repository has.
        if let Some(folder) = virtual_environment(command).filter(|_| !found.to_review) {
            found.commands.iter_mut().for_each(|line| *line = format!("{folder}/bin/{line}"));
            found.commands.insert(0, format!("python -m venv {folder}"));
        }
        found
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Installation {
    fn of(language: Language, commands: &[&str]) -> Self {
        Self { language: Some(language), commands: commands.iter().map(|command| (*command).to_owned()).collect(), ..Self::default() }
    }

    /// The steps of a job on GitHub, whose machines have Rust.
    /// `folder` is what stands before the names of files below the one that the job runs in.
    pub(super) fn github(&self, folder: &str) -> String {
        // The lock file is searched in the root of the repository.
        let below = |name: &str| match folder {
            "" => String::new(),
            folder => format!(", cache-dependency-path: {}", quoted(&format!("{folder}{name}"))),
        };
        let with = self.cache.map(|cache| format!(", cache: {cache}{}", below("*.json"))).unwrap_or_default();
        let mut text = match self.language {
            Some(Language::Node) => format!("      - uses: actions/setup-node@v4\n        with: {{ node-version: \"lts/*\"{with} }}\n"),
            Some(Language::Python) => format!("      - uses: actions/setup-python@v5\n        with: {{ python-version: \"3.x\"{with} }}\n"),
            // Without the file there is nothing to install either.
            Some(Language::Go) if !self.commands.is_empty() => {
                let (file, sums) = (quoted(&format!("{folder}go.mod")), below("go.sum"));
                format!("      - uses: actions/setup-go@v5\n        with: {{ go-version-file: {file}{sums} }}\n")
            }
            Some(Language::Go | Language::Rust) | None => String::new(),
        };
        text += &self.review("      ");
        if !self.commands.is_empty() {
            text += "      - name: Install the server\n        run: |\n";
        }
        for command in &self.commands {
            writeln!(text, "          {command}").expect("a String takes all text");
        }
        if self.has_environment {
            writeln!(text, "          echo \"$PWD/{PROGRAMS}\" >> \"$GITHUB_PATH\"").expect("a String takes all text");
        }
        text
    }

    /// An image that has the language, and a C compiler to build mcproof with.
    pub(super) fn image(&self) -> &'static str {
        match self.language {
            Some(Language::Node) => "node:lts",
            Some(Language::Python) => "python:3",
            Some(Language::Go) => "golang:1",
            Some(Language::Rust) | None => "rust:1",
        }
    }

    /// Lines of the script of a job on GitLab.
    pub(super) fn gitlab(&self) -> String {
        let mut text = self.review("    ");
        for command in &self.commands {
            writeln!(text, "    - {command}").expect("a String takes all text");
        }
        if self.has_environment {
            writeln!(text, "    - export PATH=\"$PWD/{PROGRAMS}:$PATH\"").expect("a String takes all text");
        }
        text
    }

    /// The comment at the place that is left to fill in.
    fn review(&self, indent: &str) -> String {
        let example = self.example.as_deref().unwrap_or("npm ci");
        match self.to_review {
            true => format!("{indent}# review: install here what the server needs to run, such as `{example}`\n"),
            false => String::new(),
        }
    }

    /// The commands, for a sentence.
    pub(super) fn shown(&self) -> Option<String> {
        let commands: Vec<String> = self.commands.iter().map(|command| format!("`{command}`")).collect();
        (!commands.is_empty()).then(|| commands.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the files lead to.
    fn installed(command: &str, files: &[(&str, &str)]) -> Installation {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        find(folder.path(), Some(&command.split(' ').map(str::to_owned).collect::<Vec<_>>()))
    }

    #[test]
    fn what_the_lock_file_belongs_to_installs_the_server() {
        let check = |command: &str, files: &[(&str, &str)], expected: &[&str]| {
            let found = installed(command, files);
            let commands: Vec<&str> = found.commands.iter().map(String::as_str).collect();
            assert_eq!((commands.as_slice(), found.to_review), (expected, expected.is_empty()), "{command}: {files:?}");
        };
        let package = ("package.json", r#"{"dependencies":{"zod":"4"}}"#);
        let built = ("package.json", r#"{"dependencies":{"zod":"4"},"scripts":{"build":"tsc"}}"#);
        check("node server.js", &[package, ("package-lock.json", "{}")], &["npm ci"]);
        check("node server.js", &[built, ("package-lock.json", "{}")], &["npm ci", "npm run build"]);
        check("node server.js", &[package], &["npm install"]);
        check(
            "node server.js",
            &[built, ("pnpm-lock.yaml", "")],
            &["npm install --global pnpm", "pnpm install --frozen-lockfile", "pnpm run build"],
        );
        check("node server.js", &[package, ("yarn.lock", "# yarn lockfile v1\n")], &["npx --yes yarn@1 install --frozen-lockfile"]);
        check(
            "node server.js",
            &[package, ("yarn.lock", "__metadata:\n  version: 8\n")],
            &["npm install --global corepack", "corepack enable", "yarn install --immutable"],
        );
        check("bun server.ts", &[package, ("bun.lock", "{}")], &["npm install --global bun", "bun install --frozen-lockfile"]);
        check("node server.js", &[], &[]);
        let project = ("pyproject.toml", "[project]\nname = \"shop\"\n");
        check("python server.py", &[("requirements.txt", "mcp\n")], &["pip install -r requirements.txt"]);
        check(
            ".venv/bin/python server.py",
            &[("requirements.txt", "mcp\n")],
            &["python -m venv .venv", ".venv/bin/pip install -r requirements.txt"],
        );
        check("python server.py", &[project, ("uv.lock", "")], &["pip install uv", "uv sync --locked"]);
        check(
            "python server.py",
            &[project, ("poetry.lock", "")],
            &["pip install poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"],
        );
        check("shop-server", &[project], &["pip install ."]);
        check("uv run server.py", &[], &["pip install uv"]);
        check("python server.py", &[("pyproject.toml", "[tool.ruff]\n")], &[]);
        check("go run .", &[("go.mod", "module shop\n")], &["go build ./..."]);
        let (module, main) = (("go.mod", "module example.com/shop/v2\n"), ("main.go", "// The shop.\npackage main\n"));
        check("./shop serve", &[module, main], &["go build -o ./shop ."]);
        let several = [module, ("cmd/shop/main.go", "package main\n"), ("cmd/tool/main.go", "package main\n")];
        check("bin/shop", &several, &["go build -o bin/shop ./cmd/shop"]);
        check("shop", &several, &["go install ./cmd/shop"]);
        check("cargo run --quiet", &[("Cargo.toml", "")], &["cargo build"]);
        check("target/release/shop", &[("Cargo.toml", "")], &["cargo build --release"]);
        // The command says which of several.
        check(
            "python server.py",
            &[package, ("package-lock.json", "{}"), ("requirements.txt", "mcp\n")],
            &["pip install -r requirements.txt"],
        );
        check("./start.sh", &[package, ("requirements.txt", "mcp\n")], &[]);
    }

    #[test]
    fn which_of_several_packages_is_meant_is_left_to_fill_in() {
        let files = [("go.mod", "module shop\n"), ("cmd/a/main.go", "package main\n"), ("cmd/b/main.go", "package main\n")];
        let found = installed("./server", &files);
        assert!(found.to_review, "{found:?}");
        for text in [found.github(""), found.gitlab()] {
            let review = "# review: install here what the server needs to run, such as `go build -o ./server ./cmd/a`";
            assert!(text.contains(review) && text.contains("go mod download"), "{text}");
        }
        assert!(found.github("").contains("setup-go"), "{}", found.github(""));
    }

    #[test]
    fn what_fetches_the_server_or_is_only_reached_needs_no_review() {
        assert!(!installed("npx -y shop-server", &[]).to_review);
        assert_eq!(find(Path::new("."), None), Installation::default());
        assert_eq!(Installation::default().github("") + &Installation::default().gitlab(), "");
    }

    #[test]
    fn the_steps_are_those_of_the_system() {
        let npm = installed("node server.js", &[("package.json", "{}"), ("package-lock.json", "{}")]);
        assert_eq!(
            npm.github(""),
            "      - uses: actions/setup-node@v4\n        with: { node-version: \"lts/*\", cache: npm }\n      - name: Install the server\n        run: |\n          npm ci\n"
        );
        assert_eq!((npm.image(), npm.gitlab().as_str()), ("node:lts", "    - npm ci\n"));
        assert!(npm.github("packages/b/").contains("cache: npm, cache-dependency-path: \"packages/b/*.json\" }"), "{npm:?}");
        let go = installed("go run .", &[("go.mod", "module shop\n")]).github("packages/b/");
        assert!(go.contains("go-version-file: \"packages/b/go.mod\", cache-dependency-path: \"packages/b/go.sum\" }"), "{go}");
        let uv = installed("python server.py", &[("uv.lock", "")]);
        assert!(
            uv.github("").ends_with("          uv sync --locked\n          echo \"$PWD/.venv/bin\" >> \"$GITHUB_PATH\"\n"),
            "{}",
            uv.github("")
        );
        assert!(uv.gitlab().ends_with("    - uv sync --locked\n    - export PATH=\"$PWD/.venv/bin:$PATH\"\n"), "{}", uv.gitlab());
        let unknown = installed("node server.js", &[]);
        assert!(unknown.github("").contains("setup-node") && unknown.github("").contains("# review"), "{}", unknown.github(""));
    }
}
