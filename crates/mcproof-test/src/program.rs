//! A server that is a program: started for a test, over each of its transports, and ended with its whole process group.

use crate::client::{Client, endpoint, explain};
use crate::failure::Failure;
use mcproof_client::{ConnectOptions, Endpoint, Launch, Session, Tap, TapBounds, Target, free_port, open_bare};
use mcproof_protocol::{Revision, Transport};
use mcproof_record::Diagnostic;
use mcproof_suite::run::locate_by;
use std::path::PathBuf;

/// A program, and how to start it for each transport.
#[derive(Clone, Debug, Default)]
pub struct Program {
    command: Vec<String>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
    http: Option<Listening>,
    sse: Option<Listening>,
    port_from: Option<String>,
}

#[derive(Clone, Debug)]
struct Listening {
    /// Added to the command.
    arguments: Vec<String>,
    /// With `${port}`.
    url: String,
}

/// Stands for a free port.
const PORT: &str = "${port}";

impl Program {
    /// What starts it over stdio.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Where it listens for Streamable HTTP, and the arguments that make it; `${port}` in them and in the variables is a free port.
    #[must_use]
    pub fn http(mut self, arguments: impl IntoIterator<Item = impl Into<String>>, url: &str) -> Self {
        self.http = Some(Listening { arguments: arguments.into_iter().map(Into::into).collect(), url: url.to_owned() });
        self
    }

    /// The same for HTTP+SSE.
    #[must_use]
    pub fn sse(mut self, arguments: impl IntoIterator<Item = impl Into<String>>, url: &str) -> Self {
        self.sse = Some(Listening { arguments: arguments.into_iter().map(Into::into).collect(), url: url.to_owned() });
        self
    }

    /// A pattern whose first group is the port in a line that it prints, if it chooses its port by itself.
    #[must_use]
    pub fn port_from(mut self, pattern: &str) -> Self {
        self.port_from = Some(pattern.to_owned());
        self
    }

    /// Where and how to reach it: for [`Client::connect`] and [`crate::assert_check`].
    ///
    /// # Errors
    /// It does not have this transport, or what was said of it cannot be used.
    pub fn target(&self, transport: Transport) -> Result<Target, Failure> {
        let launch = |command: Vec<String>, env| Launch { command, env, folder: self.folder.clone(), ..Launch::default() };
        let listening = match transport {
            Transport::Stdio => return Ok(Target::Stdio(launch(self.command.clone(), self.env.clone()))),
            Transport::Http => &self.http,
            Transport::Sse => &self.sse,
            Transport::InMemory => &None,
        };
        let Some(Listening { arguments, url }) = listening else {
            return Err(wrong(format!("this program is not reached over {transport}")));
        };
        let port = match self.port_from {
            None => free_port().map_err(|error| wrong(format!("no free port: {error}")))?.to_string(),
            // Found in what it prints; until then the URL counts for nothing.
            Some(_) => "1".to_owned(),
        };
        let fill = |text: &String| text.replace(PORT, &port);
        let command = self.command.iter().chain(arguments).map(fill).collect();
        let env = self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        let locate = self.port_from.as_ref().map(|pattern| locate_by(pattern, url)).transpose();
        let locate = locate.map_err(|reason| wrong(format!("`port_from`: {reason}")))?;
        Ok(Target::Http { endpoint: endpoint(&fill(url))?, kind: Some(transport), launch: Some(launch(command, env)), locate })
    }

    /// Starts it, and opens a session. It ends with the client.
    ///
    /// # Errors
    /// It did not start, or did not do the handshake.
    pub async fn over(&self, transport: Transport) -> Result<Client, Failure> {
        Client::connect(&self.target(transport)?, &ConnectOptions::default()).await
    }

    /// Starts it without a session, so that several clients share it, and waits until it takes connections.
    ///
    /// # Errors
    /// It did not start, or does not listen.
    pub async fn serve(&self, transport: Transport) -> Result<Server, Failure> {
        let target = self.target(transport)?;
        let Target::Http { kind: Some(kind), .. } = target else {
            return Err(wrong("over stdio each session has a server of its own: use `over`".into()));
        };
        let tap = Tap::with(TapBounds::default(), target.secrets(), None);
        // What is held is the process; nothing is said over it.
        let holder = open_bare(&target, Transport::Http, Revision::LATEST_LEGACY.as_str(), &ConnectOptions::default(), &tap).await;
        let holder = holder.map_err(|failure| explain(&failure, &target, &tap))?;
        Ok(Server { holder, kind })
    }
}

/// A server that runs. Dropping it kills its whole process group.
pub struct Server {
    holder: Session,
    kind: Transport,
}

impl Server {
    /// Where it listens.
    pub fn url(&self) -> &str {
        self.holder.url().expect("it is reached over HTTP").as_str()
    }

    /// One more session with it.
    ///
    /// # Errors
    /// It did not do the handshake.
    pub async fn client(&self) -> Result<Client, Failure> {
        let endpoint = Endpoint { url: self.holder.url().expect("it is reached over HTTP").clone(), headers: Vec::new() };
        let target = Target::Http { endpoint, kind: Some(self.kind), launch: None, locate: None };
        Client::connect(&target, &ConnectOptions::default()).await
    }

    /// Ends it in good order.
    pub async fn stop(self) {
        self.holder.close().await;
    }
}

/// What the test said of a program cannot be used.
fn wrong(message: String) -> Failure {
    Failure::new(Diagnostic::error("bad-program", message))
}
