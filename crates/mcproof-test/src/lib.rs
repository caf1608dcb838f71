//! The library for tests in Rust: a client that talks to a server in memory or over the wire, and assertions that show the
//! wire when they fail. Wires together what the engine knows; no logic of its own.
//!
//! ```no_run
//! # async fn example() -> Result<(), mcproof::Failure> {
//! use mcproof::Client;
//! use serde_json::json;
//!
//! let client = Client::stdio(["node", "server.js"]).await?;
//! client.call("create_order", json!({ "product_id": "PROD-123", "quantity": 2 })).await?
//!     .expect(json!({ "status": "pending", "id": { "$regex": "^ORD-" } }));
//! client.call("create_order", json!({ "product_id": "PROD-123", "quantity": 999 })).await?
//!     .expect_error("insufficient inventory");
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod called;
mod client;
mod contracts;
mod failure;
mod program;

pub use called::CallResult;
pub use client::Client;
pub use contracts::assert_check;
pub use failure::Failure;
pub use mcproof_client::{
    Answers, CallFailure, ConnectFailure, ConnectOptions, Deadline, Elicitation, Exit, FaultDirection, FaultInjector, FaultRule, Handshake,
    InjectedFault, Reply, Sampling, Schedule, Session, Tap, Target,
};
pub use mcproof_macros::test;
pub use mcproof_protocol::Transport;
pub use mcproof_protocol::{Era, EraChoice};
pub use program::{Program, Server};

/// What a test function returns.
pub trait TestOutcome {
    /// Whether the test has failed by what it returned.
    fn has_failed(&self) -> bool;
}

impl TestOutcome for () {
    fn has_failed(&self) -> bool {
        false
    }
}

impl<T, E> TestOutcome for Result<T, E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

/// What `#[mcproof::test]` calls: opens a client, gives it to the test, and ends it.
///
/// # Panics
/// No client came about; or the test has not failed itself, but its server sent what no conforming server sends, or ended unasked.
#[track_caller]
pub fn run_test<T: TestOutcome>(
    transport: Transport,
    server: impl AsyncFnOnce(Transport) -> Result<Client, Failure>,
    test: impl AsyncFnOnce(&Client) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a test its runtime");
    runtime.block_on(async {
        let client = match server(transport).await {
            Ok(client) => client,
            Err(failure) => panic!("over {transport}:\n{failure}"),
        };
        let outcome = test(&client).await;
        if let Some(fault) = client.end().await
            && !outcome.has_failed()
        {
            panic!("over {transport}:\n{fault}");
        }
        outcome
    })
}
