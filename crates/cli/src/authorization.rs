//! The flags of authorization: a token, a registered client, or a user in a browser. Knows no requests.

pub(crate) mod browser;
mod callback;
mod listing;
pub(crate) mod secret_source;
mod stored;

use crate::duration;
use crate::failure::Failure;
use crate::numbers::whole;
use browser::{Browser, Consent, Opening, UserPresence};
use mcproof_client::auth::{
    Authorization, Credential, DynamicRegistration, Grant, Identity, Registered, Secret, SigningAlgorithm, SigningKey, TokenStore,
};
use mcproof_client::{Guardian, Target};
use secret_source::SecretSource;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stored::{OfClient, StoredTokens};
use url::Url;

/// Long enough to find a password.
const IN_A_BROWSER: Duration = Duration::from_secs(5 * 60);
/// Long enough to look at each request and response.
const STEP_BY_STEP: Duration = Duration::from_secs(60 * 60);
/// How often to look for a token that another mcproof is to store.
const LOOK: Duration = Duration::from_millis(250);

/// The flags of authorization, of every command that connects to a server.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct AuthArgs {
    /// How to obtain an access token if the server requires one [default: auto; for suites, none unless another authorization flag is
    /// given]
    #[arg(long, value_name = "METHOD", conflicts_with = "bearer")]
    auth: Option<AuthMethod>,
    /// Send this access token: env:NAME, file:PATH, or the token itself, which is visible to other processes
    #[arg(long, value_name = "SECRET", value_parser = secret_source::parse, conflicts_with_all = OAUTH)]
    bearer: Option<SecretSource>,
    /// Use this registered OAuth client instead of dynamic registration
    #[arg(long, value_name = "ID", hide_short_help = true)]
    client_id: Option<String>,
    /// Client secret: env:NAME, file:PATH, or the secret itself, which is visible to other processes
    #[arg(long, value_name = "SECRET", value_parser = secret_source::parse, requires = "client_id", conflicts_with = "client_key", hide_short_help = true)]
    client_secret: Option<SecretSource>,
    /// Private key of the client, as a PEM file, for private_key_jwt
    #[arg(long, value_name = "FILE", requires = "client_id", hide_short_help = true)]
    client_key: Option<PathBuf>,
    /// Signing algorithm of --client-key: ES256, ES384, EdDSA, RS256 or PS256 [default: from the key type]
    #[arg(long, value_name = "ALGORITHM", requires = "client_key", value_parser = parse_algorithm, hide_short_help = true)]
    client_key_algorithm: Option<SigningAlgorithm>,
    /// Use the client ID metadata document at this https URL, if the authorization server supports it
    #[arg(long, value_name = "URL", value_parser = parse_metadata_url, hide_short_help = true)]
    client_metadata_url: Option<Url>,
    /// Use --client-id only with this authorization server [default: the first one that is used]
    #[arg(long, value_name = "URL", requires = "client_id", hide_short_help = true)]
    issuer: Option<String>,
    /// Request these scopes, separated by spaces [default: the scopes that the server names]
    #[arg(long, value_name = "SCOPES", value_parser = parse_scopes, hide_short_help = true)]
    scope: Option<Scopes>,
    /// Redirect URI of the client [default: any free port of 127.0.0.1]
    #[arg(long, value_name = "URL", value_parser = callback::parse, hide_short_help = true)]
    callback_url: Option<Url>,
    /// Timeout for obtaining a token [default: 5m in a browser, 30s otherwise]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    auth_timeout: Option<Duration>,
    /// Use the stored token of this server, and fail if there is none
    #[arg(long, hide_short_help = true)]
    use_stored_auth: bool,
    /// Use the stored token of this server if there is one, and never open a browser
    #[arg(long, hide_short_help = true)]
    stored_auth_only: bool,
    /// Discard the stored token of this server and sign in again if the server requires it
    #[arg(long, conflicts_with_all = ["use_stored_auth", "stored_auth_only", "wait_for_auth"], hide_short_help = true)]
    relogin: bool,
    /// Wait up to this many seconds for another mcproof process to store a token for this server
    #[arg(long, value_name = "SECONDS", value_parser = whole(1..=86_400_u32), hide_short_help = true)]
    wait_for_auth: Option<u32>,
    /// List the stored authorizations, without tokens, and exit
    #[arg(long, conflicts_with_all = ["use_stored_auth", "stored_auth_only", "relogin", "wait_for_auth"], hide_short_help = true)]
    pub(crate) list_stored_auth: bool,
}

/// The flags that conflict with a bearer token.
const OAUTH: [&str; 10] = [
    "client_id",
    "client_secret",
    "client_key",
    "client_metadata_url",
    "scope",
    "callback_url",
    "use_stored_auth",
    "stored_auth_only",
    "relogin",
    "wait_for_auth",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AuthMethod {
    /// A stored token, or else a browser if interactive
    Auto,
    /// Like auto, but fail if not interactive
    Code,
    /// Client credentials, for CI; requires --client-id with --client-secret or --client-key
    ClientCredentials,
    /// No token; fail if the server requires one
    None,
}

#[derive(Clone, Debug)]
struct Scopes(Vec<String>);

pub(crate) use listing::list;

impl AuthArgs {
    /// Adds the requested authorization to the target.
    pub(crate) fn apply(&self, target: &mut Target, guardian: &Guardian, consent: &Consent) -> Result<Option<Authorization>, Failure> {
        let Target::Http { endpoint, .. } = target else {
            return match self.first_flag() {
                Some(flag) => {
                    Err(Failure::bad_input("transport-mismatch", format!("`{flag}` requires a URL, but a command is reached over stdio"))
                        .hint("pass credentials in the server's environment: -e NAME=VALUE"))
                }
                None => Ok(None),
            };
        };
        if endpoint.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return match self.first_flag() {
                Some(flag) => Err(Failure::bad_input("bad-flag", format!("`{flag}` cannot be used with an `Authorization` header"))),
                None => Ok(None),
            };
        }
        if let Some(header) = self.bearer()? {
            endpoint.headers.push(header);
            return Ok(None);
        }
        match self.auth {
            Some(AuthMethod::None) => Ok(None),
            Some(AuthMethod::ClientCredentials) => self.client_credentials().map(Some),
            None | Some(AuthMethod::Auto | AuthMethod::Code) => {
                let stored = self.stored(&endpoint.url, consent)?;
                let person = self.person(consent);
                // Nothing could be done but fail, which a plain refusal says better.
                let hopeless = !stored && person != UserPresence::Present && self.first_flag().is_none();
                if hopeless { Ok(None) } else { self.code(person, guardian, consent).map(Some) }
            }
        }
    }

    /// The requested authorization for the servers of suites, which are not known yet.
    pub(crate) fn for_suites(&self, guardian: &Guardian) -> Result<Option<Authorization>, Failure> {
        if let Some(flag) = self.of_one_server() {
            return Err(Failure::bad_input("bad-flag", format!("`{flag}` requires --url, because a suite may have several servers")));
        }
        match self.auth {
            Some(AuthMethod::None) => Ok(None),
            Some(AuthMethod::ClientCredentials) => self.client_credentials().map(Some),
            None | Some(AuthMethod::Auto | AuthMethod::Code) => {
                if let Some(keeper) = self.keeper()? {
                    // Errors are reported now, and not by each test.
                    keeper.tokens.all()?;
                }
                self.code(self.person(&Consent::AtTerminal), guardian, &Consent::AtTerminal).map(Some)
            }
        }
    }

    /// With what is typed into the page, as if it stood on the command line.
    #[cfg(feature = "ui")]
    pub(crate) fn with_client(self, id: Option<String>, secret: Option<String>, scope: Option<&str>) -> Self {
        let scope = scope.map(|scope| Scopes(scope.split_whitespace().map(str::to_owned).collect())).or(self.scope.clone());
        match id {
            // Another client has other credentials.
            Some(id) => Self {
                client_id: Some(id),
                client_secret: secret.map(SecretSource::typed),
                client_key: None,
                client_key_algorithm: None,
                issuer: None,
                scope,
                ..self
            },
            None => Self { scope, ..self },
        }
    }

    /// Whether any of the flags is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.first_flag().is_some() || self.auth == Some(AuthMethod::Auto)
    }

    /// The first of the flags that were given, but those that only say what happens anyway.
    fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--auth", self.auth.is_some_and(|how| how != AuthMethod::Auto && how != AuthMethod::None)),
            ("--bearer", self.bearer.is_some()),
            ("--client-id", self.client_id.is_some()),
            ("--client-metadata-url", self.client_metadata_url.is_some()),
            ("--scope", self.scope.is_some()),
            ("--callback-url", self.callback_url.is_some()),
            ("--use-stored-auth", self.use_stored_auth),
            ("--stored-auth-only", self.stored_auth_only),
            ("--relogin", self.relogin),
            ("--wait-for-auth", self.wait_for_auth.is_some()),
        ];
        given.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// A flag that requires one server with a known URL.
    fn of_one_server(&self) -> Option<&'static str> {
        let given = [("--bearer", self.bearer.is_some()), ("--relogin", self.relogin), ("--wait-for-auth", self.wait_for_auth.is_some())];
        given.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    pub(crate) fn bearer(&self) -> Result<Option<(String, String)>, Failure> {
        let Some(source) = &self.bearer else { return Ok(None) };
        let token = source.read("--bearer")?;
        if !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::bad_input("bad-flag", "--bearer: token contains spaces or non-ASCII characters"));
        }
        Ok(Some(("Authorization".into(), format!("Bearer {}", token.expose()))))
    }

    fn person(&self, consent: &Consent) -> UserPresence {
        match (self.stored_auth_only, self.use_stored_auth, self.wait_for_auth) {
            (true, ..) => UserPresence::Unwanted("--stored-auth-only"),
            (_, true, _) => UserPresence::Unwanted("--use-stored-auth"),
            (.., Some(_)) => UserPresence::Unwanted("--wait-for-auth"),
            (.., None) => match consent {
                Consent::AtTerminal => UserPresence::found(),
                #[cfg(feature = "ui")]
                Consent::OnPage(_) => UserPresence::Present,
                #[cfg(feature = "ui")]
                Consent::Nobody => UserPresence::Absent("the page has not signed in"),
            },
        }
    }

    /// Applies the flags about stored tokens; returns whether there is a token for this server.
    fn stored(&self, server: &Url, consent: &Consent) -> Result<bool, Failure> {
        let Some(keeper) = self.keeper()? else { return Ok(false) };
        if self.relogin || consent.is_anew() {
            keeper.tokens.forget(server)?;
        }
        let began = Instant::now();
        let patience = Duration::from_secs(self.wait_for_auth.unwrap_or_default().into());
        while keeper.find(server)?.is_none() {
            if began.elapsed() >= patience {
                return match self.wait_for_auth {
                    Some(seconds) => Err(no_stored_token(server, &format!(" after {seconds} s"))),
                    None if self.use_stored_auth => Err(no_stored_token(server, "")),
                    None => Ok(false),
                };
            }
            std::thread::sleep(LOOK);
        }
        Ok(true)
    }

    /// `None` if there is no directory for tokens, and no flag requires one.
    fn keeper(&self) -> Result<Option<OfClient>, Failure> {
        let asked = self.use_stored_auth || self.stored_auth_only || self.relogin || self.wait_for_auth.is_some();
        let tokens = match StoredTokens::of_user() {
            Ok(tokens) => tokens,
            Err(failure) if asked => return Err(failure),
            Err(_) => return Ok(None),
        };
        Ok(Some(OfClient { tokens, client: self.client_id.clone(), issuer: self.issuer.clone() }))
    }

    fn code(&self, person: UserPresence, guardian: &Guardian, consent: &Consent) -> Result<Authorization, Failure> {
        let identity = Identity {
            registered: self.registered()?,
            metadata_document: self.client_metadata_url.clone(),
            dynamic: DynamicRegistration::Allowed,
        };
        let callback = self.callback_url.clone().unwrap_or_else(callback::usual);
        let control = consent.control();
        let (opening, usual) = if control.is_some() { (Opening::Theirs, STEP_BY_STEP) } else { (Opening::Ours, IN_A_BROWSER) };
        let user = Arc::new(Browser::new(person, callback, guardian.clone(), opening));
        Ok(Authorization {
            control,
            scopes: self.scopes(),
            store: self.keeper()?.map(TokenStore::persisted_by).unwrap_or_default(),
            timeout: self.auth_timeout.unwrap_or(usual),
            ..Authorization::new(identity, Grant::Code { user })
        })
    }

    fn client_credentials(&self) -> Result<Authorization, Failure> {
        let registered = self.registered()?.filter(|registered| !matches!(registered.credential, Credential::None));
        let registered = registered.ok_or_else(|| {
            Failure::bad_input("bad-flag", "--auth client-credentials requires a client and its credentials")
                .hint("add --client-id ID with --client-secret env:NAME, or with --client-key FILE")
        })?;
        for (flag, given) in [
            ("--client-metadata-url", self.client_metadata_url.is_some()),
            ("--callback-url", self.callback_url.is_some()),
            ("--use-stored-auth", self.use_stored_auth),
            ("--stored-auth-only", self.stored_auth_only),
            ("--relogin", self.relogin),
            ("--wait-for-auth", self.wait_for_auth.is_some()),
        ] {
            if given {
                return Err(Failure::bad_input("bad-flag", format!("`{flag}` cannot be used with --auth client-credentials")));
            }
        }
        let identity = Identity { registered: Some(registered), metadata_document: None, dynamic: DynamicRegistration::Never };
        let authorization = Authorization::new(identity, Grant::ClientCredentials);
        Ok(Authorization { scopes: self.scopes(), timeout: self.auth_timeout.unwrap_or(authorization.timeout), ..authorization })
    }

    fn registered(&self) -> Result<Option<Registered>, Failure> {
        let Some(id) = self.client_id.clone() else { return Ok(None) };
        let credential = match (&self.client_secret, &self.client_key) {
            (Some(source), _) => Credential::Secret(source.read("--client-secret")?),
            (None, Some(path)) => {
                let shown = path.display();
                let pem = mcproof_suite::bounds::read_text(path)
                    .map(Secret::new)
                    .map_err(|error| Failure::bad_input("cannot-read", format!("--client-key: cannot read {shown}: {error}")))?;
                let key = match self.client_key_algorithm {
                    Some(algorithm) => SigningKey::from_pem(pem.expose(), algorithm),
                    None => SigningKey::of_any_kind(pem.expose()),
                };
                Credential::Key(key.map_err(|unreadable| {
                    Failure::bad_input("bad-key", format!("--client-key: cannot use {shown}: {unreadable}"))
                        .hint("convert the key: openssl pkcs8 -topk8 -nocrypt -in KEY")
                })?)
            }
            (None, None) => Credential::None,
        };
        Ok(Some(Registered { id, credential, issuer: self.issuer.clone() }))
    }

    fn scopes(&self) -> Option<Vec<String>> {
        self.scope.as_ref().map(|Scopes(scopes)| scopes.clone())
    }
}

fn no_stored_token(server: &Url, after: &str) -> Failure {
    let mut shown = server.clone();
    // It may contain a key.
    shown.set_query(None);
    Failure::bad_input("no-stored-auth", format!("no stored token for {shown}{after}"))
        .hint("sign in once on a terminal, with the same command without this flag; --list-stored-auth lists stored authorizations")
}

fn parse_algorithm(text: &str) -> Result<SigningAlgorithm, String> {
    SigningAlgorithm::named(text).ok_or_else(|| "expected one of ES256, ES384, EdDSA, RS256, PS256".into())
}

fn parse_metadata_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("no URL: {error}"))?;
    match (url.scheme(), url.path()) {
        // 2026-07-28, client registration, client ID metadata documents.
        ("https", path) if path != "/" => Ok(url),
        _ => Err("expected an https:// URL with a path".into()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form that clap asks for")]
fn parse_scopes(text: &str) -> Result<Scopes, String> {
    Ok(Scopes(text.split_whitespace().map(str::to_owned).collect()))
}
