//! What the machine is called, and where things are on it.

use std::path::{Path, PathBuf};

/// The command that opens a page for the user; its URL comes last.
pub const PAGE_OPENER: &[&str] = if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open"] };

/// Variables that a desktop host hands on to servers. PATH is another one.
pub const HOST_VARIABLES: &[&str] = &["HOME", "LOGNAME", "SHELL", "USER"];

/// The PATH of programs that were not started by a shell (launchd, systemd).
pub fn host_path() -> String {
    let path = if cfg!(target_os = "macos") {
        "/usr/bin:/bin:/usr/sbin:/sbin"
    } else {
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    };
    path.to_owned()
}

/// The variable that names the home folder of the user.
pub const HOME_VARIABLE: &str = "HOME";

const BASIC_VARIABLES: [&str; 11] = ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Whether a variable is one that programs need, and that holds no secrets.
pub fn is_basic_variable(name: &str) -> bool {
    BASIC_VARIABLES.contains(&name)
}

/// Where programs look for their configuration (XDG base directories).
pub fn config_folder(home: &Path, variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let chosen = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    chosen.unwrap_or_else(|| home.join(".config"))
}

/// Where a desktop host starts servers.
pub const HOST_FOLDER: &str = "/";

/// The variables by which [`state_folder`] finds its place, as a person is told of them.
pub const STATE_VARIABLES: &str = "XDG_STATE_HOME and HOME";

/// Where programs keep what they remember between runs (XDG base directories), without their own name.
pub fn state_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// What this machine calls itself.
pub fn host_name() -> Option<String> {
    nix::sys::utsname::uname().ok().and_then(|machine| machine.nodename().to_str().map(str::to_owned))
}

/// A folder for locks, below that of temporary files, which is no other user's.
pub fn lock_folder_name(purpose: &str) -> String {
    format!("mcproof-{purpose}-{}", nix::unistd::getuid())
}

/// The process that has started this one.
pub struct Parent(nix::unistd::Pid);

impl Parent {
    pub fn now() -> Self {
        Self(nix::unistd::getppid())
    }

    /// Whether it has ended since.
    pub fn is_gone(&self) -> bool {
        nix::unistd::getppid() != self.0
    }
}
