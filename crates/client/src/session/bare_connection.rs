//! A connection without a handshake, for a client that wants to say the first words itself. What is sent over it goes out as
//! it stands, or as a session of the era that is named would send it.

use super::dispatcher::Dispatcher;
use super::handshake::Offer;
use super::open::{Attempt, Opening};
use super::wire::Connection;
use super::{ConnectFailure, ConnectOptions, EraEvidence, Handshake, Headers, Session, Target};
use crate::Tap;
use crate::transport::{HttpConnection, SseConnection};
use mcproof_protocol::{Era, Transport};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Starts the server, or finds it, and says nothing. `version` is that of the messages to come. Over HTTP+SSE the stream is
/// open and the endpoint known; over Streamable HTTP nothing is connected before the first message.
///
/// # Errors
/// The server cannot be started or reached.
pub async fn open_bare(
    target: &Target,
    kind: Transport,
    version: &str,
    options: &ConnectOptions,
    tap: &Tap,
) -> Result<Session, ConnectFailure> {
    let opening = Opening::new(options, tap);
    let handshake = Handshake {
        era: Era::of(version).unwrap_or(Era::Legacy),
        transport: kind,
        protocol_version: version.to_owned(),
        server_info: None,
        capabilities: json!({}),
        instructions: None,
        result: Value::Null,
        era_evidence: EraEvidence::Shown,
        lost_to_discovery: Duration::ZERO,
    };
    let (endpoint, launch, locate) = match target {
        Target::Stdio(launch) => return Ok(opening.session(opening.start_stdio(launch).await?.0, None, handshake)),
        Target::Http { endpoint, launch, locate, .. } => (endpoint, launch, locate),
    };
    let mut endpoint = endpoint.clone();
    let spawned = match launch {
        Some(launch) => {
            let (spawned, url) = opening.serve(launch, &endpoint, locate.as_ref()).await?;
            endpoint.url = url;
            Some(spawned)
        }
        None => None,
    };
    let (dispatcher, queue) = Dispatcher::new(tap, options);
    let (inbox, faults) = (Arc::clone(&dispatcher) as _, options.faults.as_ref());
    let network = opening.network();
    let connection = match kind {
        Transport::Sse => {
            let opened = SseConnection::open(&endpoint, options.limits, &network, None, faults, tap, inbox);
            let opened = tokio::select! {
                opened = timeout(opening.budget, opened) => opened.ok(),
                () = dispatcher.lacks_end_of_first_event() => None,
            };
            let opened = opened.ok_or_else(|| ConnectFailure::SseTimedOut { after: opening.budget, faults: dispatcher.faults() })?;
            Connection::Sse(opened?)
        }
        _ => Connection::Http(HttpConnection::new(&endpoint, options.limits, &network, None, faults, tap, inbox)?),
    };
    let session = opening.session(opening.attempt(connection, None, dispatcher, queue), spawned, handshake);
    Ok(Session { reached: Some((endpoint, kind)), ..session })
}

impl Session {
    /// The handshake of the modern era, as [`super::open_session`] has it. A server that refuses is given back as it is, so
    /// that it can be asked something else.
    ///
    /// # Errors
    /// As [`super::open_session`] in that era.
    pub async fn discover(self, options: &ConnectOptions, tap: &Tap) -> Result<Self, Box<(ConnectFailure, Self)>> {
        let opening = Opening::new(options, tap);
        let Self { wire, dispatcher, policies, answering, spawned, reached, handshake, .. } = self;
        let attempt = Attempt { wire, dispatcher, policies, answering };
        match opening.discover(&attempt, handshake.transport, spawned.as_ref()).await {
            Ok(handshake) => Ok(Self { reached, ..opening.session(attempt, spawned, handshake) }),
            Err(failure) => Err(Box::new((failure, Self { reached, ..opening.session(attempt, spawned, handshake) }))),
        }
    }

    /// The handshake of the legacy era with an offer of this version, which need not exist. The client goes on in whatever
    /// existing one the server answers with.
    ///
    /// # Errors
    /// As [`super::open_session`] in that era.
    pub async fn propose(self, version: &str, options: &ConnectOptions, tap: &Tap) -> Result<Self, ConnectFailure> {
        let opening = Opening::new(options, tap);
        let Self { wire, dispatcher, policies, answering, spawned, reached, handshake, .. } = self;
        let attempt = Attempt { wire, dispatcher, policies, answering };
        let offer = Offer { version: Some(version.to_owned()), insists: false, ..opening.offer() };
        let handshake = opening.propose(&attempt, handshake.transport, &offer).await?;
        Ok(Self { reached, ..opening.session(attempt, spawned, handshake) })
    }

    /// What each message of a legacy HTTP session carries from here on.
    pub fn set_headers(&self, headers: Headers) {
        self.wire.set_headers(headers);
    }

    /// What each message of a legacy HTTP session carries, names in lower case.
    pub fn headers(&self) -> Headers {
        self.wire.headers()
    }
}
