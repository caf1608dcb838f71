//! What a refused request says of the token that it wants: `WWW-Authenticate` (RFC 9110, 11.6.1; RFC 6750, 3).

use crate::transport::HttpHead;

/// The first Bearer challenge of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the protected-resource metadata is (RFC 9728, 5.1).
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) error: Option<String>,
    description: Option<String>,
}

impl Challenge {
    pub(super) fn of(head: &HttpHead) -> Self {
        Self::among(&head.headers)
    }

    fn among(headers: &[(String, String)]) -> Self {
        let values = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
        let mut challenges = values.flat_map(|(_, value)| challenges(value));
        challenges.find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map_or_else(Self::default, |(_, parameters)| {
            let find = |wanted: &str| parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.clone());
            let scopes = find("scope").map(|scope| scope.split_ascii_whitespace().map(str::to_owned).collect());
            Self { resource_metadata: find("resource_metadata"), scopes, error: find("error"), description: find("error_description") }
        })
    }
}

/// Where the headers of a refusal say that the protected-resource metadata is.
pub fn metadata_hint(headers: &[(String, String)]) -> Option<String> {
    Challenge::among(headers).resource_metadata
}

/// What the server says is wrong, as part of a message: ` (invalid_token: The token has expired)`, or nothing.
pub(crate) fn reason_of(head: &HttpHead) -> String {
    let Challenge { error, description, .. } = Challenge::of(head);
    let said: Vec<String> = error.into_iter().chain(description).map(|text| text.chars().take(LONGEST_REASON).collect()).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(": ")) }
}

/// Characters of what a server says.
const LONGEST_REASON: usize = 200;

type Parameters = Vec<(String, String)>;

/// One header may hold several challenges, and commas stand between them as between their parameters.
fn challenges(value: &str) -> Vec<(String, Parameters)> {
    let mut found: Vec<(String, Parameters)> = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=', '"']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            match after.chars().next() {
                None => return found,
                // Nothing that the grammar knows; what follows may still be understood.
                Some(odd) => rest = &after[odd.len_utf8()..],
            }
            continue;
        }
        match after.trim_start_matches([' ', '\t']).strip_prefix('=').map(|after| after.trim_start_matches([' ', '\t'])) {
            Some(after) if !after.is_empty() && !after.starts_with(['=', ',']) => {
                let (value, after) = parameter_value(after);
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.push((word.to_owned(), value));
                }
                rest = after;
            }
            // The padding of a token68, as in `Negotiate YWJj==`.
            Some(after) => rest = after.trim_start_matches('='),
            None => {
                found.push((word.to_owned(), Vec::new()));
                rest = after;
            }
        }
    }
}

fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[place + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{ExchangeId, FrameId};

    fn check(values: &[&str], metadata: Option<&str>, scopes: Option<&[&str]>, error: Option<&str>) {
        let headers = values.iter().map(|value| ("www-authenticate".to_owned(), (*value).to_owned())).collect();
        let found = Challenge::of(&HttpHead { exchange: ExchangeId(0), frame: FrameId(0), status: 401, headers, is_http_1_0: false });
        let owned = |text: &str| text.to_owned();
        let scopes = scopes.map(|scopes| scopes.iter().map(|scope| owned(scope)).collect());
        let expected = (metadata.map(owned), scopes, error.map(owned));
        assert_eq!((found.resource_metadata, found.scopes, found.error), expected, "{values:?}");
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others_and_read_as_the_grammar_has_it() {
        check(&[], None, None, None);
        check(&["Bearer"], None, None, None);
        check(&["Basic realm=\"a, b\""], None, None, None);
        check(&[r#"Bearer resource_metadata="https://h/m", scope="a b""#], Some("https://h/m"), Some(&["a", "b"]), None);
        check(&[r#"bearer error=invalid_token,SCOPE=a"#], None, Some(&["a"]), Some("invalid_token"));
        check(&[r#"Basic realm="x", Bearer error="insufficient_scope", Digest scope="no""#], None, None, Some("insufficient_scope"));
        check(&["Negotiate YWJj==, Bearer scope=\"\""], None, Some(&[]), None);
        check(&["Basic realm=x", "Bearer scope=x"], None, Some(&["x"]), None);
        check(&[r#"Bearer error="a \"quoted\" one", scope = "s""#], None, Some(&["s"]), Some("a \"quoted\" one"));
        check(&[r#"Bearer error_description="Bearer scope=evil", error="e""#], None, None, Some("e"));
        check(&[r#"Bearer "", =, scope="unfinished"#], None, Some(&["unfinished"]), None);
    }

    #[test]
    fn what_the_server_says_is_wrong_is_part_of_the_message() {
        let check = |value: &str, expected: &str| {
            let headers = vec![("www-authenticate".to_owned(), value.to_owned())];
            let head = HttpHead { exchange: ExchangeId(1), frame: FrameId(1), status: 401, headers, is_http_1_0: false };
            assert_eq!(reason_of(&head), expected, "{value}");
        };
        check("Bearer", "");
        check(r#"Bearer error="invalid_token""#, " (invalid_token)");
        check(r#"Bearer error="invalid_token", error_description="The token has expired""#, " (invalid_token: The token has expired)");
        check(&format!(r#"Bearer error_description="{}""#, "x".repeat(300)), &format!(" ({})", "x".repeat(200)));
    }
}
