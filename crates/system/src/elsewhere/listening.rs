//! Finds out where the processes of a server listen, to tell "listens elsewhere" from "does not listen", and who else listens at a port.

use super::family::below;
use super::{id, processes};
use listeners::{Listener, Protocol, SocketState};
use std::net::SocketAddr;
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

/// The process that listens at a port of this machine, if it is neither below the server nor below this process, as
/// ``process 4321 (`python other.py`)``. `None` also where the system does not tell whose a listener is.
pub fn other_listener(port: u16, server: i32) -> Option<String> {
    let system = processes(ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always));
    let roots = [server, std::process::id().cast_signed()];
    let mut own: Vec<i32> = roots.iter().flat_map(|root| below(&system, *root)).collect();
    own.extend(roots);
    let there: Vec<i32> = all().filter(|listener| listener.socket.port() == port).map(|listener| pid_of(&listener)).collect();
    if there.iter().any(|pid| own.contains(pid)) {
        return None;
    }
    let pid = *there.first()?;
    let process = system.process(id(pid))?;
    let words: Vec<_> = process.cmd().iter().map(|word| word.to_string_lossy()).collect();
    let command = if words.is_empty() { process.name().to_string_lossy().into_owned() } else { words.join(" ") };
    let command: String = command.chars().take(LONGEST_COMMAND).collect();
    Some(format!("process {pid} (`{command}`)"))
}

/// Characters of a command that are shown.
const LONGEST_COMMAND: usize = 80;

fn all() -> impl Iterator<Item = Listener> {
    let found = listeners::get_all().unwrap_or_default();
    found.into_iter().filter(|listener| listener.protocol == Protocol::TCP && matches!(listener.state, SocketState::Listen))
}

fn pid_of(listener: &Listener) -> i32 {
    listener.process.pid.cast_signed()
}
