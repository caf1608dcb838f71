//! What a configuration file says, read and resolved: whom to probe, whom to tell. Inert data; only the reader knows YAML.

mod channel;
mod dependency;
mod hours;
mod import;
mod leaves;
mod limits;
mod login;
mod push;
mod reader;
mod reference;
mod route;
mod status;
mod suite;
mod tags;
mod target;
mod window;

pub use dependency::Dependencies;
pub use hours::Hours;
pub use reader::{Loaded, config_schema, database_of, database_of_broken, files_of, load, targets_of};
pub use status::{StatusPageSpec, StatusSpec, SubscriptionMail, SubscriptionsSpec};
pub(crate) use suite::load_read_only;
pub(crate) use target::{NAMES, is_name};
pub use window::{When, Window};

use crate::channel::Templates;
use crate::incident::Severity;
use crate::moment::Moment;
use crate::push::Expectation;
use crate::role::Role;
use crate::seal::SealKey;
use crate::state::Thresholds;
use crate::store::silences::fits;
use mcproof_analysis::oddities::Oddities;
pub use mcproof_client::auth::Secret;
use mcproof_suite::plan::Server;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
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
    /// By the name of the channel, what that says in words of its own.
    pub templates: BTreeMap<String, Arc<Templates>>,
    /// The first one that matches an incident says whom to tell.
    pub routes: Vec<Route>,
    pub maintenance: Vec<Window>,
    /// Of targets that do not say otherwise.
    pub thresholds: Thresholds,
    /// So many targets that fail at once, on a host or from a region, are one incident.
    pub storm: u32,
    /// Pinged as long as results are written, so that somebody notices when they are not.
    pub heartbeat: Option<Heartbeat>,
    /// `host:port` that is reachable while the monitor's own network works. A probe that fails without reaching its server counts
    /// only if one of them can be.
    pub canaries: Vec<String>,
    pub retention: Retention,
    /// Whether targets that were added through the API may have a private address.
    pub allow_private: bool,
    /// What secrets in the store are sealed with.
    pub seal: Option<SealKey>,
    pub login: Login,
    /// OTLP over HTTP, such as `http://127.0.0.1:4318`.
    pub otlp: Option<String>,
    pub status: StatusSpec,
}

/// What is usual.
pub(crate) const STORM: u32 = 5;

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
            templates: BTreeMap::new(),
            routes: Vec::new(),
            maintenance: Vec::new(),
            thresholds: Thresholds::default(),
            storm: STORM,
            heartbeat: None,
            canaries: Vec::new(),
            retention: Retention::default(),
            allow_private: false,
            seal: None,
            login: Login::default(),
            otlp: None,
            status: StatusSpec::default(),
        }
    }
}

impl Config {
    /// Who is told of an incident now: the first route for this severity, for one of these tags, and for this time.
    pub fn route(&self, severity: Severity, tags: &[String], now: Moment) -> Option<&Route> {
        let severity = route::taken_as(&self.routes, severity, tags);
        self.routes.iter().find(|route| route.covers(severity, tags) && route.is_open(now))
    }

    /// The route that is used first, from now on, and when.
    pub(crate) fn next_route(&self, severity: Severity, tags: &[String], now: Moment) -> Option<(&Route, Moment)> {
        let severity = route::taken_as(&self.routes, severity, tags);
        let covering = self.routes.iter().filter(|route| route.covers(severity, tags));
        // Of those that begin at the same time, the first one.
        covering.filter_map(|route| Some((route, route.opens(now)?))).min_by_key(|(_, opens)| *opens)
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
    /// A suite whose tests are run after each good probe.
    pub suite: Option<PathBuf>,
    /// Share of good minutes that is promised, in percent, such as 99.9.
    pub objective: Option<f64>,
    /// The process of a stdio server lives on between probes.
    pub keep: bool,
    /// What becomes of what not every client takes.
    pub oddities: Oddities,
    /// On the public status page.
    pub public: bool,
    pub thresholds: Thresholds,
    /// What it cannot work without.
    pub depends_on: Dependencies,
}

#[derive(Clone, Debug)]
pub enum TargetKind {
    /// With exactly one binding.
    Server(Box<Server>),
    /// The `/healthz` of another monitor.
    Monitor(String),
    /// A job that reports in by itself, with this token.
    Push { token: Secret, expectation: Expectation },
}

#[derive(Clone, Debug)]
pub enum ChannelSpec {
    PagerDuty {
        routing_key: Secret,
        url: String,
        /// Signs what PagerDuty tells us.
        webhook_secret: Option<Secret>,
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
        /// Signs what Slack tells us: with it messages have a button.
        signing_secret: Option<Secret>,
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
    /// The root of the server, without the topic.
    Ntfy {
        url: String,
        topic: String,
        token: Option<Secret>,
    },
    /// The root of the Bot API.
    Telegram {
        url: String,
        token: Secret,
        chat: String,
    },
    /// The root of the homeserver.
    Matrix {
        url: String,
        token: Secret,
        room: String,
    },
    Pushover {
        url: String,
        token: Secret,
        user: Secret,
    },
    GoogleChat {
        url: Secret,
    },
    Webex {
        url: Secret,
    },
    /// With the id of its source.
    IncidentIo {
        url: String,
        token: Secret,
    },
    /// A formatted webhook.
    GrafanaOncall {
        url: Secret,
    },
    /// With its routing key.
    SplunkOncall {
        url: Secret,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Empty: all.
    pub severities: Vec<Severity>,
    /// Empty: all. Otherwise targets with one of these tags.
    pub tags: Vec<String>,
    /// Empty: always. Otherwise it is used at these times only.
    pub hours: Vec<Hours>,
    /// The first one is told; the next one if that did not work within two minutes.
    pub channels: Vec<String>,
    /// Until somebody acknowledges.
    pub remind_every: Option<Duration>,
    /// Who else is told as long as nobody acknowledges, in the order of time.
    pub escalate: Vec<Step>,
    /// How often all steps are gone through again.
    pub repeat: u32,
    /// Patterns of tags: targets that share a tag that fits one are told together. Empty: each on its own.
    pub group_by: Vec<String>,
    /// How long the first page of a group, and each update of it, waits for more.
    pub group_wait: Duration,
}

/// Somebody else who is told of what nobody has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From the page on that nobody has acknowledged.
    pub after: Duration,
    /// As those of a route.
    pub channels: Vec<String>,
}

impl Route {
    /// The time from the first page on of each step, also of those rounds that come again, and the number of the step.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (Duration, usize)> {
        let round = self.escalate.last().map_or(Duration::ZERO, |last| last.after);
        let steps = move |number| self.escalate.iter().enumerate().map(move |(at, step)| (round * number + step.after, at));
        (0..=self.repeat).flat_map(steps)
    }

    /// The tag by which a target with these tags is told together with others: the first that fits the first pattern.
    pub(crate) fn group<'a>(&self, tags: &'a [String]) -> Option<&'a str> {
        self.group_by.iter().find_map(|pattern| tags.iter().find(|tag| fits(pattern, tag))).map(String::as_str)
    }

    pub(crate) fn covers(&self, severity: Severity, tags: &[String]) -> bool {
        let severe = self.severities.is_empty() || self.severities.contains(&severity);
        severe && (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)))
    }

    pub(crate) fn is_open(&self, now: Moment) -> bool {
        self.hours.is_empty() || self.hours.iter().any(|hours| hours.is_open(now))
    }

    /// When it is used next; now if it is open.
    fn opens(&self, now: Moment) -> Option<Moment> {
        if self.is_open(now) { Some(now) } else { self.hours.iter().filter_map(|hours| hours.next(now)).min() }
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
    /// Tokens that open the dashboard and the API, and may do everything.
    pub tokens: Vec<Secret>,
    /// By name.
    pub users: BTreeMap<String, User>,
    pub proxy: Option<Proxy>,
}

/// A person.
#[derive(Clone, Debug)]
pub struct User {
    pub role: Role,
    /// What they log in with, unless a proxy says who they are.
    pub token: Option<Secret>,
}

/// A proxy in front of us that says in a header who the user is; taken only from these addresses.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub header: String,
    pub from: Vec<IpAddr>,
    /// What those may do who are not among the users; nothing keeps them out.
    pub role: Option<Role>,
}

impl Login {
    /// Whether nobody has to log in.
    pub fn is_open(&self) -> bool {
        self.proxy.is_none() && !self.takes_tokens()
    }

    pub fn takes_tokens(&self) -> bool {
        self.secrets().next().is_some()
    }

    /// Whose token it is that this holds for. All of them are looked at, so that the time tells nothing.
    pub fn whose(&self, is: impl Fn(&Secret) -> bool) -> Option<(String, Role)> {
        let mut found = None;
        for (name, role, token) in self.secrets() {
            if is(token) && found.is_none() {
                found = Some((name, role));
            }
        }
        found
    }

    /// All tokens, the first of which is the same as long as the file is.
    pub fn secrets(&self) -> impl Iterator<Item = (String, Role, &Secret)> {
        let name = |at: usize| if self.tokens.len() == 1 { "token".to_owned() } else { format!("token {}", at + 1) };
        let nameless = self.tokens.iter().enumerate().map(move |(at, token)| (name(at), Role::Admin, token));
        nameless.chain(self.users.iter().filter_map(|(name, user)| Some((name.clone(), user.role, user.token.as_ref()?))))
    }
}

#[cfg(test)]
mod tests;
