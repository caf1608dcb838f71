//! The errors of driver requests, by the kinds of `docs/drive.md`, each with its diagnosis.

use crate::envelope;
use mcproof_analysis::did_you_mean;
use mcproof_protocol::error_code;
use mcproof_record::Diagnostic;
use mcproof_record::drive::{ErrorData, METHODS, PROTOCOL};
use mcproof_report::{Style, diagnostic};
use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct DriveError {
    kind: DriveErrorKind,
    message: String,
    diagnostics: Vec<Diagnostic>,
    error: Option<Value>,
    result: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DriveErrorKind {
    /// Of JSON-RPC itself.
    Plain(i64),
    OtherProtocol,
    BadInput,
    NotOpen,
    Unanswered,
    Refused,
    Canceled,
    Gone,
}

impl DriveErrorKind {
    fn code_and_name(self) -> (i64, Option<&'static str>) {
        match self {
            Self::Plain(code) => (code, None),
            Self::OtherProtocol | Self::BadInput => (error_code::INVALID_PARAMS, Some("bad-input")),
            Self::NotOpen => (1, Some("not-open")),
            Self::Unanswered => (2, Some("unanswered")),
            Self::Refused => (3, Some("refused")),
            Self::Canceled => (4, Some("canceled")),
            Self::Gone => (5, Some("gone")),
        }
    }
}

impl DriveError {
    fn new(kind: DriveErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), diagnostics: Vec::new(), error: None, result: None }
    }

    fn diagnosed(kind: DriveErrorKind, diagnostics: Vec<Diagnostic>) -> Self {
        let message = diagnostics.first().map(|first| first.message.clone()).unwrap_or_default();
        Self { diagnostics, ..Self::new(kind, message) }
    }

    pub(crate) fn plain(code: i64, message: impl Into<String>) -> Self {
        Self::new(DriveErrorKind::Plain(code), message)
    }

    pub(crate) fn no_method(method: &str) -> Self {
        let near = did_you_mean(method, METHODS.iter().copied());
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Self::plain(error_code::METHOD_NOT_FOUND, format!("unknown method `{method}`{near}"))
    }

    pub(crate) fn other_protocol(wanted: u32) -> Self {
        Self::new(
            DriveErrorKind::OtherProtocol,
            format!("the client requires protocol version {wanted}, but this mcproof supports version {PROTOCOL}"),
        )
    }

    /// The params are not those of the method.
    pub(crate) fn bad_params(error: &serde_json::Error) -> Self {
        let message = error.to_string();
        // Lines have one line; nobody counts columns in them.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Self::bad("bad-params", &message[..end])
    }

    pub(crate) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::bad_input(vec![Diagnostic::error(code, message)])
    }

    pub(crate) fn bad_input(diagnostics: Vec<Diagnostic>) -> Self {
        Self::diagnosed(DriveErrorKind::BadInput, diagnostics)
    }

    pub(crate) fn not_open(diagnostic: Diagnostic) -> Self {
        Self::diagnosed(DriveErrorKind::NotOpen, vec![diagnostic])
    }

    pub(crate) fn unanswered(diagnostic: Diagnostic) -> Self {
        Self::diagnosed(DriveErrorKind::Unanswered, vec![diagnostic])
    }

    /// The server answered with an error.
    pub(crate) fn refused(diagnostic: Diagnostic, error: Value) -> Self {
        Self { error: Some(error), ..Self::diagnosed(DriveErrorKind::Refused, vec![diagnostic]) }
    }

    /// A tool failed, and that was to be an error.
    pub(crate) fn failed_tool(diagnostic: Diagnostic, result: Value) -> Self {
        Self { result: Some(result), ..Self::diagnosed(DriveErrorKind::Refused, vec![diagnostic]) }
    }

    pub(crate) fn canceled(reason: &str) -> Self {
        Self::new(DriveErrorKind::Canceled, format!("canceled: {reason}"))
    }

    pub(crate) fn closed(session: &str) -> Self {
        Self::diagnosed(
            DriveErrorKind::Unanswered,
            vec![Diagnostic::error("session-closed", format!("session `{session}` was closed during the request"))],
        )
    }

    pub(crate) fn gone(what: &str, name: &str) -> Self {
        let message = if name.is_empty() { format!("missing {what} name") } else { format!("unknown {what} `{name}`") };
        Self::new(DriveErrorKind::Gone, message)
    }

    /// The same with the texts changed that are ours: not `error` and `result`, which the server said.
    pub(crate) fn map_text(self, map: impl Fn(String) -> String) -> Self {
        let diagnostics = self.diagnostics.into_iter().map(|diagnostic| diagnostic.map_text(&map)).collect();
        Self { message: map(self.message), diagnostics, ..self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The line of the error response.
    pub(crate) fn line(self, id: &Value, style: &Style) -> Vec<u8> {
        #[derive(Serialize)]
        struct Error {
            code: i64,
            message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<ErrorData>,
        }
        let (code, kind) = self.kind.code_and_name();
        let text =
            if self.diagnostics.is_empty() { format!("{}\n", self.message) } else { diagnostic::render_all(&self.diagnostics, style) };
        let data = kind.map(|kind| ErrorData {
            kind: kind.into(),
            diagnostic: self.diagnostics.into_iter().next(),
            text,
            error: self.error,
            result: self.result,
            supported: (self.kind == DriveErrorKind::OtherProtocol).then(|| vec![PROTOCOL]),
        });
        envelope::error(id, &Error { code, message: self.message, data })
    }
}
