//! The response to a call, and what a test says about it. Every assertion panics with the difference and the wire.

use crate::failure::rendered;
use mcproof_analysis::diagnosis;
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Reply, Tap};
use mcproof_record::{Diagnostic, FrameId};
use mcproof_suite::judge::{self, Payload};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// What came of a call.
pub struct CallResult {
    tool: String,
    answer: Result<Value, RpcError>,
    payload: Payload,
    elapsed: Duration,
    frame: FrameId,
    tap: Tap,
}

impl CallResult {
    pub(crate) fn new(tool: &str, reply: Reply, tap: &Tap) -> Self {
        let Reply { answer, frame, elapsed, .. } = reply;
        let payload = match &answer {
            Ok(result) => Payload::from_call_result(result),
            Err(error) => Payload::of(error.to_value()),
        };
        Self { tool: tool.to_owned(), answer, payload, elapsed, frame, tap: tap.clone() }
    }

    /// The raw result.
    ///
    /// # Panics
    /// The server answered with a JSON-RPC error.
    #[track_caller]
    pub fn result(&self) -> &Value {
        match &self.answer {
            Ok(result) => result,
            Err(error) => self.fail("unexpected-outcome", format!("expected a result of `{}`, found {error}", self.tool)),
        }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.answer.as_ref().is_ok_and(|result| result.get("isError") == Some(&Value::Bool(true)))
    }

    /// The JSON-RPC error, if it is one.
    pub fn rpc_error(&self) -> Option<&RpcError> {
        self.answer.as_ref().err()
    }

    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What suites match: `structuredContent`, else the one text as JSON if it is JSON, else the text.
    ///
    /// # Panics
    /// The call failed.
    #[track_caller]
    pub fn payload(&self) -> &Value {
        self.require_success();
        &self.payload.value
    }

    /// All texts, joined by line feeds.
    ///
    /// # Panics
    /// The call failed, or there is no text in its result.
    #[track_caller]
    pub fn text(&self) -> &str {
        self.require_success();
        match &self.payload.text {
            Some(text) => text,
            None => self.fail("unexpected-value", format!("the result of `{}` has no text", self.tool)),
        }
    }

    /// `structuredContent`.
    ///
    /// # Panics
    /// The call failed, or there is none.
    #[track_caller]
    pub fn structured(&self) -> &Value {
        self.require_success();
        match self.result().get("structuredContent") {
            Some(structured) => structured,
            None => self.fail("unexpected-value", format!("the result of `{}` has no `structuredContent`", self.tool)),
        }
    }

    /// The payload as a type.
    ///
    /// # Panics
    /// The call failed, or the payload is of another shape.
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match T::deserialize(self.payload()) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("the payload of `{}` is not a valid {}: {error}", self.tool, std::any::type_name::<T>());
                self.panic(Diagnostic {
                    actual: Some(judge::pretty(&self.payload.value)),
                    ..Diagnostic::error("unexpected-value", message)
                })
            }
        }
    }

    /// Expects a payload, in the language of suites: objects are subsets, arrays exact, `$regex`, `$gte`, `$len`, ….
    ///
    /// # Panics
    /// The call failed, the payload differs, or the expectation has a mistake.
    #[track_caller]
    pub fn expect(&self, expectation: Value) -> &Self {
        self.require_success();
        self.matches(&expectation, &self.payload, "response")
    }

    /// Expects a raw result.
    ///
    /// # Panics
    /// The server answered with an error, the result differs, or the expectation has a mistake.
    #[track_caller]
    pub fn expect_result(&self, expectation: Value) -> &Self {
        let result = Payload::of(self.result().clone());
        self.matches(&expectation, &result, "result")
    }

    /// Expects that the call failed, be it with `isError` or with a JSON-RPC error, and that its text contains this, in
    /// whatever case.
    ///
    /// # Panics
    /// The call succeeded, or its error says something else.
    #[track_caller]
    pub fn expect_error(&self, part: &str) -> &Self {
        let said = match &self.answer {
            Err(error) => error.message.as_str(),
            Ok(_) if self.is_error() => self.payload.text.as_deref().unwrap_or_default(),
            Ok(_) => self.fail("unexpected-outcome", format!("expected that `{}` fails, but it succeeded", self.tool)),
        };
        if !said.to_lowercase().contains(&part.to_lowercase()) {
            self.fail("unexpected-outcome", format!("the error of `{}` does not contain {part:?}: {said}", self.tool));
        }
        self
    }

    /// Expects that the response came in time.
    ///
    /// # Panics
    /// It took longer.
    #[track_caller]
    pub fn within(&self, limit: Duration) -> &Self {
        if self.elapsed > limit {
            self.fail("too-slow", format!("the response took {:?}, longer than {limit:?}", self.elapsed));
        }
        self
    }

    #[track_caller]
    fn matches(&self, expectation: &Value, payload: &Payload, what: &str) -> &Self {
        match judge::expect(expectation, payload, what, None) {
            Ok(None) => self,
            Ok(Some(found)) => self.panic(found),
            Err(mistakes) => panic!("\n{}", mistakes.iter().map(rendered).collect::<Vec<_>>().join("\n")),
        }
    }

    #[track_caller]
    fn require_success(&self) {
        let result = self.result();
        if self.is_error() {
            let said = self.payload.text.clone().unwrap_or_else(|| result.to_string());
            self.fail("unexpected-outcome", format!("expected success of `{}`, found an `isError` result: {said}", self.tool));
        }
    }

    #[track_caller]
    fn fail(&self, code: &str, message: String) -> ! {
        self.panic(Diagnostic::error(code, message))
    }

    #[track_caller]
    fn panic(&self, found: Diagnostic) -> ! {
        let evidence = diagnosis::evidence(&self.tap.transcript(), Some(self.frame));
        panic!("\n{}", rendered(&found.evidence(evidence)))
    }
}

impl fmt::Debug for CallResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallResult").field("tool", &self.tool).field("answer", &self.answer).finish_non_exhaustive()
    }
}
