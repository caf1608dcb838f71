//! What a server says of itself: as the steps of a suite expect its handshake, and as what else they do needs it. Knows the results of
//! `initialize` and `server/discover`, no requests.

use super::overlaid;
use mcproof_protocol::{Era, Revision};
use serde_json::{Map, Value, json};

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    /// The server's name, if none is described.
    name: String,
    /// As a result of `initialize`, what steps describe.
    described: Map<String, Value>,
    /// Because of what else the steps do.
    pub(super) needed: Value,
    /// The revision of the legacy era that the client of the suite offers, and that it expects.
    offered: Option<String>,
    pub(super) version: Option<String>,
}

/// In which form a step looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// That of the step `handshake`.
    Handshake,
    /// The result of `initialize` or `server/discover`.
    Result,
}

impl About {
    /// Before anything is learnt: a name, and the revision that the client offers.
    pub(super) fn new(name: String, offered: Option<String>) -> Self {
        Self { name, offered, ..Self::default() }
    }

    /// Takes in what a step describes, in either form. Gives the era that it asks for, if it does.
    pub(super) fn learn(&mut self, described: &Value) -> Option<Era> {
        for name in ["serverInfo", "capabilities", "instructions"] {
            if let Some(value) = described.get(name) {
                let known = self.described.get(name).cloned().unwrap_or_default();
                self.described.insert(name.to_owned(), overlaid(known, value.clone()));
            }
        }
        let of_version = described.get("protocolVersion").and_then(Value::as_str).and_then(|version| {
            let era = Era::of(version)?;
            if era == Era::Legacy {
                self.version = Some(version.to_owned());
            }
            Some(era)
        });
        let named = match described.get("era").and_then(Value::as_str) {
            Some("legacy") => Some(Era::Legacy),
            Some("modern") => Some(Era::Modern),
            _ => None,
        };
        named.or(of_version)
    }

    /// Whether a step describes anything of it.
    pub(super) fn is_described(&self) -> bool {
        !self.described.is_empty() || self.version.is_some()
    }

    /// The result of `initialize`.
    pub(super) fn initialized(&self) -> Value {
        let version = self.version.as_deref().or(self.offered.as_deref()).unwrap_or(Revision::LATEST_LEGACY.as_str());
        let server = json!({ "name": self.name, "version": "0" });
        let needed = if self.needed.is_object() { self.needed.clone() } else { json!({}) };
        let usual = json!({ "protocolVersion": version, "capabilities": needed, "serverInfo": server });
        overlaid(usual, Value::Object(self.described.clone()))
    }

    /// What a client of this era sees. `described` is what a step expects, of which it takes the transport: any may be chosen.
    pub(super) fn seen(&self, era: Era, view: View, described: &Value) -> Value {
        let mut seen = self.initialized();
        if era == Era::Modern {
            // Tasks of 2025-11-25 are another thing than those of the extension.
            if let Some(capabilities) = seen.get_mut("capabilities").and_then(Value::as_object_mut) {
                capabilities.shift_remove("tasks");
            }
        }
        match (view, era) {
            (View::Handshake, _) => {
                if era == Era::Modern {
                    seen["protocolVersion"] = json!(Revision::MODERN.as_str());
                }
                seen["era"] = json!(era.to_string());
                seen["transport"] = described.get("transport").cloned().unwrap_or_else(|| json!("stdio"));
            }
            (View::Result, Era::Legacy) => {}
            (View::Result, Era::Modern) => {
                let server = seen.get_mut("serverInfo").map(Value::take).unwrap_or_default();
                if let Some(members) = seen.as_object_mut() {
                    members.shift_remove("protocolVersion");
                    members.shift_remove("serverInfo");
                }
                seen["supportedVersions"] = json!([Revision::MODERN.as_str()]);
                seen["resultType"] = json!("complete");
                seen["ttlMs"] = json!(0);
                seen["cacheScope"] = json!("private");
                seen["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server });
            }
        }
        seen
    }
}
