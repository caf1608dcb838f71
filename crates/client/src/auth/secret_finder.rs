//! Finds the secrets of an OAuth exchange in a frame before it is recorded: in queries, forms, JSON and headers. Works on
//! text rather than on parsed values, so that a broken document hides nothing.

use super::token;
use crate::secrets::take_address;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcproof_record::{FrameBody, Raw};
use url::form_urlencoded;

/// Parameters of queries, fragments and forms.
const PARAMETERS: [&str; 13] = [
    "access_token",
    "refresh_token",
    "id_token",
    "code",
    "code_verifier",
    "client_secret",
    "client_assertion",
    "assertion",
    "subject_token",
    "actor_token",
    "device_code",
    "password",
    "token",
];
/// Members of JSON documents; `code` and `token` have other meanings there.
const MEMBERS: [&str; 6] = ["access_token", "refresh_token", "id_token", "client_secret", "registration_access_token", "device_code"];
/// Of what a peer calls a secret, this much is looked for: more is refused, and all that is looked for is kept in many forms.
const LONGEST: usize = token::LARGEST;
/// A cookie shorter than this is a setting rather than a session.
const COOKIE: usize = 16;

pub(crate) fn secrets(body: &FrameBody) -> Vec<String> {
    let mut found = Vec::new();
    match body {
        FrameBody::HttpRequest { url, headers, body, .. } => {
            in_url(url, &mut found);
            in_headers(headers, &mut found);
            in_document(body, &mut found);
        }
        FrameBody::HttpResponse { headers, .. } => in_headers(headers, &mut found),
        FrameBody::HttpBody { bytes, .. } => in_document(bytes, &mut found),
        FrameBody::Note { text } => in_url(text, &mut found),
        _ => {}
    }
    for secret in found.iter_mut().filter(|secret| secret.len() > LONGEST) {
        secret.truncate(secret.floor_char_boundary(LONGEST));
        secret.shrink_to_fit();
    }
    found
}

fn in_headers(headers: &[(String, String)], found: &mut Vec<String>) {
    for (name, value) in headers {
        match name.to_ascii_lowercase().as_str() {
            "authorization" => {
                let credentials = value.split_once(' ').map_or(value.as_str(), |(_, credentials)| credentials);
                found.push(credentials.to_owned());
                let decoded = STANDARD.decode(credentials).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                found.extend(decoded.and_then(|pair| Some(pair.split_once(':')?.1.to_owned())));
            }
            "location" | "content-location" => {
                in_url(value, found);
                take_address(value, found);
            }
            "set-cookie" => {
                let pair = value.split(';').next().unwrap_or_default();
                found.extend(pair.split_once('=').map(|(_, value)| value.trim().to_owned()).filter(|value| value.len() >= COOKIE));
            }
            _ => {}
        }
    }
}

fn in_url(url: &str, found: &mut Vec<String>) {
    // Both the query and the fragment may hold a response.
    if let Some((_, parameters)) = url.split_once(['?', '#']) {
        parameters.split(['?', '#']).for_each(|part| in_form(part, found));
    }
}

fn in_form(form: &str, found: &mut Vec<String>) {
    for pair in form.split('&') {
        let Some((name, value)) = pair.split_once('=') else { continue };
        if PARAMETERS.contains(&name.trim()) {
            let value = value.trim();
            found.push(value.to_owned());
            found.extend(form_urlencoded::parse(pair.as_bytes()).map(|(_, decoded)| decoded.into_owned()));
        }
    }
}

fn in_document(raw: &Raw, found: &mut Vec<String>) {
    let text = raw.to_text();
    in_form(&text, found);
    for member in MEMBERS {
        let name = format!("\"{member}\"");
        for (place, _) in text.match_indices(&name) {
            let after = text[place + name.len()..].trim_start();
            let Some(literal) = after.strip_prefix(':').and_then(|value| value.trim_start().strip_prefix('"')) else { continue };
            let written = until_quote(literal);
            found.push(written.to_owned());
            found.extend(serde_json::from_str(&format!("\"{written}\"")).ok() as Option<String>);
        }
    }
}

/// Up to the quote that ends a JSON string, or to the end of what there is.
fn until_quote(text: &str) -> &str {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return &text[..place],
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::ExchangeId;

    fn check(body: &FrameBody, expected: &[&str]) {
        let mut found = secrets(body);
        found.dedup();
        assert_eq!(found, expected, "{body:?}");
    }

    fn response(name: &str, value: &str) -> FrameBody {
        FrameBody::HttpResponse { exchange: ExchangeId(0), status: 302, headers: vec![(name.into(), value.into())] }
    }

    fn body(text: &str) -> FrameBody {
        FrameBody::HttpBody { exchange: ExchangeId(0), bytes: text.into() }
    }

    #[test]
    fn secrets_are_found_wherever_oauth_puts_them() {
        check(&response("location", "http://localhost/cb?state=s&code=c%2Fd&iss=i"), &["c%2Fd", "c/d"]);
        check(&response("Location", "/cb?x=1#access_token=abc&token_type=bearer"), &["abc"]);
        check(&response("location", "http://localhost/authorize?code_challenge=x"), &[]);
        check(&response("location", "http://u:pw@localhost/cb?api_key=k-1"), &["pw", "k-1"]);
        check(&response("set-cookie", "session=0123456789abcdef; Path=/"), &["0123456789abcdef"]);
        check(&response("set-cookie", "lang=en; Path=/"), &[]);
        check(&body(r#"{"access_token" : "a\/b", "expires_in": 1, "refresh_token":"r"}"#), &["a\\/b", "a/b", "r"]);
        check(&body(r#"{"access_token":"cut off"#), &["cut off"]);
        check(&body(r#"{"error":"x","code":"invalid_grant"}"#), &[]);
        check(&body("access_token=abc&scope=x"), &["abc"]);
        let request = FrameBody::HttpRequest {
            exchange: ExchangeId(0),
            method: "POST".into(),
            url: "http://h/token".into(),
            headers: vec![("authorization".into(), "Basic aWQ6cGFzcw==".into())],
            body: "grant_type=authorization_code&code_verifier=v%20w&resource=r".into(),
        };
        check(&request, &["aWQ6cGFzcw==", "pass", "v%20w", "v w"]);
    }
}
