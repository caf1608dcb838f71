//! Reads `push:`: when a job has to report in.

use super::leaves::{Openness, optional, read_at_least, read_secret, required};
use super::window::{read_cron, read_zone};
use super::{Secret, TargetKind};
use crate::push::{Expectation, Rhythm};
use mcproof_record::Diagnostic;
use mcproof_suite::document::Node;
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(300);
const SHORTEST_TOKEN: usize = 16;

#[derive(Default)]
pub(super) struct PushDraft {
    token: Option<Secret>,
    within: Option<Duration>,
    cron: Option<String>,
    zone: Option<(String, Span)>,
    grace: Option<Duration>,
    lasts: Option<Duration>,
}

pub(super) static PUSH: Object<PushDraft> = Object {
    name: "`push`",
    keys: &[
        required("token", "what the job is known by, of 16 characters at least", Shape::Text, |reader, node, draft| {
            let token = read_secret(reader, node, Openness::Secret)?;
            let is_segment = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            if token.0.len() < SHORTEST_TOKEN || !token.0.bytes().all(is_segment) {
                let diagnostic = Diagnostic::error("bad-token", "this cannot be the token of a job");
                let hint = "it has 16 characters or more, letters, digits, `-`, `_`, `.` and `~`: `openssl rand -hex 32` prints a good one";
                reader.report(diagnostic.hint(hint), node.span);
                return Err(Fault::Reported);
            }
            draft.token = Some(token);
            Ok(())
        }),
        optional("within", "it has to succeed again within this time", Shape::Duration, |reader, node, draft| {
            draft.within = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
        optional("cron", "when it has to succeed, instead: minute, hour, day, month, weekday", Shape::Text, |reader, node, draft| {
            draft.cron = Some(read_cron(reader, node)?);
            Ok(())
        }),
        optional("zone", "the time zone of `cron`, such as Europe/Vienna; UTC if missing", Shape::Text, |reader, node, draft| {
            draft.zone = Some((read_zone(reader, node)?, reader.key));
            Ok(())
        }),
        optional("grace", "it may be so much later; 5m if missing", Shape::Duration, |reader, node, draft| {
            draft.grace = Some(reader.duration(node)?);
            Ok(())
        }),
        optional("lasts", "how long it may take once it has said that it began", Shape::Duration, |reader, node, draft| {
            draft.lasts = Some(read_at_least(reader, node, Duration::from_secs(1))?);
            Ok(())
        }),
    ],
    later: &[],
};

pub(super) fn read_push(reader: &mut Reader<'_>, node: &Node) -> Result<TargetKind, Fault> {
    let mut draft = PushDraft::default();
    if !PUSH.read(reader, node, &mut draft) {
        return Err(Fault::Reported);
    }
    let rhythm = match (draft.within, draft.cron, draft.zone) {
        (Some(within), None, None) => Rhythm::Every(within),
        (None, Some(expression), zone) => Rhythm::Cron { expression, zone: zone.map_or_else(|| "UTC".to_owned(), |(zone, _)| zone) },
        (Some(_), None, Some((_, key))) => {
            reader.error("meaningless-key", "`zone` means nothing without `cron`", key);
            return Err(Fault::Reported);
        }
        _ => {
            let diagnostic = Diagnostic::error("bad-push", "this does not say when the job has to report in");
            reader.report(diagnostic.hint("add `within` or `cron`"), node.span);
            return Err(Fault::Reported);
        }
    };
    let token = draft.token.ok_or(Fault::Reported)?;
    let expectation = Expectation { rhythm, grace: draft.grace.unwrap_or(GRACE), lasts: draft.lasts };
    Ok(TargetKind::Push { token, expectation })
}
