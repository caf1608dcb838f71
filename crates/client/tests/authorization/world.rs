//! The servers of `mcproof_testkit::oauth`, and sessions with them over one tap.

use mcproof_client::auth::Authorization;
use mcproof_client::{ConnectOptions, Endpoint, Session, Tap, Target, open_session};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_testkit::oauth::OauthServers;
pub(crate) use mcproof_testkit::oauth::{Wish, key_pair, verified};
use std::ops::Deref;
use std::time::Duration;
use url::Url;

pub(crate) struct World {
    servers: OauthServers,
    tap: Tap,
}

impl Deref for World {
    type Target = OauthServers;

    fn deref(&self) -> &OauthServers {
        &self.servers
    }
}

impl World {
    pub(crate) async fn new(wish: Wish) -> Self {
        Self { servers: OauthServers::new(wish).await, tap: Tap::new() }
    }

    pub(crate) async fn open(&self, authorization: Option<&Authorization>, era: EraChoice) -> Result<Session, String> {
        self.open_over(authorization, era, Transport::Http).await
    }

    pub(crate) async fn open_over(
        &self,
        authorization: Option<&Authorization>,
        era: EraChoice,
        kind: Transport,
    ) -> Result<Session, String> {
        self.connect(authorization, era, kind, Vec::new()).await
    }

    pub(crate) async fn open_with_header(&self, name: &str, value: &str, authorization: &Authorization) -> Result<Session, String> {
        self.connect(Some(authorization), EraChoice::Auto, Transport::Http, vec![(name.to_owned(), value.to_owned())]).await
    }

    async fn connect(
        &self,
        authorization: Option<&Authorization>,
        era: EraChoice,
        kind: Transport,
        headers: Vec<(String, String)>,
    ) -> Result<Session, String> {
        let endpoint = Endpoint { url: Url::parse(&self.filled("{rs}/mcp")).unwrap(), headers };
        let target = Target::Http { endpoint, kind: Some(kind), launch: None, locate: None };
        let timeout = Some(Duration::from_secs(5));
        let options = ConnectOptions { era, timeout, authorization: authorization.cloned(), ..ConnectOptions::default() };
        open_session(&target, &options, &self.tap).await.map_err(|failure| failure.to_string())
    }

    pub(crate) fn assert_secrets_are_hidden(&self) {
        let secrets = self.secrets();
        self.assert_hidden(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
    }

    pub(crate) fn assert_hidden(&self, secrets: &[&str]) {
        let transcript = serde_json::to_string(&self.tap.transcript()).unwrap();
        for secret in secrets {
            assert!(!OauthServers::tells(&transcript, secret), "{secret} in {transcript}");
        }
    }
}
