//! Reads the URL of a server as somebody typed it. Knows what is wrong with one, not where it was typed.

use url::{ParseError, Url};

/// What to type instead.
pub const URL_HINT: &str = "write a URL such as http://127.0.0.1:3000/mcp";

/// Why a text is not the URL of a server: continues a sentence that begins with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadServerUrl {
    #[error("does not begin with http:// or https://")]
    Scheme,
    #[error("has the unsupported scheme `{0}://`")]
    OtherScheme(String),
    #[error("contains a space")]
    Space,
    #[error("has a port that is not a number from 0 to 65535")]
    Port,
    #[error("is not a valid URL: {0}")]
    Invalid(ParseError),
}

/// # Errors
/// The text is not a URL, or one of another protocol.
pub fn server_url(text: &str) -> Result<Url, BadServerUrl> {
    // `localhost:3000` is a valid URL, whose scheme is `localhost`.
    if !text.contains(":/") {
        return Err(BadServerUrl::Scheme);
    }
    let url = Url::parse(text).map_err(|error| match error {
        _ if text.trim().contains(char::is_whitespace) => BadServerUrl::Space,
        ParseError::RelativeUrlWithoutBase => BadServerUrl::Scheme,
        ParseError::InvalidPort => BadServerUrl::Port,
        error => BadServerUrl::Invalid(error),
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(BadServerUrl::OtherScheme(other.to_owned())),
    }
}

/// The same for one with variables that are filled in later, `${port}` and `${tmp}`: whatever they become, it would not be a URL.
///
/// # Errors
/// As for one without variables.
pub fn check_server_url(template: &str) -> Result<(), BadServerUrl> {
    server_url(&template.replace("${port}", "1").replace("${tmp}", "tmp")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_url_is_told_in_our_words() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(check_server_url(text).err().map(|bad| bad.to_string()).as_deref(), expected, "{text}");
        };
        check("http://127.0.0.1:3000/mcp", None);
        check("https://[::1]/", None);
        check("HTTP://h", None);
        check("http://127.0.0.1:${port}/${tmp}/mcp", None);
        check("http://h/a b", None);
        check("notaurl", Some("does not begin with http:// or https://"));
        check("localhost:3000", Some("does not begin with http:// or https://"));
        check("", Some("does not begin with http:// or https://"));
        check("://h", Some("does not begin with http:// or https://"));
        check("ftp://x", Some("has the unsupported scheme `ftp://`"));
        check("http://127.0.0.1:99999/mcp", Some("has a port that is not a number from 0 to 65535"));
        check("http://127.0.0.1:abc/mcp", Some("has a port that is not a number from 0 to 65535"));
        check("http://a b/mcp", Some("contains a space"));
        check("http:///", Some("is not a valid URL: empty host"));
    }
}
