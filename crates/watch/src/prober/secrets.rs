//! Secrets in how a target is reached that its names do not tell: arguments of a command, and what the environment put into arguments,
//! variables and headers. Guesses: what is taken for a secret is missing in evidence, what is not is read by everybody who is told.

use mcproof_client::{Target, is_secret};
use std::collections::BTreeMap;
use url::Url;

/// Of fewer characters a value is no credential, whatever it is called.
const SHORTEST_NAMED: usize = 4;
/// The same for a value that nothing but its place tells.
const SHORTEST: usize = 8;
/// In a path of so many characters a token may stand.
const LONG_PATH: usize = 20;

/// Variables of every environment that hold no secrets.
const COMMON: [&str; 14] =
    ["PATH", "HOME", "PWD", "OLDPWD", "SHELL", "TERM", "USER", "LOGNAME", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "EDITOR", "COLORTERM"];

/// `variables` are those of the environment.
pub(super) fn of(target: &Target, variables: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    if let Target::Stdio(launch) | Target::Http { launch: Some(launch), .. } = target {
        of_words(launch.command.iter().skip(1).map(String::as_str), &mut found);
        texts.extend(launch.command.iter().map(String::as_str));
        texts.extend(launch.env.iter().map(|(_, value)| value.as_str()));
        launch.env.iter().for_each(|(_, value)| of_url(value, &mut found));
    }
    if let Target::Http { endpoint, .. } = target {
        texts.extend(endpoint.headers.iter().map(|(_, value)| value.as_str()));
    }
    let filled_in =
        variables.iter().filter(|(name, value)| may_be_secret(name, value) && texts.iter().any(|text| text.contains(value.as_str())));
    for (_, value) in filled_in {
        found.push(value.clone());
        of_url(value, &mut found);
    }
    found
}

/// Values of flags that are named as secrets, headers, assignments, and URLs with credentials.
fn of_words<'a>(words: impl Iterator<Item = &'a str>, found: &mut Vec<String>) {
    let words: Vec<&str> = words.collect();
    for (at, word) in words.iter().enumerate() {
        // `--header=Authorization: Bearer abc`
        let flagged = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map_or(*word, |(_, value)| value);
        if word.contains(char::is_whitespace) && !is_header(flagged) {
            // A script, or a command line in a word.
            let inner = word.split_whitespace().map(|part| part.trim_matches(['\'', '"', ';']));
            let inner: Vec<&str> = inner.filter(|part| !part.contains(char::is_whitespace)).collect();
            of_words(inner.into_iter(), found);
            continue;
        }
        let name = word.trim_start_matches('-');
        let is_flag = name.len() < word.len();
        match name.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, value)) => {
                take(name, value, found);
                // `--env=API_KEY=abc`
                of_words(std::iter::once(value), found);
            }
            None if is_flag => words.get(at + 1).filter(|next| !next.starts_with('-')).into_iter().for_each(|next| take(name, next, found)),
            None => {}
        }
        if let Some((name, value)) = word.split_once(':').filter(|_| is_header(word)) {
            take(name, value.trim(), found);
        }
        of_url(word, found);
    }
}

/// `Authorization: Bearer abc`, with or without the space.
fn is_header(word: &str) -> bool {
    word.split_once(':').is_some_and(|(name, value)| is_name(name) && !value.starts_with("//"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn take(name: &str, value: &str, found: &mut Vec<String>) {
    let credential = value.split_whitespace().last().unwrap_or_default();
    let is_number = value.len() < SHORTEST && value.bytes().all(|byte| byte.is_ascii_digit());
    if credential.len() >= SHORTEST_NAMED && !is_number && !is_path(value) && is_secret(name, value) {
        found.push(value.to_owned());
        found.push(credential.to_owned());
    }
}

/// A URL with a password, and that alone; the values of its query that are named as secrets.
fn of_url(text: &str, found: &mut Vec<String>) {
    let Ok(url) = Url::parse(text) else { return };
    if let Some(password) = url.password() {
        found.push(text.to_owned());
        found.push(password.to_owned());
    }
    url.query_pairs().for_each(|(name, value)| take(&name, &value, found));
}

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || value.get(1..3) == Some(":\\")
}

/// A host name or an address, with or without a port.
fn is_host(value: &str) -> bool {
    let (host, port) = value.split_once(':').map_or((value, None), |(host, port)| (host, Some(port)));
    let is_name = host.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    is_name && port.map_or(host.contains('.'), |port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the value of a variable that somebody put into a target may be a secret: it is named as one, or it is neither a word, a number,
/// a path, a host nor an ordinary URL.
fn may_be_secret(name: &str, value: &str) -> bool {
    if COMMON.contains(&name) || name.starts_with("LC_") || is_path(value) {
        return false;
    }
    if value.len() >= SHORTEST_NAMED && is_secret(name, value) && !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic()) || value.bytes().all(|byte| byte.is_ascii_digit());
    let is_ordinary = Url::parse(value).is_ok_and(|url| {
        url.has_host() && url.password().is_none() && url.username().is_empty() && url.query().is_none() && url.path().len() < LONG_PATH
    });
    value.len() >= SHORTEST && !is_word && !is_ordinary && !is_host(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_client::{Endpoint, Launch};

    fn launch(command: &[&str], env: &[(&str, &str)]) -> Target {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Target::Stdio(Launch { command, env, ..Launch::default() })
    }

    #[test]
    fn arguments_that_look_like_secrets_are_kept_out_of_evidence() {
        for (words, expected) in [
            (&["npx", "mcp-brave", "--api-key", "BSAkey-123456789"][..], &["BSAkey-123456789"][..]),
            (&["npx", "mcp-brave", "--api-key=BSAkey-123456789"], &["BSAkey-123456789"]),
            (&["docker", "run", "-e", "GH_TOKEN=ghp_1234", "mcp/github"], &["ghp_1234"]),
            (&["docker", "run", "--env=GH_TOKEN=ghp_1234"], &["ghp_1234"]),
            (&["pg", "postgresql://app:s3cret@db/shop"], &["postgresql://app:s3cret@db/shop", "s3cret"]),
            (&["remote", "--header", "Authorization: Bearer abc-42"], &["Bearer abc-42", "abc-42"]),
            (&["remote", "--header", "X-Api-Key:abc-42"], &["abc-42"]),
            (&["remote", "--header=Authorization: Bearer abc-42"], &["Bearer abc-42", "abc-42"]),
            (&["remote", "https://a/mcp?token=abc-42&page=2"], &["abc-42"]),
            (&["sh", "-c", "exec server --password 'hunter22' --port 80"], &["hunter22"]),
            (&["server", "--max-tokens", "4096", "--key", "/etc/key.pem", "--token-file", "--verbose"], &[]),
            (&["server", "https://a.example.com/mcp", "--name", "tokens"], &[]),
        ] {
            let found = of(&launch(words, &[]), &BTreeMap::new());
            let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
            found.dedup();
            assert_eq!(found, expected, "{words:?}");
        }
    }

    #[test]
    fn what_the_environment_put_into_a_target_is_kept_out_of_evidence() {
        let variables = [
            ("DATABASE_URL", "postgresql://app:s3cretPW99@db/shop"),
            ("GITHUB_PAT", "ghp_9f8e7d6c5b4a"),
            ("SLACK", "https://hooks.example.com/services/T000/B000/xyz"),
            ("ELSEWHERE", "not-in-this-target-1"),
            ("HOME", "/home/ann-1234"),
            ("STAGE", "production"),
            ("PORT", "8080"),
            ("BASE_URL", "https://api.example.com/v1"),
            ("DB_HOST", "db.example.com:5432"),
        ];
        let variables: BTreeMap<String, String> = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let words = ["/home/ann-1234/server", "postgresql://app:s3cretPW99@db/shop", "GH=ghp_9f8e7d6c5b4a", "production", "8080"];
        let env = [
            ("HOOK", "https://hooks.example.com/services/T000/B000/xyz"),
            ("URL", "https://api.example.com/v1"),
            ("DB", "db.example.com:5432"),
        ];
        let mut found = of(&launch(&words, &env), &variables);
        found.sort();
        found.dedup();
        assert_eq!(
            found,
            ["ghp_9f8e7d6c5b4a", "https://hooks.example.com/services/T000/B000/xyz", "postgresql://app:s3cretPW99@db/shop", "s3cretPW99"]
        );
        let headers = vec![("X-Tenant".to_owned(), "ghp_9f8e7d6c5b4a".to_owned())];
        let endpoint = Endpoint { url: Url::parse("https://a/").unwrap(), headers };
        let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
        assert_eq!(of(&target, &variables), ["ghp_9f8e7d6c5b4a"]);
    }
}
