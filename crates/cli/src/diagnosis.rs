//! What went wrong with a server, in the words of the engine, with next steps that name flags instead of suite keys.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::Resolved;
use mcproof_client::{CallFailure, ConnectFailure, Fault, Session, StartFailure, Tap, Target, Unanswered};
use mcproof_engine::diagnosis::{self, Scene};
use mcproof_record::{Diagnostic, Severity, Transcript};

/// Why no session could be opened.
pub(crate) fn of_connect_failure(failure: &ConnectFailure, tap: &Tap, resolved: &Resolved) -> Failure {
    let mut diagnostic = diagnosis::of_connect_failure(failure, &tap.transcript(), resolved.command());
    let hint = match failure {
        ConnectFailure::Start(StartFailure::NotFound { program }) if program.contains(' ') => {
            Some("the whole command is one word: leave out the quotes around it".to_owned())
        }
        ConnectFailure::Start(StartFailure::NoFolder(_)) => Some("correct --cwd".into()),
        ConnectFailure::Unauthorized { .. } => Some("send credentials: --header 'Authorization: Bearer …'".into()),
        ConnectFailure::OtherVersion { found, .. } => Some(format!("ask for that revision: --protocol-version {found}")),
        ConnectFailure::Exited { .. } => missing_variable(&tap.transcript()).map(|name| format!("set it: -e {name}=…")),
        ConnectFailure::Unanswered { .. } if diagnostic.code == "no-answer" && names_suite_key(&diagnostic) => {
            Some("watch the wire with -v, or raise --connect-timeout if the server starts slowly".into())
        }
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(_)), .. } if over_tls(&resolved.target) => {
            Some("check the URL; --cacert names an authority to trust, --cert the certificate to show, --proxy the way out".into())
        }
        _ => None,
    };
    diagnostic.hint = hint.or(diagnostic.hint);
    let exit = match failure {
        ConnectFailure::Address(_) | ConnectFailure::NoModernSse => Exit::BadInput,
        _ => Exit::Unreachable,
    };
    Failure::new(exit, diagnostic)
}

fn over_tls(target: &Target) -> bool {
    matches!(target, Target::Http { endpoint, .. } if endpoint.url.scheme() == "https")
}

/// A request without an answer, from what the engine says of it.
pub(crate) fn of_silence(mut diagnostic: Diagnostic) -> Failure {
    if names_suite_key(&diagnostic) {
        diagnostic.hint = Some("raise --timeout if the server needs longer, or watch the wire with -v".into());
    }
    Failure::new(Exit::Failed, diagnostic)
}

/// What is known besides a failed request.
pub(crate) async fn scene(session: &Session) -> Scene {
    Scene::of(session, session.tap()).await
}

/// Something that the server sent and should not have, next to an answer that came all the same.
pub(crate) fn of_fault(fault: &Fault, transcript: &Transcript) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, evidence: None, ..diagnosis::of_fault(fault, transcript) }
}

fn names_suite_key(diagnostic: &Diagnostic) -> bool {
    diagnostic.hint.as_ref().is_some_and(|hint| hint.contains("`timeouts."))
}

/// The environment variable that a server's last words ask for.
fn missing_variable(transcript: &Transcript) -> Option<String> {
    const COMPLAINTS: [&str; 6] = ["not set", "required", "missing", "undefined", "must be", "KeyError"];
    let is_name =
        |word: &&str| word.contains('_') && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    transcript.tail(0, 20).stderr.iter().filter(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint))).find_map(|line| {
        line.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').find(is_name).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Direction, Frame, FrameBody, FrameId};

    #[test]
    fn a_variable_that_is_asked_for_is_found() {
        let check = |line: &str, expected: Option<&str>| {
            let body = FrameBody::Stderr { bytes: line.into() };
            let frame = Frame { id: FrameId(0), at: std::time::Duration::ZERO, direction: Direction::FromServer, body };
            let transcript = Transcript { frames: vec![frame], dropped: 0 };
            assert_eq!(missing_variable(&transcript).as_deref(), expected, "{line}");
        };
        check("Error: DATABASE_URL environment variable is required", Some("DATABASE_URL"));
        check("KeyError: 'API_KEY'", Some("API_KEY"));
        check("BRAVE_API_KEY is not set", Some("BRAVE_API_KEY"));
        check("the file is missing", None);
        check("loaded MAX_SIZE", None);
    }
}
