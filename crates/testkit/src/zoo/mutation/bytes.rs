//! Changes of framing: delimiters that are cut, heads of responses.

use super::Mutation;

/// Changes of each form, without what a head has besides.
pub(super) const OF_LINES: [&str; 4] = ["line:no-newline", "line:newline-inside", "line:no-first-byte", "line:no-last-byte"];
pub(super) const OF_EVENTS: [&str; 6] =
    ["event:no-blank-line", "event:no-data-prefix", "event:no-name", "event:newline-inside", "event:no-colon", "event:no-last-byte"];
pub(super) const OF_CHUNKS: [&str; 4] = ["chunk:no-size", "chunk:no-line-end", "chunk:size-more", "chunk:size-less"];
pub(super) const OF_ENDS: [&str; 2] = ["end:drop", "end:no-line-end"];
pub(super) const OF_BODIES: [&str; 3] = ["body:no-first-byte", "body:no-last-byte", "body:drop"];
pub(super) const OF_HEADS: [&str; 3] = ["head:no-status-line", "head:no-blank-line", "head:drop"];
/// With a header.
pub(super) const OF_HEADERS: [&str; 6] = ["head:delete", "head:double", "head:empty", "head:change", "head:no-colon", "head:no-line-end"];
/// Statuses instead of another one.
pub(super) const STATUSES: [&str; 8] = ["200", "202", "204", "301", "400", "404", "406", "500"];

/// The bytes after the change; `None` if there is nothing to change in them.
pub(super) fn change(mutation: &Mutation, bytes: &[u8]) -> Option<Vec<u8>> {
    let (form, operation) = mutation.operation.split_once(':')?;
    if form == "head" {
        return head(operation, &mutation.place, bytes);
    }
    let changed = match operation {
        "no-newline" | "no-blank-line" => bytes.strip_suffix(b"\n")?.to_vec(),
        "no-last-byte" => without_last(form, bytes)?,
        "no-first-byte" => bytes.get(1..)?.to_vec(),
        "newline-inside" => with_newline(bytes)?,
        "no-data-prefix" => replaced(bytes, b"data: ", b"")?,
        "no-name" => bytes.get(bytes.iter().position(|byte| *byte == b'\n')? + 1..)?.to_vec(),
        "no-colon" => replaced(bytes, b"data: ", b"data ")?,
        "no-size" => bytes.get(position(bytes, b"\r\n")? + 2..)?.to_vec(),
        "no-line-end" => bytes.strip_suffix(b"\r\n")?.to_vec(),
        "size-more" => resized(bytes, 1)?,
        "size-less" => resized(bytes, -1)?,
        "drop" => Vec::new(),
        _ => return None,
    };
    Some(changed)
}

/// Without the last byte of the content: what ends it stays.
fn without_last(form: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let end: &[u8] = match form {
        "line" => b"\n",
        "event" => b"\n\n",
        _ => b"",
    };
    let content = bytes.strip_suffix(end)?;
    Some([content.get(..content.len().checked_sub(1)?)?, end].concat())
}

/// With a line break after the first comma, where a pretty printer would have put one.
fn with_newline(bytes: &[u8]) -> Option<Vec<u8>> {
    let comma = position(bytes, b",")? + 1;
    Some([&bytes[..comma], b"\n".as_slice(), &bytes[comma..]].concat())
}

fn resized(chunk: &[u8], by: i64) -> Option<Vec<u8>> {
    let end = position(chunk, b"\r\n")?;
    let size = i64::from_str_radix(std::str::from_utf8(&chunk[..end]).ok()?, 16).ok()?;
    Some([format!("{:x}", size + by).as_bytes(), &chunk[end..]].concat())
}

fn head(operation: &str, place: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines: Vec<String> = text.strip_suffix("\r\n\r\n")?.split("\r\n").map(|line| format!("{line}\r\n")).collect();
    let named = |line: &&mut String| line.split_once(':').is_some_and(|(name, _)| name == place);
    match operation {
        "drop" => return Some(Vec::new()),
        "no-blank-line" => return Some(lines.concat().into_bytes()),
        "no-status-line" => drop(lines.remove(0)),
        "status" => {
            let (version, rest) = lines[0].split_once(' ')?;
            let reason = rest.split_once(' ').map_or("\r\n", |(_, reason)| reason);
            let changed = format!("{version} {place} {reason}");
            if changed == lines[0] {
                return None;
            }
            lines[0] = changed;
        }
        _ => {
            let line = lines.iter_mut().skip(1).find(named)?;
            let (name, value) = line.split_once(": ").map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()))?;
            *line = match operation {
                "delete" => String::new(),
                "double" => format!("{line}{line}"),
                "empty" => format!("{name}: \r\n"),
                "change" => match value.parse::<u64>() {
                    Ok(number) => format!("{name}: {}\r\n", number + 1),
                    Err(_) => format!("{name}: {value}x\r\n"),
                },
                "no-colon" => format!("{name} {value}\r\n"),
                "no-line-end" => format!("{name}: {value}"),
                _ => return None,
            };
        }
    }
    Some([lines.concat().as_bytes(), b"\r\n"].concat())
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let start = position(bytes, old)?;
    Some([&bytes[..start], new, &bytes[start + old.len()..]].concat())
}
