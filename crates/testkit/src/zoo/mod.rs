//! The zoo: one correct server, made by hand without an SDK, and many broken servers that are that server with one change, so that
//! each breaks one requirement of the protocol on a real wire. Each broken server is a row of a table; the table of an area is a file.
//! Knows the names of the rules that ought to catch its broken servers, but not the rules themselves.

mod changes;
mod deviation;
mod internal_deviation;
mod mutation;
mod server;

mod apps;
mod calls;
mod cors;
mod events;
mod fixtures;
mod framing;
mod http;
mod jsonrpc;
mod large;
mod lifecycle;
mod lists;
mod modern;
mod poisoning;
mod process;
mod resources;
mod robustness;
mod security;
mod sessions;
mod tasks;
mod tools;

pub use crate::server_transport::ServerTransport;
pub use mutation::catalogue;
pub use server::TOKEN;

use deviation::Deviation;
use internal_deviation::InternalDeviation;
use mcproof_protocol::Era;
use mutation::Mutator;
use server::Server;
use std::io;

/// The correct server with one change.
#[derive(Debug)]
pub struct BrokenServer {
    pub name: &'static str,
    /// What it does, in words.
    pub does: &'static str,
    /// The id of the rule that it breaks.
    pub rule: &'static str,
    /// The transports on which the change shows: `stdio`, `http`, `sse`.
    pub on: &'static [&'static str],
    /// The eras in which it shows.
    pub eras: &'static [Era],
    deviation: Deviation,
}

impl BrokenServer {
    /// Where the change shows. There is no HTTP+SSE in the modern era.
    pub fn places(&self) -> impl Iterator<Item = (&'static str, Era)> {
        let all = self.on.iter().flat_map(|transport| self.eras.iter().map(|era| (*transport, *era)));
        all.filter(|place| *place != ("sse", Era::Modern))
    }
}

/// The correct server, the same behind OAuth, with the fixtures of the official conformance suite, and with thousands of tools.
pub const CORRECT: [&str; 4] = ["none", "guarded", "fixtures", "many-tools"];

/// A parsed command line: a server, its transport, and its eras.
#[derive(Debug)]
pub struct Invocation {
    pub name: String,
    pub transport: ServerTransport,
    pub eras: &'static [Era],
    deviation: &'static Deviation,
}

/// The command line names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "usage: zoo NAME --stdio | --http PORT | --sse PORT [--era legacy|modern] [--mutate MUTATION [--nth N] [--witness FILE]] [--journal FILE], where NAME is `none` (the correct server), `guarded` (the same behind OAuth), `fixtures` (the same with those of the official conformance suite), or one of {}",
    names()
)]
pub struct Usage;

fn names() -> String {
    broken_servers().map(|broken_server| broken_server.name).collect::<Vec<_>>().join(", ")
}

const STDIO: &[&str] = &["stdio"];
const HTTP: &[&str] = &["http"];
const SSE: &[&str] = &["sse"];
const WEB: &[&str] = &["http", "sse"];
/// Transports on which all messages of the server share one channel.
const PIPES: &[&str] = &["stdio", "sse"];
const ALL: &[&str] = &["stdio", "http", "sse"];
const LEGACY: &[Era] = &[Era::Legacy];
const MODERN: &[Era] = &[Era::Modern];
const BOTH: &[Era] = &[Era::Legacy, Era::Modern];

/// A row of a table.
const fn broken_server(
    name: &'static str,
    does: &'static str,
    rule: &'static str,
    on: &'static [&'static str],
    eras: &'static [Era],
    deviation: Deviation,
) -> BrokenServer {
    BrokenServer { name, does, rule, on, eras, deviation }
}

/// Every broken server.
pub fn broken_servers() -> impl Iterator<Item = &'static BrokenServer> {
    const AREAS: &[&[BrokenServer]] = &[
        lifecycle::BROKEN_SERVERS,
        jsonrpc::BROKEN_SERVERS,
        framing::BROKEN_SERVERS,
        process::BROKEN_SERVERS,
        robustness::BROKEN_SERVERS,
        events::BROKEN_SERVERS,
        http::BROKEN_SERVERS,
        sessions::BROKEN_SERVERS,
        cors::BROKEN_SERVERS,
        security::BROKEN_SERVERS,
        lists::BROKEN_SERVERS,
        tools::BROKEN_SERVERS,
        calls::BROKEN_SERVERS,
        poisoning::BROKEN_SERVERS,
        resources::BROKEN_SERVERS,
        apps::BROKEN_SERVERS,
        modern::BROKEN_SERVERS,
        fixtures::BROKEN_SERVERS,
        tasks::BROKEN_SERVERS,
    ];
    AREAS.iter().flat_map(|area| area.iter())
}

/// Reads `NAME --stdio`, `NAME --http PORT` or `NAME --sse PORT`, and `--era legacy` or `--era modern` after it. Of a correct
/// server one thing can be changed after that (`--mutate`), or its messages recorded (`--journal`). Other arguments only mark
/// the process. Without an era, both are supported. Streamable HTTP is at `/mcp`, HTTP+SSE at `/sse`,
/// on 127.0.0.1; stderr has the port if it is 0.
///
/// # Errors
/// It is none of these.
pub fn parse(arguments: &[String]) -> Result<Invocation, Usage> {
    static DEVIATIONS: [Deviation; 4] = [
        Deviation::Nothing,
        Deviation::Guarded(|_, _| ()),
        Deviation::Fixtures(|_, message| vec![message]),
        Deviation::Catalogue(large::many_tools),
    ];
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, words) = words.split_first().ok_or(Usage)?;
    let (transport, rest) = ServerTransport::parse(words).ok_or(Usage)?;
    let eras = match rest {
        ["--era", "legacy", ..] => LEGACY,
        ["--era", "modern", ..] => MODERN,
        ["--era", ..] => return Err(Usage),
        _ => BOTH,
    };
    let correct = CORRECT.iter().zip(&DEVIATIONS).find(|(known, _)| *known == name).map(|(_, deviation)| deviation);
    let mutator = correct.and_then(|_| Mutator::parse(name, rest));
    if let Some(mutator) = mutator {
        // A process is one server for its whole lifetime.
        let deviation: &'static Deviation = Box::leak(Box::new(Deviation::Mutated(Box::leak(Box::new(mutator)))));
        return Ok(Invocation { name: (*name).to_owned(), transport, eras, deviation });
    }
    let deviation = correct
        .or_else(|| broken_servers().find(|broken_server| broken_server.name == *name).map(|broken_server| &broken_server.deviation))
        .ok_or(Usage)?;
    Ok(Invocation { name: (*name).to_owned(), transport, eras, deviation })
}

/// Runs that server until its client disconnects (stdio), or forever (HTTP).
///
/// # Errors
/// The client has disconnected, or the port is in use.
pub fn run(invocation: &Invocation) -> io::Result<()> {
    server::serve(&Server::new(invocation.deviation, invocation.eras), invocation.transport)
}
