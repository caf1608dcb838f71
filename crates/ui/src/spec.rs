//! A server as the page describes it, and who finds out what that means.

use crate::comparison::{Compared, ComparedSide};
use crate::sign_in::SignIn;
use mcproof_client::{Answers, ConnectOptions, TapBounds, Target};
use mcproof_protocol::{EraChoice, TransportChoice};
use mcproof_record::{Diagnostic, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server, as typed into the page or on the command line. Exactly one of `server`, `command` and `url` says which one; `url` and `command`
/// together mean that the command starts what listens there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerSpec {
    /// What it is called in the page; made from the rest if it is empty.
    pub name: String,
    /// A name in a configuration file.
    pub server: Option<String>,
    /// The file that has it, if it is not one of this directory.
    pub config: Option<String>,
    pub command: Vec<String>,
    pub url: Option<String>,
    pub env: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    /// Variables and headers that the configuration file sets, and that are left out.
    pub without_env: Vec<String>,
    pub without_headers: Vec<String>,
    /// A client that is registered with the authorization server, its secret, and the scopes to request.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub scope: Option<String>,
    pub cwd: Option<String>,
    pub roots: Vec<String>,
    /// `auto`, `stdio`, `http` or `sse`.
    pub transport: Option<String>,
    /// `auto`, `legacy` or `modern`.
    pub era: Option<String>,
    /// Only this revision.
    pub revision: Option<String>,
}

impl ServerSpec {
    /// What a user recognizes it by.
    pub fn title(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        match (&self.server, &self.url) {
            (Some(server), _) => server.clone(),
            (None, Some(url)) => url.clone(),
            (None, None) => self.command.join(" "),
        }
    }

    /// Without the values that may be secret; their names stay.
    pub(crate) fn masked(&self) -> Self {
        let mask = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| (name.clone(), String::new())).collect();
        let client_secret = self.client_secret.as_ref().map(|_| String::new());
        Self { env: mask(&self.env), headers: mask(&self.headers), client_secret, ..self.clone() }
    }

    /// The same server as its target says it. Its folder is seen from this one.
    pub(crate) fn resolved(&self, target: &Target, folder: Option<&Path>) -> Self {
        let mut known = Self { server: None, config: None, without_env: Vec::new(), without_headers: Vec::new(), ..self.clone() };
        let launch = match target {
            Target::Stdio(launch) => Some(launch),
            Target::Http { endpoint, kind, launch, .. } => {
                known.url = Some(endpoint.url.to_string());
                known.headers.clone_from(&endpoint.headers);
                known.transport = kind.map(|kind| kind.to_string()).or(known.transport);
                launch.as_ref()
            }
        };
        if let Some(launch) = launch {
            known.command.clone_from(&launch.command);
            known.env.clone_from(&launch.env);
            let inside = |cwd: &Path| folder.and_then(|folder| cwd.strip_prefix(folder).ok()).unwrap_or(cwd).display().to_string();
            known.cwd = launch.folder.as_deref().map(inside).filter(|cwd| !cwd.is_empty());
        }
        known
    }

    /// With its command and its address changed in this way.
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        Self { command: self.command.into_iter().map(&change).collect(), url: self.url.map(&change), ..self }
    }
}

/// A server that can be connected to.
pub struct Prepared {
    pub target: Target,
    pub options: ConnectOptions,
    /// Never to be recorded or shown.
    pub secrets: Vec<String>,
    pub tap: TapBounds,
    /// What to do if the server ends at its start, where the way that it is started may be the reason.
    pub hint: Option<String>,
}

/// A server of a configuration file.
#[derive(Clone, Debug, Serialize)]
pub struct KnownServer {
    pub name: String,
    /// As shown to the user.
    pub file: String,
}

/// Finds out what a [`ServerSpec`] means: looks into configuration files, asks for a free port, reads credentials.
pub trait Connector: Send + Sync + 'static {
    /// Without a user who signs in, only stored tokens are used.
    ///
    /// # Errors
    /// Says what is wrong with the description, in the words of a person who typed it.
    fn prepare(&self, spec: &ServerSpec, user: Option<SignIn>) -> Result<Prepared, Box<Diagnostic>>;

    /// The file of a program that a server is started with.
    fn find_program(&self, name: &str, prepared: &Prepared) -> Option<PathBuf>;

    /// Reads the `answers:` of a suite, where they stand alone. Variables have no value in them.
    ///
    /// # Errors
    /// Says what is wrong, and in which line.
    fn answers(&self, text: &str) -> Result<Answers, Box<Diagnostic>>;

    /// Compares what two sides promise, as `mcproof diff` does. Blocks while it visits servers, in sessions of its own.
    ///
    /// # Errors
    /// A side shows no contract.
    fn compare(&self, old: &ComparedSide, new: &ComparedSide) -> Result<Compared, Box<Diagnostic>>;

    /// The locks and traces that can be compared with.
    fn contract_files(&self) -> Vec<String>;

    /// The servers that can be named here.
    fn known(&self) -> Vec<KnownServer>;

    /// Where suites are saved, and where commands start that say nothing else.
    fn folder(&self) -> Option<&Path>;

    /// The suites that a test can be saved to.
    fn suites(&self) -> Vec<String>;

    /// Saves a test to a suite of [`Self::suites`], or to a new one.
    ///
    /// # Errors
    /// Says why nothing was written.
    fn save(&self, test: &NewTest) -> Result<SavedTest, Box<Diagnostic>>;

    /// # Errors
    /// Says why the suite cannot be read, or may not.
    fn suite_text(&self, file: &str) -> Result<String, Box<Diagnostic>>;

    /// Writes a suite that there is.
    ///
    /// # Errors
    /// Says why nothing was written.
    fn change_suite(&self, change: &SuiteChange) -> Result<(), Box<Diagnostic>>;

    /// The requests of a session as the steps of a test, as `mcproof trace export --suite` writes them.
    ///
    /// # Errors
    /// Says why the session cannot be written.
    fn steps(&self, session: &SharedSession) -> Result<SessionSteps, Box<Diagnostic>>;

    /// A session as the bytes of a trace file.
    ///
    /// # Errors
    /// Says why it cannot be written.
    fn trace(&self, session: &SharedSession) -> Result<Vec<u8>, Box<Diagnostic>>;
}

/// A session that the user hands on.
#[derive(Clone, Debug)]
pub struct SharedSession {
    pub title: String,
    pub transport: String,
    pub era: Option<String>,
    pub revision: Option<String>,
    pub transcript: Transcript,
}

/// A session as a test.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSteps {
    /// As they stand in a suite: the first key of each says what it does.
    pub steps: Vec<Value>,
    /// The `answers` of the test.
    pub answers: Option<Value>,
    /// Requests that became no step, by why.
    pub left_out: BTreeMap<String, usize>,
    /// Steps that compare a part of their response only.
    pub uncompared: Vec<String>,
    /// Steps that send a value as it was recorded, although an earlier response brought it.
    pub stale: Vec<String>,
}

/// A suite that was edited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteChange {
    pub file: String,
    /// What the user has seen: a file that is another by now is not overwritten.
    pub before: String,
    pub after: String,
}

/// A test that the user wants to keep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTest {
    /// As the user names it.
    pub file: String,
    /// A suite with this test alone, for a new file.
    pub whole: String,
    /// The test, as an item of a list in YAML.
    pub test: String,
    /// Whether it is appended to a suite of another server as well: the user was asked.
    #[serde(default)]
    pub anyway: bool,
}

/// The code of a diagnostic that asks whether a test goes to the suite of another server.
pub const OTHER_SERVER: &str = "another-server";

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedTest {
    pub file: String,
    pub is_new: bool,
}

/// The eras and transports that a request of the page may name.
pub(crate) fn check_choices(spec: &ServerSpec) -> Result<(), String> {
    let wrong = |what: &str, given: &str, known: &str| Err(format!("`{given}` is not a {what}: use {known}"));
    if let Some(era) = spec.era.as_deref().filter(|era| era.parse::<EraChoice>().is_err()) {
        return wrong("protocol era", era, "auto, legacy or modern");
    }
    if let Some(transport) = spec.transport.as_deref().filter(|transport| transport.parse::<TransportChoice>().is_err()) {
        return wrong("transport", transport, "auto, stdio, http or sse");
    }
    Ok(())
}

/// The longest wait for one response: the page shows how long it has taken, and cancels.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
