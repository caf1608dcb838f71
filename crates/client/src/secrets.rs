//! Which values of a target are secrets, so that no frame ever holds them: credentials in headers, URLs and environment
//! variables, known by their names.

use crate::session::Target;
use url::Url;

/// Parts of names whose values are nobody's business.
const TELLTALES: [&str; 8] = ["authorization", "cookie", "api-key", "apikey", "token", "secret", "password", "credential"];

impl Target {
    /// Values that must not be recorded, the longest first, so that a part never spoils the whole.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        if let Self::Stdio(launch) | Self::Http { launch: Some(launch), .. } = self {
            launch.env.iter().for_each(|(name, value)| take_variable(name, value, &mut secrets));
        }
        if let Self::Http { endpoint, .. } = self {
            endpoint.headers.iter().for_each(|(name, value)| take(name, value, &mut secrets));
            take_url(&endpoint.url, &mut secrets);
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }
}

fn take(name: &str, value: &str, secrets: &mut Vec<String>) {
    let folded = name.to_ascii_lowercase().replace('_', "-");
    if TELLTALES.iter().any(|telltale| folded.contains(telltale)) {
        // `Bearer abc`: the server may well repeat `abc` alone.
        secrets.extend(value.split_once(' ').map(|(_, credentials)| credentials.trim().to_owned()));
        secrets.push(value.to_owned());
    }
}

/// In the environment a bare `KEY` is telling, too.
fn take_variable(name: &str, value: &str, secrets: &mut Vec<String>) {
    if name.to_ascii_uppercase().contains("KEY") {
        secrets.push(value.to_owned());
    } else {
        take(name, value, secrets);
    }
}

fn take_url(url: &Url, secrets: &mut Vec<String>) {
    secrets.extend(url.password().map(str::to_owned));
    for (name, value) in url.query_pairs() {
        if name.eq_ignore_ascii_case("key") {
            secrets.push(value.into_owned());
        } else {
            take(&name, &value, secrets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Endpoint, Launch};

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn credentials_are_known_by_their_names() {
        let check = |target: &Target, expected: &[&str]| assert_eq!(target.secrets(), expected);
        let launch = |env: &[(&str, &str)]| Target::Stdio(Launch { env: pairs(env), ..Launch::default() });
        check(&launch(&[("API_KEY", "k123"), ("DB_PASSWORD", "p1234"), ("PORT", "8080")]), &["p1234", "k123"]);
        let http = |url: &str, headers: &[(&str, &str)]| Target::Http {
            endpoint: Endpoint { url: Url::parse(url).unwrap(), headers: pairs(headers) },
            kind: None,
            launch: None,
            locate: None,
        };
        check(&http("http://h/", &[("Authorization", "Bearer abcd"), ("Accept", "x")]), &["Bearer abcd", "abcd"]);
        check(&http("http://u:pass@h/?api_key=q123&page=2", &[("X-Api-Key", "k12345")]), &["k12345", "pass", "q123"]);
    }
}
