//! What the machine is called, and where things are on it.

use std::path::{Path, PathBuf};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::System::Registry::{HKEY, HKEY_CURRENT_USER, HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::core::{PCWSTR, w};

/// The command that opens a page for the user; its URL comes last. No shell reads the URL.
pub const PAGE_OPENER: &[&str] = &["rundll32.exe", "url.dll,FileProtocolHandler"];

/// Variables that a desktop host hands on to servers (the default environment of the SDKs). PATH is another one.
pub const HOST_VARIABLES: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The PATH of programs that were not started by a shell: that of the machine, then that of the user, as the registry has them. What a
/// profile of a shell adds is not in it.
pub fn host_path() -> String {
    let places =
        [(HKEY_LOCAL_MACHINE, w!(r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment")), (HKEY_CURRENT_USER, w!("Environment"))];
    let found: Vec<String> = places.into_iter().filter_map(|(key, place)| path_in(key, place)).collect();
    if found.is_empty() { r"C:\Windows\system32;C:\Windows".to_owned() } else { found.join(";") }
}

/// The value `Path` there, with the variables in it resolved.
fn path_in(key: HKEY, place: PCWSTR) -> Option<String> {
    let mut text = vec![0_u16; 32 << 10];
    let mut size = u32::try_from(text.len() * size_of::<u16>()).expect("it is small");
    let nothing = std::ptr::null_mut();
    // SAFETY: both names end with a zero, and no more than `size` bytes are written.
    let outcome = unsafe { RegGetValueW(key, place, w!("Path"), RRF_RT_REG_SZ, nothing, text.as_mut_ptr().cast(), &raw mut size) };
    text.truncate(size as usize / size_of::<u16>());
    let text = String::from_utf16_lossy(&text);
    let text = text.trim_end_matches(['\0', ';']);
    (outcome == ERROR_SUCCESS && !text.is_empty()).then(|| text.to_owned())
}

/// The variable that names the home folder of the user.
pub const HOME_VARIABLE: &str = "USERPROFILE";

/// Whether a variable is one that programs need, and that holds no secrets. Their names have no case.
pub fn is_basic_variable(name: &str) -> bool {
    BASIC_VARIABLES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

const BASIC_VARIABLES: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Where programs look for their configuration.
pub fn config_folder(home: &Path, variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let chosen = variable("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    chosen.unwrap_or_else(|| home.join(r"AppData\Roaming"))
}

/// Where a desktop host starts servers.
pub const HOST_FOLDER: &str = r"C:\Windows\System32";

/// The variables by which [`state_folder`] finds its place, as a person is told of them.
pub const STATE_VARIABLES: &str = "XDG_STATE_HOME and LOCALAPPDATA";

/// Where programs keep what they remember between runs on this machine, without their own name.
pub fn state_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| absolute("LOCALAPPDATA"))
}

/// What this machine calls itself.
pub fn host_name() -> Option<String> {
    System::host_name()
}

/// A folder for locks, below that of temporary files, which is the user's own on Windows.
pub fn lock_folder_name(purpose: &str) -> String {
    format!("mcproof-{purpose}")
}

/// The process that has started this one.
pub struct Parent(Option<(Pid, u64)>);

impl Parent {
    pub fn now() -> Self {
        let own = Pid::from_u32(std::process::id());
        let parent = look(own).process(own).and_then(sysinfo::Process::parent);
        Self(parent.and_then(|parent| Some((parent, look(parent).process(parent)?.start_time()))))
    }

    /// Whether it has ended since.
    pub fn is_gone(&self) -> bool {
        self.0.is_some_and(|(pid, started)| look(pid).process(pid).is_none_or(|process| process.start_time() != started))
    }
}

fn look(pid: Pid) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, ProcessRefreshKind::nothing());
    system
}
