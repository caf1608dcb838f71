//! Resolves a target of the driver to a server and its connection. Knows which members a target may have; what they lead to on this
//! machine, such as a name in a configuration file, is up to the resolver. Starts nothing.

use crate::error::DriveError;
use mcproof_analysis::diagnosis::Audience;
use mcproof_analysis::offer::check_revision;
use mcproof_check::HostStart;
use mcproof_client::{ConnectOptions, Guardian, Launch, Limits, Reading, TapBounds, Target};
use mcproof_protocol::{EraChoice, TransportChoice};
use mcproof_record::Diagnostic;
use mcproof_record::drive::{DriveTarget, Timeouts};
use mcproof_suite::run::locate_by;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Finds the server that a driver names, as its owner finds servers.
pub trait TargetResolver {
    /// # Errors
    /// The server cannot be found, or not be reached in this way.
    fn resolve(&self, wanted: TargetRequest) -> Result<ResolvedTarget, Diagnostic>;

    /// The same server as a desktop host starts it, if `target`, which is what it was resolved to, is one that hosts start.
    fn host_start(&self, wanted: TargetRequest, target: &Target) -> Option<HostStart>;
}

/// The server that a driver names, by a command, a URL (with a command: what starts the server there) or a name.
#[derive(Debug)]
pub struct TargetRequest {
    pub command: Vec<String>,
    pub url: Option<String>,
    /// Its name in a configuration file.
    pub server: Option<String>,
    /// The configuration file.
    pub config: Option<PathBuf>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
    pub headers: Vec<(String, String)>,
    pub transport: TransportChoice,
    pub era: EraChoice,
    pub protocol_version: Option<String>,
    /// For each request.
    pub timeout: Duration,
    /// For start and handshake, if the driver named it.
    pub connect_timeout: Option<Duration>,
}

/// A server, and how to connect to it.
pub struct ResolvedTarget {
    pub target: Target,
    pub options: ConnectOptions,
    /// Never to be recorded or shown.
    pub secrets: Vec<String>,
    /// For each request.
    pub timeout: Duration,
    /// What is kept of the traffic.
    pub tap: TapBounds,
}

/// What is the same for all sessions, whatever their server is.
pub struct Settings {
    pub limits: Limits,
    pub tap: TapBounds,
    /// Values of the environment, never to be recorded or shown.
    pub secrets: Vec<String>,
    /// Prints a message for people.
    pub talk: fn(&str),
}

/// What all targets have in common.
pub(crate) struct Targets {
    /// `None`: only relays can be targets. In a process that is the driver's nothing is started, and no socket opened.
    resolver: Option<Box<dyn TargetResolver>>,
    settings: Settings,
    guardian: Guardian,
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

impl Targets {
    pub(crate) fn new(resolver: Box<dyn TargetResolver>, settings: Settings, guardian: Guardian) -> Self {
        Self { resolver: Some(resolver), settings, guardian }
    }

    /// Those of a drive that has no process of its own.
    pub(crate) fn relays_only(settings: Settings) -> Self {
        Self { resolver: None, settings, guardian: Guardian::default() }
    }

    pub(crate) fn talk(&self, text: &str) {
        (self.settings.talk)(text);
    }

    /// The server that a target names; `spawned` is the address of the one that it names by `spawned`.
    pub(crate) fn resolve(
        &self,
        wanted: &DriveTarget,
        spawned: Option<String>,
        era: EraChoice,
        version: Option<&str>,
        timeouts: &Timeouts,
    ) -> Result<ResolvedTarget, DriveError> {
        check_names(wanted)?;
        let Some(resolver) = &self.resolver else {
            return Err(DriveError::bad("bad-target", "only a `relay` can be a target here: all others require `mcproof drive`"));
        };
        let request = request(wanted, spawned, era, version, timeouts)?;
        let mut resolved = resolver.resolve(request).map_err(|diagnostic| DriveError::bad_input(vec![diagnostic]))?;
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

    /// The server of a target as a desktop host starts it, if hosts start such a server.
    pub(crate) fn host_start(&self, wanted: &DriveTarget, timeouts: &Timeouts, target: &Target) -> Result<Option<HostStart>, DriveError> {
        let Some(resolver) = &self.resolver else { return Ok(None) };
        Ok(resolver.host_start(request(wanted, None, EraChoice::Auto, None, timeouts)?, target))
    }

    /// What there is to know where the driver is the transport: all but a server.
    pub(crate) fn relayed(
        &self,
        wanted: &DriveTarget,
        era: EraChoice,
        version: Option<&str>,
        timeouts: &Timeouts,
    ) -> Result<ResolvedTarget, DriveError> {
        check_names(wanted)?;
        check_version(version, era)?;
        let (timeout, connect_timeout) = read_timeouts(timeouts)?;
        let options = ConnectOptions {
            era,
            protocol_version: version.map(str::to_owned),
            timeout: Some(connect_timeout.unwrap_or(CONNECT_TIMEOUT)),
            reading: Reading::Strict,
            guardian: self.guardian.clone(),
            limits: self.settings.limits,
            ..ConnectOptions::default()
        };
        // Never started: a relay is opened with the options alone.
        let target = Target::Stdio(Launch { command: vec!["relay".to_owned()], ..Launch::default() });
        Ok(ResolvedTarget { target, options, secrets: self.settings.secrets.clone(), timeout, tap: self.settings.tap })
    }
}

/// A target as the resolver is asked for it.
fn request(
    wanted: &DriveTarget,
    spawned: Option<String>,
    era: EraChoice,
    version: Option<&str>,
    timeouts: &Timeouts,
) -> Result<TargetRequest, DriveError> {
    check_version(version, era)?;
    let (timeout, connect_timeout) = read_timeouts(timeouts)?;
    let starts_or_is_named = !wanted.command.is_empty() || wanted.server.is_some();
    Ok(TargetRequest {
        command: wanted.command.clone(),
        url: wanted.url.clone().or(spawned),
        server: wanted.server.clone(),
        config: wanted.config.as_ref().map(Into::into),
        env: if starts_or_is_named { pairs(&wanted.env) } else { Vec::new() },
        cwd: wanted.cwd.as_ref().map(Into::into),
        headers: pairs(&wanted.headers),
        transport: wanted.transport,
        era,
        protocol_version: version.map(str::to_owned),
        timeout,
        connect_timeout,
    })
}

fn check_version(version: Option<&str>, era: EraChoice) -> Result<(), DriveError> {
    let wrong = version.and_then(|version| check_revision(version, era, Audience::Driver));
    wrong.map_or(Ok(()), |diagnostic| Err(DriveError::bad_input(vec![diagnostic])))
}

/// Of a request, and of start and handshake.
fn read_timeouts(timeouts: &Timeouts) -> Result<(Duration, Option<Duration>), DriveError> {
    let timeout = duration("timeouts.request_ms", timeouts.request_ms, REQUEST_TIMEOUT)?;
    let connect = timeouts.connect_ms.map(|_| duration("timeouts.connect_ms", timeouts.connect_ms, CONNECT_TIMEOUT)).transpose()?;
    Ok((timeout, connect))
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

/// Milliseconds of a driver; zero is neither "no limit" nor a wait.
pub(crate) fn duration(name: &str, milliseconds: Option<f64>, usual: Duration) -> Result<Duration, DriveError> {
    let Some(milliseconds) = milliseconds else { return Ok(usual) };
    let read = Duration::try_from_secs_f64(milliseconds / 1e3).ok().filter(|read| !read.is_zero());
    read.ok_or_else(|| {
        DriveError::bad("bad-duration", format!("`{name}` must be a number of milliseconds above zero, found {milliseconds}"))
    })
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
