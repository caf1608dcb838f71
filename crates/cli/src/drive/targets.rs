//! Resolves a target of the driver to a server and its connection, as on the command line. Starts nothing.

use super::error::DriveError;
use crate::failure::Failure;
use crate::network::NetworkArgs;
use crate::target::{self, Resolved, TargetArgs, Words};
use mcproof_client::{Guardian, Reading, Target, free_port};
use mcproof_protocol::EraChoice;
use mcproof_record::drive::{DriveTarget, Timeouts};
use mcproof_suite::run::locate_by;
use std::collections::BTreeMap;
use std::time::Duration;

/// What all targets have in common.
pub(super) struct Targets {
    plain: TargetArgs,
    guardian: Guardian,
    reach: Reach,
}

/// Which servers there can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Any,
    /// In a process that is the driver's nothing is started, and no socket opened.
    Relays,
}

/// Stands for a free port.
const PORT: &str = "${port}";

const USUAL: Duration = Duration::from_secs(30);

impl Targets {
    pub(super) fn new(network: &NetworkArgs, guardian: Guardian) -> Result<Self, Failure> {
        // Unreadable files are reported before any request.
        network.network()?;
        Ok(Self { plain: TargetArgs::of_network(network), guardian, reach: Reach::Any })
    }

    /// Those of a drive that has no process of its own.
    pub(super) fn relays_only() -> Self {
        Self { plain: TargetArgs::of_no_words(), guardian: Guardian::default(), reach: Reach::Relays }
    }

    /// The server that a target names; `spawned` is the address of the one that it names by `spawned`.
    pub(super) fn resolve(
        &self,
        wanted: &DriveTarget,
        spawned: Option<String>,
        era: EraChoice,
        version: Option<&str>,
        timeouts: &Timeouts,
    ) -> Result<Resolved, DriveError> {
        check_names(wanted)?;
        if self.reach == Reach::Relays {
            return Err(DriveError::bad("bad-target", "only a `relay` can be a target here: all others require `mcproof drive`"));
        }
        let mut arguments = self.common(era, version, timeouts)?;
        arguments.cwd = wanted.cwd.as_ref().map(Into::into);
        arguments.header = headers(&wanted.headers)?;
        arguments.transport = wanted.transport;
        arguments.server.clone_from(&wanted.server);
        arguments.config = wanted.config.as_ref().map(Into::into);
        let mut words = Vec::new();
        match (&wanted.url, spawned) {
            (Some(url), _) if wanted.command.is_empty() => arguments.server_url = Some(url.clone()),
            (Some(url), _) => {
                let filled = self.filled(&wanted.command, &wanted.env, url)?;
                (arguments.command, arguments.env) = (filled.command, filled.env);
                words.push(filled.url);
            }
            (None, Some(address)) => arguments.server_url = Some(address),
            (None, None) => {
                arguments.command.clone_from(&wanted.command);
                arguments.env = pairs(&wanted.env);
            }
        }
        if wanted.server.is_some() {
            arguments.env = pairs(&wanted.env);
        }
        let mut resolved = arguments.resolve(&words, Words::Name)?;
        // Whoever drives a session tests a server.
        resolved.options.reading = Reading::Strict;
        resolved.options.guardian = self.guardian.clone();
        if let Some(pattern) = &wanted.port_from {
            let template = wanted.url.as_deref().unwrap_or_default();
            let found = locate_by(pattern, template).map_err(|reason| DriveError::bad("bad-regex", format!("`port_from`: {reason}")))?;
            match &mut resolved.target {
                Target::Http { locate, launch: Some(_), .. } => *locate = Some(found),
                _ => return Err(DriveError::bad("bad-target", "`port_from` requires `command` and `url`")),
            }
        }
        Ok(resolved)
    }

    /// What there is to know where the driver is the transport: all but a server.
    pub(super) fn relayed(
        &self,
        wanted: &DriveTarget,
        era: EraChoice,
        version: Option<&str>,
        timeouts: &Timeouts,
    ) -> Result<Resolved, DriveError> {
        let mut arguments = self.common(era, version, timeouts)?;
        check_names(wanted)?;
        // Never started: a relay is opened with the options alone.
        arguments.command = vec!["relay".to_owned()];
        let mut resolved = arguments.resolve(&[], Words::Name)?;
        resolved.options.reading = Reading::Strict;
        resolved.options.guardian = self.guardian.clone();
        Ok(resolved)
    }

    fn common(&self, era: EraChoice, version: Option<&str>, timeouts: &Timeouts) -> Result<TargetArgs, DriveError> {
        let mut arguments = self.plain.clone();
        arguments.era = era;
        arguments.protocol_version = version.map(str::to_owned);
        arguments.timeout = duration("timeouts.request_ms", timeouts.request_ms, USUAL)?;
        let connect = timeouts.connect_ms.map(|_| duration("timeouts.connect_ms", timeouts.connect_ms, USUAL)).transpose()?;
        arguments.connect_timeout = connect;
        Ok(arguments)
    }

    fn filled(&self, command: &[String], env: &BTreeMap<String, String>, url: &str) -> Result<Filled, DriveError> {
        let mentions = |text: &String| text.contains(PORT);
        let port = if url.contains(PORT) || command.iter().chain(env.values()).any(mentions) {
            let port = free_port().map_err(|error| DriveError::bad("no-port", format!("no free port: {error}")))?;
            port.to_string()
        } else {
            String::new()
        };
        let fill = |text: &String| text.replace(PORT, &port);
        let env = env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        Ok(Filled { command: command.iter().map(fill).collect(), env, url: url.replace(PORT, &port) })
    }
}

/// Whether a target says one thing.
fn check_names(wanted: &DriveTarget) -> Result<(), DriveError> {
    let named = [
        ("command", !wanted.command.is_empty() && wanted.url.is_none()),
        ("url", wanted.url.is_some()),
        ("spawned", wanted.spawned.is_some()),
        ("server", wanted.server.is_some()),
        ("relay", wanted.relay.is_some()),
    ];
    let named: Vec<&str> = named.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect();
    if named.len() != 1 {
        let found = if named.is_empty() { "none".to_owned() } else { named.join(" and ") };
        let message = format!("a target requires one of `command`, `url`, `spawned`, `server` and `relay`; found {found}");
        return Err(DriveError::bad("bad-target", message));
    }
    Ok(())
}

/// What starts a server, with its port.
struct Filled {
    command: Vec<String>,
    env: Vec<(String, String)>,
    url: String,
}

/// Milliseconds of a driver.
pub(super) fn duration(name: &str, milliseconds: Option<f64>, usual: Duration) -> Result<Duration, DriveError> {
    let Some(milliseconds) = milliseconds else { return Ok(usual) };
    Duration::try_from_secs_f64(milliseconds / 1e3)
        .map_err(|_| DriveError::bad("bad-duration", format!("`{name}` must be a number of milliseconds, found {milliseconds}")))
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn headers(map: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, DriveError> {
    let check = |(name, value): (&String, &String)| {
        target::parse_header(&format!("{name}: {value}"))
            .map_err(|_| DriveError::bad("bad-header", format!("`{name}` cannot be sent as a header")))
    };
    map.iter().map(check).collect()
}
