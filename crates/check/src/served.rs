//! A server over HTTP that we start: one process for all clients that mean no harm. What it prints and how it ends is a
//! conversation of its own.

use super::explorer::{SHUTDOWN, end};
use super::{CheckOptions, DetectedServer};
use mcproof_analysis::diagnosis::sentence;
use mcproof_client::{ConnectFailure, Session, Tap, Target, open_bare};
use mcproof_protocol::{Revision, Transport};
use mcproof_record::{Conversation, Opened};
use tokio::time::Instant;

pub(super) struct Served {
    /// Reaches the server that runs, and starts none.
    pub(super) check_options: CheckOptions,
    /// As it was given.
    started: CheckOptions,
    /// Nothing is said over it.
    session: Option<Session>,
    tap: Tap,
    conversations: Vec<Conversation>,
}

impl Served {
    /// `None` if there is no server to be started and left running.
    pub(super) async fn start(check_options: &CheckOptions) -> Result<Option<Self>, Box<(Conversation, ConnectFailure)>> {
        let Target::Http { endpoint, kind, launch: Some(_), locate } = &check_options.target else { return Ok(None) };
        let tap = check_options.new_tap("server");
        let target = Target::Http { endpoint: endpoint.clone(), kind: *kind, launch: None, locate: locate.clone() };
        let mut served = Self {
            check_options: CheckOptions { target, ..check_options.clone() },
            started: check_options.clone(),
            session: None,
            tap,
            conversations: Vec::new(),
        };
        match served.open().await {
            Ok(()) => Ok(Some(served)),
            Err(failure) => {
                let transcript = served.tap.transcript();
                let opened = Opened::No { reason: sentence(&failure, &transcript) };
                let transport = kind.unwrap_or(Transport::Http).to_string();
                let revision = Revision::LATEST_LEGACY.as_str().to_owned();
                let take = Conversation {
                    name: "server".into(),
                    transport,
                    revision,
                    opened,
                    probes: Vec::new(),
                    ending: None,
                    sdks: Vec::new(),
                    transcript,
                };
                Err(Box::new((take, failure)))
            }
        }
    }

    async fn open(&mut self) -> Result<(), ConnectFailure> {
        let CheckOptions { target, options, detected_sdks, .. } = &self.started;
        let began = Instant::now();
        let session = open_bare(target, Transport::Http, Revision::LATEST_LEGACY.as_str(), options, &self.tap).await?;
        detected_sdks.look(&session);
        self.session = Some(session);
        // Later starts get several times as long.
        self.started.budget.started(began.elapsed());
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.exit().is_none())
    }

    /// Starts the server again if it has ended.
    pub(super) async fn revive(&mut self) {
        let Some(session) = self.session.take_if(|session| session.exit().is_some()) else { return };
        self.finish(session).await;
        self.tap = self.started.new_tap("server");
        // If it does not start again, the clients to come will say so.
        let _ = self.open().await;
    }

    async fn finish(&mut self, session: Session) {
        session.settle().await;
        let (ending, transcript) = end(session, &self.tap, SHUTDOWN).await;
        self.conversations.push(Conversation {
            name: "server".into(),
            transport: Transport::Http.to_string(),
            revision: Revision::LATEST_LEGACY.as_str().to_owned(),
            opened: Opened::Bare,
            probes: Vec::new(),
            ending,
            sdks: Vec::new(),
            transcript,
        });
    }

    /// Ends the server. `found` says what it has turned out to be.
    pub(super) async fn end(mut self, found: Option<DetectedServer>) -> Vec<Conversation> {
        if let Some(session) = self.session.take() {
            self.finish(session).await;
        }
        for take in &mut self.conversations {
            let Some(found) = found else { continue };
            take.transport = found.kind.to_string();
            take.revision = if found.is_legacy { Revision::LATEST_LEGACY.as_str() } else { Revision::MODERN.as_str() }.to_owned();
        }
        self.conversations
    }
}
