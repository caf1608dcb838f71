//! What requests and their responses show of contracts, gathered one by one as they are recorded or read: the memory that it takes depends on
//! the lists, and not on how often they are requested. Knows messages, no frames and no files.

use super::capture::lists;
use super::profile::{Profile, Visitor};
use super::trace::{TraceFailure, contract_of, number_of_lists};
use mcproof_protocol::error_code::METHOD_NOT_FOUND;
use mcproof_protocol::{Era, Revision, methods};
use mcproof_record::{Contract, holds_more_values, read_message};
use serde_json::Value;
use std::collections::BTreeMap;

/// Sessions that are kept apart: of more, the contracts of the oldest are settled.
const MOST_SESSIONS: usize = 8;

/// Bytes of the pages of a list that is kept. A server may page without end.
const LARGEST_LIST: usize = 16 << 20;

/// A result with more values belongs to no contract that anybody reads.
const MOST_VALUES: usize = 250_000;

/// The contracts that sessions show, by the kind of client.
#[derive(Debug, Default)]
pub struct GatheredContracts {
    sessions: BTreeMap<u32, GatheredSession>,
    /// Of sessions that are no longer kept.
    settled: BTreeMap<String, (Contract, Vec<ChangedList>)>,
    has_handshake: bool,
}

/// A list that was not the same throughout the session whose contract counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedList {
    /// The kind of client.
    pub client: String,
    /// The key of the list in its result.
    pub list: &'static str,
    /// The server announced another one after it was read last, which counts in any case.
    pub is_outdated: bool,
}

/// A client may try both eras, and what a proxy records as one session may have clients of both.
#[derive(Debug, Default)]
struct GatheredSession {
    legacy: GatheredEra,
    modern: GatheredEra,
}

#[derive(Debug, Default)]
struct GatheredEra {
    /// The revision, and the result of the handshake.
    handshake: Option<(String, Value)>,
    /// Whether the client declared a capability.
    declares: bool,
    /// In the order of [`lists`].
    lists: [PagedList; 4],
}

impl GatheredContracts {
    /// Takes a request of the client of a session and its response, which is empty if there was none. What belongs to no contract is not
    /// looked at.
    pub fn add(&mut self, session: u32, method: &str, request: &[u8], response: &[u8]) {
        let list = lists().iter().position(|(known, ..)| *known == method);
        let is_handshake = matches!(method, methods::INITIALIZE | methods::SERVER_DISCOVER);
        if (list.is_none() && !is_handshake) || holds_more_values(response, MOST_VALUES) {
            return;
        }
        let read = |text: &[u8]| read_message(text).ok();
        let Some(request) = read(request) else { return };
        let mut response = read(response).unwrap_or(Value::Null);
        let result = response.get_mut("result").map(Value::take).filter(Value::is_object);
        if list.is_none() && result.is_none() {
            return;
        }
        let params = request.get("params").unwrap_or(&Value::Null);
        let is_modern = method != methods::INITIALIZE
            && (method == methods::SERVER_DISCOVER || params.pointer("/_meta/io.modelcontextprotocol~1protocolVersion").is_some());
        let declared = if is_modern { "/_meta/io.modelcontextprotocol~1clientCapabilities" } else { "/capabilities" };
        let known = self.sessions.entry(session).or_default();
        let era = if is_modern { &mut known.modern } else { &mut known.legacy };
        era.declares |= params.pointer(declared).and_then(Value::as_object).is_some_and(|declared| !declared.is_empty());
        match (list, result) {
            (Some(place), Some(result)) => era.lists[place].page(params.get("cursor"), &result, lists()[place].1),
            (Some(place), None) => era.lists[place].fail(response.pointer("/error/code").and_then(Value::as_i64)),
            (None, None) => {}
            (None, Some(result)) => {
                let revision = match is_modern {
                    true => Some(Revision::MODERN.as_str()),
                    false => result.get("protocolVersion").and_then(Value::as_str),
                };
                if let Some(revision) = revision.map(str::to_owned) {
                    era.handshake = Some((revision, result));
                    self.has_handshake = true;
                }
            }
        }
        if self.sessions.len() > MOST_SESSIONS
            && let Some((_, oldest)) = self.sessions.pop_first()
        {
            oldest.settle(&mut self.settled);
        }
    }

    /// Takes a notification of the server of a session: a list that has changed is another one until it is read again.
    pub fn notified(&mut self, session: u32, method: &str) {
        let is_named = |list: &str| match method {
            methods::notifications::TOOLS_LIST_CHANGED => list == methods::TOOLS_LIST,
            methods::notifications::PROMPTS_LIST_CHANGED => list == methods::PROMPTS_LIST,
            methods::notifications::RESOURCES_LIST_CHANGED => list == methods::RESOURCES_LIST || list == methods::RESOURCES_TEMPLATES_LIST,
            _ => false,
        };
        let Some(known) = self.sessions.get_mut(&session) else { return };
        for (place, _) in lists().iter().enumerate().filter(|(_, (list, ..))| is_named(list)) {
            known.legacy.lists[place].is_outdated = true;
            known.modern.lists[place].is_outdated = true;
        }
    }

    /// The contracts by the kind of client: of several sessions with the same kind, that of the one which shows most lists, and of those the
    /// last. With the lists of these contracts that were not the same throughout their session.
    ///
    /// # Errors
    /// There is none.
    pub fn finish(self) -> Result<(BTreeMap<String, Contract>, Vec<ChangedList>), TraceFailure> {
        let mut all = self.settled;
        self.sessions.into_values().for_each(|session| session.settle(&mut all));
        if all.is_empty() {
            return Err(if self.has_handshake { TraceFailure::NoList } else { TraceFailure::NoHandshake });
        }
        let (mut contracts, mut changed) = (BTreeMap::new(), Vec::new());
        for (client, (contract, changes)) in all {
            changed.extend(changes);
            contracts.insert(client, contract);
        }
        Ok((contracts, changed))
    }
}

impl GatheredSession {
    fn settle(self, all: &mut BTreeMap<String, (Contract, Vec<ChangedList>)>) {
        for (era, gathered) in [(Era::Legacy, self.legacy), (Era::Modern, self.modern)] {
            let GatheredEra { handshake: Some((revision, result)), declares, lists: listed } = gathered else { continue };
            let key = Visitor { era, profile: if declares { Profile::Own } else { Profile::Minimal } }.key(None);
            let changed = listed.iter().zip(lists()).filter(|(list, _)| list.whole.is_some() && (list.has_changed || list.is_outdated));
            let changes: Vec<ChangedList> = changed
                .map(|(list, (_, name, _))| ChangedList { client: key.clone(), list: name, is_outdated: list.is_outdated })
                .collect();
            let contract = contract_of(era, revision, &result, listed);
            let shown = number_of_lists(&contract);
            if shown > 0 && all.get(&key).is_none_or(|(known, _)| number_of_lists(known) <= shown) {
                all.insert(key, (contract, changes));
            }
        }
    }
}

/// A list that comes in pages.
#[derive(Debug, Default)]
pub(crate) struct PagedList {
    /// All items, as they were read last from the first page to the last one.
    whole: Option<Vec<Value>>,
    /// Whether what was read before was something else.
    has_changed: bool,
    /// The server has announced another list since.
    is_outdated: bool,
    begun: Option<BegunList>,
    /// Set if a request got no result: with what error, if it got one.
    failure: Option<Option<i64>>,
}

/// What is known of a list in the end.
#[derive(Debug)]
pub(crate) enum ListOutcome {
    Whole(Vec<Value>),
    /// It was requested, and the server did not return it.
    Failed,
    /// The server does not know its method, as many do that declare more than they have.
    Unknown,
    /// No client has read it to its end.
    NotRead,
}

#[derive(Debug)]
struct BegunList {
    items: Vec<Value>,
    /// The cursor of the next page.
    next: Value,
    /// Of the items and cursors, about.
    bytes: usize,
}

impl PagedList {
    /// Takes the result of a request with this cursor, whose items have this key. Cursors that no page has told are somebody's experiments.
    pub(crate) fn page(&mut self, cursor: Option<&Value>, result: &Value, key: &str) {
        let Some(page) = result.get(key).and_then(Value::as_array) else { return };
        let (mut items, mut bytes) = match (cursor.filter(|cursor| !cursor.is_null()), &mut self.begun) {
            (None, _) => (Vec::new(), 0),
            (Some(cursor), Some(begun)) if *cursor == begun.next => (std::mem::take(&mut begun.items), begun.bytes),
            (Some(_), _) => return,
        };
        bytes += page.iter().map(|item| item.to_string().len()).sum::<usize>();
        if bytes > LARGEST_LIST {
            self.begun = None;
            return;
        }
        items.extend(page.iter().cloned());
        match result.get("nextCursor").filter(|next| next.is_string()) {
            None => {
                self.has_changed |= self.whole.as_ref().is_some_and(|known| !holds_the_same(known, &items));
                (self.whole, self.begun, self.is_outdated) = (Some(items), None, false);
            }
            Some(next) => {
                bytes += next.as_str().map_or(0, str::len);
                self.begun = Some(BegunList { items, next: next.clone(), bytes });
            }
        }
    }

    /// Takes a request that got no result, with the code of its error, if it got one.
    pub(crate) fn fail(&mut self, code: Option<i64>) {
        self.failure = Some(code);
    }

    pub(crate) fn outcome(self) -> ListOutcome {
        match (self.whole, self.failure) {
            (Some(items), _) => ListOutcome::Whole(items),
            (None, Some(Some(METHOD_NOT_FOUND))) => ListOutcome::Unknown,
            (None, Some(_)) => ListOutcome::Failed,
            (None, None) => ListOutcome::NotRead,
        }
    }
}

/// Whether two lists have the same items, in any order.
fn holds_the_same(one: &[Value], other: &[Value]) -> bool {
    let sorted = |items: &[Value]| {
        let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts
    };
    one == other || (one.len() == other.len() && sorted(one) == sorted(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

    fn add(gathered: &mut GatheredContracts, session: u32, method: &str, params: &Value, result: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        gathered.add(session, method, request.as_bytes(), json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string().as_bytes());
    }

    fn names(contract: &Contract) -> Vec<&str> {
        contract.tools.iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
    }

    #[test]
    fn the_contract_of_each_kind_of_client_is_gathered() {
        let mut gathered = GatheredContracts::default();
        let shaken = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s" } });
        add(&mut gathered, 1, "initialize", &json!({ "capabilities": { "roots": {} } }), &shaken);
        add(&mut gathered, 1, "tools/list", &json!({}), &json!({ "tools": [{ "name": "b" }], "nextCursor": "2" }));
        add(&mut gathered, 1, "tools/list", &json!({ "cursor": "never told" }), &json!({ "tools": [{ "name": "x" }] }));
        add(&mut gathered, 1, "tools/call", &json!({ "name": "b" }), &json!({ "content": [] }));
        add(&mut gathered, 1, "tools/list", &json!({ "cursor": "2" }), &json!({ "tools": [{ "name": "a" }] }));
        // Read again, and not to its end.
        add(&mut gathered, 1, "tools/list", &json!({}), &json!({ "tools": [{ "name": "c" }], "nextCursor": "2" }));
        let modern = json!({ "_meta": { VERSION: "2026-07-28" } });
        add(&mut gathered, 1, "server/discover", &modern, &json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }));
        add(&mut gathered, 1, "prompts/list", &modern, &json!({ "prompts": [] }));
        let all = gathered.finish().unwrap().0;
        assert_eq!(all.keys().collect::<Vec<_>>(), ["legacy/own", "modern/minimal"]);
        assert_eq!(names(&all["legacy/own"]), ["a", "b"]);
        assert_eq!((&all["legacy/own"].prompts, &all["modern/minimal"].prompts), (&None, &Some(Vec::new())));
        let lock = mcproof_record::ContractLock::new(None, all);
        assert_eq!(crate::parse(&crate::write(&lock)), Ok(lock));
    }

    #[test]
    fn of_many_sessions_the_last_one_with_most_lists_counts() {
        let mut gathered = GatheredContracts::default();
        for session in 1..200 {
            add(&mut gathered, session, "initialize", &json!({}), &json!({ "protocolVersion": "2025-06-18", "capabilities": {} }));
            add(&mut gathered, session, "tools/list", &json!({}), &json!({ "tools": [{ "name": session.to_string() }] }));
            if session <= 100 {
                add(&mut gathered, session, "prompts/list", &json!({}), &json!({ "prompts": [] }));
            }
        }
        assert!(gathered.sessions.len() <= MOST_SESSIONS);
        assert_eq!(names(&gathered.finish().unwrap().0["legacy/minimal"]), ["100"]);
    }

    #[test]
    fn lists_that_the_server_did_not_return_are_told_from_those_that_nobody_requested() {
        let shaken = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "prompts": {}, "resources": {} } });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "m" }).to_string();
        let error = |code: i64| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no" } }).to_string();
        let check = |responses: &[(&str, String)], listed: [bool; 4], failed: &[&str]| {
            let mut gathered = GatheredContracts::default();
            add(&mut gathered, 1, "initialize", &json!({}), &shaken);
            add(&mut gathered, 1, "tools/list", &json!({}), &json!({ "tools": [] }));
            responses.iter().for_each(|(method, response)| gathered.add(1, method, request.as_bytes(), response.as_bytes()));
            let contract = gathered.finish().unwrap().0.remove("legacy/minimal").unwrap();
            let lists = [&contract.tools, &contract.prompts, &contract.resources, &contract.resource_templates];
            assert_eq!(lists.map(Option::is_some), listed, "{responses:?}");
            assert_eq!(contract.partial.unwrap().failed, failed, "{responses:?}");
        };
        check(&[], [true, false, false, false], &[]);
        check(&[("prompts/list", error(-32603))], [true, false, false, false], &["prompts/list"]);
        check(&[("resources/list", String::new())], [true, false, false, false], &["resources/list"]);
        // It has said that there are none, or has listed them before.
        check(&[("resources/templates/list", error(-32601))], [true, false, false, true], &[]);
        check(&[("tools/list", String::new())], [true, false, false, false], &[]);
    }

    #[test]
    fn of_a_list_that_changes_the_last_reading_counts_and_is_told() {
        const CHANGED: &str = "notifications/tools/list_changed";
        let check = |said: &[Result<Value, &str>], expected: &[&str], change: Option<bool>| {
            let mut gathered = GatheredContracts::default();
            add(&mut gathered, 1, "initialize", &json!({}), &json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
            for said in said {
                match said {
                    Ok(result) => add(&mut gathered, 1, "tools/list", &json!({}), result),
                    Err(method) => gathered.notified(1, method),
                }
            }
            let (contracts, changed) = gathered.finish().unwrap();
            assert_eq!(names(&contracts["legacy/minimal"]), expected, "{said:?}");
            let told = changed.iter().map(|changed| (changed.client.as_str(), changed.list, changed.is_outdated));
            let expected = change.map(|is_outdated| ("legacy/minimal", "tools", is_outdated));
            assert_eq!(told.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>(), "{said:?}");
        };
        let list = |names: &[&str]| Ok(json!({ "tools": names.iter().map(|name| json!({ "name": name })).collect::<Value>() }));
        check(&[list(&["a"]), Err(CHANGED), list(&["b", "c"])], &["b", "c"], Some(false));
        check(&[list(&["a"]), list(&["b"])], &["b"], Some(false));
        check(&[list(&["a"]), Err(CHANGED)], &["a"], Some(true));
        check(&[Err(CHANGED), list(&["a", "b"]), list(&["b", "a"])], &["a", "b"], None);
        check(&[list(&["a"]), Err("notifications/prompts/list_changed")], &["a"], None);
    }

    #[test]
    fn traffic_without_a_list_shows_no_contract() {
        let mut gathered = GatheredContracts::default();
        add(&mut gathered, 1, "tools/list", &json!({}), &json!({ "tools": [] }));
        assert_eq!(gathered.finish(), Err(TraceFailure::NoHandshake));
        let mut gathered = GatheredContracts::default();
        add(&mut gathered, 1, "initialize", &json!({}), &json!({ "protocolVersion": "2025-06-18" }));
        assert_eq!(gathered.finish(), Err(TraceFailure::NoList));
    }
}
