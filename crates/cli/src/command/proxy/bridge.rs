//! A proxy between a client and a server of different transports.

use super::{Arguments, STARTUP, recording::Recording};
use crate::conversation::{self, Interrupts, Watching};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_client::{Endpoint, Guardian, Session, ShutdownTimeouts, Target};
use mcproof_record::Diagnostic;
use mcproof_relay::proxy::{InwardBridge, OutwardBridge, RelayListener, ServerEnd, Start, end_like};
use mcproof_system::pipes::{HostPipes, is_abandoned, take_host_pipes};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::fs::File;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use url::Url;

/// A client over stdio, and a server at a URL.
pub(super) fn outward(arguments: &Arguments, url: &str, watching: Watching) -> Result<Exit, Failure> {
    arguments.without_faults()?;
    let (url, launch) = arguments.addressed(url)?;
    let endpoint = Endpoint { url: url.clone(), headers: arguments.header.clone() };
    let target = Target::Http { endpoint, kind: None, launch, locate: None };
    let recording = Recording::begin(&arguments.recorded(&target), arguments.secrets(&target), watching)?;
    let (network, limits, tap) = (arguments.network.network()?, arguments.network.limits().limits(), recording.new_session());
    let ended = conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let bridge = OutwardBridge::new(&url, &arguments.header, limits, &network, &tap)
            .map_err(|failure| Failure::bad_input("bad-url", failure.to_string()))?;
        let host = take_host_pipes().map_err(|error| client_failed(&error))?;
        let mut lost = lost_client(&host).map_err(|error| client_failed(&error))?;
        let server = tokio::select! {
            server = arguments.start_http(&target, &tap, &network) => server?,
            exit = interrupts.next() => return Ok(End::Own(exit)),
            Ok(()) = &mut lost => return Ok(End::Own(Exit::Passed)),
        };
        let carried = tokio::select! {
            carried = bridge.carry(File::from_std(host.input), File::from_std(host.output)) => carried,
            end = gone(server.as_ref(), &url) => return Ok(End::OfServer(end)),
            // Nobody waits for the responses that are still to come.
            Ok(()) = &mut lost => {
                bridge.end_session().await;
                Ok(())
            }
            exit = interrupts.next() => {
                bridge.end_session().await;
                return Ok(End::Own(exit));
            }
        };
        if let Some(server) = server {
            server.close_within(ShutdownTimeouts::default()).await;
        }
        match carried {
            // The client is gone, which is an end like any other.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(client_failed(&error)),
            _ => Ok(End::Own(Exit::Passed)),
        }
    })??;
    match (recording.finish()?, ended) {
        (Exit::Passed, End::Own(exit)) => Ok(exit),
        (Exit::Passed, End::OfServer(end)) => Ok(Exit::OfServer(end_like(end))),
        (other, _) => Ok(other),
    }
}

fn client_failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, Diagnostic::error("client-failed", format!("the pipes of the client failed: {error}")))
}

/// Is told when nobody reads the output any more. The end of the input says less: a client may close it, and wait for responses.
fn lost_client(host: &HostPipes) -> io::Result<oneshot::Receiver<()>> {
    let output = host.output.try_clone()?;
    let (never_ends, keeps_open) = io::pipe()?;
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("client".into()).spawn(move || {
        if is_abandoned(&output, &never_ends) {
            let _ = tell.send(());
        }
        drop(keeps_open);
    })?;
    Ok(told)
}

/// Why a bridge ended.
enum End {
    Own(Exit),
    /// The server that was started for it is gone, which is the end for its client, too.
    OfServer(ServerEnd),
}

/// How often a server whose process has ended is looked for: what started it may have been another one.
const LOOK: Duration = Duration::from_secs(1);

/// Returns when the server that was started is gone: its process has ended, and nothing listens at the URL.
async fn gone(server: Option<&Session>, url: &Url) -> ServerEnd {
    let (Some(server), Some(host)) = (server, url.host_str()) else { return std::future::pending().await };
    let end = loop {
        if let Some(exit) = server.wait_for_exit(STARTUP).await {
            break ServerEnd { code: exit.code, signal: exit.signal };
        }
    };
    let port = url.port_or_known_default().unwrap_or_default();
    while TcpStream::connect((host.trim_matches(['[', ']']), port)).await.is_ok() {
        tokio::time::sleep(LOOK).await;
    }
    end
}

/// Clients over HTTP, and a stdio server.
pub(super) fn inward(arguments: &Arguments, address: SocketAddr, watching: Watching) -> Result<Exit, Failure> {
    arguments.without_faults()?;
    if !arguments.header.is_empty() {
        return Err(Failure::bad_input("transport-mismatch", "`--header` requires a URL, but a command is reached over stdio"));
    }
    let launch = arguments.launch(None);
    let target = Target::Stdio(launch.clone());
    let recording = Arc::new(Recording::begin(&arguments.recorded(&target), arguments.secrets(&target), watching)?);
    let sessions = Arc::clone(&recording);
    let bridge = InwardBridge::new(Start {
        launch,
        guardian: Guardian::of_whole_process(),
        limits: arguments.network.limits().limits(),
        patience: ShutdownTimeouts::default(),
        new_tap: Box::new(move || sessions.new_session()),
    });
    conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let cannot = |error: io::Error| Failure::cannot_listen(address, &error);
        let listener = RelayListener::bind(address).await.map_err(cannot)?;
        let own = Url::parse("http://127.0.0.1/mcp").map_err(|error| Failure::bad_input("bad-url", error.to_string()))?;
        output::talk(&format!("mcproof proxy: listening on {}\n", listener.url_of(&own)));
        if !listener.is_loopback() {
            output::talk("warning: clients on other machines can use the server through this address\n");
        }
        let served = tokio::select! {
            served = bridge.serve(listener) => match served {
                Err(error) => Err(cannot(error)),
                Ok(never) => match never {},
            },
            _ = interrupts.next() => Ok(()),
        };
        // No longer than a server may take to end.
        let _ = tokio::time::timeout(STARTUP, bridge.close()).await;
        served
    })??;
    recording.finish()
}
