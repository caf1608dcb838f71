//! Finds out where a process group listens, to tell "listens elsewhere" from "does not listen", and who else listens at a port.

use super::family::family;
use super::mark::Mark;
use crate::process_tree::{OtherListener, is_reached_at};
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP addresses on which processes of the group accept connections, sorted.
pub fn listening_addresses(group: i32) -> Vec<SocketAddr> {
    let mut inodes = HashSet::new();
    for pid in processes().filter(|pid| group_of(*pid) == Some(group)) {
        inodes.extend(socket_inodes(pid));
    }
    let mut found: Vec<SocketAddr> = listeners().filter(|(_, inode)| inodes.contains(inode)).map(|(address, _)| address).collect();
    found.sort();
    found.dedup();
    found
}

/// The process that listens at a port of this machine, if it is neither of the server nor started by this process. `host` is the address at
/// which it is reached, `None` `localhost`. `None` also where the system does not tell whose a listener is.
pub fn other_listener(port: u16, host: Option<IpAddr>, server: i32) -> Option<OtherListener> {
    let own = i32::try_from(std::process::id()).ok()?;
    listener_outside((port, host), &[server, own], |pid| Mark::of_this_process().is_borne_by(pid))
}

/// Whether all that listens at a port of this machine is the server, or was started by this process. `None` where nothing listens, or the
/// system does not tell.
pub fn listens_at(port: u16, host: Option<IpAddr>, server: i32) -> Option<bool> {
    let mut inodes: HashSet<u64> = listeners_at(port, host).collect();
    if inodes.is_empty() {
        return None;
    }
    let own = i32::try_from(std::process::id()).ok()?;
    let trees: HashSet<i32> = [server, own].into_iter().flat_map(|root| family(root).chain([root])).collect();
    let is_ours = |pid: &i32| trees.contains(pid) || group_of(*pid) == Some(server) || Mark::of_this_process().is_borne_by(*pid);
    let mut is_telling = true;
    for pid in processes().filter(is_ours) {
        is_telling &= !fs::read_dir(format!("/proc/{pid}/fd")).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        for inode in socket_inodes(pid) {
            inodes.remove(&inode);
        }
    }
    if inodes.is_empty() { Some(true) } else { is_telling.then_some(false) }
}

/// The process that listens at a port, unless it is one of these, below one of these, in the group of one, or ours otherwise.
fn listener_outside(at: (u16, Option<IpAddr>), trees: &[i32], is_ours: impl Fn(i32) -> bool) -> Option<OtherListener> {
    let holds = |pid: i32, inode: u64| socket_inodes(pid).contains(&inode);
    let mut inodes = HashSet::new();
    for inode in listeners_at(at.0, at.1) {
        // The tables also have all connections of the machine. Listeners come first, so that most of it need not be read.
        if trees.iter().any(|root| holds(*root, inode) || family(*root).any(|pid| holds(pid, inode))) {
            return None;
        }
        inodes.insert(inode);
    }
    if inodes.is_empty() {
        return None;
    }
    let listens = |pid: &i32| socket_inodes(*pid).iter().any(|inode| inodes.contains(inode));
    let pid = processes().filter(|pid| group_of(*pid).is_none_or(|group| !trees.contains(&group))).find(listens)?;
    if is_ours(pid) {
        return None;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    Some(OtherListener::new(pid, &words.join(" ")))
}

/// The sockets on which somebody listens at a port.
fn listeners_at(port: u16, host: Option<IpAddr>) -> impl Iterator<Item = u64> {
    listeners().filter(move |(address, _)| address.port() == port && is_reached_at(address.ip(), host)).map(|(_, inode)| inode)
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All TCP listeners of this machine with the inodes of their sockets, read as they are asked for.
fn listeners() -> impl Iterator<Item = (SocketAddr, u64)> {
    let lines = |table: &str| fs::File::open(table).into_iter().flat_map(|table| BufReader::new(table).lines().map_while(Result::ok));
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(lines).filter_map(|line| listener(&line))
}

fn group_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name: state, parent, process group.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn socket_inodes(pid: i32) -> Vec<u64> {
    let inode = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().filter_map(inode).collect()
}

/// A line of `/proc/net/tcp`: its local address and inode, if it is in the state LISTEN.
fn listener(line: &str) -> Option<(SocketAddr, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != "0A" {
        return None;
    }
    let (host, port) = fields.get(1)?.split_once(':')?;
    // Each group of eight digits is a word in the machine's byte order.
    let words: Option<Vec<u8>> = (0..host.len() / 8)
        .map(|index| u32::from_str_radix(host.get(index * 8..index * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat());
    let words = words?;
    let address = match words.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(words).ok()?)),
        16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)),
        _ => return None,
    };
    Some((SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?), fields.get(9)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_reached_through_a_process_of_its_own() {
        let check =
            |command: &str, forwards: bool| assert_eq!(OtherListener::new(1, command).forwards_to_containers(), forwards, "{command}");
        check("/usr/bin/docker-proxy -proto tcp -host-port 1", true);
        check("com.docker.backend services", true);
        check("python3 docker-proxy", false);
        check("", false);
    }

    #[test]
    fn a_listener_of_our_own_group_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let group = nix::unistd::getpgrp().as_raw();
        assert!(listening_addresses(group).contains(&listener.local_addr().unwrap()));
    }

    #[test]
    fn a_listener_of_another_process_is_told_with_its_command_and_one_of_the_own_tree_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        let mut server = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(server.id()).unwrap();
        let outside = |port: u16, host: [u8; 4]| listener_outside((port, Some(host.into())), &[id], |_| false);
        let found = outside(port, [127, 0, 0, 1]);
        let (elsewhere, of_nobody) = (outside(port, [127, 0, 0, 9]), outside(1, [127, 0, 0, 1]));
        let of_the_own = other_listener(port, None, id);
        let held = [listens_at(port, None, id), listens_at(1, None, id)];
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(found.as_ref().is_some_and(|found| found.to_string().starts_with(&format!("process {own} (`"))), "{found:?}");
        assert_eq!((of_the_own, of_nobody, elsewhere), (None, None, None));
        assert_eq!(held, [Some(true), None]);
    }
}
