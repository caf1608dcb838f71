//! Which values of a target are secrets, so that no frame ever holds them: credentials in headers, URLs, arguments and environment
//! variables, known by their names, and what flags give to a server. Knows names and values, and no place where they are shown.

mod arguments;
mod plain;
mod words;

use crate::session::Target;
pub(crate) use arguments::SecretArguments;
use mcproof_record::FrameBody;
use url::{Url, form_urlencoded};

/// Parts of names whose values are secret.
const TELLTALES: [&str; 12] = [
    "authorization",
    "cookie",
    "api-key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "signature",
];
/// Of these, numbers are secret as well: people choose them.
const CHOSEN: [&str; 6] = ["pass", "pwd", "secret", "authorization", "pin", "otp"];
/// Words in which a telltale means something else.
const INNOCENT: [&str; 20] = [
    "tokeniz",
    "token-type",
    "token-endpoint",
    "token-limit",
    "token-count",
    "max-token",
    "secretar",
    "keyboard",
    "keyword",
    "keycloak",
    "keymap",
    "keynote",
    "keyframe",
    "monkey",
    "idempotency-key",
    "websocket-key",
    "websocket-accept",
    "public-key",
    "surrogate-key",
    "cache-key",
];
/// How names end whose values are secret.
const ENDINGS: [&str; 4] = ["-pass", "-pw", "-pin", "-otp"];
/// Variables that are named like a password and hold a folder.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];
/// Variables of every environment, which hosts pass on.
const COMMON: [&str; 14] =
    ["COLORTERM", "EDITOR", "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "USERNAME"];
/// Headers that everybody sends, or that say nothing about who sends them.
const HARMLESS_HEADERS: [&str; 30] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "from",
    "host",
    "if-modified-since",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "origin",
    "pragma",
    "range",
    "te",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-correlation-id",
    "x-request-id",
];
/// How values of headers begin of which the rest is a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

impl Target {
    /// Values that must not be recorded, the longest first, so that a part never spoils the whole.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        if let Self::Stdio(launch) | Self::Http { launch: Some(launch), .. } = self {
            for (name, value) in &launch.env {
                take_variable(name, value, &mut secrets);
                take_address(value, &mut secrets);
            }
            let words: Vec<&str> = launch.command.iter().skip(1).map(String::as_str).collect();
            words::take_words(&words, &mut secrets);
        }
        if let Self::Http { endpoint, .. } = self {
            endpoint.headers.iter().for_each(|(name, value)| take(name, value, &mut secrets));
            take_address(endpoint.url.as_str(), &mut secrets);
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }
}

/// What flags give to a server, whatever it is called: the values of headers but harmless ones, and those of variables that are
/// neither words, numbers, paths nor ordinary addresses.
pub fn given_secrets(variables: &[(String, String)], headers: &[(String, String)]) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in variables {
        take_variable(name, value, &mut secrets);
        take_address(value, &mut secrets);
        if plain::is_opaque(value) && !COMMON.contains(&name.as_str()) {
            secrets.push(value.clone());
        }
    }
    for (name, value) in headers {
        take(name, value, &mut secrets);
        take_address(value, &mut secrets);
        let is_harmless = HARMLESS_HEADERS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless));
        let credential = value.split_once(' ').filter(|(scheme, _)| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)));
        // What names a place, a language or a kind of thing stands in any message.
        if is_harmless || credential.is_none() && !plain::is_opaque(value) {
            continue;
        }
        secrets.extend(credential.map(|(_, credential)| credential.trim().to_owned()));
        secrets.push(value.clone());
    }
    secrets
}

/// Names of variables end with these that hold credentials, whoever set them.
const CREDENTIALS: [&str; 15] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "_PWD",
    "_PAT",
    "CREDENTIALS",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "SECRET_KEY",
    "SIGNING_KEY",
    "SUBSCRIPTION_KEY",
];
/// What is shorter is seldom a credential, and often a word.
const SHORTEST_CREDENTIAL: usize = 12;
/// The same for what stands in the place of a password in a URL.
const SHORTEST_IN_ADDRESS: usize = 8;

/// The credentials in an environment that a server inherits. Nobody named these: what looks like a path, an address or a sentence
/// is none, and of an address only its password and its parameters are.
pub fn inherited_secrets<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in variables {
        let name = name.to_ascii_uppercase();
        let is_named = CREDENTIALS.iter().any(|ending| name.ends_with(ending));
        let mut found = Vec::new();
        take_address(value, &mut found);
        if value.contains("://") || !found.is_empty() {
            secrets.extend(found.into_iter().filter(|secret| secret.len() >= SHORTEST_IN_ADDRESS && !plain::is_word(secret)));
        } else if is_named
            && value.len() >= SHORTEST_CREDENTIAL
            && !value.starts_with(['/', '.', '~'])
            && (!value.contains(' ') || name.ends_with("PASSPHRASE"))
        {
            secrets.push(value.clone());
        }
    }
    secrets
}

/// The credentials in an HTTP frame between other programs.
pub(crate) fn credentials_in(body: &FrameBody) -> Vec<String> {
    let mut secrets = crate::auth::secret_finder::secrets(body);
    if let FrameBody::HttpRequest { headers, .. } | FrameBody::HttpResponse { headers, .. } = body {
        for (name, value) in headers {
            take(name, value, &mut secrets);
            // Headers such as `Link` quote addresses, and have several.
            let parts = value.split([' ', ',', ';', '<', '>', '"', '\'']).filter(|part| part.contains("://"));
            parts.for_each(|part| take_address(part, &mut secrets));
        }
    }
    if let FrameBody::HttpRequest { url, .. } = body {
        take_address(url, &mut secrets);
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
    let is_telling = |name: &str| {
        let name = folded(name);
        tells(&name) || is_key(&name)
    };
    !url.username().is_empty() || url.password().is_some() || url.query_pairs().any(|(name, _)| is_telling(&name))
}

/// Credentials in an address, also in one of several hosts, of JDBC, or without a host: its password, or a user that is a token, and
/// parameters that are named as secrets.
pub(crate) fn take_address(text: &str, secrets: &mut Vec<String>) {
    take_connection_string(text, secrets);
    take_private_key(text, secrets);
    if let Some((_, rest)) = text.split_once("://") {
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        if let Some((user_info, _)) = authority.rsplit_once('@') {
            let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
            // A password that is no more than the name of its user is that of a server for tests.
            for secret in [Some(password).filter(|password| *password != user), Some(user).filter(|user| plain::is_opaque(user))] {
                take_encoded(secret.unwrap_or_default(), secrets);
            }
        }
    }
    // Both the query and the fragment may hold parameters.
    for form in text.split(['?', '#']).skip(1) {
        for (name, value) in form_urlencoded::parse(form.as_bytes()) {
            take(&name, &value, secrets);
            // An address in an address is shorter than that.
            if value.contains("://") {
                take_address(&value, secrets);
            }
        }
    }
}

/// Credentials in `Server=db;User ID=sa;Password=abc`, as drivers of databases and clients of clouds take it, or in
/// `host=db password=abc`, as libpq does. A value without blanks may be quoted; what is shorter than a word is a part of one.
fn take_connection_string(text: &str, secrets: &mut Vec<String>) {
    const SHORTEST: usize = 4;
    let separator = if text.contains(';') { ';' } else { ' ' };
    let settings: Vec<(&str, &str)> = text.split(separator).filter_map(|part| part.trim().split_once('=')).collect();
    if settings.len() < 2 || text.contains('\n') {
        return;
    }
    for (name, value) in settings {
        let value = value.trim().trim_matches(['\'', '"', '{', '}']);
        if value.len() >= SHORTEST && !value.starts_with('$') {
            take(name.trim(), value, secrets);
        }
    }
}

/// A private key in PEM, and each of its lines: a message may quote some, or escape what is between them.
fn take_private_key(text: &str, secrets: &mut Vec<String>) {
    if text.contains("PRIVATE KEY-----") {
        /// A shorter line may be a word.
        const SHORTEST: usize = 12;
        let lines = text.split(['\n', '\r']).flat_map(|line| line.split("\\n")).map(str::trim);
        let is_of_key = |line: &&str| line.len() >= SHORTEST && !line.starts_with("-----") && !line.contains(['"', ' ']);
        secrets.extend(lines.filter(is_of_key).map(str::to_owned));
        secrets.push(text.to_owned());
    }
}

/// As it stands in an address, and as it is.
fn take_encoded(text: &str, secrets: &mut Vec<String>) {
    if text.is_empty() {
        return;
    }
    secrets.push(text.to_owned());
    if text.contains('%') {
        // What means something in a form stands for itself here.
        let escaped = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
        secrets.extend(form_urlencoded::parse(escaped.as_bytes()).next().map(|(decoded, _)| decoded.into_owned()));
    }
}

/// A name as telltales are written, without the words that only look like them.
fn folded(name: &str) -> String {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('_', "-");
    INNOCENT.iter().fold(name, |name, innocent| if name.contains(innocent) { name.replace(innocent, "") } else { name })
}

fn tells(folded: &str) -> bool {
    let is_ending = ENDINGS.iter().any(|ending| folded.ends_with(ending) || *folded == ending[1..]);
    folded == "sig" || is_ending || TELLTALES.iter().any(|telltale| folded.contains(telltale))
}

/// Many a key is none to a lock: by which to sort, say. Its value tells. So it does whether `AUTH` is a credential or a kind.
fn is_key(folded: &str) -> bool {
    const NAMES: [&str; 3] = ["key", "auth", "pat"];
    let ends = |name: &&str| folded.strip_suffix(*name).is_some_and(|before| before.is_empty() || before.ends_with('-'));
    NAMES.iter().any(ends) || ["subscriptionkey", "accountkey", "accesskey"].iter().any(|name| folded.ends_with(name))
}

fn take(name: &str, value: &str, secrets: &mut Vec<String>) {
    let folded = folded(name);
    let is_chosen = CHOSEN.iter().any(|chosen| folded.contains(chosen));
    if tells(&folded) && (is_chosen || !plain::is_quantity(value)) {
        // `Bearer abc`: the server may well repeat `abc` alone.
        let credential = value.split_once(' ').filter(|(scheme, _)| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)));
        secrets.extend(credential.map(|(_, credential)| credential.trim().to_owned()));
        secrets.push(value.to_owned());
    } else if is_key(&folded) {
        take_key(value, secrets);
    }
}

fn take_key(value: &str, secrets: &mut Vec<String>) {
    if !plain::is_quantity(value) && !plain::is_short_word(value) {
        secrets.push(value.to_owned());
    }
}

/// In the environment a `KEY` is telling wherever it stands in a name.
fn take_variable(name: &str, value: &str, secrets: &mut Vec<String>) {
    let folded = folded(name);
    if FOLDERS.contains(&name) {
        return;
    }
    if !tells(&folded) && folded.contains("key") {
        take_key(value, secrets);
    } else {
        take(name, value, secrets);
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
            ("DATABASE_URL", "postgres://u:Pw-1234567@h/db"),
            ("TEST_DATABASE_URL", "postgres://postgres:postgres@localhost/db"),
            ("MONGO_URL", "mongodb://u:p%40ss-123@h1:1,h2:2/db"),
            ("MYSQL_PWD", "0123456789mysql"),
            ("STORE", "Server=h;User ID=sa;Password=Sa-1234567;Encrypt=true"),
            ("SIGNER", "-----BEGIN PRIVATE KEY-----\nMIIEvQ1BADANBg\n-----END PRIVATE KEY-----\n"),
            ("OPTIONS", "a=b; c=d"),
            ("MY_PASSPHRASE", "correct horse battery"),
            ("PWD", "/home/me/work"),
            ("OLDPWD", "0123456789abcdef0"),
        ]);
        let found = inherited_secrets(variables.iter().map(|(name, value)| (name, value)));
        let of_addresses = ["Pw-1234567", "p%40ss-123", "p@ss-123"];
        let named = ["ghp_0123456789abcdef", "0123456789abcdef"];
        assert_eq!(
            found,
            [
                &named[..],
                &of_addresses[..],
                &["0123456789mysql", "Sa-1234567", "MIIEvQ1BADANBg", variables[11].1.as_str(), "correct horse battery"][..]
            ]
            .concat()
        );
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
        check(
            &http("https://h/?sig=a%2Bb12&X-Amz-Signature=c1234", &[("Ocp-Apim-Subscription-Key", "o12345")]),
            &["o12345", "a+b12", "c1234"],
        );
        let azure = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=QUJD+/12==;EndpointSuffix=core.windows.net";
        check(&launch(&[("STORAGE", azure), ("PG", "host=h user=u password='p 1234'")]), &["QUJD+/12=="]);
        check(&launch(&[("PG", "host=h user=u password=p1234"), ("MODE", "password=p5678")]), &["p1234"]);
        check(&launch(&[("MYSQL_PWD", "m1234"), ("MY_PASSPHRASE", "one two"), ("DB", "postgres://u:w1@h/d")]), &["one two", "m1234", "w1"]);
    }

    #[test]
    fn what_is_named_like_a_credential_and_plain_stays_readable() {
        for (name, value, expected) in [
            ("MAX_TOKENS", "1000", false),
            ("TOKEN_BUDGET", "1000", false),
            ("TOKEN_TTL", "30m", false),
            ("KEYBOARD", "german-de", false),
            ("TOKENIZER", "cl100k_base", false),
            ("SORT_KEY", "name", false),
            ("PWD", "/home/me", false),
            ("DEBUG", "true", false),
            ("PASSWORD", "1000", true),
            ("API_KEY", "1a2b3c4d", true),
            ("ENCRYPTION_KEY_1", "x1y2", true),
            ("--api-key", "abc", true),
            ("privateKeyPem", "x1y2", true),
            ("AUTH", "u-12:p-34", true),
            ("NPM_AUTH", "dXNlcjpwYXNz", true),
            ("AUTH", "none", false),
            ("GH_PAT", "pat-9f8e", true),
            ("AUTHOR", "x1y2", false),
        ] {
            assert_eq!(is_secret(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn what_flags_give_is_secret_unless_it_is_plain() {
        let variables = pairs(&[
            ("PLAIN", "DASHE_SECRET1"),
            ("OTHER", "dashesecret123"),
            ("MODE", "production"),
            ("PORT", "8080"),
            ("REGION", "us-east-1"),
            ("BASE_URL", "https://api.example.com/v1"),
            ("NODE_OPTIONS", "--max-old-space-size=4096"),
            ("NOTES", "/tmp/notes-Ab12Cd34.json"),
            ("TERM", "xterm-256color"),
        ]);
        let headers = pairs(&[
            ("X-Custom", "CUSTSECRET99"),
            ("X-Login", "Bearer abc-12"),
            ("Accept", "application/json-seq2"),
            ("MCP-Protocol-Version", "2025-11-25"),
            ("User-Agent", "Agent/9f8e7d6c"),
            ("X-Level", "3"),
        ]);
        let expected = ["DASHE_SECRET1", "dashesecret123", "CUSTSECRET99", "abc-12", "Bearer abc-12"];
        assert_eq!(given_secrets(&variables, &headers), expected);
    }

    #[test]
    fn addresses_in_headers_are_read_like_those_of_requests() {
        let check = |name: &str, value: &str, expected: &[&str]| {
            let headers = vec![(name.to_owned(), value.to_owned())];
            let mut found = credentials_in(&FrameBody::HttpResponse { exchange: mcproof_record::ExchangeId(0), status: 302, headers });
            found.sort();
            found.dedup();
            assert_eq!(found, expected, "{name}: {value}");
        };
        check("Location", "http://u:pw1234@h/cb?api_key=AK-5&page=2", &["AK-5", "pw1234"]);
        check("location", "/cb?sig=SIG-3", &["SIG-3"]);
        check("Link", "<https://h/?api_key=AK-6>; rel=\"next\", <https://h/?token=T-7>; rel=\"last\"", &["AK-6", "T-7"]);
        check("Location", "/login?next=https%3A%2F%2Fh%2F%3Fapi_key%3DAK-8", &["AK-8"]);
        check("Location", "https://h/cb#state=x&token_type=bearer", &[]);
    }
}
