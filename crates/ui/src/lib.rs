//! The inspector: serves its page on loopback, holds sessions with servers for it, and streams what happens to it. Knows no flags and no
//! files: which server a name or a command line means is decided by a [`Connector`].

mod access;
mod api;
mod apps;
mod asks;
mod assets;
mod check;
mod comparison;
mod connection;
mod hub;
mod policy;
mod requests;
mod sign_in;
mod spec;
mod stream;
mod subscriptions;
mod tasks;
mod test_runs;
mod viewer;

pub use access::{Access, AccessFailure, Token};
pub use comparison::{Compared, ComparedSide, Offered};
pub use sign_in::SignIn;
pub use spec::{Connector, KnownServer, NewTest, OTHER_SERVER, Prepared, SavedTest, ServerSpec, SessionSteps, SharedSession, SuiteChange};
pub use test_runs::TestRunner;
pub use viewer::{ShownPicture, ShownSession, Viewer};

use axum::Router;
use connection::Tokens;
use hub::Hub;
use mcproof_record::{Diagnostic, Transcript};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::net::TcpListener;

/// The licenses of the libraries in the page, written by `cargo xtask web`.
pub const NOTICE: &str = include_str!("../NOTICE.txt");

/// What the inspector is started with.
pub struct Options {
    pub access: Access,
    pub connector: Arc<dyn Connector>,
    /// Servers that the user named: they are connected at once.
    pub servers: Vec<ServerSpec>,
    /// Sessions that were recorded earlier.
    pub recorded: Vec<RecordedSession>,
    /// Runs the tests that the page shows at its side, and does so at once.
    pub tests: Option<Arc<dyn TestRunner>>,
    /// The clock on the wall.
    pub now: fn() -> SystemTime,
    /// What this program calls itself.
    pub version: &'static str,
}

/// An inspector that listens.
pub struct Inspector {
    listener: TcpListener,
    access: Arc<Access>,
    hub: Arc<Hub>,
    address: SocketAddr,
}

/// A session that was recorded earlier.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    pub name: String,
    pub transcript: Transcript,
    /// What whoever recorded it has found.
    pub found: Option<Box<Diagnostic>>,
}

impl Inspector {
    /// Binds the address. Nobody is served yet.
    ///
    /// # Errors
    /// The address is taken, or cannot be bound.
    pub async fn bind(address: SocketAddr, options: Options) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let Options { access, connector, servers, recorded, tests, now, version } = options;
        let access = Arc::new(access.at(address));
        let hub = Hub::new(connector, now, version, access.origins());
        for session in recorded {
            hub.add_recorded(session);
        }
        if let Some(runner) = tests {
            hub.set_tests(Arc::clone(&runner));
            test_runs::start(&hub, runner, None);
        }
        for server in servers {
            let id = hub.add(server);
            hub.open(id, Tokens::Kept);
        }
        Ok(Self { listener, access, hub, address })
    }

    /// The address of the page, with the token in its fragment, which browsers do not send.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.access.token())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopped` resolves; then ends all sessions and the servers that were started.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(self, stopped: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
        let Self { listener, access, hub, .. } = self;
        let router: Router = api::router(Arc::clone(&hub), access);
        let serving = axum::serve(listener, router.into_make_service());
        let served = tokio::select! {
            served = serving => served,
            () = stopped => Ok(()),
        };
        hub.close_all().await;
        served
    }
}
