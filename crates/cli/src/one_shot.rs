//! The course of every command that sends one request: open a session, send, print, warn, close. Knows no flags.

use crate::conversation::{self, Watching};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities;
use crate::output;
use crate::printing::{Form, Printer};
use crate::request::{self, Request, Response};
use crate::target::Resolved;
use mcproof_client::jsonrpc::RpcError;
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;
use mcproof_report::escape;

/// Sends one request and prints the response. Failures are returned in the form that the printer prints.
pub(crate) fn run(resolved: &Resolved, request: &Request, printer: &Printer, watching: Watching) -> Result<Exit, Failure> {
    conversation::hold(resolved, watching, async |session| {
        if watching == Watching::Wire {
            let handshake = session.handshake();
            let version = escape(&handshake.protocol_version);
            output::talk(&format!("session open: {}, {} era, revision {version}\n", handshake.transport, handshake.era));
        }
        let asked = request::send(session, request, resolved.timeout).await;
        // A diagnosis of silence names the noise already.
        if asked.is_ok() && !printer.quiet {
            oddities::warn(session);
        }
        let Response { method, answer, elapsed } = asked?;
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
                    "`{method}` responded in {millis:.1} ms ({}, {} era, {version})\n",
                    handshake.transport, handshake.era
                ))?;
                oddities::judge(session, printer.oddities).map(|()| Exit::Passed)
            }
            Ok(result) => {
                printer.print(&method, &session.tap().redacted_value(result.clone()))?;
                match result.get("isError") {
                    Some(serde_json::Value::Bool(true)) if method == methods::TOOLS_CALL => {
                        let mut failure = tool_error(request);
                        failure.diagnostic.hint = request::misspelling(session, request, resolved.timeout).await;
                        Err(failure)
                    }
                    _ => oddities::judge(session, printer.oddities).map(|()| Exit::Passed),
                }
            }
        }
    })
}

/// A response that is a JSON-RPC error.
fn refusal(method: &str, error: &RpcError) -> Failure {
    let mut diagnostic = Diagnostic::error("rpc-error", format!("server returned an error for `{method}`: {error}"));
    diagnostic.actual = error.data.as_ref().map(|data| format!("{data:#}"));
    let mut failure = Failure::new(Exit::Failed, diagnostic);
    failure.wire = Some(Box::new(error.to_value()));
    failure
}

fn tool_error(request: &Request) -> Failure {
    let name = request.params.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
    Failure::new(Exit::Failed, Diagnostic::error("tool_is_error", format!("tool `{name}` returned `isError`")))
}
