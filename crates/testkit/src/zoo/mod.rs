//! The zoo: one correct server, made by hand without an SDK, and many animals that are that server with one change, so that
//! each breaks one law of the protocol on a real wire. Each animal is a row of a table; the table of an area is a file.
//! Knows the names of the rules that ought to catch its animals, and nothing of what catches them.

mod changes;
mod mutation;
mod server;
mod slip;
mod twist;

mod apps;
mod calls;
mod cors;
mod events;
mod fixtures;
mod framing;
mod http;
mod jsonrpc;
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

pub use crate::reach::Reach;
pub use mutation::catalogue;
pub use server::TOKEN;

use mutation::Meddler;
use server::Server;
use slip::Slip;
use std::io;
use twist::Twist;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// The correct server with one change.
#[derive(Debug)]
pub struct Animal {
    pub name: &'static str,
    /// What it does, for people.
    pub does: &'static str,
    /// The id of the rule that it breaks.
    pub rule: &'static str,
    /// The transports on which the change shows: `stdio`, `http`, `sse`.
    pub on: &'static [&'static str],
    /// The eras in which it shows.
    pub eras: &'static [Era],
    twist: Twist,
}

impl Animal {
    /// Where the change shows. There is no HTTP+SSE in the modern era.
    pub fn places(&self) -> impl Iterator<Item = (&'static str, Era)> {
        let all = self.on.iter().flat_map(|transport| self.eras.iter().map(|era| (*transport, *era)));
        all.filter(|place| *place != ("sse", Era::Modern))
    }
}

/// The correct server, the same behind OAuth, and the same with the fixtures of the official conformance suite.
pub const CORRECT: [&str; 3] = ["none", "guarded", "fixtures"];

/// What answers an invocation: a server, how it is reached, and the eras that it answers.
#[derive(Debug)]
pub struct Invocation {
    pub name: String,
    pub reach: Reach,
    pub eras: &'static [Era],
    twist: &'static Twist,
}

/// What was typed is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "usage: zoo NAME --stdio | --http PORT | --sse PORT [--era legacy|modern] [--mutate MUTATION [--nth N] [--witness FILE]] [--journal FILE], where NAME is `none` (the correct server), `guarded` (the same behind OAuth), `fixtures` (the same with those of the official conformance suite), or one of {}",
    names()
)]
pub struct Usage;

fn names() -> String {
    animals().map(|animal| animal.name).collect::<Vec<_>>().join(", ")
}

const STDIO: &[&str] = &["stdio"];
const HTTP: &[&str] = &["http"];
const SSE: &[&str] = &["sse"];
const WEB: &[&str] = &["http", "sse"];
/// Where every message of the server comes on one channel.
const PIPES: &[&str] = &["stdio", "sse"];
const ALL: &[&str] = &["stdio", "http", "sse"];
const LEGACY: &[Era] = &[Era::Legacy];
const MODERN: &[Era] = &[Era::Modern];
const BOTH: &[Era] = &[Era::Legacy, Era::Modern];

/// A row of a table.
const fn animal(
    name: &'static str,
    does: &'static str,
    rule: &'static str,
    on: &'static [&'static str],
    eras: &'static [Era],
    twist: Twist,
) -> Animal {
    Animal { name, does, rule, on, eras, twist }
}

/// Every animal.
pub fn animals() -> impl Iterator<Item = &'static Animal> {
    const AREAS: &[&[Animal]] = &[
        lifecycle::ANIMALS,
        jsonrpc::ANIMALS,
        framing::ANIMALS,
        process::ANIMALS,
        robustness::ANIMALS,
        events::ANIMALS,
        http::ANIMALS,
        sessions::ANIMALS,
        cors::ANIMALS,
        security::ANIMALS,
        lists::ANIMALS,
        tools::ANIMALS,
        calls::ANIMALS,
        poisoning::ANIMALS,
        resources::ANIMALS,
        apps::ANIMALS,
        modern::ANIMALS,
        fixtures::ANIMALS,
        tasks::ANIMALS,
    ];
    AREAS.iter().flat_map(|area| area.iter())
}

/// Reads `NAME --stdio`, `NAME --http PORT` or `NAME --sse PORT`, and `--era legacy` or `--era modern` after it. Of a correct
/// server one thing can be changed after that (`--mutate`), or written down what it says (`--journal`). What else follows marks
/// the process and means nothing. Without an era, both are answered. Streamable HTTP is at `/mcp`, HTTP+SSE at `/sse`,
/// on 127.0.0.1; stderr tells which port 0 has become.
///
/// # Errors
/// It is none of these.
pub fn parse(arguments: &[String]) -> Result<Invocation, Usage> {
    static TWISTS: [Twist; 3] = [Twist::Nothing, Twist::Guarded(|_, _| ()), Twist::Fixtures(|_, message| vec![message])];
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, words) = words.split_first().ok_or(Usage)?;
    let (reach, rest) = Reach::parse(words).ok_or(Usage)?;
    let eras = match rest {
        ["--era", "legacy", ..] => LEGACY,
        ["--era", "modern", ..] => MODERN,
        ["--era", ..] => return Err(Usage),
        _ => BOTH,
    };
    let correct = CORRECT.iter().zip(&TWISTS).find(|(known, _)| *known == name).map(|(_, twist)| twist);
    let meddler = correct.and_then(|_| Meddler::parse(name, rest));
    if let Some(meddler) = meddler {
        // A process is one server, for as long as it lives.
        let twist: &'static Twist = Box::leak(Box::new(Twist::Mutated(Box::leak(Box::new(meddler)))));
        return Ok(Invocation { name: (*name).to_owned(), reach, eras, twist });
    }
    let twist = correct.or_else(|| animals().find(|animal| animal.name == *name).map(|animal| &animal.twist)).ok_or(Usage)?;
    Ok(Invocation { name: (*name).to_owned(), reach, eras, twist })
}

/// Is that server until its client has gone (stdio) or for good (HTTP).
///
/// # Errors
/// The client has gone, or the port is taken.
pub fn run(invocation: &Invocation) -> io::Result<()> {
    server::serve(&Server::new(invocation.twist, invocation.eras), invocation.reach)
}
