//! Names and numbers that are shared with everybody: ids of extensions, codes of errors, types of media.
//! Source: basic, error codes; basic/versioning, extension negotiation.

use super::ConversationView;
use super::answers::messages;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::error_code;
use mcproof_record::FrameId;
use serde_json::Value;

const MEDIA: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/prompts#image-content" }];
const fn modern(keyword: RequirementLevel, source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::MODERN, level: keyword, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "extension-id-is-well-formed",
        area: Area::Modern,
        requirement: "the id of an extension has a prefix",
        sources: &[modern(RequirementLevel::Must, "basic/versioning#extension-negotiation")],
        judge: Judge::Each(extension_ids_are_well_formed),
        why: "an id without a prefix has no owner, and two extensions with the same name cannot be distinguished",
        remedy: "name extensions like keys of `_meta`, with your reversed domain: `com.example/name`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "error-code-is-defined-in-revision",
        area: Area::Modern,
        requirement: "an error code of the range that the specification reserves is one that this revision defines",
        sources: &[modern(RequirementLevel::Must, "basic#error-codes")],
        judge: Judge::Each(error_codes_are_defined),
        why: "clients act on these codes automatically; a code of another revision causes the wrong action",
        remedy: "use -32602 for a resource that does not exist, and a code outside -32768 to -32000 for your own errors",
        ..Rule::DEFAULT
    },
    Rule {
        id: "error-code-is-not-reserved",
        area: Area::Modern,
        requirement: "codes of a server's own errors are outside the range that JSON-RPC reserves",
        sources: &[modern(RequirementLevel::Should, "basic#error-codes")],
        tolerance: Some("SDKs use codes in this range for their own errors"),
        judge: Judge::Each(error_codes_are_free),
        why: "a reserved code may get another meaning in the next revision",
        remedy: "choose a code outside -32768 to -32000, such as a positive one",
        ..Rule::DEFAULT
    },
    Rule {
        id: "mime-type-is-valid",
        area: Area::Schema,
        requirement: "a MIME type has a type and a subtype",
        sources: MEDIA,
        judge: Judge::Each(mime_types_are_valid),
        why: "hosts choose by the MIME type how to show an image, and model APIs refuse unknown types",
        remedy: "write it as `image/png`: type, slash, subtype, and parameters after a semicolon",
        ..Rule::DEFAULT
    },
    Rule {
        id: "last-modified-is-iso-8601",
        area: Area::Schema,
        requirement: "the `lastModified` of annotations is a date or a time in ISO 8601",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_06,
            level: RequirementLevel::Portability,
            source: "server/resources#annotations",
        }],
        judge: Judge::Each(dates_are_iso_8601),
        why: "hosts sort by it and show how old something is; a date that they cannot read counts as none, or breaks the list",
        remedy: "write it as `2025-01-12T15:00:58Z`",
        sdks: &[("TypeScript", "`date.toISOString()`"), ("Python", "`datetime.now(timezone.utc).isoformat()`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "icon-uri-is-loadable",
        area: Area::Schema,
        requirement: "the `src` of an icon is an `https`, `http` or `data` URI",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_11,
            level: RequirementLevel::Should,
            source: "https://modelcontextprotocol.io/specification/2025-11-25/basic#icons",
        }],
        judge: Judge::Each(icons_are_loadable),
        why: "clients must reject icons of other schemes, such as `file:` and `javascript:`, and may take such a server for an attack",
        remedy: "serve the icon over HTTPS, or put it into a `data:` URI",
        ..Rule::DEFAULT
    },
];

/// A violation for the first that is wrong, which tells of the others.
fn first_of(wrong: &[(String, FrameId)], seen: usize, missing: &str) -> Judgment {
    let violation = wrong.first().map(|(message, frame)| {
        let more = if wrong.len() > 1 { format!(" (and {} more)", wrong.len() - 1) } else { String::new() };
        Violation::new(format!("{message}{more}"), [*frame])
    });
    match seen {
        0 => Judgment::NotApplicable(missing.to_owned()),
        _ => Judgment::of(violation.into_iter().collect(), seen, missing),
    }
}

/// An optional prefix of labels with a slash, and a name, which may be empty.
fn is_key(key: &str) -> bool {
    match key.rsplit_once('/') {
        Some((prefix, name)) => is_prefix(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_prefix(prefix: &str) -> bool {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inner && label.starts_with(|first: char| first.is_ascii_alphabetic()) && label.ends_with(|last: char| last.is_ascii_alphanumeric())
    };
    prefix.split('.').all(is_label)
}

fn is_name(name: &str) -> bool {
    let is_edge = |edge: char| edge.is_ascii_alphanumeric();
    let inner = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    name.is_empty() || inner && name.starts_with(is_edge) && name.ends_with(is_edge)
}

fn extension_ids_are_well_formed(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut wrong) = (0, Vec::new());
    if let Some((result, frame)) = conversation.handshake() {
        for id in result.pointer("/capabilities/extensions").and_then(Value::as_object).into_iter().flat_map(|all| all.keys()) {
            seen += 1;
            if !(is_key(id) && id.contains('/')) {
                wrong.push((format!("the extension `{}` has no prefix or an invalid one", excerpt(id)), frame));
            }
        }
    }
    first_of(&wrong, seen, "the server declares no extension")
}

/// Codes that this revision defines for itself.
const DEFINED: [i64; 3] = [error_code::HEADER_MISMATCH, error_code::MISSING_CAPABILITY, error_code::UNSUPPORTED_VERSION];
/// Codes of earlier revisions.
const RETIRED: [i64; 2] = [error_code::RESOURCE_NOT_FOUND, -32042];
/// What JSON-RPC itself defines.
const OF_JSON_RPC: [i64; 5] = [
    error_code::PARSE_ERROR,
    error_code::INVALID_REQUEST,
    error_code::METHOD_NOT_FOUND,
    error_code::INVALID_PARAMS,
    error_code::INTERNAL_ERROR,
];

/// Codes of all errors, with their frames.
fn codes(conversation: &ConversationView<'_>) -> Vec<(i64, FrameId)> {
    messages(conversation)
        .filter_map(|server_message| Some((server_message.value.pointer("/error/code")?.as_i64()?, server_message.frame)))
        .collect()
}

fn error_codes_are_defined(conversation: &ConversationView<'_>) -> Judgment {
    let codes = codes(conversation);
    let is_wrong = |code: i64| RETIRED.contains(&code) || ((-32099..=-32020).contains(&code) && !DEFINED.contains(&code));
    let wrong: Vec<(String, FrameId)> = codes
        .iter()
        .filter(|(code, _)| is_wrong(*code))
        .map(|(code, frame)| match RETIRED.contains(code) {
            true => (format!("an error has the code {code} of an earlier revision"), *frame),
            false => (format!("an error has the code {code}, which the specification reserves and does not define"), *frame),
        })
        .collect();
    first_of(&wrong, codes.len(), "the server sent no error")
}

fn error_codes_are_free(conversation: &ConversationView<'_>) -> Judgment {
    let codes = codes(conversation);
    let is_others = |code: i64| OF_JSON_RPC.contains(&code) || (-32099..=-32020).contains(&code) || RETIRED.contains(&code);
    let wrong: Vec<(String, FrameId)> = codes
        .iter()
        .filter(|(code, _)| (-32768..=-32000).contains(code) && !is_others(*code))
        .map(|(code, frame)| (format!("an error has the code {code}, which JSON-RPC reserves"), *frame))
        .collect();
    first_of(&wrong, codes.len(), "the server sent no error")
}

fn mime_types_are_valid(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut wrong) = (0, Vec::new());
    for server_message in messages(conversation) {
        let mut found = Vec::new();
        if let Some(result) = server_message.value.get("result") {
            media_types(result, &mut found);
        }
        seen += found.len();
        let bad = found.into_iter().filter(|kind| !is_media_type(kind));
        wrong.extend(bad.map(|kind| (format!("`mimeType` is `{}`", excerpt(kind)), server_message.frame)));
    }
    first_of(&wrong, seen, "the server names no MIME type")
}

/// Listed resources, contents, and blocks; not what tools give as structured content or as text.
fn described(result: &Value) -> impl Iterator<Item = &Value> {
    const LISTS: [&str; 5] = ["resources", "resourceTemplates", "contents", "content", "messages"];
    let items = LISTS.into_iter().filter_map(move |key| result.get(key)?.as_array()).flatten();
    items.flat_map(|item| [Some(item), item.get("resource"), item.get("content")].into_iter().flatten())
}

fn media_types<'c>(result: &'c Value, found: &mut Vec<&'c str>) {
    found.extend(described(result).filter_map(|item| item.get("mimeType")?.as_str()));
}

fn dates_are_iso_8601(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut wrong) = (0, Vec::new());
    for server_message in messages(conversation) {
        let described = server_message.value.get("result").into_iter().flat_map(described);
        for date in described.filter_map(|item| item.pointer("/annotations/lastModified")?.as_str()) {
            seen += 1;
            if !is_iso_8601(date) {
                wrong.push((format!("`lastModified` is `{}`", excerpt(date)), server_message.frame));
            }
        }
    }
    first_of(&wrong, seen, "nothing has a `lastModified`")
}

/// A year and a month may stand alone.
fn is_iso_8601(text: &str) -> bool {
    let is_digit = |(at, byte): (usize, u8)| if at == 4 { byte == b'-' } else { byte.is_ascii_digit() };
    let is_reduced = matches!(text.len(), 4 | 7) && text.bytes().enumerate().all(is_digit);
    is_reduced
        || text.parse::<jiff::Timestamp>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || text.parse::<jiff::civil::Date>().is_ok()
}

fn icons_are_loadable(conversation: &ConversationView<'_>) -> Judgment {
    const LOADABLE: [&str; 3] = ["https", "http", "data"];
    let (mut seen, mut wrong) = (0, Vec::new());
    for server_message in messages(conversation) {
        for source in server_message.value.get("result").into_iter().flat_map(icons) {
            seen += 1;
            // One without a scheme is told by its shape.
            let is_loadable = |scheme: &str| LOADABLE.iter().any(|known| scheme.eq_ignore_ascii_case(known));
            if source.split_once(':').is_some_and(|(scheme, _)| !is_loadable(scheme)) {
                wrong.push((format!("an icon has the URI `{}`", excerpt(source)), server_message.frame));
            }
        }
    }
    first_of(&wrong, seen, "nothing has an icon")
}

/// The icons of a server, and of what it lists or refers to.
fn icons(result: &Value) -> impl Iterator<Item = &str> {
    let server = [result.get("serverInfo"), result.pointer("/_meta/io.modelcontextprotocol~1serverInfo")].into_iter().flatten();
    let listed = ["tools", "prompts"].into_iter().filter_map(move |key| result.get(key)?.as_array()).flatten();
    let all = server.chain(listed).chain(described(result)).filter_map(|owner| owner.get("icons")?.as_array()).flatten();
    all.filter_map(|icon| icon.get("src")?.as_str())
}

fn is_media_type(text: &str) -> bool {
    let is_token = |token: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !token.is_empty() && token.bytes().all(is_part)
    };
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_media_types_are_told_from_others() {
        for good in ["a", "progressToken", "com.example/trace-id", "io.modelcontextprotocol/x", "com.example/", "a1_b.c-d", ""] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["a b", "-a", "a_", "1a.b/c", "a../c", "/c", "a/b/c", "a-/c", "é"] {
            assert!(!is_key(bad), "{bad}");
        }
        for good in ["2025-01-12T15:00:58Z", "2025-01-12T15:00:58.123+02:00", "2025-01-12T15:00:58", "2025-01-12", "2025-01", "2025"] {
            assert!(is_iso_8601(good), "{good}");
        }
        for bad in ["yesterday", "2026-13-45", "12.01.2025", "Sun, 12 Jan 2025 15:00:58 GMT", "1736694058", "202a", ""] {
            assert!(!is_iso_8601(bad), "{bad}");
        }
        for good in ["image/png", "text/plain; charset=utf-8", "application/vnd.api+json", "text/html;profile=mcp-app"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["png", "image/", "/png", "image png", "", "image/png/x"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
