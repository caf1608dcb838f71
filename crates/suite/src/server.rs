//! Reads `server:` and `servers:`: how to start and reach the servers under test.

use super::auth::{AUTH, AUTH_DOC, Auth, read_auth};
use super::command::split_command;
use super::document::{Entry, Kind, Node};
use super::faults::{FAULT, FAULTS_DOC, read_faults};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{Binding, Fault as PlannedFault, Inherited, Launch, Reach, Server};
use super::reach::{LIMITS, LIMITS_DOC, PROXY_DOC, ReachDraft, TLS, TLS_DOC, read_limits, read_proxy, read_tls};
use super::reader::Reader;
use super::restriction::{UrlOwner, fills_in_port};
use super::source::Span;
use super::test::TMP;
use mcproof_analysis::diagnosis::Audience;
use mcproof_analysis::offer::check_revision;
use mcproof_client::{URL_HINT, check_server_url};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::Diagnostic;

pub(crate) const PORT: &str = "${port}";

/// `server:`, or one value of `servers:`.
pub static SERVER: Object<ServerDraft> = Object {
    name: "a server",
    keys: &[
        Key {
            name: "stdio",
            doc: "over stdio: the command that starts it, or a map with `command`",
            shape: Shape::ObjectOrText(&BINDING),
            presence: Presence::Optional,
            read: |reader, node, draft| read_binding(reader, node, Transport::Stdio, draft),
        },
        Key {
            name: "http",
            doc: "over Streamable HTTP: its URL, or a map with `url`",
            shape: Shape::ObjectOrText(&BINDING),
            presence: Presence::Optional,
            read: |reader, node, draft| read_binding(reader, node, Transport::Http, draft),
        },
        Key {
            name: "sse",
            doc: "over HTTP+SSE of 2024-11-05: its URL, or a map with `url`",
            shape: Shape::ObjectOrText(&BINDING),
            presence: Presence::Optional,
            read: |reader, node, draft| read_binding(reader, node, Transport::Sse, draft),
        },
        Key {
            name: "era",
            doc: "protocol era; `auto` detects it",
            shape: Shape::Word(&["auto", "legacy", "modern"]),
            presence: Presence::Optional,
            read: read_era,
        },
        Key {
            name: "protocol_version",
            doc: "the revision to offer, such as 2025-11-25",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.protocol_version = Some((reader.text(node)?, node.span));
                Ok(())
            },
        },
        Key {
            name: "tls",
            doc: TLS_DOC,
            shape: Shape::Object(&TLS),
            presence: Presence::Optional,
            read: |reader, node, draft| read_tls(reader, node, &mut draft.reach),
        },
        Key {
            name: "proxy",
            doc: PROXY_DOC,
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| read_proxy(reader, node, &mut draft.reach),
        },
        Key {
            name: "auth",
            doc: AUTH_DOC,
            shape: Shape::Object(&AUTH),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.auth_key = Some(reader.key);
                draft.auth = Some(read_auth(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "limits",
            doc: LIMITS_DOC,
            shape: Shape::Object(&LIMITS),
            presence: Presence::Optional,
            read: |reader, node, draft| read_limits(reader, node, &mut draft.reach),
        },
        Key {
            name: "faults",
            doc: FAULTS_DOC,
            shape: Shape::ObjectOrList(&FAULT),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.faults = read_faults(reader, node)?;
                Ok(())
            },
        },
    ],
    later: &["in-memory", "setup", "teardown", "isolation"],
};

/// The value of a transport.
pub static BINDING: Object<BindingDraft> = Object {
    name: "a transport",
    keys: &[
        Key {
            name: "command",
            doc: "the command that starts the server: text that is split into words, or a list of words; no shell reads it",
            shape: Shape::Command,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.command_key = Some(reader.key);
                draft.command = Some(read_command(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "url",
            doc: "where the server listens; `${port}` is a free port, or the port found by `port_from`",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.url_span = Some(node.span);
                draft.url = Some(read_url(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "env",
            doc: "environment variables of the server",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.env_key = Some(reader.key);
                draft.env = read_texts(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "cwd",
            doc: "the working directory of the server, relative to the suite",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.cwd_key = Some(reader.key);
                draft.cwd = Some(reader.template_text(node)?);
                Ok(())
            },
        },
        Key {
            name: "headers",
            doc: "HTTP headers of every request",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.headers_key = Some(reader.key);
                draft.headers = read_texts(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "port_from",
            doc: "a pattern whose first group is the port in a line of the server's output, for servers that choose their own",
            shape: Shape::Regex,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.port_from_key = Some(reader.key);
                draft.port_from = Some(read_port_from(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "tls",
            doc: TLS_DOC,
            shape: Shape::Object(&TLS),
            presence: Presence::Optional,
            read: |reader, node, draft| read_tls(reader, node, &mut draft.reach),
        },
        Key {
            name: "proxy",
            doc: PROXY_DOC,
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| read_proxy(reader, node, &mut draft.reach),
        },
        Key {
            name: "auth",
            doc: AUTH_DOC,
            shape: Shape::Object(&AUTH),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.auth_key = Some(reader.key);
                draft.auth = Some(read_auth(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "limits",
            doc: LIMITS_DOC,
            shape: Shape::Object(&LIMITS),
            presence: Presence::Optional,
            read: |reader, node, draft| read_limits(reader, node, &mut draft.reach),
        },
        Key {
            name: "faults",
            doc: FAULTS_DOC,
            shape: Shape::ObjectOrList(&FAULT),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.faults_key = Some(reader.key);
                draft.faults = read_faults(reader, node)?;
                Ok(())
            },
        },
    ],
    later: &["ready", "shutdown"],
};

/// The value of `run:`.
pub static RUN: Object<RunDraft> = Object {
    name: "a command",
    keys: &[
        Key {
            name: "command",
            doc: "text that is split into words, or a list of words; no shell reads it",
            shape: Shape::Command,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.command = read_command(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "env",
            doc: "environment variables of the command",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.env = read_texts(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "cwd",
            doc: "the working directory of the command, relative to the suite",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.cwd = Some(reader.template_text(node)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

#[derive(Default)]
pub struct RunDraft {
    command: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<String>,
}

/// Reads the value of `run:`: a command line, or a map.
pub(crate) fn read_launch(reader: &mut Reader<'_>, node: &Node) -> Result<Launch, Fault> {
    let mut draft = RunDraft::default();
    match &node.kind {
        Kind::Map(_) => {
            if !RUN.read(reader, node, &mut draft) {
                return Err(Fault::Reported);
            }
        }
        _ => draft.command = read_command(reader, node)?,
    }
    let (command, env, cwd) = (draft.command, draft.env, draft.cwd);
    let mut launch = Launch { command, env, folder: reader.folder.to_owned(), cwd, inherited: Inherited::All };
    reader.permit_launch(&mut launch, node.span)?;
    Ok(launch)
}

#[derive(Default)]
pub struct ServerDraft {
    bindings: Vec<Binding>,
    era: EraChoice,
    protocol_version: Option<(String, Span)>,
    reach: ReachDraft,
    auth: Option<Auth>,
    auth_key: Option<Span>,
    faults: Vec<PlannedFault>,
}

#[derive(Default)]
pub struct BindingDraft {
    command: Option<Vec<String>>,
    command_key: Option<Span>,
    url: Option<String>,
    url_span: Option<Span>,
    env: Vec<(String, String)>,
    env_key: Option<Span>,
    cwd: Option<String>,
    cwd_key: Option<Span>,
    headers: Vec<(String, String)>,
    headers_key: Option<Span>,
    port_from: Option<regex::bytes::Regex>,
    port_from_key: Option<Span>,
    reach: ReachDraft,
    auth: Option<Auth>,
    auth_key: Option<Span>,
    faults: Vec<PlannedFault>,
    faults_key: Option<Span>,
}

/// Reads one server; `key` is where its name stands.
pub fn read_server(reader: &mut Reader<'_>, name: &str, key: Span, node: &Node) -> Option<Server> {
    let mut draft = ServerDraft::default();
    if let Kind::Text(text) = &node.kind {
        let transport = if text.contains("://") { "http" } else { "stdio" };
        let diagnostic = Diagnostic::error("wrong-type", "expected a server, which is a map, found a string");
        reader.report(diagnostic.hint(format!("say how it is reached: `{transport}: {text}`")), node.span);
        return None;
    }
    if !SERVER.read(reader, node, &mut draft) {
        return None;
    }
    if draft.bindings.is_empty() {
        let diagnostic = Diagnostic::error("missing-key", "this server has no transport");
        reader.report(diagnostic.hint("add `stdio:`, `http:` or `sse:`"), key);
        return None;
    }
    if let Some((version, span)) = &draft.protocol_version
        && let Some(flaw) = check_revision(version, draft.era, Audience::Suite)
    {
        reader.report(flaw, *span);
        return None;
    }
    let before = reader.mistakes();
    check_sense_of_server(reader, &draft);
    if reader.mistakes() > before {
        return None;
    }
    for binding in &mut draft.bindings {
        inherit(binding, &draft.reach, draft.auth.as_ref());
        binding.reach.faults.extend(draft.faults.iter().cloned());
    }
    Some(Server {
        name: name.to_owned(),
        place: reader.place(key),
        bindings: draft.bindings,
        era: draft.era,
        protocol_version: draft.protocol_version.map(|(version, _)| version),
    })
}

fn read_era(reader: &mut Reader<'_>, node: &Node, draft: &mut ServerDraft) -> Result<(), Fault> {
    let written = reader.text(node)?;
    match written.parse() {
        Ok(era) => {
            draft.era = era;
            Ok(())
        }
        Err(_) => {
            let names = ["auto", "legacy", "modern"];
            let diagnostic = Diagnostic::error("unknown-era", format!("`{written}` is not a known era"));
            reader.report(
                match mcproof_analysis::did_you_mean(&written, names) {
                    Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
                    None => diagnostic.hint(format!("eras are {}", mcproof_analysis::listed(names))),
                },
                node.span,
            );
            Err(Fault::Reported)
        }
    }
}

fn read_binding(reader: &mut Reader<'_>, node: &Node, transport: Transport, server: &mut ServerDraft) -> Result<(), Fault> {
    let key = reader.key;
    let place = reader.place_of_pair(node);
    let stdio = transport == Transport::Stdio;
    let main = if stdio { "command" } else { "url" };
    let expanded;
    let node = match &node.kind {
        Kind::Map(_) => node,
        Kind::Text(_) => {
            let entry = Entry { key: super::document::Key { text: main.to_owned(), span: key }, value: node.clone() };
            expanded = Node { kind: Kind::Map(vec![entry]), span: node.span };
            &expanded
        }
        Kind::Broken => return Err(Fault::Reported),
        Kind::Seq(_) if stdio => {
            let diagnostic = Diagnostic::error("wrong-type", "expected a transport as a map, or a string, found a list");
            reader.report(diagnostic.hint("write a command in words as `stdio: { command: […] }`"), node.span);
            return Err(Fault::Reported);
        }
        _ => return Err(Fault::Shape),
    };
    reader.open = vec![TMP.to_owned()];
    if !stdio {
        reader.open.push("port".to_owned());
    }
    let mut draft = BindingDraft::default();
    let readable = BINDING.read(reader, node, &mut draft);
    reader.open.clear();
    if !readable {
        return Err(Fault::Reported);
    }
    let before = reader.mistakes();
    if node.get(main).is_none() {
        let hint = if stdio { "`command: python server.py`" } else { "`url: \"http://127.0.0.1:${port}/mcp\"`" };
        reader.report(Diagnostic::error("missing-key", format!("`{transport}` needs `{main}`")).hint(format!("add {hint}")), key);
    }
    check_sense(reader, &draft, transport);
    if reader.mistakes() > before {
        return Err(Fault::Reported);
    }
    let folder = reader.folder.to_owned();
    let (env, cwd) = (draft.env, draft.cwd);
    let mut launch = draft.command.map(|command| Launch { command, env, folder, cwd, inherited: Inherited::All });
    if let Some(launch) = &mut launch {
        reader.permit_launch(launch, draft.command_key.unwrap_or(key))?;
    }
    if let Some(url) = &draft.url {
        let owner = if launch.is_some() { UrlOwner::Suite } else { UrlOwner::Others };
        reader.permit(draft.url_span.unwrap_or(key), |restriction| restriction.url(url, owner))?;
    }
    let mut binding =
        Binding { transport, place, launch, url: draft.url, headers: draft.headers, port_from: draft.port_from, reach: Reach::default() };
    inherit(&mut binding, &draft.reach, draft.auth.as_ref());
    binding.reach.faults = draft.faults;
    server.bindings.push(binding);
    Ok(())
}

/// Takes over what an outer level says and an inner one leaves open.
fn inherit(binding: &mut Binding, outer: &ReachDraft, auth: Option<&Auth>) {
    let reach = &mut binding.reach;
    reach.limits = reach.limits.or(outer.limits);
    if binding.transport == Transport::Stdio {
        return;
    }
    reach.tls = reach.tls.take().or_else(|| outer.tls.clone());
    reach.proxy = reach.proxy.take().or_else(|| outer.proxy.clone());
    let lets_in = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    let is_settled = reach.authorization.is_some() || binding.headers.iter().any(lets_in);
    match auth.filter(|_| !is_settled) {
        Some(Auth::Header(name, value)) => binding.headers.push((name.clone(), value.clone())),
        Some(Auth::Flow(authorization)) => reach.authorization = Some(authorization.as_ref().clone()),
        None => {}
    }
}

/// What a server says of the network has to be meant for one of its transports.
fn check_sense_of_server(reader: &mut Reader<'_>, draft: &ServerDraft) {
    if draft.bindings.iter().all(|binding| binding.transport == Transport::Stdio) {
        without_network(reader, &draft.reach, draft.auth_key);
    }
}

fn without_network(reader: &mut Reader<'_>, reach: &ReachDraft, auth: Option<Span>) {
    let of_reach = [("tls", reach.tls_key), ("proxy", reach.proxy_key), ("auth", auth)];
    let keys = of_reach.into_iter().filter_map(|(name, key)| Some((name, key?)));
    for (name, key) in keys.chain(reach.limits_of_http.iter().copied()) {
        reader.error("inapplicable-key", format!("`{name}` means nothing over stdio"), key);
    }
}

/// Keys that do nothing together are a mistake of their author.
fn check_sense(reader: &mut Reader<'_>, draft: &BindingDraft, transport: Transport) {
    if transport == Transport::Stdio {
        for (name, key) in [("url", draft.url_span), ("headers", draft.headers_key), ("port_from", draft.port_from_key)] {
            if let Some(key) = key {
                reader.error("inapplicable-key", format!("`{name}` means nothing over stdio"), key);
            }
        }
        without_network(reader, &draft.reach, draft.auth_key);
        if draft.faults.iter().any(|fault| fault.rule.disturbance.refuses_requests()) {
            let message = "`status`, `end_session` and `expire_token` mean nothing over stdio";
            reader.error("inapplicable-key", message, draft.faults_key.unwrap_or_default());
        }
        return;
    }
    if let Some(key) = draft.reach.line_key {
        reader.error("inapplicable-key", format!("`line` means nothing over {transport}"), key);
    }
    let lets_in = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    if let (Some(key), true) = (draft.auth_key, draft.headers.iter().any(lets_in)) {
        let diagnostic = Diagnostic::error("conflicting-keys", "`auth` and the header `Authorization` exclude each other");
        reader.report(diagnostic.hint("leave one of them out"), key);
    }
    let Some(url) = &draft.url else { return };
    let url_span = draft.url_span.unwrap_or_default();
    let port_span = reader.source.part(url_span, PORT);
    let (names_port, url_has_port) = (url.contains(PORT), fills_in_port(url));
    let Some(command) = &draft.command else {
        for (name, key) in [("env", draft.env_key), ("cwd", draft.cwd_key), ("port_from", draft.port_from_key)] {
            if let Some(key) = key {
                reader.error("inapplicable-key", format!("`{name}` means nothing without `command`"), key);
            }
        }
        if names_port {
            let diagnostic = Diagnostic::error("unknown-port", "nothing starts this server, so `${port}` is not known");
            reader.report(diagnostic.hint("add `command`, or write the port"), port_span);
        }
        return;
    };
    let given = command.iter().any(|word| word.contains(PORT)) || draft.env.iter().any(|(_, value)| value.contains(PORT));
    match (&draft.port_from, url_has_port) {
        (None, _) if names_port && !given => {
            let diagnostic = Diagnostic::error("unknown-port", "the server does not receive the port to use");
            let hint = "put `${port}` into `command` or `env`, or read the server's own port with `port_from`";
            reader.report(diagnostic.hint(hint), port_span);
        }
        (None, false) if given => {
            let diagnostic =
                Diagnostic::error("unknown-port", "the server gets a free `${port}`, but this URL does not use it as its port");
            reader.report(diagnostic.hint("write the URL as `http://127.0.0.1:${port}/…`"), url_span);
        }
        (Some(_), false) => {
            let diagnostic = Diagnostic::error("unknown-port", "the port that `port_from` finds is not the port of this URL");
            reader.report(diagnostic.hint("write the URL as `http://127.0.0.1:${port}/…`"), url_span);
        }
        _ => {}
    }
}

fn read_command(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<String>, Fault> {
    match &node.kind {
        Kind::Text(line) => {
            let words = split_command(line.trim()).map_err(|bad| {
                let span = reader.source.part(node.span, &bad.part);
                reader.report(Diagnostic::error("bad-command", bad.message).hint(bad.hint), span);
                Fault::Reported
            })?;
            let word = |word: String| Node { kind: Kind::Text(word), span: node.span };
            words.into_iter().map(|text| reader.template_text(&word(text))).collect()
        }
        Kind::Seq(items) if !items.is_empty() => {
            let words: Vec<Option<String>> = items
                .iter()
                .map(|item| match reader.template_word(item) {
                    Ok(word) => Some(word),
                    Err(fault) => {
                        if fault == Fault::Shape {
                            reader.wrong_type("a word of the command", item);
                        }
                        None
                    }
                })
                .collect();
            words.into_iter().collect::<Option<_>>().ok_or(Fault::Reported)
        }
        Kind::Broken => Err(Fault::Reported),
        _ => Err(Fault::Shape),
    }
}

fn read_url(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let url = reader.template_text(node)?;
    check_server_url(&url).map_err(|bad| {
        // A variable may have brought a secret into it: only the place is shown.
        reader.report(Diagnostic::error("bad-url", format!("this URL {bad}")).hint(URL_HINT), node.span);
        Fault::Reported
    })?;
    Ok(url)
}

pub(crate) fn read_texts(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<(String, String)>, Fault> {
    let entries = match &node.kind {
        Kind::Map(entries) => entries,
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    };
    let mut texts = Vec::new();
    let mut complete = true;
    for entry in entries {
        match reader.template_word(&entry.value) {
            Ok(text) => texts.push((entry.key.text.clone(), text)),
            Err(fault) => {
                complete = false;
                if fault == Fault::Shape {
                    reader.wrong_type("a string", &entry.value);
                }
            }
        }
    }
    if complete { Ok(texts) } else { Err(Fault::Reported) }
}

fn read_port_from(reader: &mut Reader<'_>, node: &Node) -> Result<regex::bytes::Regex, Fault> {
    let written = reader.text(node)?;
    let body = written.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).unwrap_or(&written);
    match reader.source.sized(|size| regex::bytes::RegexBuilder::new(body).size_limit(size).build()) {
        Ok(regex) if regex.captures_len() > 1 => Ok(regex),
        Ok(_) => {
            let diagnostic = Diagnostic::error("bad-regex", "this pattern has no group for the port");
            reader.report(diagnostic.hint("put the digits in a group, as in `listening on .*:(\\d+)`"), node.span);
            Err(Fault::Reported)
        }
        Err(error) => {
            let reason = crate::judge::regex_reason(&error);
            reader.error("bad-regex", format!("this pattern is not valid: {reason}"), node.span);
            Err(Fault::Reported)
        }
    }
}
