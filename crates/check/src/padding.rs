//! Makes a transcript small that holds messages which were only sent to be large. What the server said stays as it came.

use mcproof_record::{Direction, FrameBody, Transcript};
use serde_json::{Value, json};

/// Messages of ours from this size on are looked at.
const LARGE: usize = 512 << 10;
/// The longest text that stays in them.
const LONGEST: usize = 32 << 10;
/// Characters of a longer one that are told.
const TOLD: usize = 40;

pub(super) fn without_padding(transcript: &mut Transcript) {
    for frame in transcript.frames.iter_mut().filter(|frame| frame.direction == Direction::ToServer) {
        let (FrameBody::Line { bytes, .. } | FrameBody::HttpRequest { body: bytes, .. }) = &mut frame.body else { continue };
        if bytes.as_bytes().len() >= LARGE
            && let Ok(mut message) = serde_json::from_slice::<Value>(bytes.as_bytes())
        {
            shorten(&mut message);
            *bytes = message.to_string().as_str().into();
        }
    }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST => {
            let start: String = text.chars().take(TOLD).collect();
            *value = json!(format!("{start}… ({} bytes, not kept)", text.len()));
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_and_short_ones_stay() {
        let check = |mut value: Value, expected: Value| {
            shorten(&mut value);
            assert_eq!(value, expected);
        };
        check(json!({ "a": ["x", 1], "b": "y" }), json!({ "a": ["x", 1], "b": "y" }));
        let long = "ü".repeat(LONGEST);
        let short = format!("{}… ({} bytes, not kept)", "ü".repeat(TOLD), LONGEST * 2);
        check(json!({ "a": [long], "b": 1 }), json!({ "a": [short], "b": 1 }));
    }
}
