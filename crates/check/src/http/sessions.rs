//! Sessions of others, of nobody, and that are over. Everything that is opened here is closed again.

use super::super::visit::Visit;
use super::question::{Questions, Varied as _};
use mcproof_client::TransportKind;

/// An id as servers give them out, and none did.
const NOBODYS: &str = "6b1d0a52-93c7-4d0e-8f43-2f0c9b7e51aa";

/// Sessions besides those that there are, so that their ids can be compared.
const MORE: usize = 2;

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    let Some(first) = questions.session() else { return };
    if visit.kind() != TransportKind::Http {
        return;
    }
    let mut ids = vec![first.to_owned()];
    for _ in 0..MORE {
        let question = questions.initialize(visit);
        let opened = visit.http("session", None, &question).await;
        ids.extend(opened.and_then(|answer| answer.head.header("mcp-session-id").map(str::to_owned)));
    }
    let question = questions.plain(visit).without("mcp-session-id");
    visit.http("no-session", None, &question).await;
    let question = questions.plain(visit).with("mcp-session-id", NOBODYS);
    visit.http("unknown-session", None, &question).await;
    let deleted = visit.http("delete", None, &questions.bare("DELETE")).await;
    if deleted.is_some_and(|answer| (200..300).contains(&answer.head.status)) {
        let question = questions.plain(visit);
        visit.http("deleted-session", None, &question).await;
    }
    for id in ids.iter().skip(1).filter(|id| *id != first) {
        let question = questions.bare("DELETE").with("mcp-session-id", id);
        visit.http("tidy-up", None, &question).await;
    }
}
