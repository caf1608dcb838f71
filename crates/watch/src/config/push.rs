//! Reads `push:`: when a job has to report in.

use super::leaves::{Secrecy, optional, read_at_least, read_secret, required};
use super::window::{read_cron, read_zone};
use super::{Secret, TargetKind};
use crate::push::{Expectation, PushSchedule};
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
        required("token", "token of the job, at least 16 characters", Shape::Text, |reader, node, draft| {
            let token = read_secret(reader, node, Secrecy::Secret)?;
            let is_segment = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            if token.expose().len() < SHORTEST_TOKEN || !token.expose().bytes().all(is_segment) {
                let diagnostic = Diagnostic::error("bad-token", "this is not a valid job token");
                let hint = "use at least 16 letters, digits, `-`, `_`, `.` and `~`; generate one with `openssl rand -hex 32`";
                reader.report(diagnostic.hint(hint), node.span);
                return Err(Fault::Reported);
            }
            draft.token = Some(token);
            Ok(())
        }),
        optional("within", "the longest time between two successes", Shape::Duration, |reader, node, draft| {
            draft.within = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
        optional(
            "cron",
            "when it must succeed, instead of `within`: minute, hour, day, month, weekday",
            Shape::Text,
            |reader, node, draft| {
                draft.cron = Some(read_cron(reader, node)?);
                Ok(())
            },
        ),
        optional("zone", "time zone of `cron`, such as Europe/Vienna; default UTC", Shape::Text, |reader, node, draft| {
            draft.zone = Some((read_zone(reader, node)?, reader.key));
            Ok(())
        }),
        optional("grace", "grace period; default 5m", Shape::Duration, |reader, node, draft| {
            draft.grace = Some(reader.duration(node)?);
            Ok(())
        }),
        optional(
            "lasts",
            "the longest duration of a run that reported its start; default: until it is due again",
            Shape::Duration,
            |reader, node, draft| {
                draft.lasts = Some(read_at_least(reader, node, Duration::from_secs(1))?);
                Ok(())
            },
        ),
    ],
    later: &[],
};

pub(super) fn read_push(reader: &mut Reader<'_>, node: &Node) -> Result<TargetKind, Fault> {
    let mut draft = PushDraft::default();
    if !PUSH.read(reader, node, &mut draft) {
        return Err(Fault::Reported);
    }
    let rhythm = match (draft.within, draft.cron, draft.zone) {
        (Some(within), None, None) => PushSchedule::Every(within),
        (None, Some(expression), zone) => PushSchedule::Cron { expression, zone: zone.map_or_else(|| "UTC".to_owned(), |(zone, _)| zone) },
        (Some(_), None, Some((_, key))) => {
            reader.error("inapplicable-key", "`zone` requires `cron`", key);
            return Err(Fault::Reported);
        }
        _ => {
            let diagnostic = Diagnostic::error("bad-push", "this job has no schedule");
            reader.report(diagnostic.hint("add `within` or `cron`"), node.span);
            return Err(Fault::Reported);
        }
    };
    let token = draft.token.ok_or(Fault::Reported)?;
    let expectation = Expectation { rhythm, grace: draft.grace.unwrap_or(GRACE), lasts: draft.lasts };
    Ok(TargetKind::Push { token, expectation })
}
