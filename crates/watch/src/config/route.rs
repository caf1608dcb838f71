//! Reads `routes:`: who is told of what.

use super::Route;
use super::leaves::{choose, optional, read_at_least, read_items, read_texts, required};
use crate::incident::Severity;
use mcproof_engine::suite::document::{Kind, Node};
use mcproof_engine::suite::format::{Fault, Object, Shape};
use mcproof_engine::suite::reader::Reader;
use std::time::Duration;

const SEVERITIES: [(&str, Severity); 3] = [("notify", Severity::Notify), ("page", Severity::Page), ("security", Severity::Security)];

pub(super) static ROUTE: Object<RouteDraft> = Object {
    name: "a route",
    keys: &[
        optional("severities", "for these incidents only", Shape::WordOrWords(&["notify", "page", "security"]), |reader, node, draft| {
            let items = match &node.kind {
                Kind::Seq(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                draft.route.severities.push(choose(reader, item, &SEVERITIES, "severity")?);
            }
            Ok(())
        }),
        optional("tags", "for targets with one of these tags only", Shape::TextOrTexts, |reader, node, draft| {
            draft.route.tags = read_texts(reader, node)?;
            Ok(())
        }),
        required(
            "channels",
            "the first one is told; the next one if that did not work within two minutes",
            Shape::TextOrTexts,
            |reader, node, draft| {
                draft.channels = read_items(reader, node)?;
                if draft.channels.is_empty() {
                    reader.error("nobody", "this route tells nobody", node.span);
                    return Err(Fault::Reported);
                }
                Ok(())
            },
        ),
        optional("remind_every", "tell again until somebody acknowledges", Shape::Duration, |reader, node, draft| {
            draft.route.remind_every = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
pub(super) struct RouteDraft {
    route: Route,
    channels: Vec<(String, Node)>,
}

/// The route, and where its channels are named.
pub(super) fn read_route(reader: &mut Reader<'_>, node: &Node) -> Option<(Route, Vec<(String, Node)>)> {
    let mut draft = RouteDraft::default();
    if !ROUTE.read(reader, node, &mut draft) {
        return None;
    }
    let channels = draft.channels.iter().map(|(name, _)| name.clone()).collect();
    Some((Route { channels, ..draft.route }, draft.channels))
}
