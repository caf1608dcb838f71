//! Images, audio and the contents of resources: whether they are what is said of them.
//! Source: server/tools, server/prompts, server/resources.

use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, revisions};
use super::{AttemptOutcome, ConversationView};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::methods;
use memchr::memmem;
use serde_json::Value;
use std::borrow::Cow;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "media-data-matches-mime-type",
        area: Area::Schema,
        requirement: "images, audio and blobs are in the format that their MIME type names, and complete",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/prompts#image-content" }],
        tolerance: Some("the specification requires a valid MIME type and does not say that it has to be the right one"),
        judge: Judge::Together(media_is_what_it_says),
        why: "model APIs refuse a request with such an image, and with it the whole conversation that contains it; hosts show a broken image",
        remedy: "set `mimeType` to the format of the data, and send the whole file; an error message belongs in a text block",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-matches-listing",
        area: Area::Resources,
        requirement: "the contents of a resource have the MIME type and the size with which it is listed",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "server/resources#resource",
        }],
        judge: Judge::Together(contents_match_the_list),
        why: "hosts choose by the list what to read, how to show it, and whether it fits the context of a model",
        remedy: "take both from one place; leave `size` out where it changes: it is the number of bytes before Base64",
        ..Rule::DEFAULT
    },
];

/// Formats that can be told by their first bytes: what people call them, and their MIME types.
const FORMATS: [(&str, &[&str]); 15] = [
    ("PNG", &["image/png", "image/x-png"]),
    ("JPEG", &["image/jpeg", "image/jpg", "image/pjpeg"]),
    ("GIF", &["image/gif"]),
    ("WebP", &["image/webp"]),
    ("BMP", &["image/bmp", "image/x-ms-bmp", "image/x-bmp"]),
    ("TIFF", &["image/tiff"]),
    ("AVIF", &["image/avif"]),
    ("ICO", &["image/x-icon", "image/vnd.microsoft.icon"]),
    ("WAV", &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"]),
    ("MP3", &["audio/mpeg", "audio/mp3"]),
    ("Ogg", &["audio/ogg", "audio/opus", "video/ogg", "application/ogg"]),
    ("FLAC", &["audio/flac", "audio/x-flac"]),
    ("MPEG-4", &["audio/mp4", "audio/m4a", "audio/x-m4a", "video/mp4"]),
    ("WebM", &["audio/webm", "video/webm"]),
    ("PDF", &["application/pdf"]),
];

fn format_of(mime_type: &str) -> Option<&'static str> {
    FORMATS.iter().find(|(_, types)| types.contains(&mime_type)).map(|(format, _)| *format)
}

/// Type and subtype in lowercase, without parameters.
fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A piece of a result that is encoded.
struct Media<'v> {
    /// `image` or `audio`; none for the blob of a resource.
    block: Option<&'v str>,
    mime_type: String,
    data: &'v str,
}

fn media_of(result: &Value) -> Vec<Media<'_>> {
    let list = |name: &str| result.get(name).and_then(Value::as_array).into_iter().flatten();
    let blocks = list("content").chain(list("messages").filter_map(|message| message.get("content")));
    let text = |value: &'_ Value, name: &str| value.get(name).and_then(Value::as_str).map(essence);
    let of_block = blocks.filter_map(|block| {
        let kind = block.get("type").and_then(Value::as_str)?;
        match kind {
            "image" | "audio" => Some(Media { block: Some(kind), mime_type: text(block, "mimeType")?, data: block.get("data")?.as_str()? }),
            _ => blob_of(block.get("resource")?),
        }
    });
    of_block.chain(list("contents").filter_map(blob_of)).collect()
}

fn blob_of(contents: &Value) -> Option<Media<'_>> {
    let mime_type = essence(contents.get("mimeType")?.as_str()?);
    Some(Media { block: None, mime_type, data: contents.get("blob")?.as_str()? })
}

/// What is wrong with it. Data that is not Base64 is told by the rule for that.
fn flaw_of(media: &Media<'_>) -> Option<String> {
    /// Of longer texts, only the beginning is decoded.
    const MOST_DECODED: usize = 8 << 20;
    const BEGINNING: usize = 4 << 10;
    let Media { block, mime_type, data } = media;
    let what = block.map_or("a blob", |block| if block == "image" { "an image" } else { "audio" });
    if let Some(block) = block.filter(|block| !mime_type.starts_with(&format!("{block}/"))) {
        return mime_type.contains('/').then(|| format!("{what} has the MIME type {mime_type}, which is not one of {block}"));
    }
    let is_whole = data.len() <= MOST_DECODED;
    let bytes = STANDARD.decode(if is_whole { data } else { data.get(..BEGINNING)? }).ok()?;
    if bytes.is_empty() {
        return block.map(|_| format!("{what} of type {mime_type} is empty"));
    }
    let named = format_of(mime_type)?;
    let found = infer::get(&bytes).map(|found| found.mime_type());
    match found.map(|found| format_of(found).unwrap_or(found)) {
        Some(found) if found != named => Some(format!("{what} of type {mime_type} is {found}")),
        None => Some(format!("{what} of type {mime_type} is not {named}, and begins with `{}`", excerpt(&bytes[..bytes.len().min(24)]))),
        Some(_) if is_whole && is_cut(named, &bytes) => Some(format!("{what} of type {mime_type} ends in the middle")),
        Some(_) => None,
    }
}

/// Whether the mark is missing with which files of this format end.
fn is_cut(format: &str, bytes: &[u8]) -> bool {
    let mark: &[u8] = match format {
        "PNG" => b"IEND",
        "JPEG" => b"\xff\xd9",
        _ => return false,
    };
    memmem::rfind(bytes, mark).is_none()
}

fn media_is_what_it_says(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for (request, response) in conversation.requests() {
            let Some((response, result)) = response.and_then(|response| Some((response, response.value.get("result")?))) else { continue };
            for media in media_of(result) {
                seen += 1;
                let Some(detail) = flaw_of(&media) else { continue };
                let name = request.param("/name").or_else(|| request.param("/uri")).and_then(Value::as_str);
                let subject = name.or(request.method()).unwrap_or_default().to_owned();
                flaws.push(Flaw { subject, detail, frames: vec![request.frame.id, response.frame.id], conversation: position });
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable("the server sent no image, audio or blob".into()),
        _ => Judgment::from_violations(told("result of", "results of", flaws)),
    }
}

fn contents_match_the_list(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for attempt in conversation.probes("read") {
            let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
            let mut listed = conversation.listed(methods::RESOURCES_LIST, "resources").flat_map(|(items, _)| items);
            let is_it = |item: &Value, name: &str| item.get(name).and_then(Value::as_str) == Some(attempt.subject());
            let contents: Vec<&Value> = value.get("contents").and_then(Value::as_array).into_iter().flatten().collect();
            let (Some(listed), [contents]) = (listed.find(|item| is_it(item, "uri")), contents.as_slice()) else { continue };
            if !is_it(contents, "uri") {
                continue;
            }
            seen += 1;
            for detail in [other_type(listed, contents), other_size(listed, contents)].into_iter().flatten() {
                flaws.push(Flaw { subject: attempt.subject().to_owned(), detail, frames: attempt.frames(), conversation: position });
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable("no listed resource was read that has one piece of contents".into()),
        _ => Judgment::from_violations(told("resource", "resources", flaws)),
    }
}

fn other_type(listed: &Value, contents: &Value) -> Option<String> {
    let of = |value: &Value| value.get("mimeType").and_then(Value::as_str).map(essence);
    let (listed, read) = (of(listed)?, of(contents)?);
    (listed != read).then(|| format!("it is listed as {listed} and read as {read}"))
}

fn other_size(listed: &Value, contents: &Value) -> Option<String> {
    let listed = listed.get("size")?.as_f64()?;
    let text = |name: &str| contents.get(name).and_then(Value::as_str);
    let bytes = match text("text") {
        Some(text) => Cow::Borrowed(text.as_bytes()),
        None => Cow::Owned(STANDARD.decode(text("blob")?).ok()?),
    };
    #[expect(clippy::cast_precision_loss, reason = "no text is so long")]
    let read = bytes.len() as f64;
    (listed != read).then(|| format!("it is listed with a size of {} and has {read}", mcproof_record::counted(listed, "byte")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\0\0\0\0IEND\xaeB`\x82";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9";
    const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0";

    #[test]
    fn data_is_compared_with_its_type() {
        let check = |kind: &str, mime_type: &str, bytes: &[u8], expected: Option<&str>| {
            let result = json!({ "content": [{ "type": kind, "mimeType": mime_type, "data": STANDARD.encode(bytes) }] });
            let media = media_of(&result);
            assert_eq!(flaw_of(&media[0]).as_deref(), expected);
        };
        check("image", "image/png", PNG, None);
        check("image", "IMAGE/PNG; a=b", PNG, None);
        check("image", "image/jpg", JPEG, None);
        check("audio", "audio/x-wav", WAV, None);
        check("image", "image/svg+xml", b"<svg/>", None);
        check("audio", "audio/pcm", b"\0\x01", None);
        check("image", "image/png", JPEG, Some("an image of type image/png is JPEG"));
        check("audio", "audio/mpeg", WAV, Some("audio of type audio/mpeg is WAV"));
        check("image", "image/png", &PNG[..30], Some("an image of type image/png ends in the middle"));
        check("image", "image/jpeg", &JPEG[..12], Some("an image of type image/jpeg ends in the middle"));
        check("image", "image/png", b"not found", Some("an image of type image/png is not PNG, and begins with `not found`"));
        check("image", "image/png", b"", Some("an image of type image/png is empty"));
        check("image", "text/html", b"<p>", Some("an image has the MIME type text/html, which is not one of image"));
    }

    #[test]
    fn blobs_are_found_wherever_they_are() {
        let contents = json!({ "uri": "a:b", "mimeType": "application/pdf", "blob": STANDARD.encode("no PDF") });
        let block = json!({ "type": "resource", "resource": contents });
        let places = [
            json!({ "contents": [contents] }),
            json!({ "content": [block] }),
            json!({ "messages": [{ "role": "user", "content": block }] }),
        ];
        for result in places {
            let flaws: Vec<_> = media_of(&result).iter().filter_map(flaw_of).collect();
            assert_eq!(flaws, ["a blob of type application/pdf is not PDF, and begins with `no PDF`"]);
        }
    }

    #[test]
    fn contents_are_compared_with_the_list() {
        let listed = json!({ "mimeType": "text/plain", "size": 5 });
        let same = json!({ "mimeType": "text/plain; charset=utf-8", "text": "hello" });
        assert_eq!((other_type(&listed, &same), other_size(&listed, &same)), (None, None));
        let other = json!({ "mimeType": "application/json", "blob": "aGk=" });
        assert_eq!(other_type(&listed, &other).unwrap(), "it is listed as text/plain and read as application/json");
        assert_eq!(other_size(&listed, &other).unwrap(), "it is listed with a size of 5 bytes and has 2");
        assert_eq!((other_type(&json!({}), &other), other_size(&json!({}), &other)), (None, None));
    }
}
