//! The exploration that every server gets in either era: its lists, page by page, their items, and unknown names.

use super::concurrent_requests;
use super::explorer::Explorer;
use super::features::{self, Catalogue};
use super::optional_members;
use mcproof_analysis::probes::{LEGAL_FORM, MOST_IDLE_PAGES, MOST_PAGES};
use mcproof_client::Session;
use mcproof_protocol::methods;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// Nothing has this name.
pub(super) const UNKNOWN_NAME: &str = "mcproof-no-such-thing";

const LONGEST_WALK: Duration = Duration::from_secs(8);

/// Whoever has more pages is asked for them once.
const MOST_PAGES_AGAIN: usize = 50;

/// The lists of the protocol: method, key of the items, capability.
pub(super) const LISTS: [(&str, &str, &str); 4] = [
    (methods::TOOLS_LIST, "tools", "tools"),
    (methods::RESOURCES_LIST, "resources", "resources"),
    (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "resources"),
    (methods::PROMPTS_LIST, "prompts", "prompts"),
];

/// For all pages of a list of which only the items matter; it may be without end.
const WHOLE: Duration = Duration::from_secs(2);

/// All items of a list; those of tools teach a modern session over HTTP which arguments go into headers.
pub(super) async fn whole(explorer: &mut Explorer<'_>, probe: &str, method: &'static str, key: &'static str) -> Vec<Value> {
    let list = async |session: &Session, deadline: Duration| session.list(method, key, deadline.min(WHOLE)).await;
    explorer.together(probe, list).await.map(|listed| listed.items).unwrap_or_default()
}

pub(super) async fn explore(explorer: &mut Explorer<'_>) {
    if !explorer.is_modern() {
        explorer.send_request("ping", None, methods::PING, json!({})).await;
    }
    let (mut found, mut are_long): ([Vec<Value>; 4], [bool; 4]) = Default::default();
    for (list, (method, key, _)) in LISTS.iter().enumerate() {
        let (items, pages) = walk(explorer, "list", method, key).await;
        (found[list], are_long[list]) = (items, pages > MOST_PAGES_AGAIN);
    }
    let [tools, resources, templates, prompts] = &found;
    explorer.check_options.budget.listed(tools.len());
    for ((method, key, capability), is_long) in LISTS.into_iter().zip(are_long) {
        if explorer.declares(capability) && !explorer.is_over() {
            if !is_long {
                walk(explorer, "list-again", method, key).await;
            }
            explorer.send_request("unknown-cursor", Some(method), method, json!({ "cursor": UNKNOWN_NAME })).await;
        }
    }
    explorer.send_request("unknown-method", None, "mcproof/no-such-method", json!({})).await;
    if !tools.is_empty() {
        explorer
            .send_request("unknown-tool", Some(UNKNOWN_NAME), methods::TOOLS_CALL, json!({ "name": UNKNOWN_NAME, "arguments": {} }))
            .await;
        explorer.send_request("call-without-name", None, methods::TOOLS_CALL, json!({ "arguments": {} })).await;
    }
    features::take(explorer, &Catalogue { tools, resources, templates, prompts }).await;
    legal_forms(explorer).await;
    optional_members::take(explorer).await;
    concurrent_requests::take(explorer, tools, resources).await;
    if explorer.is_modern() && !tools.is_empty() && !are_long[0] && !explorer.is_over() {
        walk(explorer, "list-after-calls", methods::TOOLS_LIST, "tools").await;
    }
    if explorer.is_modern() && !explorer.is_over() {
        features::listen(explorer, resources).await;
    }
}

/// Every page of a list, until there is none, a cursor comes twice, or too many in a row bring nothing new. Gives what is on them, and
/// how many there are.
async fn walk(explorer: &mut Explorer<'_>, probe: &str, method: &str, key: &str) -> (Vec<Value>, usize) {
    let (mut items, mut cursors, mut pages) = (Vec::new(), HashSet::new(), 0);
    let hasher = RandomState::new();
    let (mut params, end) = (json!({}), Instant::now() + LONGEST_WALK);
    let (mut known, mut idle) = (HashSet::new(), 0);
    while pages < MOST_PAGES && idle < MOST_IDLE_PAGES && Instant::now() < end {
        let Some(Ok(result)) = explorer.send_request(probe, Some(method), method, params).await else { break };
        pages += 1;
        let listed = result.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let new = listed.iter().filter(|item| known.insert(fingerprint(item))).count();
        idle = if new == 0 { idle + 1 } else { 0 };
        items.extend(listed.iter().cloned());
        let Some(cursor) = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned) else { break };
        // A cursor may be as large as a message.
        let is_new = cursors.insert(hasher.hash_one(&cursor));
        params = json!({ "cursor": cursor });
        if !is_new {
            break;
        }
    }
    (items, pages)
}

/// Tells items apart without keeping them a second time.
pub(super) fn fingerprint(item: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.to_string().hash(&mut hasher);
    hasher.finish()
}

/// The same request in all forms that the schema allows.
async fn legal_forms(explorer: &mut Explorer<'_>) {
    let method = match explorer.declares("tools") {
        true => explorer.any_method(),
        false if explorer.is_modern() => methods::SERVER_DISCOVER,
        false => methods::PING,
    };
    let ids = legal_ids().into_iter();
    let mut forms: Vec<(&str, Value)> = ids.map(|(form, id)| (form, explorer.build_request(id, method, json!({})))).collect();
    let mut from_zero = explorer.build_request(json!("mcproof-with-token-0"), method, json!({}));
    from_zero["params"]["_meta"]["progressToken"] = json!(0);
    forms.push(("the progress token 0", from_zero));
    if !explorer.is_modern() {
        let token = json!({ "progressToken": "mcproof-token" });
        forms.push(("a progress token in `_meta`", explorer.build_request(json!("mcproof-with-meta"), method, json!({ "_meta": token }))));
        let mut bare = explorer.build_request(json!("mcproof-without-params"), method, json!({}));
        bare.as_object_mut().map(|bare| bare.remove("params"));
        forms.push(("no `params`", bare));
    }
    for (form, message) in forms {
        explorer.send_briefly(LEGAL_FORM, form, message).await;
    }
}

/// Ids of every kind that clients use, and that nothing else in a conversation has.
fn legal_ids() -> [(&'static str, Value); 8] {
    [
        ("a UUID as its id", json!("6F9619FF-8B86-D011-B42D-00CF4FC964FF")),
        ("an id that is not ASCII", json!("mcproof-größer-日本-🦒")),
        ("an id between blanks", json!(" mcproof id ")),
        ("the id 0", json!(0)),
        ("a negative id", json!(-9_000_011)),
        ("an id above 32 bits", json!(9_007_199_254_740_991_i64)),
        ("a numeric string id", json!("9000007")),
        ("an empty string id", json!("")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_ids_are_of_every_kind_and_no_two_are_alike() {
        let ids = legal_ids().map(|(_, id)| id);
        let alike: HashSet<String> = ids.iter().map(|id| id.to_string().trim_matches('"').trim().to_lowercase()).collect();
        assert_eq!(alike.len(), ids.len());
        let check = |kind: &str, is_of_kind: &dyn Fn(&str) -> bool| {
            assert!(ids.iter().filter_map(Value::as_str).any(is_of_kind), "{kind}");
        };
        check("longer than a UUID without hyphens", &|id| id.len() > 32 && id.is_ascii());
        check("capital letters", &|id| id.chars().any(|letter| letter.is_ascii_uppercase()));
        check("beyond Latin-1", &|id| id.chars().any(|letter| u32::from(letter) > 0xff));
        check("beyond 16 bits", &|id| id.chars().any(|letter| u32::from(letter) > 0xffff));
        check("blanks at both ends", &|id| id.starts_with(' ') && id.ends_with(' '));
        check("digits", &|id| id.parse::<u64>().is_ok());
        check("empty", &str::is_empty);
        // More is no longer exact where numbers are floating-point.
        assert!(ids.iter().filter_map(Value::as_u64).all(|id| id < 1 << 53));
    }
}
