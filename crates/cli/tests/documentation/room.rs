//! The folder in which the commands of one page are typed, on a terminal.

use super::matching::normal;
use super::peers::root;
use rexpect::session::spawn_command;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// For one command, on a machine that does much else.
const PATIENCE: u64 = 120_000;

pub(crate) struct Room {
    folder: TempDir,
    path: String,
    last_code: i32,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) lines: Vec<String>,
}

impl Room {
    /// `node=NAME` and `python=NAME` bring the packages of a peer, `type=module` the `package.json` that npm made in a block that is not
    /// run, `cargo=NAME` the example that `cargo run` would build, `checkout` the examples of the repository. A page shows a file only if
    /// the reader has to write it.
    pub(crate) fn new(with: &[(String, String)]) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let programs = folder.path().join("programs");
        let page = folder.path().join("page");
        for folder in [&home, &programs, &page] {
            fs::create_dir(folder).unwrap();
        }
        let mcproof = env!("CARGO_BIN_EXE_mcproof");
        symlink(mcproof, programs.join("mcproof")).unwrap();
        let mut path = programs.display().to_string();
        let present = |path: PathBuf| {
            if path.exists() { Ok(path) } else { Err(format!("{} is not there: run `cargo xtask peers` first", path.display())) }
        };
        let script = |name: &str, text: &str| {
            fs::write(programs.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        for (name, value) in with {
            match name.as_str() {
                "node" => {
                    symlink(present(root().join(format!("target/peers/node/{value}/node_modules")))?, page.join("node_modules")).unwrap()
                }
                "type" => fs::write(page.join("package.json"), format!("{{ \"type\": \"{value}\" }}\n")).unwrap(),
                "python" => {
                    let programs = present(root().join(format!("target/peers/python/{value}/bin")))?;
                    path = format!("{path}:{}", programs.display());
                }
                // What cargo would build and run, without building it once more.
                "cargo" if value.is_empty() => {
                    script("cargo", &format!("while [ \"$1\" != -- ]; do shift; done; shift; exec {mcproof} \"$@\""))
                }
                "cargo" => {
                    let built = PathBuf::from(mcproof).with_file_name("examples").join(value);
                    script("cargo", &format!("exec {}", present(built)?.display()));
                }
                "checkout" => symlink(root().join("examples"), page.join("examples")).unwrap(),
                _ => return Err(format!("`with: {name}` is unknown")),
            }
        }
        let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
        Ok(Self { folder, path, last_code: 0 })
    }

    /// Writes a file that the page shows.
    pub(crate) fn lay(&mut self, file: &str, text: &str) {
        let path = self.folder.path().join("page").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&mut self, typed: &str) -> Result<Ran, String> {
        if typed == "echo $?" {
            return Ok(Ran { code: 0, lines: vec![self.last_code.to_string()] });
        }
        let home = self.folder.path().join("home");
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("stty cols 100 -echo; {typed}\ncode=$?; echo; echo \"code: $code\"")]);
        bash.current_dir(self.folder.path().join("page")).env_clear();
        bash.env("PATH", &self.path).env("HOME", &home).env("NO_COLOR", "1").env("TERM", "xterm").env("LANG", "C.UTF-8");
        bash.env("XDG_STATE_HOME", home.join("state"));
        let mut session = spawn_command(bash, Some(PATIENCE)).map_err(|error| format!("`{typed}` cannot be started: {error}"))?;
        let output = session.exp_eof().map_err(|error| format!("`{typed}` does not end: {error}"))?;
        let output = utf8(&output).replace('\r', "");
        let (said, code) = output.trim_end().rsplit_once("code: ").ok_or_else(|| format!("`{typed}` was ended:\n{output}"))?;
        self.last_code = code.parse().map_err(|_| format!("`{typed}` was ended:\n{output}"))?;
        let page = self.folder.path().join("page").display().to_string();
        let lines: Vec<String> = said.trim_end().lines().map(|line| normal(&line.replace(&page, "/home/ann/shop"))).collect();
        Ok(Ran { code: self.last_code, lines })
    }
}

/// rexpect takes each byte of a terminal for a character.
fn utf8(text: &str) -> String {
    let bytes: Result<Vec<u8>, _> = text.chars().map(|character| u8::try_from(u32::from(character))).collect();
    bytes.map_or_else(|_| text.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
