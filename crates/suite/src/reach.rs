//! Reads what a suite declares about the way to a server: `tls:`, `proxy:` and `limits:`. Reads the files that they name; knows
//! no transports.

use super::bounds;
use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::LimitChoices;
use super::reader::Reader;
use super::restriction::{Restriction, UrlOwner};
use super::size::{parse_head_size, parse_size};
use super::source::Span;
use mcproof_client::{JsonLimits, Proxies, Proxy, Tls, TlsFailure, Verification};
use mcproof_record::{Diagnostic, Place};

pub const TLS_DOC: &str = "TLS: trusted certificates, and the client certificate";
pub const PROXY_DOC: &str = "the URL of the HTTP proxy for this server, or `none`";
pub const LIMITS_DOC: &str = "how much the server may send";

/// `tls:` of a server or a transport.
pub static TLS: Object<TlsDraft> = Object {
    name: "`tls`",
    keys: &[
        Key {
            name: "ca",
            doc: "a PEM file with certificates to trust, in addition to those of the system",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.ca = Some(read_file(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "cert",
            doc: "a PEM file with the client certificate",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.cert = Some(read_file(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "key",
            doc: "a PEM file with the private key of `cert`, if it is not in the same file",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.key = Some(read_file(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "insecure",
            doc: "`true` accepts any certificate; the server may be an impostor",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.insecure = reader.flag(node)?.then(|| reader.place_of_pair(node));
                if draft.insecure.is_some() {
                    reader.permit(node.span, |_| Err(Restriction::insecure()))?;
                }
                Ok(())
            },
        },
    ],
    later: &[],
};

/// `limits:` of a server or a transport.
pub static LIMITS: Object<LimitsDraft> = Object {
    name: "`limits`",
    keys: &[
        Key {
            name: "line",
            doc: "the longest line of a stdio server",
            shape: Shape::Size,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.line_key = Some(reader.key);
                draft.choices.line = Some(read_size(reader, node, parse_size)?);
                Ok(())
            },
        },
        Key {
            name: "body",
            doc: "the largest HTTP body, also after it is decompressed",
            shape: Shape::Size,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_http.push(("body", reader.key));
                draft.choices.body = Some(read_size(reader, node, parse_size)?);
                Ok(())
            },
        },
        Key {
            name: "event",
            doc: "the largest server-sent event",
            shape: Shape::Size,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_http.push(("event", reader.key));
                draft.choices.event = Some(read_size(reader, node, parse_size)?);
                Ok(())
            },
        },
        Key {
            name: "head",
            doc: "the largest head of an HTTP response",
            shape: Shape::Size,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_http.push(("head", reader.key));
                draft.choices.head = Some(read_size(reader, node, parse_head_size)?);
                Ok(())
            },
        },
        Key {
            name: "depth",
            doc: "the deepest nesting of JSON in a message, at most 127",
            shape: Shape::Count,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.choices.depth = Some(read_count(reader, node, JsonLimits::DEEPEST)?);
                Ok(())
            },
        },
        Key {
            name: "values",
            doc: "the most JSON values in a message",
            shape: Shape::Count,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.choices.values = Some(read_count(reader, node, usize::MAX)?);
                Ok(())
            },
        },
        Key {
            name: "transcript",
            doc: "the most recorded traffic of a session; older traffic is dropped and counted",
            shape: Shape::Size,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.choices.transcript = Some(read_size(reader, node, parse_size)?);
                Ok(())
            },
        },
    ],
    later: &[],
};

/// Bytes of a file with certificates or keys.
const LARGEST_FILE: usize = 4 << 20;

/// A file that was read, and where it is named.
struct Content {
    bytes: Vec<u8>,
    named: String,
    span: Span,
}

#[derive(Default)]
pub struct TlsDraft {
    ca: Option<Content>,
    cert: Option<Content>,
    key: Option<Content>,
    insecure: Option<Place>,
}

#[derive(Default)]
pub struct LimitsDraft {
    choices: LimitChoices,
    line_key: Option<Span>,
    of_http: Vec<(&'static str, Span)>,
}

/// What one level of a suite declares about the way to its servers, and where.
#[derive(Default)]
pub(crate) struct ReachDraft {
    pub(crate) tls: Option<Tls>,
    pub(crate) tls_key: Option<Span>,
    pub(crate) proxy: Option<Proxies>,
    pub(crate) proxy_key: Option<Span>,
    pub(crate) limits: LimitChoices,
    pub(crate) line_key: Option<Span>,
    /// Limits that only HTTP has.
    pub(crate) limits_of_http: Vec<(&'static str, Span)>,
}

pub(crate) fn read_tls(reader: &mut Reader<'_>, node: &Node, draft: &mut ReachDraft) -> Result<(), Fault> {
    draft.tls_key = Some(reader.key);
    let key = reader.key;
    let mut found = TlsDraft::default();
    if !TLS.read(reader, node, &mut found) {
        return Err(Fault::Reported);
    }
    let mut tls = reader.environment.tls.clone();
    let before = reader.mistakes();
    if let Some(ca) = &found.ca
        && let Err(failure) = tls.trust(&ca.bytes)
    {
        unusable(reader, ca, &failure, "name a PEM file with `-----BEGIN CERTIFICATE-----` in it");
    }
    match (&found.cert, &found.key) {
        (Some(cert), own_key) => {
            let own_key = own_key.as_ref().unwrap_or(cert);
            match tls.identify(&cert.bytes, &own_key.bytes) {
                Ok(()) => {}
                Err(failure @ (TlsFailure::NoCertificate | TlsFailure::BadCertificate(_))) => {
                    unusable(reader, cert, &failure, "name a PEM file with `-----BEGIN CERTIFICATE-----` in it");
                }
                Err(failure) => unusable(reader, own_key, &failure, "name the PEM file of the private key with `key`"),
            }
        }
        (None, Some(own_key)) => {
            let diagnostic = Diagnostic::error("missing-key", "`key` means nothing without `cert`");
            reader.report(diagnostic.hint("add `cert`, the certificate that the key belongs to"), own_key.span);
        }
        (None, None) if found.ca.is_none() && found.insecure.is_none() => {
            let diagnostic = Diagnostic::error("empty-tls", "this says nothing of TLS");
            reader.report(diagnostic.hint("name an authority with `ca`, or leave `tls` out"), key);
        }
        (None, None) => {}
    }
    if let Some(place) = found.insecure {
        tls.set_verification(Verification::Off);
        let warning = Diagnostic::warning("insecure", "certificates are not checked, so that anybody may pass for this server");
        reader.diagnostics.push(warning.at(place).hint("name the authority of the server with `ca`, and leave `insecure` out"));
    }
    draft.tls = Some(tls);
    if reader.mistakes() > before { Err(Fault::Reported) } else { Ok(()) }
}

pub(crate) fn read_proxy(reader: &mut Reader<'_>, node: &Node, draft: &mut ReachDraft) -> Result<(), Fault> {
    draft.proxy_key = Some(reader.key);
    let written = reader.text(node)?;
    if written == "none" {
        draft.proxy = Some(Proxies::None);
        return Ok(());
    }
    let url = if written.contains("://") { written.clone() } else { format!("http://{written}") };
    reader.permit(node.span, |restriction| restriction.url(&url, UrlOwner::Others))?;
    match Proxy::parse(&written) {
        Ok(proxy) => {
            draft.proxy = Some(Proxies::Always(proxy));
            Ok(())
        }
        Err(failure) => {
            let diagnostic = Diagnostic::error("bad-proxy", failure.to_string());
            reader.report(diagnostic.hint("a proxy is written `http://host:port`; `none` goes without one"), node.span);
            Err(Fault::Reported)
        }
    }
}

pub(crate) fn read_limits(reader: &mut Reader<'_>, node: &Node, draft: &mut ReachDraft) -> Result<(), Fault> {
    let mut found = LimitsDraft::default();
    if !LIMITS.read(reader, node, &mut found) {
        return Err(Fault::Reported);
    }
    draft.limits = found.choices;
    draft.line_key = found.line_key;
    draft.limits_of_http = found.of_http;
    Ok(())
}

/// Reads a file whose path begins at the folder of the suite.
pub(crate) fn read_text_file(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let Content { bytes, named, span } = read_file(reader, node)?;
    String::from_utf8(bytes).map_err(|_| {
        reader.error("not-text", format!("`{named}` is not UTF-8 text"), span);
        Fault::Reported
    })
}

fn read_file(reader: &mut Reader<'_>, node: &Node) -> Result<Content, Fault> {
    let named = reader.text(node)?;
    let path = reader.folder.join(&named);
    reader.permit(node.span, |restriction| restriction.path(&path, &named))?;
    match bounds::read_file(&path, LARGEST_FILE) {
        Ok(bytes) => Ok(Content { bytes, named, span: node.span }),
        Err(problem) => {
            let diagnostic = Diagnostic::error("cannot-read", format!("`{named}` {problem}"));
            reader.report(diagnostic.hint("paths begin at the folder of the suite"), node.span);
            Err(Fault::Reported)
        }
    }
}

fn unusable(reader: &mut Reader<'_>, content: &Content, failure: &TlsFailure, hint: &str) {
    let diagnostic = Diagnostic::error("bad-certificate", format!("`{}` cannot be used: {failure}", content.named));
    reader.report(diagnostic.hint(hint), content.span);
}

fn read_size(reader: &mut Reader<'_>, node: &Node, parse: fn(&str) -> Result<usize, String>) -> Result<usize, Fault> {
    let written = reader.text(node)?;
    parse(&written).map_err(|problem| {
        reader.error("bad-size", problem, node.span);
        Fault::Reported
    })
}

fn read_count(reader: &mut Reader<'_>, node: &Node, most: usize) -> Result<usize, Fault> {
    let resolved = reader.final_value(node);
    let Kind::Number(number) = &resolved.kind else {
        return Err(if resolved.kind == Kind::Broken { Fault::Reported } else { Fault::Shape });
    };
    match number.as_u64().and_then(|number| usize::try_from(number).ok()).filter(|number| (1..=most).contains(number)) {
        Some(number) => Ok(number),
        None => {
            let range = if most == usize::MAX { "at least 1".to_owned() } else { format!("from 1 to {most}") };
            reader.error("bad-count", format!("`{number}` is not {range}"), node.span);
            Err(Fault::Reported)
        }
    }
}
