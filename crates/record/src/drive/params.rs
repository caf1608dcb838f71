//! The params of a driver's messages. Unknown members are rejected, so that a misspelled option is not ignored; so are
//! requests without a required member.

use crate::{JsonObject, Raw};
use mcproof_protocol::{EraChoice, TransportChoice};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Declares params: unknown members are rejected, and those in `needs` are required.
macro_rules! params {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $(needs { $($needed:tt)* })?
        $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($($needed)*)?
            $($(#[$field_doc])* #[serde(default)] pub $field: $kind,)*
        }
    )*};
}

/// What the server wrote: bytes, or a message.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RelayReceivedParams<'a> {
    #[serde(borrow)]
    pub session: Cow<'a, str>,
    #[serde(default)]
    pub data: Option<Raw>,
    #[serde(default, borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub message: Option<&'a RawValue>,
}

/// The members of every request that is passed on to a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    pub session: String,
    pub timeout_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub progress: bool,
    pub meta: Option<Map<String, Value>>,
}

/// Declares params that also have the members of [`Asked`].
macro_rules! server_requests {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $(needs { $($needed:tt)* })?
        $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)*
    })*) => {$(
        params! {
            $(#[$doc])*
            pub struct $name {
                needs {
                    pub session: String,
                    $($($needed)*)?
                }
                $($(#[$field_doc])* pub $field: $kind,)*
                /// Longest wait for the response.
                pub timeout_ms: Option<f64>,
                /// Progress extends the wait, up to this in all.
                pub max_ms: Option<f64>,
                /// Requests progress notifications, and passes them on.
                pub progress: bool,
                /// Sent as `_meta`.
                pub meta: Option<Map<String, Value>>,
            }
        }

        impl $name {
            /// Takes the members that all of these have.
            pub fn asked(&mut self) -> Asked {
                Asked {
                    session: std::mem::take(&mut self.session),
                    timeout_ms: self.timeout_ms,
                    max_ms: self.max_ms,
                    progress: self.progress,
                    meta: self.meta.take(),
                }
            }
        }
    )*};
}

/// Declares words.
macro_rules! words {
    ($($(#[$doc:meta])* pub enum $name:ident { $($body:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($body)* }
    )*};
}

words! {
    /// What the notifications of a relay carry.
    pub enum RelayForm {
        /// Bytes, as a pipe would.
        #[default]
        Lines,
        /// JSON-RPC messages.
        Messages,
    }

    /// The notifications that a driver receives.
    pub enum Push {
        #[default]
        Notifications,
        Frames,
    }

    pub enum Listing {
        #[default]
        Tools,
        Resources,
        Templates,
        Prompts,
    }

    /// Which changes count.
    pub enum Denied {
        Breaking,
        #[default]
        Any,
    }

    /// How long the shutdown of a server may take.
    pub enum PatienceName {
        #[default]
        Usual,
        Short,
    }
}

params! {
    pub struct HelloParams {
        pub protocol: Option<u32>,
        /// Name and version of the driver, for people.
        pub driver: Option<String>,
        /// Columns of rendered text.
        pub width: Option<usize>,
        /// Whether rendered text has colors.
        pub color: bool,
        /// Whether rendered text may have characters beyond ASCII.
        pub unicode: Option<bool>,
    }

    /// A server, by exactly one of `command` (with or without `url`), `url`, `spawned`, `server` and `relay`.
    pub struct DriveTarget {
        pub command: Vec<String>,
        pub env: BTreeMap<String, String>,
        pub cwd: Option<String>,
        /// With a command, `${port}` in both is a free port.
        pub url: Option<String>,
        pub headers: BTreeMap<String, String>,
        pub transport: TransportChoice,
        /// A pattern whose first group is the port in a line that the started server prints.
        pub port_from: Option<String>,
        /// The name of a server that `spawn` started.
        pub spawned: Option<String>,
        /// The endpoint at the spawned server, if it is not that of its URL.
        pub path: Option<String>,
        /// The name of a server in a configuration file.
        pub server: Option<String>,
        pub config: Option<String>,
        pub relay: Option<RelayForm>,
    }

    pub struct Timeouts {
        pub connect_ms: Option<f64>,
        pub request_ms: Option<f64>,
        pub callback_ms: Option<f64>,
    }

    /// The `clientInfo` and capabilities that mcproof sends.
    pub struct ClientParams {
        pub name: Option<String>,
        pub version: Option<String>,
        pub capabilities: Map<String, Value>,
    }

    /// The responses to requests of the server; each may be `"callback"`.
    pub struct DriveAnswers {
        /// A list of URIs.
        pub roots: Option<Value>,
        /// An object of values, `"accept"`, `"decline"` or `"cancel"`.
        pub elicitation: Option<Value>,
        /// A text, a whole result as an object, or `"reject"`.
        pub sampling: Option<Value>,
    }

    pub struct OpenParams {
        needs {
            /// A name of the driver's choice.
            pub session: String,
            pub target: DriveTarget,
        }
        pub era: EraChoice,
        pub protocol_version: Option<String>,
        pub timeouts: Timeouts,
        pub client: ClientParams,
        pub answers: DriveAnswers,
        /// Declared as well, but rejected until `answers` sets a response.
        pub later_answers: DriveAnswers,
        /// `notifications` if left out.
        pub push: Option<Vec<Push>>,
        /// Never to be recorded or shown.
        pub secrets: Vec<String>,
        /// Passes on messages of the server unchanged, including secrets. Diagnostics and transcripts are always redacted.
        pub show_secrets: bool,
        /// Rules of `check` that the traffic is not judged by: ids, areas or globs.
        pub skip_rules: Vec<String>,
    }

    pub struct AnswersParams {
        needs {
            pub session: String,
            pub answers: DriveAnswers,
        }
    }

    pub struct CompleteArgument {
        needs {
            pub name: String,
            pub value: String,
        }
    }

    pub struct NotifyParams {
        needs {
            pub session: String,
            pub method: String,
        }
        pub params: Option<Map<String, Value>>,
    }

    /// A message or bytes, sent as they stand.
    pub struct RawParams {
        needs {
            pub session: String,
        }
        pub message: Option<Map<String, Value>>,
        pub bytes: Option<Raw>,
        /// Whether to wait for a response.
        pub wait: Option<bool>,
        pub timeout_ms: Option<f64>,
    }

    pub struct WaitParams {
        needs {
            pub session: String,
            pub method: String,
        }
        pub timeout_ms: Option<f64>,
    }

    pub struct SpawnParams {
        needs {
            /// A name of the driver's choice.
            pub server: String,
            pub command: Vec<String>,
            pub url: String,
        }
        pub env: BTreeMap<String, String>,
        pub cwd: Option<String>,
        pub port_from: Option<String>,
        pub timeouts: Timeouts,
    }

    pub struct NameOnly {
        needs {
            pub server: String,
        }
    }

    pub struct SessionOnly {
        needs {
            pub session: String,
        }
    }

    pub struct TranscriptParams {
        pub session: Option<String>,
        pub server: Option<String>,
        /// Whether frames are wanted; yes if left out.
        pub frames: Option<bool>,
        /// Whether text is wanted; yes if left out.
        pub text: Option<bool>,
        /// The first frame.
        pub since: Option<u64>,
        /// How many of the last frames.
        pub last: Option<usize>,
    }

    /// A value or the result of a call, and what is expected of it.
    pub struct ExpectParams {
        needs {
            pub expectation: Value,
        }
        pub value: Option<Value>,
        pub result: Option<Value>,
        /// Whether `result` may have `isError`. Otherwise, success is expected.
        pub allow_error: bool,
        /// The session whose frames the diagnostic shows.
        pub session: Option<String>,
        /// Up to which frame.
        pub frame: Option<u64>,
        /// The name of the value in diagnostics; `answer` by default.
        pub what: Option<String>,
        /// Values for `${name}`.
        pub vars: Option<Map<String, Value>>,
    }

    pub struct SnapshotParams {
        needs {
            pub file: String,
        }
        pub value: Value,
        /// Rules, paths and patterns, as in suites.
        pub redact: Vec<String>,
        pub update: bool,
    }

    /// A server to explore, or a session whose wire is judged.
    pub struct CheckParams {
        pub target: Option<DriveTarget>,
        pub session: Option<String>,
        pub only: Vec<String>,
        pub skip: Vec<String>,
        pub strict: bool,
        pub hosts: bool,
        pub browser: bool,
        /// Tools that may be called besides read-only ones.
        pub call: Option<String>,
        pub timeouts: Timeouts,
        /// Whether the report includes the conversations.
        pub conversations: bool,
    }

    pub struct ContractParams {
        needs {
            pub session: String,
        }
        pub timeout_ms: Option<f64>,
    }

    pub struct DiffParams {
        needs {
            pub session: String,
            pub lock: String,
        }
        pub deny: Denied,
        pub timeout_ms: Option<f64>,
    }

    pub struct CloseParams {
        needs {
            pub session: String,
        }
        pub patience: PatienceName,
    }

    /// The request to cancel.
    pub struct CancelParams {
        needs {
            pub id: Value,
        }
        pub reason: Option<String>,
    }

    pub struct RelayClosedParams {
        needs {
            pub session: String,
        }
        pub reason: Option<String>,
    }
}

server_requests! {
    pub struct RequestParams {
        needs {
            pub method: String,
        }
        pub params: Option<JsonObject>,
    }

    pub struct CallParams {
        needs {
            pub tool: String,
        }
        pub arguments: Option<JsonObject>,
        /// Whether a result with `isError` is an error.
        pub raise_errors: bool,
    }

    pub struct ListParams {
        pub what: Listing,
    }

    pub struct ReadParams {
        needs {
            pub uri: String,
        }
    }

    pub struct PromptParams {
        needs {
            pub name: String,
        }
        pub arguments: Option<Map<String, Value>>,
    }

    pub struct CompleteParams {
        needs {
            pub r#ref: Value,
            pub argument: CompleteArgument,
        }
        pub context: Option<Map<String, Value>>,
    }

    pub struct PingParams {
    }
}
