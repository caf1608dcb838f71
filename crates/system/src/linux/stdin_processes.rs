//! Finds the processes whose stdin is a certain pipe, through `/proc`, with async-signal-safe calls only: no allocation, no
//! locks. A server that was started cannot have another stdin so soon: a shell that redirects it does so for its children.

use nix::libc;

/// Calls `found` with the id of each process whose stdin is the pipe of that inode.
pub(crate) fn of_stdin(inode: u64, found: impl Fn(i32)) {
    each_process(|proc, name, pid| {
        if stdin_of(proc, name) == Some(inode) {
            found(pid);
        }
    });
}

/// Calls `seen` with `/proc`, and the name in it and the id of each process. Async-signal-safe if `seen` is.
pub(super) fn each_process(mut seen: impl FnMut(i32, &[u8], i32)) {
    // SAFETY: a path that ends with a zero byte.
    let proc = unsafe { libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) };
    if proc < 0 {
        return;
    }
    let mut entries = [0_u8; 4096];
    loop {
        // SAFETY: `entries` has room for its length.
        let length = unsafe { libc::syscall(libc::SYS_getdents64, proc, entries.as_mut_ptr(), entries.len()) };
        let Some(mut rest) = usize::try_from(length).ok().filter(|length| *length > 0).and_then(|length| entries.get(..length)) else {
            break;
        };
        while let Some((name, after)) = entry(rest) {
            rest = after;
            if let Some(pid) = number(name).and_then(|pid| i32::try_from(pid).ok()) {
                seen(proc, name, pid);
            }
        }
    }
    // SAFETY: the descriptor is ours.
    unsafe { libc::close(proc) };
}

/// The name of the first entry, and the entries after it. An entry is: inode and offset (8 bytes each), its own length (2),
/// a type (1), and the name up to a zero byte.
fn entry(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes([*entries.get(16)?, *entries.get(17)?]));
    let (entry, after) = entries.split_at_checked(length)?;
    Some((entry.get(19..)?.split(|byte| *byte == 0).next()?, after))
}

/// The inode of the pipe on the stdin of a process.
fn stdin_of(proc: i32, pid: &[u8]) -> Option<u64> {
    const TAIL: &[u8] = b"/fd/0\0";
    let mut path = [0_u8; 32];
    path.get_mut(..pid.len())?.copy_from_slice(pid);
    path.get_mut(pid.len()..pid.len() + TAIL.len())?.copy_from_slice(TAIL);
    let mut link = [0_u8; 64];
    // SAFETY: the path ends with a zero byte; `link` has room for its length.
    let length = unsafe { libc::readlinkat(proc, path.as_ptr().cast(), link.as_mut_ptr().cast(), link.len()) };
    let link = link.get(..usize::try_from(length).ok()?)?;
    number(link.strip_prefix(b"pipe:[")?.strip_suffix(b"]")?)
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, digit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::process::Command;

    #[test]
    fn only_the_process_with_that_stdin_is_found() {
        let (stdin, writer) = std::io::pipe().unwrap();
        let inode = nix::sys::stat::fstat(&stdin).unwrap().st_ino;
        let mut child = Command::new("sleep").arg("60").stdin(stdin).spawn().unwrap();
        let found = RefCell::new(Vec::new());
        of_stdin(inode, |pid| found.borrow_mut().push(pid));
        let _ = child.kill();
        child.wait().unwrap();
        drop(writer);
        assert_eq!(found.into_inner(), [i32::try_from(child.id()).unwrap()]);
    }
}
