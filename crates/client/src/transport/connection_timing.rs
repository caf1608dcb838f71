//! What it took to make a connection: how long each part of it lasted, and whom TLS showed. Facts for which a transcript has
//! no bytes. Knows nothing of what the connection is for.

use crate::Tap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One connection, or the attempt at one: what it did not come to is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTiming {
    /// Since the transcript began.
    pub began: Duration,
    /// The look-up of the host's name, or of the proxy's; none where the URL has an address.
    pub name: Option<Duration>,
    /// From the first packet until the TCP connection stood.
    pub tcp: Option<Duration>,
    /// Until the proxy had opened a tunnel.
    pub tunnel: Option<Duration>,
    /// The TLS handshake.
    pub tls: Option<Duration>,
    /// When the first request could go out, since the transcript began.
    pub ready: Option<Duration>,
    /// The version of TLS that both sides agreed on, such as `TLS 1.3`.
    pub tls_version: Option<&'static str>,
    /// The server's own certificate (DER).
    pub certificate: Option<Arc<[u8]>>,
    /// Whether the certificate was checked.
    pub is_verified: bool,
    /// Why there was no TCP connection, as the system numbers it.
    pub refusal: Option<i32>,
}

/// A connection that is being made. When this is dropped, finished or not, the tap has its facts.
pub(super) struct ConnectionTimer<'a> {
    tap: &'a Tap,
    facts: ConnectionTiming,
    last: Instant,
}

impl<'a> ConnectionTimer<'a> {
    pub(super) fn begin(tap: &'a Tap) -> Self {
        Self { tap, facts: ConnectionTiming { began: tap.elapsed(), ..ConnectionTiming::default() }, last: Instant::now() }
    }

    pub(super) fn named(&mut self) {
        self.facts.name = Some(self.lap());
    }

    pub(super) fn refused(&mut self, error: &io::Error) {
        self.facts.refusal = error.raw_os_error();
    }

    pub(super) fn connected(&mut self) {
        self.facts.tcp = Some(self.lap());
    }

    pub(super) fn tunnelled(&mut self) {
        self.facts.tunnel = Some(self.lap());
    }

    pub(super) fn secured(&mut self, version: &'static str, certificate: Option<&[u8]>, is_verified: bool) {
        self.facts.tls = Some(self.lap());
        self.facts.tls_version = Some(version);
        self.facts.certificate = certificate.map(Arc::from);
        self.facts.is_verified = is_verified;
    }

    pub(super) fn ready(&mut self) {
        self.facts.ready = Some(self.tap.elapsed());
    }

    /// Since the part before this one was over.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let lap = now - self.last;
        self.last = now;
        lap
    }
}

impl Drop for ConnectionTimer<'_> {
    fn drop(&mut self) {
        self.tap.keep_dialed(std::mem::take(&mut self.facts));
    }
}
