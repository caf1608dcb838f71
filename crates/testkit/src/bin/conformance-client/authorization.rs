//! The identity of the client and how it gets a token, from the context of a scenario.

use crate::{Failure, Task};
use mcproof_client::auth::{
    Authorization, Credential, Grant, Headless, Identity, IdentityProvider, Registered, Secret, SigningAlgorithm, SigningKey,
};
use std::sync::Arc;
use url::Url;

/// The document that the suite's authorization servers know.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Nothing listens there: the headless user reads the code from the redirect.
const CALLBACK: &str = "http://localhost:3000/callback";

impl Task {
    pub(crate) fn authorization(&self) -> Result<Authorization, Failure> {
        let text = |name: &str| self.context[name].as_str().map(str::to_owned);
        let need = |name: &str| text(name).ok_or_else(|| format!("the context has no {name}"));
        let mut identity = Identity { metadata_document: Some(Url::parse(METADATA_DOCUMENT)?), ..Identity::default() };
        if let Some(id) = text("client_id") {
            let credential = match (text("client_secret"), text("private_key_pem")) {
                (Some(secret), _) => Credential::Secret(Secret::new(secret)),
                (None, Some(pem)) => {
                    let algorithm = SigningAlgorithm::named(&need("signing_algorithm")?).ok_or("an unknown signing_algorithm")?;
                    Credential::Key(SigningKey::from_pem(&pem, algorithm)?)
                }
                (None, None) => Credential::None,
            };
            identity.registered = Some(Registered { id, credential, issuer: None });
        }
        let grant = match self.scenario.as_str() {
            "auth/client-credentials-basic" | "auth/client-credentials-jwt" => Grant::ClientCredentials,
            "auth/wif-jwt-bearer" => Grant::Assertion(Secret::new(need("valid_jwt")?)),
            "auth/enterprise-managed-authorization" => Grant::IdentityProvider(IdentityProvider {
                token_endpoint: Url::parse(&need("idp_token_endpoint")?)?,
                client: need("idp_client_id")?,
                credential: Credential::None,
                id_token: Secret::new(need("idp_id_token")?),
            }),
            _ => Grant::Code { user: Arc::new(Headless::new(Url::parse(CALLBACK)?)) },
        };
        Ok(Authorization::new(identity, grant))
    }
}
