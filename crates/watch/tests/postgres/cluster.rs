//! A real Postgres of our own: a cluster in a temporary folder, reached over a socket in it. It ends with this process.

#![allow(dead_code, reason = "each test program uses some of these")]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where distributions put the programs of the server when they are not on the PATH.
const FOLDERS: &str = "/usr/lib/postgresql";
/// For a server to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether what was committed survives a crash, of the machine or of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Full,
    None,
}

pub(crate) struct Cluster {
    folder: TempDir,
    server: Option<Child>,
    durability: Durability,
    /// Of TCP, if it listens there, too.
    port: Option<u16>,
    /// What its environment has besides.
    variables: Vec<(String, String)>,
}

impl Cluster {
    /// Must be called by a thread that lives as long as the cluster is needed: the server ends with it.
    pub(crate) fn start(durability: Durability) -> Self {
        Self::start_at(durability, None, &std::env::temp_dir(), Vec::new())
    }

    /// One whose files are in this folder, and whose environment has these variables besides.
    pub(crate) fn start_in(folder: &Path, variables: Vec<(String, String)>) -> Self {
        Self::start_at(Durability::Full, None, folder, variables)
    }

    pub(super) fn start_at(durability: Durability, port: Option<u16>, parent: &Path, variables: Vec<(String, String)>) -> Self {
        let folder = tempfile::Builder::new().prefix("mcproof-pg-").tempdir_in(parent).unwrap();
        if is_root() {
            assert!(Command::new("chown").arg("postgres").arg(folder.path()).status().unwrap().success());
        }
        let mut initdb = command("initdb");
        initdb
            .args(["--auth=trust", "--username=mcproof", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(folder.path().join("data"));
        let made = initdb.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut cluster = Self { folder, server: None, durability, port, variables };
        cluster.resume();
        cluster
    }

    /// Starts the server anew, and waits until it takes connections.
    pub(crate) fn resume(&mut self) {
        let mut postgres = command_with("postgres", &self.variables);
        postgres.arg("-D").arg(self.folder.path().join("data")).arg("-k").arg(self.folder.path());
        postgres.args(["-c", "max_connections=100", "-c", "log_min_messages=fatal", "-c"]);
        match self.port {
            Some(port) => postgres.args(["listen_addresses=127.0.0.1", "-p", &port.to_string()]),
            None => postgres.arg("listen_addresses="),
        };
        if self.durability == Durability::None {
            postgres.args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]);
        }
        postgres.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(postgres.spawn().unwrap());
        let began = Instant::now();
        while !self.is_ready() {
            assert!(began.elapsed() < PATIENCE, "postgres does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server in the middle of everything, as a crash would.
    pub(crate) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let pid = nix::unistd::Pid::from_raw(server.id().cast_signed());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT).unwrap();
            server.wait().unwrap();
        }
    }

    /// Whether the server has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.server.as_mut().is_none_or(|server| server.try_wait().unwrap().is_some())
    }

    /// The process of the server, if it runs.
    pub(crate) fn process(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// A new, empty database, and its address.
    pub(crate) fn database(&self, name: &str) -> String {
        let mut createdb = command("createdb");
        self.reach(&mut createdb).args(["-U", "mcproof", name]);
        let made = createdb.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        self.address(name)
    }

    pub(crate) fn address(&self, name: &str) -> String {
        match self.port {
            Some(port) => format!("postgres://mcproof@127.0.0.1:{port}/{name}"),
            None => format!("postgres:///{name}?host={}&user=mcproof", self.folder.path().display()),
        }
    }

    fn reach<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.arg("-h").arg(self.folder.path()).current_dir(self.folder.path());
        command.args(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]))
    }

    fn is_ready(&self) -> bool {
        let mut ready = command("pg_isready");
        self.reach(&mut ready).arg("-q").status().unwrap().success()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    // Its owner is whoever we are.
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A program of Postgres, which refuses to run as root. It gets the signal to end when we do.
fn command(program: &str) -> Command {
    command_with(program, &[])
}

/// Its environment has these besides, and nothing that is started on the way to it.
fn command_with(program: &str, variables: &[(String, String)]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
    }
    command.args(["--", "env"]).args(variables.iter().map(|(name, value)| format!("{name}={value}"))).arg(found(program));
    command
}

fn found(program: &str) -> PathBuf {
    let versions = std::fs::read_dir(FOLDERS).into_iter().flatten().flatten();
    let mut programs: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin").join(program)).filter(|path| path.exists()).collect();
    programs.sort();
    programs.pop().unwrap_or_else(|| Path::new(program).to_owned())
}
