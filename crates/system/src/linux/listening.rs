//! Finds out where a process group listens, to tell "listens elsewhere" from "does not listen", and who else listens at a port.

use super::family::family;
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
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

/// The process that listens at a port of this machine, if it is neither below the server nor below this process, as
/// ``process 4321 (`python other.py`)``. `None` also where the system does not tell whose a listener is.
pub fn other_listener(port: u16, server: i32) -> Option<String> {
    listener_outside(port, &[server, i32::try_from(std::process::id()).ok()?])
}

/// The process that listens at a port, unless it is one of these, below one of these, or in the group of one.
fn listener_outside(port: u16, trees: &[i32]) -> Option<String> {
    let holds = |pid: i32, inode: u64| socket_inodes(pid).contains(&inode);
    let mut inodes = HashSet::new();
    for (_, inode) in listeners().filter(|(address, _)| address.port() == port) {
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
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let command: String = words.join(" ").trim().chars().take(LONGEST_COMMAND).collect();
    Some(format!("process {pid} (`{command}`)"))
}

/// Characters of a command that are shown.
const LONGEST_COMMAND: usize = 80;

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
        let found = listener_outside(port, &[id]);
        let (of_the_own, of_nobody) = (other_listener(port, id), listener_outside(1, &[id]));
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(found.as_deref().is_some_and(|found| found.starts_with(&format!("process {own} (`"))), "{found:?}");
        assert_eq!((of_the_own, of_nobody), (None, None));
    }
}
