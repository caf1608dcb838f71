//! Archive, wheel and npm package of one platform, around a program that is there already. Knows tar, hatchling and npm.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::{Target, anew, cannot, copy, read};
use crate::{bindings, notice, peers};

/// What is packed.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) program: PathBuf,
    /// The engine inside Node.js, where there is one.
    pub(crate) addon: Option<PathBuf>,
    /// The same program for this machine, if that which is packed does not run here: it prints the man pages and completions.
    pub(crate) printer: Option<PathBuf>,
}

impl Program {
    /// With the addon that cargo has put beside it, if it has built one.
    pub(crate) fn beside(program: &Path) -> Self {
        let addon = program.with_file_name(format!("{}mcproof_node{}", consts::DLL_PREFIX, consts::DLL_SUFFIX));
        Self { program: program.to_owned(), addon: addon.is_file().then_some(addon), printer: None }
    }
}

/// `packages make --target TRIPLE --program PATH [--addon PATH] [--printer PATH] [--repository URL] OUT`: what a job of the release makes.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (mut triple, mut program, mut addon, mut printer, mut repository, mut out) = (None, None, None, None, None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let place = match *word {
            "--target" => &mut triple,
            "--program" => &mut program,
            "--addon" => &mut addon,
            "--printer" => &mut printer,
            "--repository" => &mut repository,
            flag if flag.starts_with("--") => return Err(format!("no flag is called {flag}")),
            folder => {
                out = Some(folder);
                continue;
            }
        };
        *place = Some(*words.next().ok_or_else(|| format!("{word} needs a value"))?);
    }
    let target = super::target(triple.ok_or("--target is missing")?)?;
    let absolute = |path: &str| std::path::absolute(path).map_err(|error| error.to_string());
    let program = Program {
        program: absolute(program.ok_or("--program is missing")?)?,
        addon: addon.map(absolute).transpose()?,
        printer: printer.map(absolute).transpose()?,
    };
    let out = absolute(out.ok_or("the directory to write to is missing")?)?;
    for made in all(root, target, &program, repository, &out)? {
        println!("{}", made.display());
    }
    Ok(())
}

/// Makes everything for a platform, around a program that aborts on a panic, as the profile `dist` has it.
pub(crate) fn all(root: &Path, target: &Target, program: &Program, repository: Option<&str>, out: &Path) -> Result<Vec<PathBuf>, String> {
    let prepared = |file: &Path| {
        let place = published(out, target, file);
        let folder = place.parent().unwrap_or(out);
        fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
        copy(file, &place)?;
        if target.triple.contains("linux") {
            let sections = TABLES.iter().map(|section| format!("--remove-section={section}"));
            peers::run(Command::new("strip").arg("--strip-unneeded").args(sections).arg(&place))?;
        }
        Ok::<PathBuf, String>(place)
    };
    let program = &Program {
        program: prepared(&program.program)?,
        addon: program.addon.as_deref().map(prepared).transpose()?,
        printer: program.printer.clone(),
    };
    let mut made = vec![archive(root, target, program, out)?];
    made.push(bindings::wheel(root, &program.program, target.wheel, &out.join("wheels"))?);
    made.extend(bindings::tarballs(root, program, target.npm, repository, &out.join("npm"))?);
    Ok(made)
}

/// Where a program or library lies as it is packed.
pub(crate) fn published(out: &Path, target: &Target, file: &Path) -> PathBuf {
    out.join("build/program").join(target.triple).join(file.file_name().unwrap_or_default())
}

/// By these a panic would unwind the stack. They are a tenth of a program that never does, and no flag of the compiler leaves them out,
/// because the standard library is compiled with them.
const TABLES: [&str; 3] = [".eh_frame", ".eh_frame_hdr", ".gcc_except_table"];

/// Completions in an archive, by the names that the shells look for.
const COMPLETIONS: [(&str, &str); 3] = [("bash", "mcproof.bash"), ("zsh", "_mcproof"), ("fish", "mcproof.fish")];
const COMPLETIONS_OF_WINDOWS: [(&str, &str); 1] = [("powershell", "_mcproof.ps1")];

/// The archive that installers download, with its checksum in a file beside it.
pub(crate) fn archive(root: &Path, target: &Target, program: &Program, out: &Path) -> Result<PathBuf, String> {
    let name = format!("mcproof-{}", target.triple);
    let folder = out.join("build").join(&name);
    anew(&folder)?;
    let packed = folder.join(target.program());
    copy(&program.program, &packed)?;
    if target.triple.contains("linux") {
        peers::run(Command::new("strip").arg("--strip-unneeded").arg(&packed))?;
    }
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        copy(&root.join(file), &folder.join(file))?;
    }
    let licenses = folder.join(notice::FILE);
    fs::write(&licenses, notice::of_program(root, target.triple)?).map_err(|error| cannot("write", &licenses, &error))?;
    let printer = program.printer.as_deref().unwrap_or(&packed);
    // Windows has no pages of that kind.
    let shells = if target.is_windows() {
        COMPLETIONS_OF_WINDOWS.as_slice()
    } else {
        peers::run(Command::new(printer).arg("man").arg(folder.join("man")))?;
        &COMPLETIONS
    };
    let completions = folder.join("completions");
    anew(&completions)?;
    for (shell, file) in shells {
        let output = Command::new(printer).args(["completions", shell]).output().map_err(|error| cannot("start", printer, &error))?;
        if !output.status.success() || output.stdout.is_empty() {
            return Err(format!("{} prints no completions for {shell}", printer.display()));
        }
        let place = completions.join(file);
        fs::write(&place, output.stdout).map_err(|error| cannot("write", &place, &error))?;
    }
    let archive = out.join(target.archive());
    if target.is_windows() {
        let _ = fs::remove_file(&archive);
        peers::run(Command::new("python3").args(["-m", "zipfile", "-c"]).arg(&archive).arg(&folder))?;
    } else {
        let tar = ["--use-compress-program", "gzip -9", "-cf"];
        peers::run(Command::new("tar").args(tar).arg(&archive).arg("-C").arg(out.join("build")).arg(&name))?;
    }
    let sums = out.join(format!("{}.sha256", target.archive()));
    fs::write(&sums, format!("{}  {}\n", sha256(&archive)?, target.archive())).map_err(|error| cannot("write", &sums, &error))?;
    Ok(archive)
}

/// In the digits that `sha256sum` prints.
pub(crate) fn sha256(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| cannot("read", path, &error))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The checksum in the file beside an archive, which has to be that of the archive.
pub(crate) fn checksum(archive: &Path) -> Result<String, String> {
    let mut beside = archive.as_os_str().to_owned();
    beside.push(".sha256");
    let text = read(Path::new(&beside))?;
    let told = text.split_whitespace().next().unwrap_or_default();
    let actual = sha256(archive)?;
    if told == actual { Ok(actual) } else { Err(format!("{} is {actual}, but its .sha256 file says {told}", archive.display())) }
}
