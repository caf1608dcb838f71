//! Tokens on disk: one file that only this user can read. Knows its format, no OAuth.
//! Errors about the file never quote it, because it holds secrets.

use crate::failure::Failure;
use crate::{output, settings};
use mcproof_client::auth::{ClientMethod, Kept, Secret, TokenPersistence};
use mcproof_system::{files, machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use url::Url;

/// Of the file; another one is not touched.
const VERSION: u32 = 1;
const NAME: &str = "auth.json";

/// The tokens of this user.
#[derive(Clone, Debug)]
pub(crate) struct StoredTokens {
    path: PathBuf,
}

/// The keeper of a run: the stored tokens of one client, or of any.
pub(super) struct OfClient {
    pub(super) tokens: StoredTokens,
    /// The client whose tokens count; those of any other are left alone.
    pub(super) client: Option<String>,
    pub(super) issuer: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    tokens: Vec<Entry>,
}

/// Only to tell the version of a file that has another form.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    server: String,
    resource: String,
    issuer: String,
    token_endpoint: Option<String>,
    client_id: String,
    client_method: Method,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    scopes: BTreeSet<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl Entry {
    fn of(kept: &Kept) -> Self {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
        Self {
            server: kept.server.to_string(),
            resource: kept.resource.clone(),
            issuer: kept.issuer.clone(),
            token_endpoint: kept.token_endpoint.as_ref().map(ToString::to_string),
            client_id: kept.client.clone(),
            client_method: match kept.method {
                ClientMethod::None => Method::None,
                ClientMethod::Basic => Method::ClientSecretBasic,
                ClientMethod::Post => Method::ClientSecretPost,
                ClientMethod::PrivateKeyJwt => Method::PrivateKeyJwt,
            },
            client_secret: kept.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
            access_token: kept.access.expose().to_owned(),
            refresh_token: kept.refresh.as_ref().map(|secret| secret.expose().to_owned()),
            expires_at: kept.expires.map(seconds),
            scopes: kept.scopes.clone(),
        }
    }

    fn is_same_client(&self, other: &Self) -> bool {
        (&self.server, &self.issuer, &self.client_id) == (&other.server, &other.issuer, &other.client_id)
    }

    /// `None` if what should be a URL is none.
    fn into_kept(self) -> Option<Kept> {
        Some(Kept {
            server: Url::parse(&self.server).ok()?,
            resource: self.resource,
            issuer: self.issuer,
            token_endpoint: self.token_endpoint.map(|url| Url::parse(&url)).transpose().ok()?,
            client: self.client_id,
            method: match self.client_method {
                Method::None => ClientMethod::None,
                Method::ClientSecretBasic => ClientMethod::Basic,
                Method::ClientSecretPost => ClientMethod::Post,
                Method::PrivateKeyJwt => ClientMethod::PrivateKeyJwt,
            },
            client_secret: self.client_secret.map(Secret::new),
            access: Secret::new(self.access_token),
            refresh: self.refresh_token.map(Secret::new),
            expires: self.expires_at.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))),
            scopes: self.scopes,
        })
    }
}

impl StoredTokens {
    /// # Errors
    /// There is no place for such a file.
    pub(crate) fn of_user() -> Result<Self, Failure> {
        let folder = settings::state_folder().ok_or_else(|| {
            Failure::bad_input("no-state-folder", format!("no directory for stored tokens: {} are not set", machine::STATE_VARIABLES))
                .hint("set one of them, or pass a token with --bearer env:NAME")
        })?;
        Ok(Self { path: folder.join(NAME) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that is stored, the newest last.
    ///
    /// # Errors
    /// The file cannot be used as it is.
    pub(super) fn all(&self) -> Result<Vec<Kept>, Failure> {
        let kept: Option<Vec<Kept>> = self.read()?.into_iter().map(Entry::into_kept).collect();
        kept.ok_or_else(|| self.bad("it contains an invalid URL"))
    }

    /// Removes the tokens for a server.
    ///
    /// # Errors
    /// The file cannot be used as it is.
    pub(super) fn forget(&self, server: &Url) -> Result<(), Failure> {
        // Nothing to lock where nothing is.
        if self.read()?.iter().all(|entry| entry.server != server.as_str()) {
            return Ok(());
        }
        self.change(|entries| entries.retain(|entry| entry.server != server.as_str()))
    }

    fn bad(&self, reason: impl Display) -> Failure {
        let shown = self.path.display();
        Failure::bad_input("bad-token-file", format!("cannot use the stored tokens in {shown}: {reason}"))
            .hint(format!("repair the file, or remove it and sign in again: rm '{shown}'"))
    }

    fn read(&self) -> Result<Vec<Entry>, Failure> {
        let bad = |reason: String| self.bad(reason);
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| bad(error.to_string()))?,
        };
        if files::is_open_to_others(&fs::metadata(&self.path).map_err(|error| bad(error.to_string()))?) {
            let hint = format!("restrict its permissions: chmod 600 '{}'", self.path.display());
            return Err(self.bad("other users can read it").hint(hint));
        }
        // Only the place: the words of the parser quote what they do not like.
        let at = |error: &serde_json::Error| format!("line {}, column {}", error.line(), error.column());
        match serde_json::from_slice::<Versioned>(&bytes) {
            Ok(Versioned { version: VERSION }) => {}
            Ok(Versioned { version }) => {
                return Err(bad(format!("format version {version} is not supported; this mcproof supports {VERSION}")));
            }
            Err(error) if error.is_data() => return Err(bad(format!("version is missing ({})", at(&error)))),
            Err(error) => return Err(bad(format!("invalid JSON at {}", at(&error)))),
        }
        let document: Result<Document, _> = serde_json::from_slice(&bytes);
        document.map(|document| document.tokens).map_err(|error| bad(format!("invalid data at {}", at(&error))))
    }

    /// Reads, changes and replaces the file while no other mcproof does.
    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::cannot_write(&self.path, &error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        files::private_folder(fs::DirBuilder::new().recursive(true)).create(folder).map_err(failed)?;
        let lock = self.path.with_extension("lock");
        let lock = files::private_file(OpenOptions::new().create(true).truncate(false).write(true)).open(lock).map_err(failed)?;
        wait_for(&lock).map_err(failed)?;
        let mut tokens = self.read()?;
        change(&mut tokens);
        let document = Document { version: VERSION, tokens };
        let written = || {
            // Made with 0600, and put in the place of the old one as a whole.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, &document)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map(drop).map_err(|error| error.error)
        };
        written().map_err(failed)
        // Closing it gives the lock back.
    }
}

/// The others hold it for as long as a small file takes.
fn wait_for(lock: &File) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("it is locked by another mcproof process")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

impl OfClient {
    /// The newest token for a server.
    ///
    /// # Errors
    /// The file cannot be used as it is.
    pub(super) fn find(&self, server: &Url) -> Result<Option<Kept>, Failure> {
        let mut server = server.clone();
        server.set_fragment(None);
        let fits = |kept: &Kept| {
            kept.server == server
                && self.client.as_ref().is_none_or(|client| *client == kept.client)
                && self.issuer.as_ref().is_none_or(|issuer| *issuer == kept.issuer)
        };
        Ok(self.tokens.all()?.into_iter().rfind(fits))
    }
}

impl TokenPersistence for OfClient {
    fn recall(&self, server: &Url) -> Option<Kept> {
        // A file that cannot be used was an error before any session was opened, or became so meanwhile: it is left alone.
        self.find(server).ok().flatten()
    }

    fn keep(&self, kept: &Kept) {
        let entry = Entry::of(kept);
        let stored = self.tokens.change(|entries| {
            entries.retain(|known| !known.is_same_client(&entry));
            entries.push(entry);
        });
        if let Err(failure) = stored {
            output::talk(&format!("warning: cannot store the token: {}\n", failure.diagnostic.message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn kept(server: &str, client: &str, access: &str) -> Kept {
        Kept {
            server: Url::parse(server).unwrap(),
            resource: server.into(),
            issuer: "https://as.example".into(),
            token_endpoint: Some(Url::parse("https://as.example/token").unwrap()),
            client: client.into(),
            method: ClientMethod::Basic,
            client_secret: Some(Secret::new("client-secret")),
            access: Secret::new(access),
            refresh: Some(Secret::new("refresh")),
            expires: Some(UNIX_EPOCH + Duration::from_secs(4_000_000_000)),
            scopes: BTreeSet::from(["a".to_owned()]),
        }
    }

    fn of(path: &Path, client: Option<&str>) -> OfClient {
        OfClient { tokens: StoredTokens { path: path.to_owned() }, client: client.map(str::to_owned), issuer: None }
    }

    #[test]
    fn a_token_comes_back_as_it_was_kept_and_only_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/auth.json");
        let keeper = of(&path, None);
        let url = Url::parse("https://s.example/mcp").unwrap();
        assert_eq!(keeper.recall(&url), None);
        keeper.keep(&kept("https://s.example/mcp", "one", "first"));
        keeper.keep(&kept("https://s.example/mcp", "two", "second"));
        keeper.keep(&kept("https://s.example/other", "one", "third"));
        keeper.keep(&kept("https://s.example/mcp", "one", "fourth"));
        assert_eq!(keeper.recall(&url), Some(kept("https://s.example/mcp", "one", "fourth")));
        assert_eq!(of(&path, Some("two")).recall(&url), Some(kept("https://s.example/mcp", "two", "second")));
        assert_eq!(of(&path, Some("three")).recall(&url), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        keeper.tokens.forget(&url).unwrap();
        assert_eq!((keeper.recall(&url), keeper.tokens.all().unwrap().len()), (None, 1));
    }

    #[test]
    fn what_cannot_be_used_is_left_as_it_is_and_not_quoted() {
        let check = |text: &str, mode: u32, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("auth.json");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let keeper = of(&path, None);
            let failure = keeper.tokens.all().unwrap_err();
            let shown = path.display();
            assert_eq!(failure.diagnostic.message, format!("cannot use the stored tokens in {shown}: {expected}"));
            assert!(!format!("{failure:?}").contains("s3cret"), "{failure:?}");
            keeper.keep(&kept("https://s.example/mcp", "one", "new"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        check(r#"{"version":1,"tokens":["s3cret"]}"#, 0o600, "invalid data at line 1, column 31");
        check("{\"version\":1,\n\"tokens\":[s3cret", 0o600, "invalid JSON at line 2, column 11");
        check(r#"{"version":2,"tokens":{}}"#, 0o600, "format version 2 is not supported; this mcproof supports 1");
        check(r#"{"tokens":"s3cret"}"#, 0o600, "version is missing (line 1, column 19)");
        check(r#"{"version":1,"tokens":[]}"#, 0o644, "other users can read it");
    }

    /// The form of version 1 is on the disks of users: it is read as long as there is that version.
    #[test]
    fn a_file_of_version_1_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        fs::write(&path, include_str!("stored_version_1.json")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(StoredTokens { path }.all().unwrap(), [kept("https://s.example/mcp", "one", "first")]);
    }
}
