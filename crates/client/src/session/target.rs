//! What to connect to, and how. Plain values; nothing is opened here.

use super::ClientProfile;
use crate::answers::Answers;
use crate::auth::Authorization;
use crate::transport::{Endpoint, FaultInjector, Guardian, Launch, Limits, Network, ShutdownTimeouts};
use mcproof_protocol::{EraChoice, Transport};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Finds the URL of a server in a line that it printed.
pub type UrlFinder = Arc<dyn Fn(&[u8]) -> Option<Url> + Send + Sync>;

/// A server, and how to reach it.
#[derive(Clone)]
pub enum Target {
    Stdio(Launch),
    Http {
        endpoint: Endpoint,
        /// Tried in turn where it is left open: Streamable HTTP, then HTTP+SSE.
        kind: Option<Transport>,
        /// Set when the server is to be started first.
        launch: Option<Launch>,
        /// Set when a started server chooses its address by itself; the endpoint's URL counts for nothing then.
        locate: Option<UrlFinder>,
    },
}

impl Target {
    /// What starts the server, if we do.
    pub fn command(&self) -> Option<&[String]> {
        match self {
            Self::Stdio(launch) | Self::Http { launch: Some(launch), .. } => Some(&launch.command),
            Self::Http { launch: None, .. } => None,
        }
    }

    pub fn is_over_tls(&self) -> bool {
        matches!(self, Self::Http { endpoint, .. } if endpoint.url.scheme() == "https")
    }
}

/// What a server at a URL is taken for that refuses or resets connections, or answers 502 to 504.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Startup {
    /// As out of order.
    #[default]
    Over,
    /// For so long, for one that is about to start. One that we start ourselves always is, until its time is over.
    Awaited(Duration),
}

/// What becomes of a response that no conforming server sends. It is kept as a fault either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// It fails its request: whoever tests a server wants to know.
    #[default]
    Strict,
    /// It is taken where one of the clients that many people use takes it: whoever uses a server wants its response.
    Tolerant,
}

/// How to open a session.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    pub era: EraChoice,
    /// Offer this revision, and take no other.
    pub protocol_version: Option<String>,
    /// From the start until the handshake is answered; 30 s if not set.
    pub timeout: Option<Duration>,
    pub reading: Reading,
    /// Only for servers that we do not start.
    pub startup: Startup,
    pub limits: Limits,
    /// Proxies and TLS.
    pub network: Network,
    /// How to get a token when an HTTP server requests one. Without it a server that does is a failure.
    pub authorization: Option<Authorization>,
    pub patience: ShutdownTimeouts,
    pub client: ClientProfile,
    /// What the server may ask; declared in addition to the profile's capabilities, which stand as they are.
    pub answers: Answers,
    /// Declared as well, for what [`super::Session::set_client_responses`] will say later; until then it is refused.
    pub later_answers: Answers,
    /// Whether the roots may become others while the session lives. A legacy server is told that it will hear of it
    /// (`notifications/roots/list_changed`); whoever changes them sends that.
    pub roots_change: bool,
    pub guardian: Guardian,
    /// How long a request is still waited for once as many responses as there are open requests have come that fit none of
    /// them, or once a whole message has come of which only the end is missing: its line feed, or the blank line of its
    /// event. Not set, as long as for any other in the first case, and 2 s in the second.
    pub misled: Option<Duration>,
    /// What is done to the messages of the session on their way.
    pub faults: Option<FaultInjector>,
}

impl ConnectOptions {
    /// All that is ever answered.
    pub(super) fn all_answers(&self) -> Answers {
        self.answers.clone().or(&self.later_answers)
    }
}
