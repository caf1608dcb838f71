//! Free ports for servers that are told where to listen.

use mcproof_system::{files, machine};
use std::collections::VecDeque;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio::net::TcpSocket;

/// Above the ports that browsers refuse (Fetch standard, port blocking), and below those that operating systems choose for
/// connections and for port 0 (Linux: 32768 and above, others: 49152), so that no other program gets one of them by chance.
const RANGE: Range<u16> = 16_384..32_768;

/// How many ports are reserved at once.
const BLOCK: u16 = 256;

/// Of the whole process: other processes see its reservations, so its own parts must see them too.
static RESERVED: Mutex<Reserved> = Mutex::new(Reserved { untried: None, blocks: Vec::new(), ports: VecDeque::new() });

struct Reserved {
    /// First ports of the blocks that were not tried yet.
    untried: Option<VecDeque<u16>>,
    blocks: Vec<Block>,
    /// What is left of the blocks.
    ports: VecDeque<u16>,
}

struct Block {
    first: u16,
    /// The lock lasts as long as the process. None where no file can be locked.
    _lock: Option<File>,
}

/// A port of the loopback interfaces on which nothing listens. It is not returned again before all others are used up, and not
/// to another process on this machine that calls this function as the same user.
///
/// # Errors
/// The system has no free port.
pub fn free_port() -> io::Result<u16> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).next(&lock_folder())
}

impl Reserved {
    fn next(&mut self, folder: &io::Result<PathBuf>) -> io::Result<u16> {
        for _ in RANGE {
            if self.ports.is_empty() {
                self.reserve(folder);
            }
            match self.ports.pop_front() {
                Some(port) if is_free(port) => return Ok(port),
                Some(_) => {}
                None => break,
            }
        }
        // Every block is reserved by other processes, or every port is taken.
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(socket.local_addr()?.port())
    }

    /// Reserves one more block, or else begins again with those of this process.
    fn reserve(&mut self, folder: &io::Result<PathBuf>) {
        let untried = self.untried.get_or_insert_with(|| {
            let mut blocks: VecDeque<u16> = RANGE.step_by(BLOCK.into()).collect();
            // The ports that the last process used may not be free again yet.
            blocks.rotate_left(fastrand::usize(..blocks.len()));
            blocks
        });
        while let Some(first) = untried.pop_front() {
            if let Some(block) = Block::reserve(first, folder) {
                self.blocks.push(block);
                self.ports.extend(first..first + BLOCK);
                return;
            }
        }
        self.ports.extend(self.blocks.iter().flat_map(|block| block.first..block.first + BLOCK));
    }
}

impl Block {
    /// None if another process has it.
    fn reserve(first: u16, folder: &io::Result<PathBuf>) -> Option<Self> {
        let open = |folder: &PathBuf| File::options().create(true).append(true).open(folder.join(first.to_string())).ok();
        let Some(file) = folder.as_ref().ok().and_then(open) else { return Some(Self { first, _lock: None }) };
        match file.try_lock() {
            Ok(()) => Some(Self { first, _lock: Some(file) }),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(Self { first, _lock: None }),
        }
    }
}

/// The files that stand for the blocks, of this user alone.
fn lock_folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(machine::lock_folder_name("ports"));
    match files::private_folder(&mut DirBuilder::new()).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(folder),
    }
}

/// Whether a server could listen there. The sockets do not listen: a process that is being started has a copy until it runs, and
/// would pass for a server. With `SO_REUSEADDR` that copy does not keep the server from the port either.
fn is_free(port: u16) -> bool {
    let bind = |socket: io::Result<TcpSocket>, address: SocketAddr| {
        let socket = socket?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)
    };
    // What `localhost` means to a server differs; a machine may lack IPv6.
    let taken = |bound: io::Result<()>| bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
    bind(TcpSocket::new_v4(), (Ipv4Addr::LOCALHOST, port).into()).is_ok()
        && !taken(bind(TcpSocket::new_v6(), (Ipv6Addr::LOCALHOST, port).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::net::TcpListener;

    fn nothing_reserved() -> Reserved {
        Reserved { untried: None, blocks: Vec::new(), ports: VecDeque::new() }
    }

    #[test]
    fn no_port_is_returned_twice_to_different_processes_or_to_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Ok(folder.path().to_owned());
        let (mut one, mut other) = (nothing_reserved(), nothing_reserved());
        let ports: HashSet<u16> = (0..600).flat_map(|_| [one.next(&folder).unwrap(), other.next(&folder).unwrap()]).collect();
        assert_eq!(ports.len(), 1200);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }

    #[test]
    fn a_port_on_which_something_listens_is_left_out() {
        let folder = Err(io::ErrorKind::ReadOnlyFilesystem.into());
        let mut reserved = nothing_reserved();
        let first = reserved.next(&folder).unwrap();
        let listeners: Vec<TcpListener> =
            (first + 1..first + 9).filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()).collect();
        let taken: HashSet<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!((0..20).all(|_| !taken.contains(&reserved.next(&folder).unwrap())));
    }

    #[test]
    fn where_others_have_every_block_the_system_chooses() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Ok(folder.path().to_owned());
        let others: Vec<Block> = RANGE.step_by(BLOCK.into()).map(|first| Block::reserve(first, &folder).unwrap()).collect();
        assert_eq!(others.len(), 64);
        assert!(!RANGE.contains(&nothing_reserved().next(&folder).unwrap()));
    }
}
