//! Finds out where the processes of a server listen, to tell "listens elsewhere" from "does not listen", and who else listens at a port.

use super::family::below;
use super::{id, processes};
use crate::process_tree::{OtherListener, is_reached_at};
use listeners::{Listener, Protocol, SocketState};
use std::net::{IpAddr, SocketAddr};
use sysinfo::{ProcessRefreshKind, UpdateKind};

/// TCP addresses on which a process or one below it accepts connections, sorted.
pub fn listening_addresses(leader: i32) -> Vec<SocketAddr> {
    let mut tree = below(&processes(ProcessRefreshKind::nothing()), leader);
    tree.push(leader);
    let mut found: Vec<SocketAddr> = all().filter(|listener| tree.contains(&pid_of(listener))).map(|listener| listener.socket).collect();
    found.sort();
    found.dedup();
    found
}

/// The process that listens at a port of this machine, if it is neither below the server nor below this process. `host` is the address at
/// which it is reached, `None` `localhost`. `None` also where the system does not tell whose a listener is.
pub fn other_listener(port: u16, host: Option<IpAddr>, server: i32) -> Option<OtherListener> {
    let system = processes(ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always));
    let roots = [server, std::process::id().cast_signed()];
    let mut own: Vec<i32> = roots.iter().flat_map(|root| below(&system, *root)).collect();
    own.extend(roots);
    let is_there = |listener: &Listener| listener.socket.port() == port && is_reached_at(listener.socket.ip(), host);
    let there: Vec<i32> = all().filter(is_there).map(|listener| pid_of(&listener)).collect();
    if there.iter().any(|pid| own.contains(pid)) {
        return None;
    }
    let pid = *there.first()?;
    let process = system.process(id(pid))?;
    let words: Vec<_> = process.cmd().iter().map(|word| word.to_string_lossy()).collect();
    let command = if words.is_empty() { process.name().to_string_lossy().into_owned() } else { words.join(" ") };
    Some(OtherListener::new(pid, &command))
}

/// Whether the server listens at a port of this machine, or something that this process has started. `None` where the system does not tell.
pub fn listens_at(port: u16, host: Option<IpAddr>, server: i32) -> Option<bool> {
    other_listener(port, host, server).map(|_| false)
}

fn all() -> impl Iterator<Item = Listener> {
    let found = listeners::get_all().unwrap_or_default();
    found.into_iter().filter(|listener| listener.protocol == Protocol::TCP && matches!(listener.state, SocketState::Listen))
}

fn pid_of(listener: &Listener) -> i32 {
    listener.process.pid.cast_signed()
}
