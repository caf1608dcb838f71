//! The processes of the monitor, as a user and a service manager start them: `mcproof watch watch.yaml`, again when one has ended.
//! Each may have a clock of its own, which libfaketime sets.

use super::timeline::Timeline;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where Debian's libfaketime is.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// What the environment of a process has whose clock is set by a file.
pub(crate) fn with_clock(file: &Path) -> Vec<(String, String)> {
    if !can_set_clocks() {
        return Vec::new();
    }
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        pair("LD_PRELOAD", FAKETIME),
        pair("FAKETIME_TIMESTAMP_FILE", &file.display().to_string()),
        pair("FAKETIME_CACHE_DURATION", "1"),
        pair("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        pair("NO_FAKE_STAT", "1"),
    ]
}

pub(crate) fn can_set_clocks() -> bool {
    Path::new(FAKETIME).exists()
}

pub(crate) fn set_clock(file: &Path, seconds: i64) {
    // Whoever reads it meanwhile reads all of it.
    let fresh = file.with_extension("new");
    fs::write(&fresh, format!("{seconds:+}\n")).unwrap();
    fs::rename(&fresh, file).unwrap();
}

/// One process, or the place of one.
pub(crate) struct Monitor {
    name: String,
    program: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
    /// Where its dashboard listens, if it has one.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) clock: PathBuf,
    child: Option<Child>,
    /// Ends that nobody brought about.
    pub(crate) ended: Vec<String>,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Monitor {
    pub(crate) fn start(name: &str, program: &Path, folder: &Path, role: &str) -> Self {
        let address = (role == "serve").then(|| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        let mut arguments: Vec<String> = ["watch", "watch.yaml", "--json", "--role", role].map(str::to_owned).into();
        arguments.extend(address.iter().flat_map(|address| ["--listen".to_owned(), address.to_string()]));
        let clock = folder.join(format!("{name}.clock"));
        set_clock(&clock, 0);
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut monitor = Self { name: name.to_owned(), program, folder, arguments, address, clock, child: None, ended: Vec::new() };
        monitor.resume();
        monitor
    }

    pub(crate) fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.join(format!("{}.log", self.name))).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program).args(&self.arguments).current_dir(&self.folder);
        command.envs(with_clock(&self.clock)).env("DUTY_KEY", "a-routing-key-of-32-characters-0").env("NO_PROXY", "*");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
            // What libfaketime leaves behind in memory when it cannot end as it would.
            for left in ["faketime_shm", "sem.faketime_sem"] {
                let _ = fs::remove_file(format!("/dev/shm/{left}_{}", child.id()));
            }
        }
    }

    /// Starts it again if it has ended by itself.
    pub(crate) fn tend(&mut self, timeline: Timeline) {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
        if let Some(status) = ended {
            self.ended.push(format!("{} at {:.1} s: {status}", self.name, timeline.now().as_secs_f64()));
            self.resume();
        }
    }

    pub(crate) fn send(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // It may have ended already.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
        }
    }
}

/// What the file of the monitors says.
pub(crate) struct Configuration<'a> {
    pub(crate) database: &'a str,
    pub(crate) pager: SocketAddr,
    /// Names and addresses.
    pub(crate) targets: &'a [(String, SocketAddr)],
}

impl Configuration<'_> {
    pub(crate) fn write(&self, folder: &Path) {
        let Self { database, pager, targets } = self;
        let mut text = format!(
            "database: '{database}'\n\
             heartbeat: {{ url: 'http://{pager}/beat', every: 5s }}\n\
             defaults: {{ every: 2s, timeout: 2s }}\n\
             channels:\n  hook: {{ webhook: 'http://{pager}/hook' }}\n  \
             duty: {{ pagerduty: {{ routing_key: 'env:DUTY_KEY', url: 'http://{pager}/duty' }} }}\n\
             routes:\n  - {{ severities: [page, security], channels: [hook, duty] }}\n  - {{ channels: hook }}\n\
             targets:\n"
        );
        for (name, address) in *targets {
            writeln!(text, "  {name}: {{ http: 'http://{address}/{name}', era: modern }}").unwrap();
        }
        // As editors write files: the old one is there until the new one is whole.
        let fresh = folder.join("watch.yaml.new");
        fs::write(&fresh, text).unwrap();
        fs::rename(&fresh, folder.join("watch.yaml")).unwrap();
    }
}
