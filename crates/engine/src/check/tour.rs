//! What a client of either era asks of any server: its lists, page by page, what is in them, and what is not.

use super::crowd;
use super::features::{self, Catalogue};
use super::visit::Visit;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Nothing has this name.
pub(super) const NOBODY: &str = "mcproof-no-such-thing";

/// Pages of one list that are asked for at most, and the time that they may take.
pub(crate) const MOST_PAGES: usize = 1000;
const LONGEST_WALK: Duration = Duration::from_secs(8);

/// Whoever has more pages is asked for them once.
const MOST_PAGES_AGAIN: usize = 50;

/// The lists of the protocol: method, key of the items, capability.
pub(super) const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "tools"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resources"),
    ("prompts/list", "prompts", "prompts"),
];

pub(super) async fn take(visit: &mut Visit<'_>) {
    if !visit.is_modern() {
        visit.ask("ping", None, "ping", json!({})).await;
    }
    let (mut found, mut are_long): ([Vec<Value>; 4], [bool; 4]) = Default::default();
    for (list, (method, key, _)) in LISTS.iter().enumerate() {
        let (items, pages) = walk(visit, "list", method, key).await;
        (found[list], are_long[list]) = (items, pages > MOST_PAGES_AGAIN);
    }
    let [tools, resources, templates, prompts] = &found;
    visit.inquiry.budget.listed(tools.len());
    for ((method, key, capability), is_long) in LISTS.into_iter().zip(are_long) {
        if visit.declares(capability) && !visit.is_over() {
            if !is_long {
                walk(visit, "list-again", method, key).await;
            }
            visit.ask("unknown-cursor", Some(method), method, json!({ "cursor": NOBODY })).await;
        }
    }
    visit.ask("unknown-method", None, "mcproof/no-such-method", json!({})).await;
    if !tools.is_empty() {
        visit.ask("unknown-tool", Some(NOBODY), "tools/call", json!({ "name": NOBODY, "arguments": {} })).await;
        visit.ask("call-without-name", None, "tools/call", json!({ "arguments": {} })).await;
    }
    features::take(visit, &Catalogue { tools, resources, templates, prompts }).await;
    string_id(visit).await;
    crowd::take(visit, tools, resources).await;
    if visit.is_modern() && !visit.is_over() {
        features::listen(visit, resources).await;
    }
}

/// Every page of a list, until there is none, or a cursor comes twice. Gives what is on them, and how many there are.
async fn walk(visit: &mut Visit<'_>, probe: &str, method: &str, key: &str) -> (Vec<Value>, usize) {
    let (mut items, mut cursors, mut pages) = (Vec::new(), HashSet::new(), 0);
    let (mut params, end) = (json!({}), Instant::now() + LONGEST_WALK);
    while pages < MOST_PAGES && Instant::now() < end {
        let Some(Ok(result)) = visit.ask(probe, Some(method), method, params).await else { break };
        pages += 1;
        items.extend(result.get(key).and_then(Value::as_array).into_iter().flatten().cloned());
        let Some(cursor) = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned) else { break };
        params = json!({ "cursor": cursor });
        if !cursors.insert(cursor) {
            break;
        }
    }
    (items, pages)
}

/// An id that is a string; all others are integers.
async fn string_id(visit: &mut Visit<'_>) {
    let message = visit.request(json!("mcproof-string-id"), visit.any_method(), json!({}));
    visit.send("string-id", None, message).await;
}
