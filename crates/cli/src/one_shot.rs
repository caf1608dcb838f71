//! The course of every command that asks one thing: open a session, ask, print, warn, end. Knows no flags of a command.

use crate::conversation::{self, Watching};
use crate::diagnosis;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::printing::{Form, Printer};
use crate::request::{self, Answer, Request};
use crate::settings;
use crate::target::Resolved;
use mcproof_client::Session;
use mcproof_client::jsonrpc::RpcError;
use mcproof_record::Diagnostic;
use mcproof_report::{diagnostic, escape};

/// Kinds of faults that are told; a flood of noise is counted.
const FAULTS_TOLD: usize = 5;

/// Asks one thing and prints the answer. Failures come back in the form that the printer prints them in.
pub(crate) fn run(resolved: &Resolved, request: &Request, printer: &Printer, watching: Watching) -> Result<Exit, Failure> {
    conversation::hold(resolved, watching, async |session| {
        if watching == Watching::Wire {
            let handshake = session.handshake();
            let version = escape(&handshake.protocol_version);
            output::talk(&format!("session open: {}, {} era, revision {version}\n", handshake.transport, handshake.era));
        }
        let asked = request::ask(session, request, resolved.timeout).await;
        // A diagnosis of silence names the noise already.
        if asked.is_ok() && !printer.quiet {
            warn_of_faults(session);
        }
        let Answer { method, answer, elapsed } = asked?;
        match answer {
            Err(error) => {
                let mut failure = refusal(&method, &error);
                failure.diagnostic.hint = request::misspelling(session, request, resolved.timeout).await;
                Err(failure)
            }
            Ok(_) if request.method == request::LIVENESS && printer.form == Form::Readable => {
                let handshake = session.handshake();
                let millis = elapsed.as_secs_f64() * 1e3;
                let version = escape(&handshake.protocol_version);
                output::show(&format!(
                    "`{method}` answered in {millis:.1} ms ({}, {} era, {version})\n",
                    handshake.transport, handshake.era
                ))?;
                if printer.strict { conforming(session) } else { Ok(Exit::Passed) }
            }
            Ok(result) => {
                printer.print(&method, &result)?;
                match result.get("isError") {
                    Some(serde_json::Value::Bool(true)) if method == "tools/call" => {
                        let mut failure = tool_error(request);
                        failure.diagnostic.hint = request::misspelling(session, request, resolved.timeout).await;
                        Err(failure)
                    }
                    _ if printer.strict => conforming(session),
                    _ => Ok(Exit::Passed),
                }
            }
        }
    })
}

/// # Errors
/// The server sent besides its answers what it should not have.
fn conforming(session: &Session) -> Result<Exit, Failure> {
    match session.faults().len() {
        0 => Ok(Exit::Passed),
        1 => Err(Failure::new(Exit::Failed, Diagnostic::error("not-strict", "the server sent something that not every client takes"))),
        count => Err(Failure::new(
            Exit::Failed,
            Diagnostic::error("not-strict", format!("the server sent {count} things that not every client takes")),
        )),
    }
}

/// An answer that is a JSON-RPC error.
fn refusal(method: &str, error: &RpcError) -> Failure {
    let mut diagnostic = Diagnostic::error("rpc-error", format!("server answered `{method}` with {error}"));
    diagnostic.actual = error.data.as_ref().map(|data| format!("{data:#}"));
    let mut failure = Failure::new(Exit::Failed, diagnostic);
    failure.wire = Some(Box::new(error.to_value()));
    failure
}

fn tool_error(request: &Request) -> Failure {
    let name = request.params.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
    Failure::new(Exit::Failed, Diagnostic::error("tool_is_error", format!("tool `{name}` answered with `isError`")))
}

/// Tells what the server sent besides its answers, and should not have.
pub(crate) fn warn_of_faults(session: &Session) {
    let faults = session.faults();
    if faults.is_empty() {
        return;
    }
    let (transcript, style) = (session.tap().transcript(), settings::style());
    // One of each kind: a server that logs to stdout does it all the time.
    let mut kinds: Vec<Diagnostic> = Vec::new();
    for fault in &faults {
        let told = diagnosis::of_fault(fault, &transcript);
        if !kinds.iter().any(|known| known.code == told.code && known.hint == told.hint) {
            kinds.push(told);
        }
    }
    let told = kinds.len().min(FAULTS_TOLD);
    kinds.iter().take(told).for_each(|kind| output::talk(&diagnostic::render(kind, &style)));
    if faults.len() > told {
        output::talk(&format!("… and {} more that fit no conversation; --trace FILE keeps them all\n", faults.len() - told));
    }
}
