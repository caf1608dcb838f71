//! Reads `targets:` and `defaults:`. A server is written as in a suite, with one transport; what is expected of it stands
//! beside that.

use super::dependency::{DEPENDS_ON_DOC, Dependencies};
use super::leaves::{Read, check_url, optional, read_at_least, read_items, read_path, read_percentage, read_texts, referred};
use super::limits::{
    CONFIRMATIONS_DOC, FAILURES_DOC, FLAPPING, FLAPPING_DOC, Limits, RECOVERIES_DOC, confirmations, failures, flapping, recoveries,
};
use super::push::{PUSH, read_push};
use super::reference::filled;
use super::{TargetKind, TargetSpec, load_read_only};
use mcproof_analysis::oddities::Oddities;
use mcproof_client::Tls;
use mcproof_record::Diagnostic;
use mcproof_suite::auth::{AUTH, AUTH_DOC};
use mcproof_suite::document::{Entry, Key as Written, Kind, Node};
use mcproof_suite::format::{Fault, Key, Object, Shape};
use mcproof_suite::plan::Server;
use mcproof_suite::reach::{LIMITS, LIMITS_DOC, PROXY_DOC, TLS, TLS_DOC};
use mcproof_suite::reader::Reader;
use mcproof_suite::server::{BINDING, read_server};
use mcproof_suite::source::Span;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What may stand in `defaults:` as well.
#[derive(Clone, Default)]
pub(super) struct TargetDefaults {
    every: Option<Duration>,
    timeout: Option<(Duration, Span)>,
    regions: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    objective: Option<f64>,
    keep: Option<bool>,
    strict: Option<bool>,
    public: Option<bool>,
    pub(super) limits: Limits,
}

const EVERY: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);
const LEAST: Duration = Duration::from_secs(1);

const EVERY_DOC: &str = "interval between scheduled probes; default 60s";
const TIMEOUT_DOC: &str = "timeout of the handshake, and again of the lists; default 10s";
const REGIONS_DOC: &str = "regions that probe it, of monitors that share a database; default: that of this process";
const TAGS_DOC: &str = "tags for routes and maintenance windows";
const OBJECTIVE_DOC: &str = "promised share of good minutes in percent, such as 99.9";
const KEEP_DOC: &str = "`true` to keep the process of a stdio server running between probes";
const STRICT_DOC: &str = "`true` to count messages that some clients reject as an outage instead of a warning";
const PUBLIC_DOC: &str = "`true` to show it on the public status page";

/// `defaults:`
pub(super) static DEFAULTS: Object<TargetDefaults> = Object {
    name: "`defaults`",
    keys: &[
        optional("every", EVERY_DOC, Shape::Duration, every),
        optional("timeout", TIMEOUT_DOC, Shape::Duration, timeout),
        optional("regions", REGIONS_DOC, Shape::TextOrTexts, regions),
        optional("tags", TAGS_DOC, Shape::TextOrTexts, tags),
        optional("objective", OBJECTIVE_DOC, Shape::Percentage, objective),
        optional("keep", KEEP_DOC, Shape::Flag, keep),
        optional("strict", STRICT_DOC, Shape::Flag, strict),
        optional("public", PUBLIC_DOC, Shape::Flag, public),
        optional("failures", FAILURES_DOC, Shape::Count, |reader, node, draft| failures(reader, node, &mut draft.limits)),
        optional("confirmations", CONFIRMATIONS_DOC, Shape::TextOrTexts, |reader, node, draft| {
            confirmations(reader, node, &mut draft.limits)
        }),
        optional("recoveries", RECOVERIES_DOC, Shape::Count, |reader, node, draft| recoveries(reader, node, &mut draft.limits)),
        optional("flapping", FLAPPING_DOC, Shape::Object(&FLAPPING), |reader, node, draft| flapping(reader, node, &mut draft.limits)),
    ],
    later: &[],
};

/// One value of `targets:`.
pub(super) static TARGET: Object<TargetDraft> = Object {
    name: "a target",
    keys: &[
        of_server(
            "stdio",
            "over stdio: the command that starts it, or a map with `command`",
            Shape::ObjectOrText(&BINDING),
            |_, node, draft| draft.put("stdio", node),
        ),
        of_server(
            "http",
            "how to reach it over Streamable HTTP: a URL, or a map with `url`",
            Shape::ObjectOrText(&BINDING),
            |_, node, draft| draft.put("http", node),
        ),
        of_server(
            "sse",
            "how to reach it over HTTP+SSE of 2024-11-05: a URL, or a map with `url`",
            Shape::ObjectOrText(&BINDING),
            |_, node, draft| draft.put("sse", node),
        ),
        optional("monitor", "`/healthz` of another monitor, so that two monitors watch each other", Shape::Text, |reader, node, draft| {
            let written = reader.text(node)?;
            let url = referred(reader, node, &written)?.unwrap_or(written);
            let parsed = check_url(reader, node, &url)?;
            if !parsed.username().is_empty() || parsed.password().is_some() {
                reader.report(unsent_credentials().hint("remove them: `/healthz` requires no login"), node.span);
                return Err(Fault::Reported);
            }
            if parsed.path() == "/" {
                let warning = Diagnostic::warning("no-health-path", "this URL has no path: most services show a page for people there");
                reader.report(warning.hint("write the health endpoint of the monitor, such as `https://HOST/healthz`"), node.span);
            }
            draft.monitor = Some((url, reader.key));
            Ok(())
        }),
        optional("push", "a job that reports its runs to `/push/TOKEN` of the dashboard", Shape::Object(&PUSH), |reader, node, draft| {
            draft.push = Some((read_push(reader, node)?, reader.key));
            Ok(())
        }),
        of_server("era", "protocol era; `auto` detects it", Shape::Word(&["auto", "legacy", "modern"]), |_, node, draft| {
            draft.put("era", node)
        }),
        of_server("protocol_version", "the revision to offer, such as 2025-11-25", Shape::Text, |_, node, draft| {
            draft.put("protocol_version", node)
        }),
        of_server("tls", TLS_DOC, Shape::Object(&TLS), |_, node, draft| draft.put("tls", node)),
        of_server("proxy", PROXY_DOC, Shape::Text, |_, node, draft| draft.put("proxy", node)),
        of_server("auth", AUTH_DOC, Shape::Object(&AUTH), |_, node, draft| draft.put("auth", node)),
        of_server("limits", LIMITS_DOC, Shape::Object(&LIMITS), |_, node, draft| draft.put("limits", node)),
        optional("every", EVERY_DOC, Shape::Duration, |reader, node, draft| every(reader, node, &mut draft.target_defaults)),
        optional("timeout", TIMEOUT_DOC, Shape::Duration, |reader, node, draft| timeout(reader, node, &mut draft.target_defaults)),
        optional("regions", REGIONS_DOC, Shape::TextOrTexts, |reader, node, draft| regions(reader, node, &mut draft.target_defaults)),
        optional("tags", TAGS_DOC, Shape::TextOrTexts, |reader, node, draft| tags(reader, node, &mut draft.target_defaults)),
        optional("objective", OBJECTIVE_DOC, Shape::Percentage, |reader, node, draft| objective(reader, node, &mut draft.target_defaults)),
        optional("keep", KEEP_DOC, Shape::Flag, |reader, node, draft| {
            draft.keep_key = Some(reader.key);
            keep(reader, node, &mut draft.target_defaults)
        }),
        optional("strict", STRICT_DOC, Shape::Flag, |reader, node, draft| {
            draft.of_server.push(("strict", reader.key));
            strict(reader, node, &mut draft.target_defaults)
        }),
        optional("public", PUBLIC_DOC, Shape::Flag, |reader, node, draft| public(reader, node, &mut draft.target_defaults)),
        optional("failures", FAILURES_DOC, Shape::Count, |reader, node, draft| failures(reader, node, &mut draft.target_defaults.limits)),
        optional("confirmations", CONFIRMATIONS_DOC, Shape::TextOrTexts, |reader, node, draft| {
            confirmations(reader, node, &mut draft.target_defaults.limits)
        }),
        optional("recoveries", RECOVERIES_DOC, Shape::Count, |reader, node, draft| {
            recoveries(reader, node, &mut draft.target_defaults.limits)
        }),
        optional("flapping", FLAPPING_DOC, Shape::Object(&FLAPPING), |reader, node, draft| {
            flapping(reader, node, &mut draft.target_defaults.limits)
        }),
        optional("depends_on", DEPENDS_ON_DOC, Shape::TextOrTexts, |reader, node, draft| {
            draft.depends_on = read_items(reader, node)?;
            Ok(())
        }),
        optional(
            "lock",
            "lock file with the expected contract; default: the first contract that is seen",
            Shape::Text,
            |reader, node, draft| {
                draft.of_server.push(("lock", reader.key));
                draft.lock = Some(read_path(reader, node)?);
                Ok(())
            },
        ),
        optional(
            "suite",
            "a suite whose tests with the tag `read-only` are run after each good probe",
            Shape::Text,
            |reader, node, draft| {
                draft.of_server.push(("suite", reader.key));
                draft.suite = Some((read_path(reader, node)?, node.span));
                Ok(())
            },
        ),
    ],
    later: &["setup", "teardown"],
};

/// A key that suites read; it is left as it stands until then.
const fn of_server(name: &'static str, doc: &'static str, shape: Shape, read: Read<TargetDraft>) -> Key<TargetDraft> {
    optional(name, doc, shape, read)
}

#[derive(Default)]
pub(super) struct TargetDraft {
    /// In their order; where they stand is not known here.
    server: Vec<(&'static str, Node)>,
    monitor: Option<(String, Span)>,
    push: Option<(TargetKind, Span)>,
    target_defaults: TargetDefaults,
    keep_key: Option<Span>,
    depends_on: Vec<(String, Node)>,
    lock: Option<PathBuf>,
    suite: Option<(PathBuf, Span)>,
    /// Keys that mean nothing for another monitor.
    of_server: Vec<(&'static str, Span)>,
}

impl TargetDraft {
    fn put(&mut self, name: &'static str, node: &Node) -> Result<(), Fault> {
        self.server.push((name, node.clone()));
        Ok(())
    }
}

fn every(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.every = Some(read_at_least(reader, node, LEAST)?);
    Ok(())
}

fn timeout(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.timeout = Some((reader.duration(node)?, reader.key));
    Ok(())
}

fn regions(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.regions = Some(read_texts(reader, node)?);
    Ok(())
}

fn tags(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.tags = Some(read_texts(reader, node)?);
    Ok(())
}

fn objective(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.objective = Some(read_percentage(reader, node)?);
    Ok(())
}

fn keep(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.keep = Some(reader.flag(node)?);
    Ok(())
}

fn strict(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.strict = Some(reader.flag(node)?);
    Ok(())
}

fn public(reader: &mut Reader<'_>, node: &Node, draft: &mut TargetDefaults) -> Result<(), Fault> {
    draft.public = Some(reader.flag(node)?);
    Ok(())
}

/// Reads one target, and what it says that it depends on; `key` is where its name stands.
pub(super) fn read_target(
    reader: &mut Reader<'_>,
    key: &Written,
    node: &Node,
    defaults: &TargetDefaults,
) -> Option<(TargetSpec, Vec<(String, Node)>)> {
    let before = reader.mistakes();
    check_name(reader, key);
    let mut draft = TargetDraft::default();
    TARGET.read(reader, node, &mut draft);
    if reader.mistakes() > before {
        return None;
    }
    if let Some((_, span)) = &draft.push
        && let Some(other) = draft.monitor.as_ref().map(|_| "monitor").or_else(|| draft.server.first().map(|(name, _)| *name))
    {
        reader.error("conflicting-keys", format!("a target cannot have both `push` and `{other}`"), *span);
        return None;
    }
    let of_nobody = |reader: &mut Reader<'_>, draft: &TargetDraft, what: &str| {
        for (name, key) in draft.of_server.iter().copied().chain(draft.keep_key.map(|key| ("keep", key))) {
            reader.error("inapplicable-key", format!("`{name}` does not apply to {what}"), key);
        }
    };
    let kind = match (&draft.monitor, draft.server.first()) {
        _ if draft.push.is_some() => {
            of_nobody(reader, &draft, "a job that reports its runs");
            draft.push.take().map(|(push, _)| push)?
        }
        (Some((url, _)), None) => {
            of_nobody(reader, &draft, "another monitor");
            TargetKind::Monitor(url.clone())
        }
        (Some((_, span)), Some((first, _))) => {
            reader.error("conflicting-keys", format!("a target cannot have both `monitor` and `{first}`"), *span);
            return None;
        }
        (None, _) => TargetKind::Server(Box::new(read_only_server(reader, key, node, &draft)?)),
    };
    if let (TargetKind::Server(server), Some((path, span))) = (&kind, &draft.suite) {
        check_suite(reader, server, path, *span);
    }
    let named = std::mem::take(&mut draft.depends_on);
    let spec = spec(reader, &key.text, kind, draft, defaults);
    (reader.mistakes() == before).then_some((spec, named))
}

fn read_only_server(reader: &mut Reader<'_>, key: &Written, node: &Node, draft: &TargetDraft) -> Option<Server> {
    let Kind::Map(entries) = &node.kind else { return None };
    let entries: Vec<Entry> = entries
        .iter()
        .filter(|entry| draft.server.iter().any(|(name, _)| *name == entry.key.text))
        .map(|entry| filled(reader, entry))
        .collect();
    let ways: Vec<&Entry> = entries.iter().filter(|entry| matches!(entry.key.text.as_str(), "stdio" | "http" | "sse")).collect();
    match ways.as_slice() {
        [] => {
            let diagnostic = Diagnostic::error("missing-key", "this target has no transport");
            reader.report(diagnostic.hint("add `stdio:`, `http:` or `sse:`"), key.span);
            None
        }
        [way] => {
            let span = way.value.get("url").map_or(way.value.span, |url| url.span);
            let server = read_server(reader, &key.text, key.span, &Node { kind: Kind::Map(entries), span: node.span })?;
            check_credentials(reader, &server, span)?;
            Some(server)
        }
        [first, second, ..] => {
            let message = format!("a target cannot have both `{}` and `{}`", first.key.text, second.key.text);
            let diagnostic = Diagnostic::error("conflicting-keys", message);
            reader.report(diagnostic.hint("split it into two targets"), second.key.span);
            None
        }
    }
}

/// Refuses a user name or a password in a URL: nobody sends them.
pub(super) fn check_credentials(reader: &mut Reader<'_>, server: &Server, span: Span) -> Option<()> {
    let authority = |url: &str| url.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned());
    let urls = server.bindings.iter().filter_map(|binding| binding.url.as_deref());
    if !urls.filter_map(authority).any(|authority| authority.contains('@')) {
        return Some(());
    }
    let hint = "remove them, and add `headers: { Authorization: \"Basic ${env.NAME}\" }`, where NAME holds `USER:PASSWORD` in Base64";
    reader.report(unsent_credentials().hint(hint), span);
    None
}

fn unsent_credentials() -> Diagnostic {
    Diagnostic::error("bad-url", "this URL has a user name or a password, which would not be sent")
}

/// A suite that would not be run is no promise that anybody should rely on.
fn check_suite(reader: &mut Reader<'_>, server: &Server, path: &Path, span: Span) {
    if let Err(mistake) = load_read_only(path, &reader.environment.variables, server, &Tls::default()) {
        let place = mistake.place.as_ref().map(|place| format!(" (line {})", place.line)).unwrap_or_default();
        let diagnostic = Diagnostic::error("bad-suite", format!("this suite cannot be run: {}{place}", mistake.message));
        reader.report(Diagnostic { hint: mistake.hint.clone(), ..diagnostic }, span);
    }
}

fn spec(reader: &mut Reader<'_>, name: &str, kind: TargetKind, draft: TargetDraft, defaults: &TargetDefaults) -> TargetSpec {
    let TargetDraft { target_defaults, lock, suite, keep_key, .. } = draft;
    let every = target_defaults.every.or(defaults.every).unwrap_or(EVERY);
    let chosen = target_defaults.timeout.or(defaults.timeout);
    if let Some((timeout, span)) = chosen
        && timeout > every
    {
        let diagnostic = Diagnostic::error("bad-timeout", format!("a probe of `{name}` can take longer than the interval between probes"));
        reader.report(diagnostic.hint("decrease `timeout`, or increase `every`"), span);
    }
    let over_stdio = matches!(&kind, TargetKind::Server(server) if server.bindings.iter().all(|binding| binding.launch.is_some()));
    let is_server = matches!(kind, TargetKind::Server(_));
    if let Some(key) = keep_key.filter(|_| target_defaults.keep == Some(true) && is_server && !over_stdio) {
        reader.error("inapplicable-key", "`keep` requires a target that starts a process", key);
    }
    TargetSpec {
        name: name.to_owned(),
        kind,
        every,
        timeout: chosen.map_or(TIMEOUT, |(timeout, _)| timeout).min(every),
        regions: target_defaults.regions.or_else(|| defaults.regions.clone()).unwrap_or_default(),
        tags: target_defaults.tags.or_else(|| defaults.tags.clone()).unwrap_or_default(),
        lock,
        suite: suite.map(|(path, _)| path),
        objective: target_defaults.objective.or(defaults.objective),
        keep: over_stdio && target_defaults.keep.or(defaults.keep).unwrap_or(false),
        oddities: oddities(target_defaults.strict.or(defaults.strict)),
        public: target_defaults.public.or(defaults.public).unwrap_or(false),
        thresholds: target_defaults.limits.over(&defaults.limits),
        depends_on: Dependencies::default(),
    }
}

fn oddities(strict: Option<bool>) -> Oddities {
    if strict == Some(true) { Oddities::Fail } else { Oddities::Warn }
}

/// A server that another file names, with what `defaults:` says.
pub(super) fn imported(name: &str, server: Server, defaults: &TargetDefaults) -> TargetSpec {
    let every = defaults.every.unwrap_or(EVERY);
    let over_stdio = server.bindings.iter().all(|binding| binding.launch.is_some());
    TargetSpec {
        name: name.to_owned(),
        kind: TargetKind::Server(Box::new(server)),
        every,
        timeout: defaults.timeout.map_or(TIMEOUT, |(timeout, _)| timeout).min(every),
        regions: defaults.regions.clone().unwrap_or_default(),
        tags: defaults.tags.clone().unwrap_or_default(),
        lock: None,
        suite: None,
        objective: defaults.objective,
        keep: over_stdio && defaults.keep.unwrap_or(false),
        oddities: oddities(defaults.strict),
        public: defaults.public.unwrap_or(false),
        thresholds: defaults.limits.over(&Limits::default()),
        depends_on: Dependencies::default(),
    }
}

/// Names stand in URLs, in pages and in the subjects of incidents, where `host:`, `region:` and `group:` mean several.
fn check_name(reader: &mut Reader<'_>, key: &Written) {
    let name = key.text.as_str();
    if !is_name(name) {
        let diagnostic = Diagnostic::error("bad-name", format!("`{name}` is not a valid target name"));
        reader.report(diagnostic.hint(NAMES), key.span);
    }
}

/// Whether a target may be called so: its page has an address, and a storm has another name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_path = name.bytes().all(|byte| byte == b'.');
    !is_path && name.trim() == name && name.chars().count() <= LONGEST_NAME && name.chars().all(fits_name)
}

/// The nearest name that a target may have: other programs have other rules.
pub(super) fn fitting_name(name: &str) -> String {
    let fitting: String = name.chars().take(LONGEST_NAME).map(|character| if fits_name(character) { character } else { '-' }).collect();
    let trimmed = fitting.trim();
    if is_name(trimmed) { trimmed.to_owned() } else { format!("server{trimmed}") }
}

fn fits_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | ' ')
}

const LONGEST_NAME: usize = 100;

pub(crate) const NAMES: &str = "use letters, digits, `-`, `_`, `.` and inner spaces, at most 100 characters";
