//! Servers and clients that others wrote, as `cargo xtask peers` installs them. `peers/*.json` says how they are started.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Peer(pub(crate) Value);

/// How a server is started over one transport.
pub(crate) struct Start {
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
}

impl Peer {
    pub(crate) fn named(name: &str) -> Self {
        let mut all = read("servers.json");
        assert!(all[name].is_object(), "no server {name} in peers/servers.json");
        Self(all[name].take())
    }

    pub(crate) fn start(&self, transport: &str) -> Start {
        let start = &self.0[transport];
        assert!(start.is_object(), "it has no {transport}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Start {
            command: words(&start["command"]),
            env: start["env"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect(),
            cwd: start["cwd"].as_str().map(str::to_owned),
            url: start["url"].as_str().map(str::to_owned),
        }
    }
}

/// Of all servers.
pub(crate) fn names() -> Vec<String> {
    read("servers.json").as_object().unwrap().keys().cloned().collect()
}

/// The command of a client.
pub(crate) fn installed(client: &str) -> Vec<String> {
    words(&read("clients.json")[client]["command"])
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn words(value: &Value) -> Vec<String> {
    let words: Vec<String> = value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    for path in words.iter().filter(|word| word.contains("/node_modules/") || word.contains("/bin/")) {
        assert!(Path::new(path).exists(), "{path} is not there: run `cargo xtask peers` first");
    }
    words
}

fn read(file: &str) -> Value {
    let text = std::fs::read_to_string(root().join("peers").join(file)).unwrap();
    let peers = root().join("target/peers");
    serde_json::from_str(&text.replace("${peers}", peers.to_str().unwrap())).unwrap()
}
