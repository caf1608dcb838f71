//! The tools of all servers of a suite as a host that merges them sees them: qualified names, and clashes.

use super::sessions::Sessions;
use crate::judge::Payload;
use crate::plan::NameConflicts;
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_analysis::listed;
use mcproof_protocol::methods;
use mcproof_record::{AnswerKind, Diagnostic, Exchange};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The result is the list of tools, the payload is keyed by `server.tool`.
pub(super) async fn list(
    clashes: NameConflicts,
    sessions: &Sessions<'_>,
    deadline: Duration,
    exchanges: &mut Vec<Exchange>,
) -> Result<(Value, Payload), Diagnostic> {
    const METHOD: &str = methods::TOOLS_LIST;
    let names: Vec<String> = sessions.work.suite.servers.keys().cloned().collect();
    let mut qualified = Map::new();
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for server in &names {
        let open = sessions.opened(server);
        if open.session.handshake().capabilities.get("tools").is_none() {
            continue;
        }
        let started = Instant::now();
        let listed = open.session.list(METHOD, "tools", deadline).await;
        let (answer, frame) = listed.as_ref().map_or((AnswerKind::Nothing, None), |listed| (AnswerKind::Result, Some(listed.frame)));
        // A step without a server of its own: its frames stand in several transcripts.
        let frame = frame.filter(|_| names.len() == 1);
        let (target, arguments) = (Some(server.clone()), Map::new());
        exchanges.push(Exchange { method: METHOD.into(), target, arguments, answer, retried: false, duration: started.elapsed(), frame });
        let listed = match listed {
            Ok(listed) => listed,
            Err(failure) => {
                let scene = Scene::of(&open.session, &open.tap, Audience::Suite).await;
                let mut diagnostic = diagnosis::of_list_failure(&failure, METHOD, &scene);
                diagnostic.message = format!("`{server}`: {}", diagnostic.message);
                return Err(diagnostic);
            }
        };
        for tool in listed.items {
            let Some(name) = tool.get("name").and_then(Value::as_str).map(str::to_owned) else {
                return Err(Diagnostic::error("invalid-result", format!("`{server}` lists a tool without a name: {tool}")));
            };
            let owners = owners.entry(name.clone()).or_default();
            if owners.contains(server) {
                return Err(Diagnostic::error("duplicate-name", format!("`{server}` lists the tool `{name}` twice")));
            }
            owners.push(server.clone());
            qualified.insert(format!("{server}.{name}"), tool);
        }
    }
    let clash = owners.iter().find(|(_, owners)| owners.len() > 1);
    if let (NameConflicts::Refused, Some((tool, servers))) = (clashes, clash) {
        let count = owners.values().filter(|owners| owners.len() > 1).count();
        let others = match count {
            ..2 => String::new(),
            2 => ", and 1 more name clashes".to_owned(),
            _ => format!(", and {} more names clash", count - 1),
        };
        let servers = listed(servers.iter().map(String::as_str));
        let message = format!("the tool `{tool}` is offered by {servers}{others}: a host that merges them would shadow all but one");
        return Err(
            Diagnostic::error("name-clash", message).hint("rename one of them, or write `clashes: allowed` if hosts qualify the names")
        );
    }
    let tools: Vec<Value> = qualified
        .iter()
        .map(|(name, tool)| {
            let mut tool = tool.clone();
            tool["name"] = json!(name);
            tool
        })
        .collect();
    Ok((json!({ "tools": tools }), Payload::of(Value::Object(qualified))))
}
