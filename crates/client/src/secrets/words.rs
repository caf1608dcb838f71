//! Credentials among the words of a command: values of flags and assignments, headers, and addresses. Knows no shell.

use super::{plain, take_address, take_variable};

/// How names end that only say where a secret is, or what it looks like.
const ABOUT: [&str; 8] = ["file", "path", "dir", "name", "type", "header", "limit", "ttl"];

/// Takes them out of the arguments, and out of a command line that is one of them.
pub(super) fn take_words(words: &[&str], secrets: &mut Vec<String>) {
    for (at, word) in words.iter().enumerate() {
        // `--header=Authorization: Bearer abc`
        let flagged = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map_or(*word, |(_, value)| value);
        // The text of a program is no command line: what it names, it computes.
        if word.contains('\n') {
            continue;
        }
        if word.contains(char::is_whitespace) && !is_header(flagged) {
            if word.contains(';') {
                take_address(flagged, secrets);
            }
            let inner: Vec<&str> = word.split_whitespace().map(|part| part.trim_matches(['\'', '"', ';'])).collect();
            take_words(&inner, secrets);
            continue;
        }
        let name = word.trim_start_matches('-');
        let is_flag = name.len() < word.len();
        match name.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, value)) => {
                take_argument(name, value, secrets);
                // `--env=API_KEY=abc`
                let inner = value.split_once('=').filter(|(name, _)| is_name(name));
                if let Some((name, value)) = inner.or_else(|| value.split_once(':').filter(|_| is_header(value))) {
                    take_argument(name, value.trim(), secrets);
                }
                take_address(value, secrets);
            }
            None if is_flag => {
                if let Some(next) = words.get(at + 1).filter(|next| !next.starts_with('-')) {
                    take_argument(name, next, secrets);
                }
            }
            None => {}
        }
        if let Some((name, value)) = word.split_once(':').filter(|_| is_header(word)) {
            take_argument(name, value.trim(), secrets);
        }
        take_address(word, secrets);
    }
}

fn take_argument(name: &str, value: &str, secrets: &mut Vec<String>) {
    let lower = name.to_ascii_lowercase();
    let is_about = ABOUT.iter().any(|about| lower.ends_with(about));
    // `$TOKEN` in the line of a shell is a name.
    if !is_about && !value.starts_with('$') && !plain::is_path(value) {
        take_variable(name, value, secrets);
    }
}

/// `Authorization: Bearer abc`, with or without the space.
fn is_header(word: &str) -> bool {
    word.split_once(':').is_some_and(|(name, value)| is_name(name) && !value.starts_with("//"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_among_arguments_are_found() {
        for (words, expected) in [
            (&["--api-key", "BSAkey-1"][..], &["BSAkey-1"][..]),
            (&["--token=tok-1", "--port", "80"], &["tok-1"]),
            (&["run", "-e", "GH_TOKEN=ghp_1234", "--env=DB_PASSWORD=pw-12"], &["ghp_1234", "pw-12"]),
            (&["--header", "Authorization: Bearer abc-42"], &["abc-42", "Bearer abc-42"]),
            (&["--header=X-Api-Key:abc-42"], &["abc-42"]),
            (&["--url", "https://u:pw-1@h/?api_key=key-1"], &["pw-1", "key-1"]),
            (&["-c", "exec server --password 'hunter22' --port 80"], &["hunter22"]),
            (&["--db", "Server=h;User ID=sa;Password=Sa-12;Encrypt=true"], &["Sa-12"]),
            (&["--db=Server=h;Uid=sa;Pwd=Sa-12"], &["Sa-12"]),
            (&["--max-tokens", "4096", "--key", "/etc/key.pem", "--token-file", "here", "--verbose"], &[]),
            (&["-c", "exec server --token $TOKEN"], &[]),
            (&["-c", "import sys\ntoken = sys.argv[1]\nstart(token=sys.argv[2])"], &[]),
            (&["https://a.example.com/mcp", "--name", "tokens", "--sort-key", "name"], &[]),
        ] {
            let mut found = Vec::new();
            take_words(words, &mut found);
            found.dedup();
            assert_eq!(found, expected, "{words:?}");
        }
    }
}
