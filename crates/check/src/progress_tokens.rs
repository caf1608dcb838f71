//! The progress tokens of requests that go out a few at a time: which is next, and which a message has. Knows nothing else of a request.

use super::listing::fingerprint;
use mcproof_analysis::probes::{TokenType, parallel_number, parallel_token};
use memchr::memmem;
use serde_json::Value;
use std::collections::HashMap;

/// Of one connection.
pub(super) struct ProgressTokens {
    given: usize,
    first: TokenType,
    /// The type of the last one, by what was requested.
    last: HashMap<u64, TokenType>,
}

impl ProgressTokens {
    /// The same request gets this type at first, and then both by turns: a server may know only one of them.
    pub(super) fn beginning_with(first: TokenType) -> Self {
        Self { given: 0, first, last: HashMap::new() }
    }

    /// The number of the next request, and its token.
    pub(super) fn next(&mut self, params: &Value) -> (usize, Value) {
        let (number, same) = (self.given, fingerprint(params));
        let token_type = self.last.get(&same).map_or(self.first, |last| last.other());
        self.given += 1;
        self.last.insert(same, token_type);
        (number, parallel_token(number, token_type))
    }
}

/// The number of the request whose token a message has.
pub(super) fn number_in(message: &[u8]) -> Option<usize> {
    const MEMBER: &[u8] = b"\"progressToken\":";
    // An argument may have that name as well.
    memmem::find_iter(message, MEMBER).find_map(|start| {
        let rest = &message[start + MEMBER.len()..];
        let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
        parallel_number(&serde_json::from_slice(&rest[..end]).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_request_gets_tokens_of_both_types_that_are_found_in_its_messages() {
        let mut tokens = ProgressTokens::beginning_with(TokenType::Number);
        let (one, other) = (json!({ "name": "one" }), json!({ "name": "other" }));
        let mut check = |params: &Value, number: usize, is_text: bool| {
            let (given, token) = tokens.next(params);
            assert_eq!((given, token.is_string()), (number, is_text), "{token}");
            let arguments = json!({ "progressToken": "mine", "text": "\"progressToken\":1" });
            let message = json!({ "arguments": arguments, "_meta": { "progressToken": token, "more": true } });
            assert_eq!(number_in(message.to_string().as_bytes()), Some(number), "{message}");
        };
        check(&one, 0, false);
        check(&other, 1, false);
        check(&one, 2, true);
        check(&one, 3, false);
        check(&other, 4, true);
        assert_eq!(ProgressTokens::beginning_with(TokenType::Text).next(&one), (0, parallel_token(0, TokenType::Text)));
        for message in ["{}", r#"{"progressToken":0}"#, r#"{"progressToken":"mine"}"#, r#"{"progressToken":146"#] {
            assert_eq!(number_in(message.as_bytes()), None, "{message}");
        }
    }
}
