//! Diagnoses failures of a server with the engine, and derives the exit code.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::Resolved;
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_client::{ConnectFailure, Session, Tap};
use mcproof_record::Diagnostic;

/// Why no session could be opened.
pub(crate) fn of_connect_failure(failure: &ConnectFailure, tap: &Tap, resolved: &Resolved) -> Failure {
    let mut diagnostic = diagnosis::of_connect_failure(failure, &resolved.target, &tap.transcript(), Audience::CommandLine);
    explain_launch(&mut diagnostic, failure, resolved);
    Failure::new(exit_of(failure), diagnostic.map_text(|text| tap.redacted(text)))
}

/// Where a server ended at its start that was started as by a host, that is the first thing to think of.
pub(crate) fn explain_launch(diagnostic: &mut Diagnostic, failure: &ConnectFailure, resolved: &Resolved) {
    if let (ConnectFailure::Exited { .. }, Some(hint)) = (failure, resolved.host_hint()) {
        diagnostic.hint = Some(hint);
    }
}

/// The exit code that follows from it.
pub(crate) fn exit_of(failure: &ConnectFailure) -> Exit {
    match failure {
        ConnectFailure::Address(_) | ConnectFailure::NoModernSse => Exit::BadInput,
        _ => Exit::Unreachable,
    }
}

/// What is known besides a failed request.
pub(crate) async fn scene(session: &Session) -> Scene {
    Scene::of(session, session.tap(), Audience::CommandLine).await
}
