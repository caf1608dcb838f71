//! Reads a whole configuration from its tree, with the reader of suites. All mistakes are collected; a configuration comes
//! out only when there are none.

use super::channel::{CHANNEL, read_channel};
use super::dependency;
use super::import::read_import;
use super::leaves::{
    Secrecy, optional, read_at_least, read_count, read_period, read_secret, read_secret_url, read_texts, read_url, required,
};
use super::limits::Limits;
use super::login::LOGIN;
use super::reference::secret_in_full;
use super::route::{ROUTE, read_route, taken_as};
use super::status::{Beside, STATUS, StatusDraft};
use super::tags::KnownTags;
use super::target::{DEFAULTS, TARGET, TargetDefaults, imported, read_target};
use super::window::{WINDOW, read_window};
use super::{Config, Heartbeat, Login, Retention, Route, STORM, Secret, TargetKind, TargetSpec, Window};
use crate::incident;
use crate::seal::SealKey;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_client::url_holds_secret;
use mcproof_record::{Diagnostic, Severity};
use mcproof_suite::auth::literal_secrets;
use mcproof_suite::document::{self, Kind, Node};
use mcproof_suite::file_kind::{FileKind, other_kind};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::schema::format_schema;
use mcproof_suite::source::{Source, Span};
use mcproof_suite::{Environment, without_credentials};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A configuration, and what is odd about it without being wrong.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a configuration. `folder` is where relative paths begin.
///
/// # Errors
/// All mistakes in the file, with its warnings, in the order of their places.
pub fn load(path_as_named: &str, text: &str, folder: &Path, environment: &Environment) -> Result<Loaded, Vec<Diagnostic>> {
    let mut source = Source::new(path_as_named, text);
    let (tree, mistakes) = document::parse(&source, 0);
    source.mask(&tree.as_ref().map(|tree| [literal_secrets(tree), secrets(tree)].concat()).unwrap_or_default());
    let mut reader = Reader::new(&source, folder, environment);
    reader.diagnostics = mistakes;
    for empty in reader.diagnostics.iter_mut().filter(|diagnostic| diagnostic.code == "empty-file") {
        empty.hint = Some("a configuration begins with `targets:`; see `mcproof watch --help` for examples".into());
    }
    let config = tree.and_then(|tree| read_config(&mut reader, &tree));
    let is_flawless = reader.mistakes() == 0;
    let mut diagnostics = without_credentials(reader.diagnostics, environment);
    diagnostics.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| (place.line, place.column)));
    match config.filter(|_| is_flawless) {
        Some(config) => {
            diagnostics.retain(|diagnostic| diagnostic.severity != Severity::Error);
            Ok(Loaded { config, warnings: diagnostics })
        }
        None => Err(diagnostics),
    }
}

/// The other files that a configuration is made of, whether or not it has mistakes: those that it imports, and those with secrets. When
/// one of them changes, the configuration has changed.
pub fn files_of(path_as_named: &str, text: &str, folder: &Path, environment: &Environment) -> Vec<PathBuf> {
    let source = Source::new(path_as_named, text);
    let Some(tree) = document::parse(&source, 0).0 else { return Vec::new() };
    let mut reader = Reader::new(&source, folder, environment);
    reader.read_variables(&tree);
    let mut found = tree.get("import").and_then(|node| read_texts(&mut reader, node).ok()).unwrap_or_default();
    references(&tree, &mut found);
    found.iter().map(|path| folder.join(path)).collect()
}

/// The paths of `file:PATH`.
fn references(node: &Node, found: &mut Vec<String>) {
    match &node.kind {
        Kind::Text(text) => found.extend(text.strip_prefix("file:").filter(|path| !path.starts_with("//")).map(str::to_owned)),
        Kind::Map(entries) => entries.iter().for_each(|entry| references(&entry.value, found)),
        Kind::Seq(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// The database that a configuration names, whatever else stands in it: who only looks into that needs no secrets of channels.
///
/// # Errors
/// The text is no YAML, or what it says of its database is a mistake.
pub fn database_of(path_as_named: &str, text: &str, folder: &Path, environment: &Environment) -> Result<String, Vec<Diagnostic>> {
    let mut source = Source::new(path_as_named, text);
    let (tree, mistakes) = document::parse(&source, 0);
    source.mask(&tree.as_ref().map(|tree| [literal_secrets(tree), secrets(tree)].concat()).unwrap_or_default());
    let mut reader = Reader::new(&source, folder, environment);
    reader.diagnostics = mistakes;
    if let Some(tree) = &tree {
        reader.read_variables(tree);
    }
    let database = match tree.as_ref().and_then(|tree| tree.get("database")) {
        Some(node) => read_database(&mut reader, node).ok(),
        None => Some(own_database(&reader)),
    };
    let is_flawless = reader.mistakes() == 0;
    database.filter(|_| is_flawless).ok_or_else(|| without_credentials(reader.diagnostics, environment))
}

/// The same of a text that is no YAML, so that an incident can be acknowledged although somebody has left the file in a bad state: of the
/// line that names the database, or, if there is none, the database beside the file. Nothing if that is not certain.
pub fn database_of_broken(path_as_named: &str, text: &str, folder: &Path, environment: &Environment) -> Option<String> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    // Where keys are indented or in braces, no line says whose they are.
    if lines().next().is_none_or(|line| !line.starts_with(|first: char| first.is_ascii_alphabetic())) {
        return None;
    }
    let is_key = |line: &&str| line.trim_start_matches(['"', '\'']).starts_with("database");
    match lines().filter(is_key).collect::<Vec<_>>().as_slice() {
        [] => database_of(path_as_named, "targets: {}", folder, environment).ok(),
        [line] if line.starts_with("database:") => database_of(path_as_named, line, folder, environment).ok(),
        _ => None,
    }
}

/// The names of the targets that a configuration names itself, whatever mistakes it has.
pub fn targets_of(path_as_named: &str, text: &str) -> Vec<String> {
    let source = Source::new(path_as_named, text);
    let tree = document::parse(&source, 0).0;
    match tree.as_ref().and_then(|tree| tree.get("targets")).map(|node| &node.kind) {
        Some(Kind::Map(entries)) => entries.iter().map(|entry| entry.key.text.clone()).collect(),
        _ => Vec::new(),
    }
}

/// By JSON Schema 2020-12.
pub fn config_schema() -> Value {
    let example = json!({
        "public_url": "https://status.example.com",
        "listen": "127.0.0.1:7130",
        "targets": { "shop": { "http": "https://mcp.example.com/mcp", "objective": 99.9, "public": true } },
        "channels": { "on-call": { "pagerduty": "env:PAGERDUTY_KEY" }, "chat": { "slack": "env:SLACK_URL" } },
        "routes": [{ "severities": ["page", "security"], "channels": ["on-call", "chat"], "remind_every": "30m" }, { "channels": "chat" }],
    });
    format_schema(&CONFIG, "mcproof watch", "Which MCP servers are monitored, and who is notified when they fail", example)
}

/// The whole file.
static CONFIG: Object<ConfigDraft> = Object {
    name: "a configuration",
    keys: &[
        // They are read before all else.
        optional("vars", "values that `${name}` refers to below", Shape::Values, |_, _, _| Ok(())),
        optional(
            "database",
            "`sqlite:FILE` or `postgres://…`; beside this file, and with its name, such as `watch.db`, if missing",
            Shape::Text,
            |reader, node, draft| {
                draft.database = Some(read_database(reader, node)?);
                Ok(())
            },
        ),
        optional(
            "listen",
            "address of the dashboard, such as 127.0.0.1:7130; without it, there is no dashboard",
            Shape::Text,
            |reader, node, draft| {
                draft.listen = Some((read_address(reader, node)?, reader.key));
                Ok(())
            },
        ),
        optional("public_url", "URL of the dashboard, for links in messages", Shape::Text, |reader, node, draft| {
            draft.public_url = Some(read_url(reader, node)?.trim_end_matches('/').to_owned());
            Ok(())
        }),
        optional("region", "region of this process; default `local`", Shape::Text, |reader, node, draft| {
            draft.region = Some(reader.text(node)?);
            Ok(())
        }),
        optional("defaults", "defaults for all targets", Shape::Object(&DEFAULTS), |reader, node, draft| {
            if DEFAULTS.read(reader, node, &mut draft.defaults) { Ok(()) } else { Err(Fault::Reported) }
        }),
        optional("targets", "the servers to monitor, by name", Shape::Objects(&TARGET), |_, node, draft| {
            draft.targets = Some(node.clone());
            Ok(())
        }),
        optional(
            "import",
            "one or more files with `mcpServers` whose servers are monitored as well",
            Shape::TextOrTexts,
            |_, node, draft| {
                draft.imports = match &node.kind {
                    Kind::Seq(items) => items.clone(),
                    _ => vec![node.clone()],
                };
                Ok(())
            },
        ),
        optional("channels", "where notifications are sent, by name", Shape::Objects(&CHANNEL), |_, node, draft| {
            draft.channels = Some(node.clone());
            Ok(())
        }),
        optional(
            "routes",
            "which channels are notified of what; the first matching route applies; default: all channels in their order",
            Shape::List(&ROUTE),
            |_, node, draft| {
                draft.routes = Some(node.clone());
                Ok(())
            },
        ),
        optional("maintenance", "planned work, during which no alerts are sent", Shape::List(&WINDOW), |_, node, draft| {
            draft.maintenance = Some(node.clone());
            Ok(())
        }),
        optional("storm", "this many targets that fail at once are one incident; default 5", Shape::Count, |reader, node, draft| {
            draft.storm = Some(read_count(reader, node, MOST_OF_STORM)?);
            Ok(())
        }),
        optional(
            "heartbeat",
            "a URL that is fetched while results are being written, or a map",
            Shape::ObjectOrText(&HEARTBEAT),
            |reader, node, draft| {
                draft.heartbeat = Some(read_heartbeat(reader, node)?);
                Ok(())
            },
        ),
        optional(
            "canaries",
            "`host:port` that is reachable while the monitor's own network works",
            Shape::TextOrTexts,
            |reader, node, draft| {
                draft.canaries = read_canaries(reader, node)?;
                Ok(())
            },
        ),
        optional("retention", "for how long results are kept", Shape::Object(&RETENTION), |reader, node, draft| {
            if RETENTION.read(reader, node, &mut draft.retention) { Ok(()) } else { Err(Fault::Reported) }
        }),
        optional("allow_private", "`true` to allow the API to add targets with private addresses", Shape::Flag, |reader, node, draft| {
            draft.allow_private = reader.flag(node)?;
            Ok(())
        }),
        optional(
            "seal_key",
            "key that encrypts secrets in the database: 32 bytes in hexadecimal or Base64",
            Shape::Text,
            |reader, node, draft| {
                let secret = read_secret(reader, node, Secrecy::Secret)?;
                draft.seal = Some(SealKey::parse(secret.expose()).map_err(|failure| {
                    let diagnostic = Diagnostic::error("bad-key", format!("this is not a valid key: {failure}"));
                    reader.report(diagnostic.hint("generate one with `openssl rand -hex 32`"), node.span);
                    Fault::Reported
                })?);
                Ok(())
            },
        ),
        optional("login", "who can open the dashboard", Shape::Object(&LOGIN), |reader, node, draft| {
            draft.has_login = true;
            if LOGIN.read(reader, node, &mut draft.login) { Ok(()) } else { Err(Fault::Reported) }
        }),
        optional(
            "otlp",
            "where traces and metrics are sent over OTLP/HTTP, such as http://127.0.0.1:4318",
            Shape::Text,
            |reader, node, draft| {
                draft.otlp = Some(read_url(reader, node)?.trim_end_matches('/').to_owned());
                Ok(())
            },
        ),
        optional("status", "the public status page", Shape::Object(&STATUS), |reader, node, draft| {
            if STATUS.read(reader, node, &mut draft.status) { Ok(()) } else { Err(Fault::Reported) }
        }),
    ],
    later: &[],
};

/// As good as never.
const MOST_OF_STORM: u32 = 1_000_000;

static HEARTBEAT: Object<HeartbeatDraft> = Object {
    name: "`heartbeat`",
    keys: &[
        required("url", "what is fetched", Shape::Text, |reader, node, draft| {
            draft.url = Some(read_secret_url(reader, node, Secrecy::Public)?);
            Ok(())
        }),
        optional("every", "interval; default 60s", Shape::Duration, |reader, node, draft| {
            draft.every = Some(read_at_least(reader, node, Duration::from_secs(5))?);
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct HeartbeatDraft {
    url: Option<Secret>,
    every: Option<Duration>,
}

static RETENTION: Object<Retention> = Object {
    name: "`retention`",
    keys: &[
        optional("raw", "single results; default 7d", Shape::Period, |reader, node, draft| {
            draft.raw = read_period(reader, node)?;
            Ok(())
        }),
        optional("five_minutes", "five-minute aggregates; default 14d", Shape::Period, |reader, node, draft| {
            draft.five_minutes = read_period(reader, node)?;
            Ok(())
        }),
        optional("hours", "hourly aggregates; default 396d. Daily aggregates are kept forever", Shape::Period, |reader, node, draft| {
            draft.hours = read_period(reader, node)?;
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct ConfigDraft {
    database: Option<String>,
    listen: Option<(SocketAddr, Span)>,
    public_url: Option<String>,
    region: Option<String>,
    defaults: TargetDefaults,
    targets: Option<Node>,
    imports: Vec<Node>,
    channels: Option<Node>,
    routes: Option<Node>,
    maintenance: Option<Node>,
    storm: Option<u32>,
    heartbeat: Option<Heartbeat>,
    canaries: Vec<String>,
    retention: Retention,
    allow_private: bool,
    seal: Option<SealKey>,
    has_login: bool,
    login: Login,
    otlp: Option<String>,
    status: StatusDraft,
}

fn read_config(reader: &mut Reader<'_>, tree: &Node) -> Option<Config> {
    if let Some((other, span)) = other_kind(tree, FileKind::Monitor) {
        reader.report(other, span);
        return None;
    }
    reader.read_variables(tree);
    let mut draft = ConfigDraft::default();
    CONFIG.read(reader, tree, &mut draft);
    let targets = read_targets(reader, &draft);
    let mut channels = BTreeMap::new();
    let mut templates = BTreeMap::new();
    let mut in_order = Vec::new();
    for entry in entries(reader, draft.channels.as_ref(), Shape::Objects(&CHANNEL)) {
        in_order.push(entry.key.text.clone());
        if let Some((channel, own)) = read_channel(reader, &entry.value) {
            channels.insert(entry.key.text.clone(), channel);
            templates.extend(own.map(|own| (entry.key.text.clone(), Arc::new(own))));
        }
    }
    let beside = Beside { targets: &targets, public_url: draft.public_url.is_some(), seal_key: draft.seal.is_some() };
    let status = std::mem::take(&mut draft.status).finish(reader, &beside);
    let known_tags = known_tags(&draft, &targets);
    let routes = read_routes(reader, &draft, &in_order, known_tags.as_ref());
    let maintenance = read_maintenance(reader, &draft, &targets, known_tags.as_ref());
    warn(reader, &draft, tree, &targets, &in_order);
    warn_of_gaps(reader, &draft, &targets, &routes);
    Some(Config {
        database: draft.database.unwrap_or_else(|| own_database(reader)),
        listen: draft.listen.map(|(address, _)| address),
        public_url: draft.public_url,
        region: draft.region.unwrap_or_else(|| "local".to_owned()),
        targets,
        channels,
        templates,
        routes,
        maintenance,
        thresholds: draft.defaults.limits.over(&Limits::default()),
        storm: draft.storm.unwrap_or(STORM),
        heartbeat: draft.heartbeat,
        canaries: draft.canaries,
        retention: draft.retention,
        allow_private: draft.allow_private,
        seal: draft.seal,
        login: draft.login,
        otlp: draft.otlp,
        status,
    })
}

/// Two configurations in one folder do not share a database: each takes its targets for all that there are.
fn own_database(reader: &Reader<'_>) -> String {
    let file = Path::new(reader.source.file()).file_name().map_or_else(|| Path::new("watch"), Path::new);
    format!("sqlite:{}", reader.folder.join(file.with_extension("db")).display())
}

/// The entries of a map; anything else is reported.
pub(super) fn entries<'n>(reader: &mut Reader<'_>, node: Option<&'n Node>, shape: Shape) -> &'n [document::Entry] {
    match node.map(|node| (&node.kind, node)) {
        Some((Kind::Map(entries), _)) => entries,
        Some((Kind::Null, _)) | None => &[],
        Some((_, node)) => {
            reader.wrong_type(&shape.expected(), node);
            &[]
        }
    }
}

/// The items of a list; anything else is reported.
fn items<'n>(reader: &mut Reader<'_>, node: Option<&'n Node>, shape: Shape) -> &'n [Node] {
    match node.map(|node| (&node.kind, node)) {
        Some((Kind::Seq(items), _)) => items,
        Some((Kind::Null, _)) | None => &[],
        Some((_, node)) => {
            reader.wrong_type(&shape.expected(), node);
            &[]
        }
    }
}

fn read_targets(reader: &mut Reader<'_>, draft: &ConfigDraft) -> BTreeMap<String, TargetSpec> {
    let mut targets = BTreeMap::new();
    let mut names = Vec::new();
    let mut dependencies = dependency::Named::new();
    for entry in entries(reader, draft.targets.as_ref(), Shape::Objects(&TARGET)) {
        names.push(entry.key.text.clone());
        if let Some((target, named)) = read_target(reader, &entry.key, &entry.value, &draft.defaults) {
            targets.insert(entry.key.text.clone(), target);
            dependencies.insert(entry.key.text.clone(), named);
        }
    }
    for node in &draft.imports {
        for (name, server) in read_import(reader, node, &names) {
            // What stands in the file itself wins: so an imported server can be given an interval of its own.
            if !names.contains(&name) {
                targets.insert(name.clone(), imported(&name, server, &draft.defaults));
            }
        }
    }
    dependency::resolve(reader, &mut targets, &dependencies, |name| names.iter().any(|known| known == name));
    check_tokens(reader, draft, &targets);
    targets
}

/// A report is known by its token alone: of two jobs with the same one, the other would be missing for ever, or never.
fn check_tokens(reader: &mut Reader<'_>, draft: &ConfigDraft, targets: &BTreeMap<String, TargetSpec>) {
    let Some(Kind::Map(entries)) = draft.targets.as_ref().map(|node| &node.kind) else { return };
    let mut owners: Vec<(&Secret, &str)> = Vec::new();
    for entry in entries {
        let Some(TargetKind::Push { token, .. }) = targets.get(&entry.key.text).map(|target| &target.kind) else { continue };
        match owners.iter().find(|(known, _)| *known == token) {
            Some((_, owner)) => {
                let diagnostic = Diagnostic::error("duplicate-token", format!("this token is that of `{owner}` already"));
                let span = entry.value.get("push").and_then(|push| push.get("token")).map_or(entry.key.span, |node| node.span);
                reader.report(diagnostic.hint("use a token of its own for each job; generate one with `openssl rand -hex 32`"), span);
            }
            None => owners.push((token, &entry.key.text)),
        }
    }
}

/// The tags of all targets; nothing if there are no targets, or if one has a mistake: its tags are not known.
fn known_tags(draft: &ConfigDraft, targets: &BTreeMap<String, TargetSpec>) -> Option<KnownTags> {
    let all_read = match draft.targets.as_ref().map(|node| &node.kind) {
        Some(Kind::Map(entries)) => entries.iter().all(|entry| targets.contains_key(&entry.key.text)),
        _ => true,
    };
    (all_read && !targets.is_empty()).then(|| KnownTags::of(targets))
}

/// Whether a list is written with nothing in it, such as one whose items are all commented out.
fn is_empty(node: &Node) -> bool {
    match &node.kind {
        Kind::Null => true,
        Kind::Seq(items) => items.is_empty(),
        Kind::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Where a key of the file stands.
fn key_span(tree: &Node, name: &str) -> Span {
    match &tree.kind {
        Kind::Map(entries) => entries.iter().find(|entry| entry.key.text == name).map_or(tree.span, |entry| entry.key.span),
        _ => tree.span,
    }
}

fn read_routes(reader: &mut Reader<'_>, draft: &ConfigDraft, channels: &[String], known_tags: Option<&KnownTags>) -> Vec<Route> {
    let mut routes = Vec::new();
    for node in items(reader, draft.routes.as_ref(), Shape::List(&ROUTE)) {
        let Some((route, named)) = read_route(reader, node) else { continue };
        for (name, node) in &named.channels {
            if !channels.contains(name) {
                unknown(reader, name, node, channels, "channel");
            }
        }
        if let Some(known_tags) = known_tags {
            known_tags.check_all(reader, &named.tags);
            known_tags.check_patterns(reader, &named.group_by);
        }
        routes.push(route);
    }
    if draft.routes.as_ref().is_none_or(is_empty) && !channels.is_empty() {
        routes.push(Route { channels: channels.to_vec(), ..Route::default() });
    }
    routes
}

fn read_maintenance(
    reader: &mut Reader<'_>,
    draft: &ConfigDraft,
    targets: &BTreeMap<String, TargetSpec>,
    known_tags: Option<&KnownTags>,
) -> Vec<Window> {
    let mut windows = Vec::new();
    let names: Vec<String> = targets.keys().cloned().collect();
    for node in items(reader, draft.maintenance.as_ref(), Shape::List(&WINDOW)) {
        let Some((window, span, tags)) = read_window(reader, node) else { continue };
        if let Some(known_tags) = known_tags {
            known_tags.check_all(reader, &tags);
        }
        // A target with a mistake of its own is known all the same.
        let written = |name: &str| draft.targets.as_ref().is_some_and(|node| node.get(name).is_some());
        for name in window.targets.iter().filter(|name| !names.contains(name) && !written(name)) {
            let node = Node { kind: Kind::Text(name.clone()), span: reader.source.part(span, name) };
            unknown(reader, name, &node, &names, "target");
        }
        windows.push(window);
    }
    windows
}

pub(super) fn unknown(reader: &mut Reader<'_>, name: &str, node: &Node, known: &[String], what: &str) {
    let diagnostic = Diagnostic::error(format!("unknown-{what}"), format!("unknown {what} `{name}`"));
    let names = || known.iter().map(String::as_str);
    let hint = match did_you_mean(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("add it to `{what}s`"),
        None => format!("{what}s are {}", listed(names())),
    };
    reader.report(diagnostic.hint(hint), node.span);
}

/// What does not do what its author most likely wants.
fn warn(reader: &mut Reader<'_>, draft: &ConfigDraft, tree: &Node, targets: &BTreeMap<String, TargetSpec>, channels: &[String]) {
    if channels.is_empty() && !targets.is_empty() && draft.channels.as_ref().is_none_or(is_empty) {
        let (message, span) = match &draft.channels {
            None => ("no alerts are sent: there are no `channels`", tree.span),
            Some(_) => ("no alerts are sent: `channels` is empty", key_span(tree, "channels")),
        };
        let warning = Diagnostic::warning("no-channels-configured", message);
        reader.report(warning.hint("add `channels`, unless the dashboard is enough"), span);
    }
    if draft.routes.as_ref().is_some_and(is_empty) && !channels.is_empty() {
        let warning = Diagnostic::warning("empty-routes", "`routes` is empty: as without it, all alerts are sent to all channels");
        reader.report(warning.hint("add a route, or remove `routes`"), key_span(tree, "routes"));
    }
    let is_open = !draft.has_login || draft.login.is_open();
    if let Some((address, key)) = draft.listen.filter(|(address, _)| is_open && !address.ip().is_loopback()) {
        let message = format!("the dashboard is not served at {address}, which other machines can reach, without `login`");
        let warning = Diagnostic::warning("dashboard-without-login", message);
        reader.report(warning.hint("add `login`, or listen on 127.0.0.1"), key);
    }
}

/// Targets whose incidents no route takes.
fn warn_of_gaps(reader: &mut Reader<'_>, draft: &ConfigDraft, targets: &BTreeMap<String, TargetSpec>, routes: &[Route]) {
    let Some(node) = draft.routes.as_ref().filter(|node| !is_empty(node) && !routes.is_empty()) else { return };
    let covering = |target: &TargetSpec, severity| -> Vec<&Route> {
        let severity = taken_as(routes, severity, &target.tags);
        routes.iter().filter(|route| route.covers(severity, &target.tags)).collect()
    };
    let (mut missed, mut unnoticed, mut at_times) = (Vec::new(), Vec::new(), Vec::new());
    for target in targets.values() {
        let pages = covering(target, incident::Severity::Page);
        if pages.is_empty() {
            missed.push(target.name.as_str());
        } else if covering(target, incident::Severity::Notify).is_empty() {
            unnoticed.push(target.name.as_str());
        }
        let waits = |covering: &[&Route]| !covering.is_empty() && covering.iter().all(|route| !route.hours.is_empty());
        if waits(&pages) || waits(&covering(target, incident::Severity::Security)) {
            at_times.push(target.name.as_str());
        }
    }
    let others = |names: &[&str]| if names.len() > 1 { format!(", and of {} more", names.len() - 1) } else { String::new() };
    if let Some(first) = missed.first() {
        let message = format!("no route matches pages of `{first}`{}: no alert is sent when it fails", others(&missed));
        let warning = Diagnostic::warning("no-matching-route", message);
        reader.report(warning.hint("end `routes` with a route without `severities` and `tags`"), node.span);
    }
    if let Some(first) = unnoticed.first() {
        let message = format!("no route matches incidents of the severity `notify` of `{first}`{}: nobody is told", others(&unnoticed));
        let warning = Diagnostic::warning("no-matching-route", message);
        reader.report(warning.hint("end `routes` with a route without `severities` and `tags`, unless pages are enough"), node.span);
    }
    if let Some(first) = at_times.first() {
        let message = format!("only routes with `hours` match pages of `{first}`{}: at other times alerts wait", others(&at_times));
        let warning = Diagnostic::warning("delayed-alerts", message);
        reader.report(warning.hint("end `routes` with a route without `hours`, unless that is intended"), node.span);
    }
}

fn read_database(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let written = reader.text(node)?;
    let has_password = url::Url::parse(&written).is_ok_and(|url| url.password().is_some());
    let secret = read_secret(reader, node, if has_password { Secrecy::Secret } else { Secrecy::Public })?;
    let address = secret.expose();
    match address.split_once(':') {
        Some(("sqlite", path)) if !path.trim_start_matches('/').is_empty() => {
            Ok(format!("sqlite:{}", reader.folder.join(path.trim_start_matches("//")).display()))
        }
        Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(address.to_owned()),
        _ => {
            let diagnostic = Diagnostic::error("bad-database", "this is not a database URL");
            reader.report(diagnostic.hint("write `sqlite:FILE` or `postgres://…`"), node.span);
            Err(Fault::Reported)
        }
    }
}

fn read_address(reader: &mut Reader<'_>, node: &Node) -> Result<SocketAddr, Fault> {
    let written = reader.text(node)?;
    written.parse().map_err(|_| {
        let diagnostic = Diagnostic::error("bad-address", format!("`{written}` is not an address to listen on"));
        reader.report(diagnostic.hint("write an IP address and a port, such as 127.0.0.1:7130 or [::]:7130"), node.span);
        Fault::Reported
    })
}

fn read_heartbeat(reader: &mut Reader<'_>, node: &Node) -> Result<Heartbeat, Fault> {
    let mut draft = HeartbeatDraft::default();
    match &node.kind {
        Kind::Text(_) => draft.url = Some(read_secret_url(reader, node, Secrecy::Public)?),
        _ if !HEARTBEAT.read(reader, node, &mut draft) => return Err(Fault::Reported),
        _ => {}
    }
    let url = draft.url.ok_or(Fault::Reported)?;
    Ok(Heartbeat { url, every: draft.every.unwrap_or(Duration::from_secs(60)) })
}

fn read_canaries(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<String>, Fault> {
    let canaries = read_texts(reader, node)?;
    for canary in &canaries {
        let fits = canary.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        if !fits {
            let diagnostic = Diagnostic::error("bad-address", format!("`{canary}` is not `host:port`"));
            reader.report(diagnostic.hint("use an address that is always reachable, such as 1.1.1.1:443"), node.span);
            return Err(Fault::Reported);
        }
    }
    Ok(canaries)
}

/// What stands in the file in full and is a secret: no place that is shown may tell it.
fn secrets(tree: &Node) -> Vec<String> {
    let mut found = Vec::new();
    collect(tree, &mut found);
    found
}

fn collect(node: &Node, found: &mut Vec<String>) {
    const SECRETS: [&str; 18] = [
        "routing_key",
        "api_key",
        "secret",
        "token",
        "tokens",
        "seal_key",
        "pagerduty",
        "jira",
        "slack",
        "discord",
        "teams",
        "user",
        "google_chat",
        "webex",
        "webhook_secret",
        "grafana_oncall",
        "splunk_oncall",
        "signing_secret",
    ];
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                match entry.key.text.as_str() {
                    name if SECRETS.contains(&name) => texts(&entry.value, found, |_| true),
                    "url" | "webhook" | "database" | "heartbeat" => texts(&entry.value, found, tells_something),
                    "http" | "sse" | "monitor" => texts(&entry.value, found, has_credentials),
                    "headers" | "env" => {
                        if let Kind::Map(entries) = &entry.value.kind {
                            found.extend(entries.iter().filter_map(secret_in_full));
                        }
                    }
                    _ => {}
                }
                collect(&entry.value, found);
            }
        }
        Kind::Seq(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// A reference tells nothing.
fn texts(node: &Node, found: &mut Vec<String>, is_secret: fn(&str) -> bool) {
    match &node.kind {
        Kind::Text(text) => {
            let is_reference = text.starts_with("env:") || text.starts_with("file:") || text.contains("${");
            if !is_reference && is_secret(text) {
                found.push(text.clone());
            }
        }
        Kind::Number(number) => found.push(number.to_string()),
        Kind::Seq(items) => items.iter().for_each(|item| texts(item, found, is_secret)),
        _ => {}
    }
}

fn has_credentials(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| url_holds_secret(&url))
}

/// Of a URL that need not be secret: a password, a query, or a long path, in which a token may stand.
fn tells_something(text: &str) -> bool {
    const LONG: usize = 20;
    url::Url::parse(text).is_ok_and(|url| url.password().is_some() || url.query().is_some() || url.path().len() >= LONG)
}
