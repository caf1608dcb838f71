//! Which values of a target are secrets, so that no frame ever holds them: credentials in headers, URLs and environment
//! variables, known by their names.

use crate::session::Target;
use mcproof_record::FrameBody;
use url::Url;

/// Parts of names whose values are secret.
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

/// Names of variables end with these that hold credentials, whoever set them.
const CREDENTIALS: [&str; 9] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"];
/// What is shorter is seldom a credential, and often a word.
const SHORTEST_CREDENTIAL: usize = 12;

/// The credentials in an environment that a server inherits. Nobody named these: what looks like a path, an address or a sentence
/// is none.
pub fn inherited_secrets<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let is_credential = |(name, value): &(&String, &String)| {
        let name = name.to_ascii_uppercase();
        let is_named = CREDENTIALS.iter().any(|ending| name.ends_with(ending));
        is_named
            && value.len() >= SHORTEST_CREDENTIAL
            && !value.starts_with(['/', '.', '~'])
            && !value.contains("://")
            && !value.contains(' ')
    };
    variables.into_iter().filter(is_credential).map(|(_, value)| value.clone()).collect()
}

/// The credentials in an HTTP frame between other programs.
pub(crate) fn credentials_in(body: &FrameBody) -> Vec<String> {
    let mut secrets = crate::auth::secret_finder::secrets(body);
    if let FrameBody::HttpRequest { headers, .. } | FrameBody::HttpResponse { headers, .. } = body {
        headers.iter().for_each(|(name, value)| take(name, value, &mut secrets));
    }
    if let FrameBody::HttpRequest { url, .. } = body
        && let Ok(url) = Url::parse(url)
    {
        take_url(&url, &mut secrets);
    }
    secrets
}

/// Whether the value of a flag or variable of that name is a secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    let mut secrets = Vec::new();
    take_variable(name, value, &mut secrets);
    !secrets.is_empty()
}

/// Whether a URL holds a credential: a user, a password, or a parameter that is named as one.
pub fn url_holds_secret(url: &Url) -> bool {
    let mut secrets = Vec::new();
    take_url(url, &mut secrets);
    !url.username().is_empty() || !secrets.is_empty()
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
    fn what_is_inherited_is_a_secret_only_if_it_looks_like_one() {
        let variables = pairs(&[
            ("GITHUB_TOKEN", "ghp_0123456789abcdef"),
            ("MY_API_KEY", "0123456789abcdef"),
            ("API_KEY", "short"),
            ("SSH_PRIVATE_KEY", "/home/me/.ssh/id_ed25519"),
            ("KEYCLOAK_URL", "http://localhost:8080/"),
            ("TOKEN_LIMIT", "0123456789abcdef"),
        ]);
        let found = inherited_secrets(variables.iter().map(|(name, value)| (name, value)));
        assert_eq!(found, ["ghp_0123456789abcdef", "0123456789abcdef"]);
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
