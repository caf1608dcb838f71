//! Each package, installed from the file into an empty folder, where the quickstart has to pass. Knows the package managers by their
//! command lines. What a package manager remembers of other installations is out of its sight.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{anew, cannot, copy, fill, make, version};
use crate::peers;

/// What came of one way to install.
pub(crate) struct Trial {
    pub(crate) manager: &'static str,
    /// As a user would type it, with the name of the package instead of the file.
    pub(crate) command: &'static str,
    /// From nothing to the first tests that passed, or why there are none.
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Passed(Duration),
    Failed(String),
    /// Never counts as passed. Says what was done instead.
    NotTried(&'static str),
}

impl fmt::Display for Trial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.manager)?;
        match &self.outcome {
            Outcome::Passed(took) => write!(formatter, "installed, and the quickstart passed, in {:.1} s", took.as_secs_f64()),
            Outcome::Failed(why) => write!(formatter, "FAILED: {why}"),
            Outcome::NotTried(why) => write!(formatter, "not tried: {why}"),
        }
    }
}

/// # Errors
/// Names every trial that failed.
pub(crate) fn verdict(trials: &[Trial]) -> Result<(), String> {
    let failed: Vec<String> = trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed(_))).map(Trial::to_string).collect();
    let passed = trials.iter().any(|trial| matches!(trial.outcome, Outcome::Passed(_)));
    match (failed.is_empty(), passed) {
        (true, true) => Ok(()),
        (true, false) => Err("no package was tried".into()),
        (false, _) => Err(failed.join("\n")),
    }
}

/// What is only looked at here, because its package manager cannot install from a file, or is not there.
pub(crate) fn looked_at(root: &Path, out: &Path) -> Vec<Trial> {
    let formula = match peers::version_of("ruby") {
        None => Ok("there is neither Homebrew nor Ruby here"),
        Some(_) => peers::run(Command::new("ruby").arg("-c").arg(out.join(fill::FORMULA)))
            .map(|()| "there is no Homebrew here; Ruby parses the formula"),
    };
    let crates = super::crates(root).map(|()| "nothing is published; cargo packs all crates");
    let trial = |manager, command, looked: Result<&'static str, String>| {
        let outcome = looked.map_or_else(Outcome::Failed, Outcome::NotTried);
        Trial { manager, command, outcome }
    };
    vec![trial("Homebrew", "brew install mcproof", formula), trial("cargo", "cargo install --locked mcproof", crates)]
}

/// What the trials share.
struct Place<'a> {
    root: &'a Path,
    out: &'a Path,
    made: &'a [PathBuf],
    /// uv, pipx and the linters.
    tools: PathBuf,
}

type Try = fn(&Place<'_>, &Path) -> Result<(), String>;

const TRIALS: [(&str, &str, Try); 6] = [
    ("npm", "npx mcproof", npm),
    ("uv", "uvx mcproof", uvx),
    ("pipx", "pipx run mcproof", pipx),
    ("pip", "pip install mcproof", pip),
    ("installer", "sh mcproof-installer.sh", installer),
    ("archive", "tar -xzf mcproof-x86_64-unknown-linux-gnu.tar.gz", archive),
];

/// Tries every way to install what was made.
///
/// # Errors
/// The tools cannot be installed, or a file that is published as it stands is not valid.
pub(crate) fn all(root: &Path, made: &[PathBuf], out: &Path) -> Result<Vec<Trial>, String> {
    let place = Place { root, out, made, tools: super::tools(root)? };
    place.lint()?;
    Ok(TRIALS
        .into_iter()
        .map(|(manager, command, attempt)| {
            let started = Instant::now();
            let outcome = place.project(manager).and_then(|project| attempt(&place, &project));
            let took = started.elapsed();
            Trial { manager, command, outcome: outcome.map_or_else(Outcome::Failed, |()| Outcome::Passed(took)) }
        })
        .collect())
}

/// The static program, on other systems than this: a root with nothing else, as in the container image, and Alpine's.
pub(crate) fn fixed(root: &Path, program: &Path, alpine: Option<&Path>, out: &Path) -> Result<Vec<Trial>, String> {
    let empty = out.join("trials/image");
    anew(&empty)?;
    let mut trials = Vec::new();
    let roots = [("container image", "docker run …", Some(empty.as_path())), ("static, Alpine", "mcproof", alpine)];
    for (manager, command, folder) in roots {
        let outcome = match folder {
            None => Outcome::NotTried("no root with Alpine was named with --alpine"),
            Some(folder) => {
                let started = Instant::now();
                let ran = in_root(root, program, folder);
                ran.map_or_else(Outcome::Failed, |()| Outcome::Passed(started.elapsed()))
            }
        };
        trials.push(Trial { manager, command, outcome });
    }
    Ok(trials)
}

fn in_root(root: &Path, program: &Path, folder: &Path) -> Result<(), String> {
    let (bin, work) = (folder.join("usr/local/bin"), folder.join("tmp"));
    for needed in [&bin, &work] {
        fs::create_dir_all(needed).map_err(|error| cannot("create", needed, &error))?;
    }
    copy(program, &bin.join("mcproof"))?;
    copy(&root.join(QUICKSTART), &work.join("shop.mcproof.yaml"))?;
    let mut command = Command::new("chroot");
    command.args(["--userspec=65532:65532"]).arg(folder).args(["/usr/local/bin/mcproof", "test", "/tmp/shop.mcproof.yaml"]);
    passes(command.env("HOME", "/tmp").env("PATH", "/usr/local/bin:/bin"))
}

const QUICKSTART: &str = "examples/quickstart/shop.mcproof.yaml";

impl Place<'_> {
    /// An empty folder, but for the quickstart.
    fn project(&self, name: &str) -> Result<PathBuf, String> {
        let project = self.out.join("trials").join(name);
        anew(&project)?;
        copy(&self.root.join(QUICKSTART), &project.join("shop.mcproof.yaml"))?;
        Ok(project)
    }

    fn found(&self, form: &str, matches: impl Fn(&str) -> bool) -> Result<&Path, String> {
        let name = |path: &&PathBuf| path.file_name().is_some_and(|name| matches(&name.to_string_lossy()));
        self.made.iter().find(name).map(PathBuf::as_path).ok_or_else(|| format!("no {form} was made"))
    }

    fn wheel(&self) -> Result<&Path, String> {
        self.found("wheel", |name| name.ends_with(".whl") && !name.contains("musllinux"))
    }

    /// A tool with a home of its own below the project.
    fn tool(&self, name: &str, project: &Path) -> Command {
        let mut command = Command::new(self.tools.join("bin").join(name));
        command.current_dir(project).env_remove("MCPROOF_BINARY");
        command.env("UV_CACHE_DIR", project.join("cache")).env("UV_PYTHON_DOWNLOADS", "never").env("UV_OFFLINE", "1");
        command.env("PIPX_HOME", project.join("pipx")).env("PIPX_BIN_DIR", project.join("bin"));
        command
    }

    /// Files that nobody runs here, or that have to run on other systems, too.
    fn lint(&self) -> Result<(), String> {
        let installer = self.out.join(fill::INSTALLER);
        for script in [&installer, &self.root.join("packages/installer/install.sh")] {
            peers::run(Command::new(self.tools.join("bin/shellcheck")).args(["--shell", "sh"]).arg(script))?;
        }
        let formula = self.out.join(fill::FORMULA);
        if !formula.is_file() {
            return Ok(());
        }
        if peers::version_of("ruby").is_none() {
            println!("packages: the formula of Homebrew was NOT parsed: there is no ruby");
            return Ok(());
        }
        peers::run(Command::new("ruby").arg("-c").arg(&formula))
    }
}

fn npm(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let main = place.found("npm package", |name| name == format!("mcproof-{}.tgz", version()))?;
    let program = place.found("npm package of this platform", |name| name == format!("mcproof-cli-linux-x64-{}.tgz", version()))?;
    let manifest = project.join("package.json");
    fs::write(&manifest, "{ \"private\": true }\n").map_err(|error| cannot("write", &manifest, &error))?;
    let npm = || {
        let mut npm = Command::new("npm");
        npm.current_dir(project).env_remove("MCPROOF_BINARY");
        npm
    };
    let install = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
    peers::run(npm().args(install).arg(main).arg(program))?;
    let npx = || {
        let mut npx = Command::new("npx");
        npx.current_dir(project).env_remove("MCPROOF_BINARY").args(["--no-install", "mcproof"]);
        npx
    };
    tells_its_version(&mut npx())?;
    passes(npx().arg("test"))?;
    // As after an installation on another platform, or without optional dependencies.
    let scope = project.join("node_modules/@mcproof");
    fs::remove_dir_all(&scope).map_err(|error| cannot("remove", &scope, &error))?;
    fails(&mut npx(), "the package @mcproof/cli-linux-x64, which holds the mcproof program, is not installed")
}

fn uvx(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let wheel = place.wheel()?;
    let uvx = || {
        let mut uvx = place.tool("uvx", project);
        uvx.arg("--from").arg(wheel).arg("mcproof");
        uvx
    };
    tells_its_version(&mut uvx())?;
    passes(uvx().arg("test"))
}

fn pipx(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let wheel = place.wheel()?;
    let pipx = || {
        let mut pipx = place.tool("pipx", project);
        pipx.args(["run", "--spec"]).arg(wheel).arg("mcproof");
        pipx
    };
    tells_its_version(&mut pipx())?;
    passes(pipx().arg("test"))
}

fn pip(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let environment = project.join("environment");
    peers::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let bin = environment.join("bin");
    peers::run(Command::new(bin.join("pip")).args(["install", "--quiet", "--no-index"]).arg(place.wheel()?))?;
    let program = || {
        let mut program = Command::new(bin.join("mcproof"));
        program.current_dir(project);
        program
    };
    tells_its_version(&mut program())?;
    passes(program().arg("test"))
}

fn archive(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let archive = place.found("archive", |name| name == ARCHIVE)?;
    make::checksum(archive)?;
    peers::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(project))?;
    let folder = project.join(ARCHIVE.trim_end_matches(".tar.gz"));
    for part in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt", "man/mcproof.1", "man/mcproof-test.1", "completions/_mcproof"] {
        if !folder.join(part).is_file() {
            return Err(format!("the archive has no {part}"));
        }
    }
    let program = || {
        let mut program = Command::new(folder.join("mcproof"));
        program.current_dir(project);
        program
    };
    tells_its_version(&mut program())?;
    passes(program().args(["test", "shop.mcproof.yaml"]))
}

const ARCHIVE: &str = "mcproof-x86_64-unknown-linux-gnu.tar.gz";

fn installer(place: &Place<'_>, project: &Path) -> Result<(), String> {
    let script = place.found("installer", |name| name == fill::INSTALLER)?;
    let (bin, mirror) = (project.join("bin"), project.join("mirror"));
    let install = |from: &Path, target: &str| {
        let mut install = Command::new("sh");
        install.arg(script).arg("--to").arg(&bin).arg("--from").arg(format!("file://{}", from.display())).args(["--target", target]);
        install
    };
    // Whatever does not have the checksum of the release is not installed.
    anew(&mirror)?;
    let changed = mirror.join(ARCHIVE);
    fs::write(&changed, "another archive").map_err(|error| cannot("write", &changed, &error))?;
    let target = "x86_64-unknown-linux-gnu";
    fails(&mut install(&mirror, target), "nothing was installed")?;
    fails(&mut install(&project.join("missing"), target), "error: cannot download")?;
    fails(&mut install(&mirror, "riscv64-unknown-linux-gnu"), "this installer has no archive for riscv64")?;
    if bin.exists() {
        return Err("an installer that failed has left something behind".into());
    }
    peers::run(&mut install(place.out, target))?;
    let program = || {
        let mut program = Command::new(bin.join("mcproof"));
        program.current_dir(project);
        program
    };
    tells_its_version(&mut program())?;
    passes(program().arg("test"))
}

/// # Errors
/// It is not the program of this version.
fn tells_its_version(command: &mut Command) -> Result<(), String> {
    let output = command.arg("--version").output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && told.trim() == format!("mcproof {}", version()) {
        return Ok(());
    }
    Err(format!("`--version` ended with {}, and printed {told:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// # Errors
/// It does not end with tests that passed.
fn passes(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    // The two tests of the quickstart, and the rest, over three transports.
    let counted = told.split_whitespace().zip(told.split_whitespace().skip(1)).find(|(_, word)| word.starts_with("passed"));
    let passed = counted.and_then(|(count, _)| count.parse::<u32>().ok()).unwrap_or_default();
    if output.status.success() && passed >= 6 { Ok(()) } else { Err(format!("the quickstart ended with {}\n{told}", output.status)) }
}

/// # Errors
/// It succeeds, or fails for another reason.
fn fails(command: &mut Command, expected: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && told.contains(expected) {
        return Ok(());
    }
    Err(format!("expected a failure with {expected:?}, but it ended with {}\n{told}", output.status))
}
