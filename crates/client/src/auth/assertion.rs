//! Signed client assertions: `private_key_jwt` (RFC 7523). The signatures are ring's.

use super::secret::Secret;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// JWS algorithms (RFC 7518, 3.1; RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    Es256,
    Es384,
    Rs256,
    Ps256,
    EdDsa,
}

impl SigningAlgorithm {
    /// By the name that JOSE gives it, such as `ES256`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Es256, Self::Es384, Self::Rs256, Self::Ps256, Self::EdDsa].into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A client's private key.
#[derive(Clone)]
pub struct SigningKey {
    algorithm: SigningAlgorithm,
    key: Arc<Key>,
}

enum Key {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a private key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableKey {
    #[error("not a PKCS#8 private key in PEM (`-----BEGIN PRIVATE KEY-----`)")]
    NoPem,
    #[error("not a private key for {algorithm}: {reason}", algorithm = .0.name(), reason = .1)]
    OtherKind(SigningAlgorithm, String),
    #[error("unsupported private key (supported: EC P-256 or P-384, Ed25519, RSA): {0}")]
    UnknownKind(String),
}

impl SigningKey {
    /// With the algorithm that the kind of key suggests: ES256, ES384, EdDSA, or RS256 for RSA.
    ///
    /// # Errors
    /// It is no PKCS#8 in PEM, or none of these kinds.
    pub fn of_any_kind(pem: &str) -> Result<Self, UnreadableKey> {
        use SigningAlgorithm as A;
        let mut last = UnreadableKey::NoPem;
        for algorithm in [A::Es256, A::Es384, A::EdDsa, A::Rs256] {
            match Self::from_pem(pem, algorithm) {
                Err(failure @ UnreadableKey::OtherKind(..)) => last = failure,
                found => return found,
            }
        }
        Err(match last {
            UnreadableKey::OtherKind(_, reason) => UnreadableKey::UnknownKind(reason),
            UnreadableKey::NoPem | UnreadableKey::UnknownKind(_) => last,
        })
    }

    /// # Errors
    /// It is no PKCS#8 in PEM, or a key of another kind than the algorithm needs.
    pub fn from_pem(pem: &str, algorithm: SigningAlgorithm) -> Result<Self, UnreadableKey> {
        use SigningAlgorithm as A;
        let document = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| UnreadableKey::NoPem)?;
        let document = document.secret_pkcs8_der();
        let random = SystemRandom::new();
        let ecdsa = |curve| EcdsaKeyPair::from_pkcs8(curve, document, &random).map(Key::Ecdsa);
        let key = match algorithm {
            A::Es256 => ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            A::Es384 => ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
            A::Rs256 | A::Ps256 => RsaKeyPair::from_pkcs8(document).map(Key::Rsa),
            A::EdDsa => Ed25519KeyPair::from_pkcs8_maybe_unchecked(document).map(Key::Ed25519),
        };
        let key = key.map_err(|rejected| UnreadableKey::OtherKind(algorithm, rejected.to_string()))?;
        Ok(Self { algorithm, key: Arc::new(key) })
    }

    /// The `client_assertion` for one token request. `audience` is the issuer identifier of the authorization server.
    ///
    /// # Errors
    /// The machine gives no random numbers.
    pub(super) fn assertion(&self, client: &str, audience: &str) -> Result<Secret, String> {
        // An assertion is good for one request; what is left is room for clocks that differ.
        const LIFETIME: Duration = Duration::from_secs(60);
        let now = time_of_day();
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": audience,
            "jti": random_text()?,
            "iat": now.as_secs(),
            "exp": (now + LIFETIME).as_secs(),
        });
        self.sign(&claims)
    }

    fn sign(&self, claims: &serde_json::Value) -> Result<Secret, String> {
        let header = json!({ "alg": self.algorithm.name(), "typ": "JWT" });
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let random = SystemRandom::new();
        let failed = |_| "signing failed".to_owned();
        let signature = match &*self.key {
            Key::Ecdsa(pair) => pair.sign(&random, signed.as_bytes()).map_err(failed)?.as_ref().to_vec(),
            Key::Ed25519(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
            Key::Rsa(pair) => {
                let padding: &dyn signature::RsaEncoding = match self.algorithm {
                    SigningAlgorithm::Ps256 => &signature::RSA_PSS_SHA256,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut bytes = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, signed.as_bytes(), &mut bytes).map_err(failed)?;
                bytes
            }
        };
        Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.algorithm.name())
    }
}

/// 256 random bits, in characters that are safe in a URL and in a PKCE verifier (RFC 7636, 4.1).
pub(crate) fn random_text() -> Result<String, String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "no random numbers are available from the system".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn time_of_day() -> Duration {
    now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "assertions and kept tokens are good until a time of day, wherever they are read")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{KeyPair as _, UnparsedPublicKey};

    fn pem(der: &[u8]) -> String {
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    }

    #[test]
    fn an_assertion_is_signed_by_the_key_and_names_the_client() {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let key = SigningKey::from_pem(&pem(document.as_ref()), SigningAlgorithm::Es256).unwrap();
        let assertion = key.assertion("me", "https://as.example").unwrap();
        let (signed, signature) = assertion.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let decode = |part: &str| -> serde_json::Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        assert_eq!(decode(header)["alg"], "ES256");
        let claims = decode(claims);
        assert_eq!((&claims["iss"], &claims["sub"], &claims["aud"]), (&json!("me"), &json!("me"), &json!("https://as.example")));
        assert!(claims["exp"].as_u64() > claims["iat"].as_u64());
    }

    #[test]
    fn a_key_that_does_not_fit_is_refused() {
        assert_eq!(SigningKey::from_pem("nothing", SigningAlgorithm::Es256).unwrap_err(), UnreadableKey::NoPem);
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pem = pem(document.as_ref());
        assert!(matches!(SigningKey::from_pem(&pem, SigningAlgorithm::Rs256), Err(UnreadableKey::OtherKind(SigningAlgorithm::Rs256, _))));
        assert!(SigningKey::from_pem(&pem, SigningAlgorithm::EdDsa).unwrap().assertion("a", "b").is_ok());
        assert_eq!(SigningKey::of_any_kind(&pem).unwrap().algorithm, SigningAlgorithm::EdDsa);
        assert_eq!(SigningKey::of_any_kind("nothing").unwrap_err(), UnreadableKey::NoPem);
        assert_eq!(SigningAlgorithm::named("PS256"), Some(SigningAlgorithm::Ps256));
        assert_eq!(SigningAlgorithm::named("none"), None);
    }
}
