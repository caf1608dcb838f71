//! What the messages of a session tell about it: revision, era, and who talks with whom.

use super::Message;
use mcproof_protocol::Era;
use serde::Serialize;
use serde_json::Value;

/// What is known about a session by now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name and version of the client, as it introduced itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Name and version of the server, as it introduced itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Of Streamable HTTP in the legacy era.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What a discovery asked for: nothing is agreed before it is answered.
    #[serde(skip)]
    asked: Option<String>,
}

impl SessionFacts {
    pub fn era(&self) -> Option<&'static str> {
        Era::of(self.revision.as_deref()?).map(|era| era.as_str())
    }

    pub(super) fn learn_from_request(&mut self, message: &Message) {
        let Message::Request { method, params, .. } = message else { return };
        if method == "initialize" {
            self.client = params.get("clientInfo").and_then(name);
        } else if let Some(version) = params.pointer("/_meta/io.modelcontextprotocol~1protocolVersion").and_then(Value::as_str) {
            let said = if method == "server/discover" { &mut self.asked } else { &mut self.revision };
            if said.as_deref() != Some(version) {
                *said = Some(version.to_owned());
            }
            if self.client.is_none() {
                self.client = params.pointer("/_meta/io.modelcontextprotocol~1clientInfo").and_then(name);
            }
        }
    }

    pub(super) fn learn_from_result(&mut self, method: &str, result: &Value) {
        match method {
            "initialize" => {
                self.revision = result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned).or(self.revision.take());
                self.server = result.get("serverInfo").and_then(name);
            }
            "server/discover" => {
                self.server = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").and_then(name);
                let supported = result.get("supportedVersions").and_then(Value::as_array);
                // Some servers respond to a discovery, and support only earlier revisions.
                let agreed = self.asked.take().filter(|asked| supported.is_none_or(|all| all.iter().any(|one| one == asked.as_str())));
                self.revision = agreed.or(self.revision.take());
            }
            _ => {}
        }
    }

    pub(super) fn learn_from_headers(&mut self, headers: &[(String, String)]) {
        if let Some((_, id)) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")) {
            self.session_id = Some(id.clone());
        }
    }
}

fn name(info: &Value) -> Option<String> {
    let text = |member: &str| info.get(member).and_then(Value::as_str);
    let name = text("name")?;
    Some(text("version").map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
}
