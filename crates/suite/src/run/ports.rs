//! Addresses for servers that we start: free ports, and turns for those that insist on one.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpSocket;
use tokio::sync::OwnedMutexGuard;

/// Shared by all cases of a run.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<PortState>>);

#[derive(Default)]
struct PortState {
    given: HashSet<u16>,
    turns: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

/// Holds an address until the server that uses it has ended.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Addresses {
    /// A port on which nothing listens, and that no other case of this run was given.
    ///
    /// # Errors
    /// The system has no port left.
    pub(super) fn free_port(&self) -> io::Result<u16> {
        // Sockets are kept until one is new, so that the system does not offer the same port again. They do not listen: a process
        // that is being started has a copy until it runs, and would pass for a server that came before. With `SO_REUSEADDR`
        // that copy does not keep the server from the port either.
        let mut kept = Vec::new();
        loop {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            let port = socket.local_addr()?.port();
            if self.state().given.insert(port) {
                return Ok(port);
            }
            kept.push(socket);
        }
    }

    /// Waits until no other case has a server at that fixed address.
    pub(super) async fn turn(&self, address: &str) -> Turn {
        let turn = Arc::clone(self.state().turns.entry(address.to_owned()).or_default());
        turn.lock_owned().await
    }

    fn state(&self) -> MutexGuard<'_, PortState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let addresses = Addresses::default();
        let ports: HashSet<u16> = (0..500).map(|_| addresses.free_port().unwrap()).collect();
        assert_eq!(ports.len(), 500);
    }
}
