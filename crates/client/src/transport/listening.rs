//! Finds out where a process group listens, to tell "listens elsewhere" from "does not listen". Linux only; elsewhere
//! the response is empty, and a diagnosis says less.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP addresses on which processes of the group accept connections, sorted.
pub(crate) fn listening_addresses(group: i32) -> Vec<SocketAddr> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if group_of(pid) == Some(group) {
            inodes.extend(socket_inodes(pid));
        }
    }
    let mut found: Vec<SocketAddr> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|table| fs::read_to_string(table).unwrap_or_default().lines().skip(1).filter_map(listener).collect::<Vec<_>>())
        .filter(|(_, inode)| inodes.contains(inode))
        .map(|(address, _)| address)
        .collect();
    found.sort();
    found.dedup();
    found
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_our_own_group_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let group = nix::unistd::getpgrp().as_raw();
        assert!(listening_addresses(group).contains(&listener.local_addr().unwrap()));
    }
}
