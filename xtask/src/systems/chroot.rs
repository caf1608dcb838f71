//! Chroots of Debian's releases, and commands in them. Knows debootstrap, apt and namespaces, nothing of mcproof.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs;

/// The clock of a build machine may be later than the last day of the list of packages.
const APT: &str = "Acquire::Check-Valid-Until \"false\";\nAcquire::Check-Date \"false\";\nAcquire::Languages \"none\";\nAPT::Install-Recommends \"false\";\n";

/// A release with packages, made or completed if it is not there.
pub(crate) fn of_release(folder: &Path, release: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let (place, ready) = (folder.join(release), folder.join(format!("{release}.ready")));
    let wanted = packages.join(" ");
    if fs::read_to_string(&ready).is_ok_and(|there| there == wanted) {
        return Ok(place);
    }
    // debootstrap removes this folder at its end.
    if !place.join("etc/apt").exists() || place.join("debootstrap").exists() {
        programs::install(&["debootstrap"])?;
        let _ = fs::remove_dir_all(&place);
        // An older debootstrap does not know the release by its name; all are made as sid is.
        run(Command::new("debootstrap").args(["--variant=minbase", release]).arg(&place).args([&mirror()?, "sid"]))?;
    }
    let failed = |error| format!("{}: {error}", place.display());
    fs::write(place.join("etc/apt/apt.conf.d/00systems"), APT).map_err(failed)?;
    for file in ["etc/resolv.conf", "etc/hosts"] {
        fs::copy(Path::new("/").join(file), place.join(file)).map_err(failed)?;
    }
    let install = format!("export DEBIAN_FRONTEND=noninteractive; apt-get update; apt-get install --yes {wanted}");
    run(&mut as_root(&place, "", &install))?;
    fs::write(&ready, wanted).map_err(failed)?;
    Ok(place)
}

/// A folder with nothing in it but what a kernel gives.
pub(crate) fn empty(folder: &Path) -> Result<PathBuf, String> {
    let place = folder.join("empty");
    let _ = fs::remove_dir_all(&place);
    for part in ["proc", "dev", "tmp"] {
        fs::create_dir_all(place.join(part)).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    Ok(place)
}

/// From where this machine gets its own packages.
fn mirror() -> Result<String, String> {
    let words = ["indextargets", "--format", "$(REPO_URI)", "Label: Debian", "Created-By: Packages"];
    let output = Command::new("apt-get").args(words).output().map_err(|error| format!("cannot start apt-get: {error}"))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    listed.lines().next().map(str::to_owned).ok_or_else(|| "apt-get names no mirror of Debian: run apt-get update".to_owned())
}

/// A script in a chroot, with what this user may do, after `mounts` (for the shell, `$0` is the chroot). It ends with all that it has started.
pub(crate) fn as_root(place: &Path, mounts: &str, script: &str) -> Command {
    let mut command = Command::new("unshare");
    let prepare = format!("mount -t proc proc \"$0/proc\"; mount --rbind /dev \"$0/dev\"\n{mounts}\nexec chroot \"$0\" sh -ec \"$1\"");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", &prepare]).arg(place).arg(script).stdin(Stdio::null());
    command
}

/// Registers qemu for the programs of arm64, in this namespace only. The first number tells ELF files of 64 bits; `F` opens it now, while its
/// path is known.
const QEMU: &str = r#"binfmt="$0/proc/sys/fs/binfmt_misc"; mount -t binfmt_misc binfmt_misc "$binfmt"
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm64:M::$magic:$mask:$0/usr/bin/qemu-aarch64:F" > "$binfmt/register""#;

/// A command in a place of its own: a user, processes and mounts that end with it. What it has left stays there for some seconds.
pub(crate) fn alone(place: &Path, words: &[String], stay: u32) -> Command {
    let qemu = if place.join("usr/bin/qemu-aarch64").exists() { QEMU } else { "" };
    // What is below /tmp on this machine may be the program itself.
    let folder = if place == Path::new("/") { "" } else { r#"mount -t tmpfs tmpfs "$0/tmp""# };
    let script = format!(
        "mount -t proc proc \"$0/proc\"; mount --rbind /dev \"$0/dev\"\n{folder}\n{qemu}\nset +e; chroot \"$0\" \"$@\"; code=$?; sleep {stay}; exit $code"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", &script]).arg(place).args(words);
    command
}

/// # Errors
/// It could not be started, or did not succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
