//! Which values of a target are secrets, so that no frame ever holds them: credentials in headers, URLs, arguments and environment
//! variables, known by their names, or because a user gave them.

use crate::session::Target;
use mcproof_record::FrameBody;
use url::Url;

/// Parts of names whose values are secret.
const TELLTALES: [&str; 9] =
    ["authorization", "cookie", "api-key", "apikey", "subscription-key", "token", "secret", "password", "credential"];
/// Further names of parameters, whole: those of signed URLs give access as well.
const PARAMETERS: [&str; 4] = ["key", "sig", "signature", "x-amz-signature"];

impl Target {
    /// Values that must not be recorded, the longest first, so that a part never spoils the whole.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        if let Self::Stdio(launch) | Self::Http { launch: Some(launch), .. } = self {
            launch.env.iter().for_each(|(name, value)| take_given_variable(name, value, &mut secrets));
            take_arguments(&launch.command, &mut secrets);
        }
        if let Self::Http { endpoint, .. } = self {
            endpoint.headers.iter().for_each(|(name, value)| take_given_header(name, value, &mut secrets));
            take_url(&endpoint.url, &mut secrets);
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }
}

/// Names of variables end with these that hold credentials, whoever set them.
const CREDENTIALS: [&str; 11] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "_PWD", "CREDENTIALS", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"];
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
    let mut secrets = Vec::new();
    for (name, value) in variables {
        match value.contains("://").then(|| Url::parse(value).ok()).flatten() {
            Some(url) => secrets.extend(url.password().map(str::to_owned)),
            None if is_credential(&(name, value)) => secrets.push(value.clone()),
            None => {}
        }
    }
    secrets
}

/// The values of variables that are secrets by their names alone, the longest first.
pub fn named_secrets<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let mut secrets = Vec::new();
    variables.into_iter().for_each(|(name, value)| take_variable(name, value, &mut secrets));
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// Headers that users set and that give no access.
const PLAIN_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "baggage",
    "cache-control",
    "connection",
    "content-type",
    "host",
    "mcp-protocol-version",
    "origin",
    "referer",
    "traceparent",
    "tracestate",
    "user-agent",
];
/// What a user gives and is shorter is seldom a credential, whatever its name.
const SHORTEST_GIVEN: usize = 8;

/// A header that a user has set: gateways name their credentials as they like.
fn take_given_header(name: &str, value: &str, secrets: &mut Vec<String>) {
    take(name, value, secrets);
    take_urls(value, secrets);
    let is_plain = PLAIN_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !is_plain && value.len() >= SHORTEST_GIVEN {
        secrets.push(value.to_owned());
    }
}

/// A variable that a user has set for a server: a secret by its name, or by its looks.
fn take_given_variable(name: &str, value: &str, secrets: &mut Vec<String>) {
    take_variable(name, value, secrets);
    take_urls(value, secrets);
    let has = |wanted: fn(&char) -> bool| value.chars().any(|symbol| wanted(&symbol));
    let is_random = value.len() >= SHORTEST_CREDENTIAL && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    if is_random && !value.contains(['/', '\\', ' ', '$']) {
        secrets.push(value.to_owned());
    }
}

/// Arguments of a command: `--token=abc`, `--api-key abc`, and URLs with a password.
fn take_arguments(words: &[String], secrets: &mut Vec<String>) {
    let is_named = |flag: &str| {
        let name = flag.trim_start_matches('-').to_ascii_uppercase().replace('-', "_");
        flag.starts_with('-') && CREDENTIALS.iter().any(|ending| name.ends_with(ending))
    };
    let is_value = |value: &str| {
        value.len() >= SHORTEST_GIVEN && !value.starts_with(['-', '/', '.', '~', '$']) && !value.bytes().all(|byte| byte.is_ascii_digit())
    };
    for (place, word) in words.iter().enumerate() {
        take_urls(word.split_once('=').filter(|_| word.starts_with('-')).map_or(word.as_str(), |(_, value)| value), secrets);
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.as_str(), words.get(place + 1).map(String::as_str)),
        };
        secrets.extend(value.filter(|value| is_named(flag) && is_value(value)).map(str::to_owned));
    }
}

/// The credentials in an HTTP frame between other programs.
pub(crate) fn credentials_in(body: &FrameBody) -> Vec<String> {
    let mut secrets = crate::auth::secret_finder::secrets(body);
    if let FrameBody::HttpRequest { headers, .. } | FrameBody::HttpResponse { headers, .. } = body {
        for (name, value) in headers {
            take(name, value, &mut secrets);
            take_urls(value, &mut secrets);
        }
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

/// The URLs in the value of a header such as `Location`, `Link` or `Referer`, also relative ones.
fn take_urls(value: &str, secrets: &mut Vec<String>) {
    for word in value.split([' ', ',', ';', '<', '>', '"']).chain([value]) {
        let is_relative = word.starts_with(['/', '?']) && word.contains('?');
        let url = match is_relative {
            true => Url::parse("http://localhost/").and_then(|base| base.join(word)).ok(),
            false if word.contains("://") => Url::parse(word.trim_matches(['<', '>', '"'])).ok(),
            false => None,
        };
        if let Some(url) = url {
            take_url(&url, secrets);
        }
    }
}

fn take_url(url: &Url, secrets: &mut Vec<String>) {
    secrets.extend(url.password().map(str::to_owned));
    for (name, value) in url.query_pairs() {
        if PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
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
    fn what_a_user_gives_is_a_secret_by_its_looks_as_well() {
        let of = |command: &[&str], env: &[(&str, &str)]| {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            Target::Stdio(Launch { command, env: pairs(env), ..Launch::default() }).secrets()
        };
        assert_eq!(
            of(&[], &[("PLAIN", "Pl4inV4lue99xyz"), ("NODE_ENV", "production"), ("DIR", "/home/me/projects/1")]),
            ["Pl4inV4lue99xyz"]
        );
        assert_eq!(of(&[], &[("DATABASE_URL", "postgres://u:p4ss@h/db")]), ["p4ss"]);
        let words = ["server", "--api-key", "k-12345678", "--token=t-1234567", "--max-token", "12345678", "--url", "https://u:p4ss@h/"];
        assert_eq!(of(&words, &[]), ["k-12345678", "t-1234567", "p4ss"]);
        let variables =
            pairs(&[("DATABASE_URL", "postgres://u:p4ss@h/db"), ("MYSQL_PWD", "0123456789abcdef"), ("OLDPWD", "/home/me/elsewhere")]);
        let found = inherited_secrets(variables.iter().map(|(name, value)| (name, value)));
        assert_eq!(found, ["p4ss", "0123456789abcdef"]);
    }

    #[test]
    fn credentials_of_urls_in_headers_are_known_as_well() {
        let check = |name: &str, value: &str, expected: &[&str]| {
            let headers = pairs(&[(name, value)]);
            let mut found = credentials_in(&FrameBody::HttpResponse { exchange: mcproof_record::ExchangeId(0), status: 302, headers });
            found.sort();
            found.dedup();
            assert_eq!(found, expected, "{name}: {value}");
        };
        check("Location", "http://u:pass1@h/cb?api_key=k1234&page=2", &["k1234", "pass1"]);
        check("Location", "/cb?sig=s1234", &["s1234"]);
        check("Link", "<https://h/a?X-Amz-Signature=x1234&b=1>; rel=\"next\"", &["x1234"]);
        check("Ocp-Apim-Subscription-Key", "o1234", &["o1234"]);
        check("Content-Location", "https://h/a?page=2", &[]);
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
        check(&http("http://h/", &[("X-Custom", "CUSTSECRET99"), ("X-Region", "eu"), ("User-Agent", "a longer name")]), &["CUSTSECRET99"]);
        check(&http("http://u:pass@h/?api_key=q123&page=2", &[("X-Api-Key", "k12345")]), &["k12345", "pass", "q123"]);
    }
}
