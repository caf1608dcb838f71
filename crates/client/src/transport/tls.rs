//! TLS: whom to trust, who we are, and what a failed handshake means in words for users. Knows no HTTP but the names
//! of its versions.

use mcproof_record::counted;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, ProtocolVersion, RootCertStore,
    SignatureScheme,
};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Whom to trust, and who we are. Clones share what is loaded when the first connection needs it: the authorities that
/// the machine trusts, and the tickets that make a second handshake short.
#[derive(Clone, Default)]
pub struct Tls {
    authorities: Arc<Vec<CertificateDer<'static>>>,
    identity: Option<Arc<Identity>>,
    verification: Verification,
    tickets: Tickets,
    loaded: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

/// Whether a server has to prove that it is the one that its URL names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    #[default]
    Full,
    /// Anybody may pass for the server.
    Off,
}

/// Whether what an earlier handshake left behind makes later ones short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tickets {
    #[default]
    Kept,
    Dropped,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why certificates or a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    #[error("there is no PEM certificate in it")]
    NoCertificate,
    #[error("a certificate in it is damaged: {0}")]
    BadCertificate(String),
    #[error("there is no PEM private key in it")]
    NoKey,
    #[error("its private key cannot be used: {0}")]
    BadKey(String),
    #[error("the private key does not belong to the certificate")]
    OtherKey,
}

impl Tls {
    /// Trusts these authorities in addition to the machine's own.
    ///
    /// # Errors
    /// The text holds no usable certificate.
    pub fn trust(&mut self, pem: &[u8]) -> Result<(), TlsFailure> {
        let authorities = certificates(pem)?;
        let mut store = RootCertStore::empty();
        for authority in &authorities {
            store.add(authority.clone()).map_err(|error| TlsFailure::BadCertificate(error.to_string()))?;
        }
        Arc::make_mut(&mut self.authorities).extend(authorities);
        self.loaded = Arc::default();
        Ok(())
    }

    /// Shows this certificate to servers that ask for one. `chain` begins with it; both are PEM, and may be one file.
    ///
    /// # Errors
    /// They cannot be used, or do not belong together.
    pub fn identify(&mut self, chain: &[u8], key: &[u8]) -> Result<(), TlsFailure> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFailure::NoKey)?;
        match CertifiedKey::from_der(chain.clone(), key.clone_key(), &ring::default_provider()) {
            Ok(_) => {}
            Err(Error::InconsistentKeys(_)) => return Err(TlsFailure::OtherKey),
            Err(error) => return Err(TlsFailure::BadKey(error.to_string())),
        }
        self.identity = Some(Arc::new(Identity { chain, key }));
        self.loaded = Arc::default();
        Ok(())
    }

    pub fn set_verification(&mut self, verification: Verification) {
        self.verification = verification;
        self.loaded = Arc::default();
    }

    /// From here on each connection is the first one: the server has to show its certificate again.
    pub fn drop_tickets(&mut self) {
        self.tickets = Tickets::Dropped;
        self.loaded = Arc::default();
    }

    pub(super) fn verification(&self) -> Verification {
        self.verification
    }

    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.loaded.get_or_init(|| self.load().map(Arc::new)).clone()
    }

    fn load(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let unusable = |error: &dyn fmt::Display| format!("TLS cannot be set up: {error}");
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match self.verification {
            Verification::Off => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider))),
            Verification::Full => {
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots()?), provider).build();
                let verifier = verifier.map_err(|error| unusable(&error))?;
                let verifier = Trusting { verifier, named: Arc::clone(&self.authorities) };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let Identity { chain, key } = &**identity;
                builder.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(|error| unusable(&error))?
            }
        };
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        if self.tickets == Tickets::Dropped {
            config.resumption = Resumption::disabled();
        }
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        if roots.is_empty() {
            let reason = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            return Err(format!("no certificate authorities found on this machine: no server can be trusted{reason}"));
        }
        Ok(roots)
    }

    /// Makes a connection secure; the caller sets the deadline. `address` is how people know the server.
    pub(super) async fn secure(&self, stream: TcpStream, host: &str, address: &str) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is not a valid name for a certificate"))?;
        let connector = TlsConnector::from(self.config()?);
        connector.connect(name, stream).await.map_err(|error| match tls_error(&error) {
            Some(error) => explain(error, host, address),
            None if error.kind() == io::ErrorKind::UnexpectedEof => format!("{address} closed the connection during the TLS handshake"),
            None => format!("the TLS handshake with {address} failed: {error}"),
        })
    }
}

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Tls");
        shown.field("authorities", &self.authorities.len()).field("identity", &self.identity.is_some());
        shown.field("verification", &self.verification).finish_non_exhaustive()
    }
}

/// Whether both sides agreed on HTTP/2.
pub(super) fn speaks_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// The version of TLS that both sides agreed on.
pub(super) fn version(stream: &TlsStream<TcpStream>) -> &'static str {
    match stream.get_ref().1.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    }
}

/// The certificate of the server itself, without those that vouch for it (DER).
pub(super) fn certificate(stream: &TlsStream<TcpStream>) -> Option<&[u8]> {
    stream.get_ref().1.peer_certificates()?.first().map(|certificate| certificate.as_ref())
}

/// What a read or write that failed after the handshake says of TLS, if it does.
pub(super) fn explain_later(error: &io::Error, address: &str) -> Option<String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    tls_error(error).map(|error| explain(error, host, address))
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFailure> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsFailure::NoCertificate),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsFailure::BadCertificate(error.to_string())),
    }
}

fn explain(error: &Error, host: &str, address: &str) -> String {
    use AlertDescription as Alert;
    match error {
        Error::InvalidCertificate(error) => explain_certificate(error, host, address),
        Error::AlertReceived(Alert::CertificateRequired) => format!("{address} wants a client certificate"),
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate | Alert::CertificateUnknown | Alert::AccessDenied) => {
            format!("{address} does not accept the client certificate ({error})")
        }
        Error::AlertReceived(Alert::CertificateExpired) => format!("{address} rejects the client certificate: it has expired"),
        Error::AlertReceived(Alert::UnrecognisedName) => format!("{address} has no certificate for `{host}`"),
        Error::AlertReceived(Alert::ProtocolVersion) => format!("{address} speaks neither TLS 1.2 nor TLS 1.3"),
        Error::AlertReceived(Alert::NoApplicationProtocol) => format!("{address} speaks neither HTTP/2 nor HTTP/1.1 over TLS"),
        Error::AlertReceived(alert) => format!("{address} broke off TLS with the alert {alert:?}"),
        Error::InvalidMessage(_) => format!("{address} does not speak TLS: if it is an http:// server, use an http:// URL"),
        Error::PeerIncompatible(why) => format!("{address} offers no TLS parameters that mcproof supports: {why:?}"),
        other => format!("TLS with {address} failed: {other}"),
    }
}

fn explain_certificate(error: &CertificateError, host: &str, address: &str) -> String {
    use CertificateError as E;
    let what = format!("the certificate of {address}");
    let apart = |later: &UnixTime, earlier: &UnixTime| span(later.as_secs().saturating_sub(earlier.as_secs()));
    match error {
        E::ExpiredContext { time, not_after } => format!("{what} expired {} ago", apart(time, not_after)),
        E::Expired => format!("{what} has expired"),
        E::NotValidYetContext { time, not_before } => format!("{what} is not valid yet, but {} from now", apart(not_before, time)),
        E::NotValidYet => format!("{what} is not valid yet"),
        E::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<String> = presented.iter().map(|name| bare_name(name)).collect();
            format!("{what} is not for `{host}`, only for {}", names.join(", "))
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => format!("{what} is not for `{host}`; it names no host"),
        E::UnknownIssuer => format!("{what} is from an authority that this machine does not trust"),
        E::BadSignature => format!("{what} was not signed by the authority that it names, perhaps by another one of the same name"),
        E::Revoked => format!("{what} was revoked"),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => format!("{what} is not meant for servers"),
        E::Other(other) if is_authoritys_own(other) => {
            format!("{what} is one of an authority (`CA:TRUE`), self-signed most likely, that this machine does not trust")
        }
        other => format!("{what} is not valid: {other}"),
    }
}

/// rustls gives names as `DnsName("a.example")` and `IpAddress(127.0.0.1)`.
fn bare_name(shown: &str) -> String {
    let inner = shown.split_once('(').map_or(shown, |(_, rest)| rest.trim_end_matches(')'));
    format!("`{}`", inner.trim_matches('"'))
}

/// A span of time as people say it, in one unit.
fn span(seconds: u64) -> String {
    let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
    let (name, unit) = units.into_iter().find(|(_, unit)| seconds >= *unit).unwrap_or(("second", 1));
    counted(seconds / unit, name)
}

/// What self-signed certificates fail with that were made without a thought, as `openssl req -x509` does.
fn is_authoritys_own(error: &OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Checks as browsers do, but takes an authority's certificate from a server if the user named that very certificate.
#[derive(Debug)]
struct Trusting {
    verifier: Arc<WebPkiServerVerifier>,
    named: Arc<Vec<CertificateDer<'static>>>,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // Its time was checked before this; its name was not.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if is_authoritys_own(&other) && self.named.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Takes any certificate, but still checks that the server holds its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
