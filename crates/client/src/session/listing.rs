//! Lists over all pages. Knows the list methods' common shape, not what they list.

use super::{CallFailure, Reply, Session};
use crate::jsonrpc::RpcError;
use crate::transport::Bound;
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::FrameId;
use mcproof_record::duration::readable;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A whole list.
#[derive(Clone, Debug)]
pub struct Listed {
    pub items: Vec<Value>,
    pub pages: usize,
    /// Modern HTTP: tools left out because of their `x-mcp-header` annotations, each with the reason.
    pub rejected: Vec<(Value, String)>,
    /// The frame of the last page.
    pub frame: FrameId,
    pub elapsed: Duration,
}

/// Why a list could not be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListFailure {
    #[error(transparent)]
    Call(#[from] CallFailure),
    #[error("{method} returned {error}")]
    Rpc { method: String, error: RpcError, frame: FrameId },
    #[error("the result of {method} has no array `{key}`")]
    NoArray { method: String, key: String, frame: FrameId },
    #[error("{method} returned the cursor {cursor:?} twice: its pages never end")]
    RepeatedCursor { method: String, cursor: String, frame: FrameId },
    #[error("{method} has more than {MAX_PAGES} pages")]
    TooManyPages { method: String, frame: FrameId },
    #[error("more than {most} {} in the pages of {method}: {pages} {} received", if *.bound == Bound::Values { "JSON values" } else { "bytes" }, if *.pages == 1 { "page" } else { "pages" })]
    TooLarge { method: String, pages: usize, most: usize, bound: Bound, frame: FrameId },
    #[error("{method} did not end within {}: {pages} {} received", readable(*.after), if *.pages == 1 { "page" } else { "pages" })]
    TooSlow { method: String, pages: usize, after: Duration, frame: FrameId },
}

/// Where items stand in their list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Beginning,
    Middle,
}

/// Characters of a cursor that a message shows.
const SHOWN: usize = 200;

/// Far above any real server: a bound against one whose cursors never repeat and never end.
const MAX_PAGES: usize = 10_000;

fn shown(cursor: String) -> String {
    match cursor.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &cursor[..end]),
        None => cursor,
    }
}

impl Session {
    /// All items of `tools/list` and its like: `key` names the array in each page.
    ///
    /// # Errors
    /// A page did not come, was an error or no list, or the pages do not end or are too large together.
    pub async fn list(&self, method: &str, key: &str, deadline: Duration) -> Result<Listed, ListFailure> {
        let mut listed = self.pages(method, key, &Map::new(), deadline).await?;
        listed.rejected = self.learn(method, &mut listed.items, Place::Beginning);
        Ok(listed)
    }

    /// The same as it was sent: no tool is left out. Each page is requested with `params`.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn pages(&self, method: &str, key: &str, params: &Map<String, Value>, deadline: Duration) -> Result<Listed, ListFailure> {
        let started = Instant::now();
        let (mut items, mut seen, hasher) = (Vec::new(), HashSet::new(), RandomState::new());
        let (mut params, mut last) = (params.clone(), None);
        let mut room = self.dispatcher.limits().of_a_list(self.handshake.transport);
        for pages in 1..=MAX_PAGES {
            let left = deadline.saturating_sub(started.elapsed());
            let sent = (!params.is_empty()).then(|| params.clone());
            let Reply { answer, frame, .. } = self.request(method, sent, left).await.map_err(|failure| match (failure, last) {
                // The pages share one deadline.
                (CallFailure::TimedOut { method, .. }, Some(frame)) => {
                    ListFailure::TooSlow { method, pages: pages - 1, after: deadline, frame }
                }
                (CallFailure::TimedOut { method, stage, .. }, None) => CallFailure::TimedOut { method, after: deadline, stage }.into(),
                (other, _) => other.into(),
            })?;
            last = Some(frame);
            let named = || method.to_owned();
            let mut result = answer.map_err(|error| ListFailure::Rpc { method: named(), error, frame })?;
            match result.get_mut(key).map(Value::take) {
                Some(Value::Array(page)) => {
                    let taken = page.iter().try_for_each(|item| room.take(item));
                    taken.map_err(|(bound, most)| ListFailure::TooLarge { method: named(), pages, most, bound, frame })?;
                    items.extend(page);
                }
                _ => return Err(ListFailure::NoArray { method: named(), key: key.to_owned(), frame }),
            }
            // An empty cursor is a valid one in 2026-07-28; only its absence (or null) ends the list.
            let Some(cursor) = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned) else {
                return Ok(Listed { items, pages, rejected: Vec::new(), frame, elapsed: started.elapsed() });
            };
            let taken = room.take_cursor(&cursor);
            taken.map_err(|(bound, most)| ListFailure::TooLarge { method: named(), pages, most, bound, frame })?;
            // Cursors may be as large as messages: hashes with keys that no server knows tell them apart.
            if !seen.insert(hasher.hash_one(&cursor)) {
                return Err(ListFailure::RepeatedCursor { method: named(), cursor: shown(cursor), frame });
            }
            if pages == MAX_PAGES {
                return Err(ListFailure::TooManyPages { method: named(), frame });
            }
            params.insert("cursor".into(), cursor.into());
        }
        unreachable!("the loop returns on its last page")
    }

    /// One page of a list, and the cursor of the next one. Otherwise as [`Self::list`].
    ///
    /// # Errors
    /// The page did not come, was an error or no list, or is too large.
    pub async fn page(
        &self,
        method: &str,
        key: &str,
        cursor: Option<String>,
        deadline: Duration,
    ) -> Result<(Listed, Option<String>), ListFailure> {
        let started = Instant::now();
        let place = if cursor.is_some() { Place::Middle } else { Place::Beginning };
        let params = cursor.map(|cursor| Map::from_iter([("cursor".to_owned(), Value::from(cursor))]));
        let Reply { answer, frame, .. } = self.request(method, params, deadline).await?;
        let named = || method.to_owned();
        let mut result = answer.map_err(|error| ListFailure::Rpc { method: named(), error, frame })?;
        let Some(Value::Array(mut items)) = result.get_mut(key).map(Value::take) else {
            return Err(ListFailure::NoArray { method: named(), key: key.to_owned(), frame });
        };
        let mut room = self.dispatcher.limits().of_a_list(self.handshake.transport);
        let taken = items.iter().try_for_each(|item| room.take(item));
        taken.map_err(|(bound, most)| ListFailure::TooLarge { method: named(), pages: 1, most, bound, frame })?;
        let next = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let rejected = self.learn(method, &mut items, place);
        Ok((Listed { items, pages: 1, rejected, frame, elapsed: started.elapsed() }, next))
    }

    /// Remembers which tools run as tasks and which arguments go into headers, and takes out the tools that say so in a way that is not allowed.
    fn learn(&self, method: &str, items: &mut Vec<Value>, place: Place) -> Vec<(Value, String)> {
        let mut rejected = Vec::new();
        if method == methods::TOOLS_LIST && self.handshake.era == Era::Legacy {
            let mut known = self.task_support.lock().unwrap_or_else(PoisonError::into_inner);
            match place {
                Place::Beginning => known.learn(items),
                Place::Middle => known.learn_more(items),
            }
        }
        if method == methods::TOOLS_LIST && self.handshake.era == Era::Modern && self.handshake.transport == Transport::Http {
            let mut known = self.param_headers.lock().unwrap_or_else(PoisonError::into_inner);
            items.retain(|tool| match known.learn(tool) {
                Ok(()) => true,
                Err(reason) => {
                    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                    self.tap.note(format!("tool `{name}` is left out: {reason}"));
                    rejected.push((tool.clone(), reason));
                    false
                }
            });
        }
        rejected
    }
}
