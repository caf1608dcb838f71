//! What a configuration file says, read and resolved: whom to probe, whom to tell. Inert data; only the reader knows YAML.

mod channel;
mod import;
mod leaves;
mod reader;
mod route;
mod suite;
mod target;
mod window;

pub use reader::{Loaded, config_schema, database_of, load};
pub(crate) use suite::load_read_only;
pub(crate) use target::{NAMES, is_name};
pub use window::{When, Window};

use crate::incident::Severity;
use crate::seal::SealKey;
pub use crate::secret::Secret;
use mcproof_engine::oddities::Oddities;
use mcproof_engine::suite::plan::Server;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Config {
    /// `sqlite:FILE` or `postgres://…`.
    pub database: String,
    /// Where the dashboard listens; nowhere if missing.
    pub listen: Option<SocketAddr>,
    /// How people reach the dashboard: the links in pages begin with it. Without a slash at its end.
    pub public_url: Option<String>,
    /// Where this process probes from.
    pub region: String,
    /// By name.
    pub targets: BTreeMap<String, TargetSpec>,
    /// By name.
    pub channels: BTreeMap<String, ChannelSpec>,
    /// The first one that matches an incident says whom to tell.
    pub routes: Vec<Route>,
    pub maintenance: Vec<Window>,
    /// Pinged as long as results are written, so that somebody notices when they are not.
    pub heartbeat: Option<Heartbeat>,
    /// `host:port` that can be reached as long as our own network works. A probe that fails without reaching its server counts
    /// only if one of them can be.
    pub canaries: Vec<String>,
    pub retention: Retention,
    /// Whether targets that were added over the API may have a private address.
    pub allow_private: bool,
    /// What secrets in the store are sealed with.
    pub seal: Option<SealKey>,
    pub login: Login,
    /// OTLP over HTTP, such as `http://127.0.0.1:4318`.
    pub otlp: Option<String>,
}

/// Nobody is watched, and nobody is told.
impl Default for Config {
    fn default() -> Self {
        Self {
            database: "sqlite:mcproof-watch.db".into(),
            listen: None,
            public_url: None,
            region: "local".into(),
            targets: BTreeMap::new(),
            channels: BTreeMap::new(),
            routes: Vec::new(),
            maintenance: Vec::new(),
            heartbeat: None,
            canaries: Vec::new(),
            retention: Retention::default(),
            allow_private: false,
            seal: None,
            login: Login::default(),
            otlp: None,
        }
    }
}

impl Config {
    /// Who is told of an incident: the first route for this severity, and for one of these tags.
    pub fn route(&self, severity: Severity, tags: &[String]) -> Option<&Route> {
        self.routes.iter().find(|route| route.covers(severity, tags))
    }
}

/// A server, how to reach it, and what is expected of it.
#[derive(Clone, Debug)]
pub struct TargetSpec {
    pub name: String,
    pub kind: TargetKind,
    /// Between two scheduled probes.
    pub every: Duration,
    /// For the handshake, and for the lists.
    pub timeout: Duration,
    /// Who probes it; the region of this process if empty.
    pub regions: Vec<String>,
    pub tags: Vec<String>,
    /// What the server has promised; without it, what it showed first.
    pub lock: Option<PathBuf>,
    /// A suite whose cases are run after each good probe.
    pub suite: Option<PathBuf>,
    /// Share of good minutes that is promised, in percent, such as 99.9.
    pub objective: Option<f64>,
    /// The process of a stdio server lives on between probes.
    pub keep: bool,
    /// What becomes of what not every client takes.
    pub oddities: Oddities,
    /// On the public status page.
    pub public: bool,
}

#[derive(Clone, Debug)]
pub enum TargetKind {
    /// With exactly one binding.
    Server(Box<Server>),
    /// The `/healthz` of another monitor.
    Monitor(String),
}

#[derive(Clone, Debug)]
pub enum ChannelSpec {
    PagerDuty {
        routing_key: Secret,
        url: String,
    },
    /// Jira Service Management.
    Jira {
        url: String,
        api_key: Secret,
    },
    /// Its root, without `/api/v2/alerts`.
    Alertmanager {
        url: Secret,
    },
    Slack {
        url: Secret,
    },
    Discord {
        url: Secret,
    },
    Teams {
        url: Secret,
    },
    Smtp {
        url: Secret,
        from: String,
        to: Vec<String>,
    },
    /// The body is signed with HMAC-SHA-256.
    Webhook {
        url: Secret,
        secret: Option<Secret>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Empty: all.
    pub severities: Vec<Severity>,
    /// Empty: all. Otherwise targets with one of these tags.
    pub tags: Vec<String>,
    /// The first one is told; the next one if that did not work within two minutes.
    pub channels: Vec<String>,
    /// Until somebody acknowledges.
    pub remind_every: Option<Duration>,
}

impl Route {
    pub(crate) fn covers(&self, severity: Severity, tags: &[String]) -> bool {
        let severe = self.severities.is_empty() || self.severities.contains(&severity);
        severe && (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)))
    }
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub url: Secret,
    pub every: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub raw: Duration,
    pub five_minutes: Duration,
    pub hours: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        Self { raw: days(7), five_minutes: days(14), hours: days(396) }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Login {
    /// Tokens that open the dashboard and the API.
    pub tokens: Vec<Secret>,
    /// A header in which a proxy in front of us says who the user is; taken only from these addresses.
    pub proxy_header: Option<(String, Vec<IpAddr>)>,
}

#[cfg(test)]
mod tests;
