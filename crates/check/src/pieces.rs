//! A message that arrives in two pieces, cut within a character, as pipes and networks may cut it. Knows what is worth trying, not what
//! is right.

use super::explorer::Explorer;
use mcproof_analysis::probes::{IN_ONE_PIECE, IN_PIECES, WIDE_NAME};
use mcproof_protocol::methods;
use serde_json::{Value, json};

/// How often something is tried that gets no response, or another one than expected: for one of them a busy machine may be to blame.
pub(super) const TRIES: usize = 2;

/// A request that says something in characters of several bytes: a call of a tool that no server has, because its refusal may quote the
/// name; else what every server takes.
pub(super) fn request(explorer: &Explorer<'_>) -> (&'static str, Value) {
    match explorer.declares("tools") {
        true => (methods::TOOLS_CALL, json!({ "name": WIDE_NAME, "arguments": {} })),
        false => (explorer.any_method(), json!({})),
    }
}

/// The message with such characters, if it has none yet.
pub(super) fn widened(mut message: Value) -> Value {
    if message.pointer("/params/name").is_none() {
        message["params"]["_meta"]["io.mcproof/text"] = json!(WIDE_NAME);
    }
    message
}

/// The second byte of the first character that has several.
pub(super) fn cut_of(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| !byte.is_ascii()).map(|start| start + 1)
}

/// As a line. `false` if the conversation ended with it, which another one may tell more about.
pub(super) async fn send_line(explorer: &mut Explorer<'_>) -> bool {
    let (method, params) = request(explorer);
    let whole = widened(explorer.build_message(method, params.clone()));
    let Some(expected) = explorer.send(IN_ONE_PIECE, None, whole).await else { return true };
    for _ in 0..TRIES {
        let message = widened(explorer.build_message(method, params.clone()));
        let Some(at) = cut_of(message.to_string().as_bytes()) else { return true };
        let response = explorer.send_in_two(IN_PIECES, &message, at).await;
        if response.is_some_and(|response| response.err() == expected.as_ref().err().copied()) {
            return true;
        }
        if explorer.is_over() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_within_a_character() {
        let message = widened(json!({ "params": {} })).to_string();
        let at = cut_of(message.as_bytes()).unwrap();
        assert!(!message.is_char_boundary(at));
        assert_eq!(cut_of(b"{}"), None);
    }
}
