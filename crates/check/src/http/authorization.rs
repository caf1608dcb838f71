//! Somebody without a token, with a wrong one, and on the way to where tokens are to be had.

use super::super::tour::NOBODY;
use super::super::visit::Visit;
use super::question::{Questions, Varied as _};
use mcproof_analysis::read_json;
use mcproof_client::auth::{metadata_hint, resource_locations, server_locations};
use mcproof_client::{HttpAnswer, HttpQuestion};
use serde_json::{Value, json};
use url::Url;

/// No server ever gave it out.
const BAD_TOKEN: &str = "Bearer mcproof-no-such-token";

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    let mut refused = None;
    // Some servers show to anybody what they have, and ask for a token where it is used.
    for method in [None, Some("tools/call")] {
        let ask = |visit: &Visit<'_>| match method {
            None => questions.plain(visit).anonymous(),
            Some(method) => call(questions, visit, method).anonymous(),
        };
        let anonymous = ask(visit);
        let Some(answer) = visit.http("anonymous", method, &anonymous).await else { return };
        if answer.head.status == 401 {
            let intruder = ask(visit).with("authorization", BAD_TOKEN);
            visit.http("bad-token", method, &intruder).await;
            refused = Some(answer);
            break;
        }
        if !visit.declares("tools") {
            return;
        }
    }
    let Some(refused) = refused else { return };
    let Some(server) = visit.session().url().cloned() else { return };
    let hint = metadata_hint(&refused.head.headers).and_then(|hint| server.join(&hint).ok());
    let places = match hint {
        Some(hint) => vec![hint],
        None => resource_locations(&server),
    };
    let Some(resource) = fetch(visit, "resource-metadata", places).await else {
        // Until 2025-03-26 the server was its own authorization server, at the root of its address.
        if let Ok(root) = server.join("/") {
            fetch(visit, "own-server-metadata", server_locations(&root)).await;
        }
        return;
    };
    let issuer = resource.pointer("/authorization_servers/0").and_then(Value::as_str);
    if let Some(issuer) = issuer.and_then(|issuer| Url::parse(issuer).ok()) {
        fetch(visit, "server-metadata", server_locations(&issuer)).await;
    }
}

/// A call of a tool that no server has.
fn call(questions: &Questions, visit: &Visit<'_>, method: &str) -> HttpQuestion {
    let question = questions.request(visit, method, json!({ "name": NOBODY, "arguments": {} }));
    if visit.is_modern() { question.with("mcp-name", NOBODY) } else { question }
}

/// The first document that there is.
async fn fetch(visit: &mut Visit<'_>, probe: &str, places: Vec<Url>) -> Option<Value> {
    for place in places.iter().filter(|place| matches!(place.scheme(), "http" | "https")) {
        let question = HttpQuestion { method: "GET".into(), ..HttpQuestion::default() }.with("accept", "application/json");
        if let Some(document) = visit.http_elsewhere(probe, place, &question).await.as_ref().and_then(document) {
            return Some(document);
        }
    }
    None
}

fn document(answer: &HttpAnswer) -> Option<Value> {
    let document = (answer.head.status == 200).then(|| read_json(&answer.body).ok().flatten())?;
    document.filter(Value::is_object)
}
