//! Servers that are started without a session, so that several sessions can share one. Knows processes, no messages.

use crate::Drive;
use crate::error::DriveError;
use crate::sessions::{closed, milliseconds, process_id};
use crate::targets::ResolvedTarget;
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{Session, ShutdownTimeouts, Tap, open_bare};
use mcproof_protocol::{EraChoice, Revision, Transport};
use mcproof_record::drive::{Closed, DriveTarget, NameOnly, SpawnParams, Spawned};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;
use url::Url;

#[derive(Default)]
pub(crate) struct Servers(RefCell<HashMap<String, Place>>);

enum Place {
    Starting,
    Running { holder: Box<Session>, tap: Tap, url: Url },
}

impl Servers {
    /// Where to reach a server, at the path of its own URL if no other is given.
    pub(crate) fn address(&self, name: &str, path: Option<&str>) -> Result<String, DriveError> {
        match self.0.borrow().get(name) {
            Some(Place::Running { url, .. }) => match path.map(|path| url.join(path)) {
                None => Ok(url.to_string()),
                Some(Ok(joined)) => Ok(joined.to_string()),
                Some(Err(error)) => Err(DriveError::bad("bad-url", format!("`path` is not valid: {error}"))),
            },
            Some(Place::Starting) => {
                Err(DriveError::bad("not-ready", format!("server `{name}` is being started: wait for the response to `spawn`")))
            }
            None => Err(DriveError::gone("server", name)),
        }
    }

    pub(crate) fn taps(&self) -> Vec<Tap> {
        let running = |place: &Place| match place {
            Place::Running { tap, .. } => Some(tap.clone()),
            Place::Starting => None,
        };
        self.0.borrow().values().filter_map(running).collect()
    }

    /// What a server printed.
    pub(crate) fn tap(&self, name: &str) -> Result<Tap, DriveError> {
        match self.0.borrow().get(name) {
            Some(Place::Running { tap, .. }) => Ok(tap.clone()),
            _ => Err(DriveError::gone("server", name)),
        }
    }
}

impl Drive {
    pub(crate) async fn spawn(&self, params: SpawnParams) -> Result<Spawned, DriveError> {
        let SpawnParams { server, command, url, env, cwd, port_from, timeouts } = params;
        if server.is_empty() || command.is_empty() || url.is_empty() {
            return Err(DriveError::bad("bad-params", "`spawn` requires `server` (its name), `command` and `url`"));
        }
        let wanted = DriveTarget { command, env, cwd, port_from, url: Some(url), ..DriveTarget::default() };
        let ResolvedTarget { target, options, secrets, tap: bounds, .. } =
            self.targets.resolve(&wanted, None, EraChoice::Auto, None, &timeouts)?;
        if self.servers.0.borrow().contains_key(&server) {
            return Err(DriveError::bad("name-taken", format!("server `{server}` already exists")));
        }
        self.servers.0.borrow_mut().insert(server.clone(), Place::Starting);
        let started = Instant::now();
        let tap = Tap::with(bounds, secrets, None);
        let opened = open_bare(&target, Transport::Http, Revision::LATEST_LEGACY.as_str(), &options, &tap).await;
        let mut servers = self.servers.0.borrow_mut();
        let holder = match opened {
            Ok(holder) => holder,
            Err(failure) => {
                servers.remove(&server);
                let diagnostic = diagnosis::of_connect_failure(&failure, &target, &tap.transcript(), Audience::Driver);
                return Err(DriveError::not_open(diagnostic.map_text(|text| tap.redacted(text))));
            }
        };
        let url = holder.url().expect("it is reached over HTTP").clone();
        let spawned = Spawned {
            server: server.clone(),
            url: url.to_string(),
            port: url.port_or_known_default(),
            pid: process_id(&tap),
            elapsed_ms: milliseconds(started.elapsed()),
        };
        servers.insert(server, Place::Running { holder: Box::new(holder), tap, url });
        Ok(spawned)
    }

    pub(crate) async fn stop(&self, NameOnly { server }: NameOnly) -> Result<Closed, DriveError> {
        self.stop_within(&server, ShutdownTimeouts::default()).await
    }

    async fn stop_within(&self, name: &str, patience: ShutdownTimeouts) -> Result<Closed, DriveError> {
        let taken = self.servers.0.borrow_mut().remove(name);
        match taken {
            Some(Place::Running { holder, .. }) => Ok(closed(&holder.close_within(patience).await, Vec::new())),
            _ => Err(DriveError::gone("server", name)),
        }
    }

    pub(crate) async fn stop_all(&self, patience: ShutdownTimeouts) {
        let names: Vec<String> = self.servers.0.borrow().keys().cloned().collect();
        for name in names {
            // It may have been stopped meanwhile.
            let _ = self.stop_within(&name, patience).await;
        }
    }
}
