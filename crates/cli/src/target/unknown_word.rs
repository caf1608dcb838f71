//! What to say of a word that names no server: what it is instead, or what was probably meant. The same words, with and without a
//! configuration file.

use super::config::FILES;
use crate::failure::Failure;
use crate::settings;
use crate::suggest;
use mcproof_analysis::interpreter;
use std::path::Path;

/// A word, and what is known around it.
pub(super) struct UnknownWord<'a> {
    pub(super) word: &'a str,
    /// The configuration file that was looked into, if there is one.
    pub(super) file: Option<&'a str>,
    /// The servers in configuration files.
    pub(super) known: &'a [&'a str],
    /// The servers in the file of this name, if it is a configuration file itself.
    pub(super) inside: &'a [String],
}

/// What kinds of files are good for, by the end of their names; the first one counts.
const PURPOSES: [(&str, &str, &str); 6] = [
    ("mcproof.yaml", "a suite", "run it with `mcproof test FILE`"),
    (".mock.yaml", "a mock", "serve it with `mcproof mock FILE`"),
    (".yaml", "a file", "`mcproof test FILE` runs a suite, `mcproof watch FILE` monitors the targets of a configuration"),
    (".yml", "a file", "`mcproof test FILE` runs a suite, `mcproof watch FILE` monitors the targets of a configuration"),
    (".lock", "a lock", "compare a server with it: mcproof diff FILE -- COMMAND"),
    (".mcptrace", "a trace", "show it with `mcproof trace show FILE`"),
];

impl UnknownWord<'_> {
    pub(super) fn failure(&self) -> Failure {
        let (message, hint) = self.told();
        Failure::bad_input("unknown-server", message).hint(hint)
    }

    fn told(&self) -> (String, String) {
        let Self { word, known, .. } = *self;
        self.as_file().unwrap_or_else(|| {
            let hint = suggest::did_you_mean(word, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            (self.unknown(), hint.or_else(|| as_command(word)).or_else(|| as_url(word)).unwrap_or_else(|| self.as_name()))
        })
    }

    fn unknown(&self) -> String {
        let word = self.word;
        match self.file {
            Some(file) => format!("no server named `{word}` in {file}"),
            None => format!("`{word}` is not a URL or a known server: no {} in this directory or its parents", FILES.join(", no ")),
        }
    }

    /// A file that is there, or whose name says that it should be.
    fn as_file(&self) -> Option<(String, String)> {
        let Self { word, file, inside, .. } = *self;
        let path = Path::new(word);
        if path.is_dir() {
            return Some((format!("`{word}` is a directory, not a server"), COMMAND_OR_URL.to_owned()));
        }
        let purpose = PURPOSES.iter().find(|(end, ..)| word.ends_with(end));
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if !path.is_file() {
            let is_file = purpose.is_some() || is_json;
            return is_file.then(|| (format!("file `{word}` does not exist"), "check the path".to_owned()));
        }
        if let Some((_, noun, purpose)) = purpose {
            return Some((format!("`{word}` is {noun}, not a server"), purpose.replace("FILE", word)));
        }
        match inside {
            [] if is_json => Some((format!("`{word}` is a file, not a server"), COMMAND_OR_URL.to_owned())),
            [] => None,
            servers => {
                let flag = if file == Some(word) { String::new() } else { format!(" with --config {word}") };
                let hint = format!("name one of its servers{flag}: {}", servers.join(", "));
                Some((format!("`{word}` is a configuration file, not a server"), hint))
            }
        }
    }

    fn as_name(&self) -> String {
        let command = format!("to start a command, put `--` before it: -- {}", self.word);
        match self.known {
            [] => command,
            known if settings::program_exists(self.word) => format!("{command}; known servers: {}", known.join(", ")),
            known => format!("known servers: {}", known.join(", ")),
        }
    }
}

const COMMAND_OR_URL: &str = "pass a URL, or a command after `--`";

/// A script as its interpreter starts it, a program that is there, and several words as they were typed.
fn as_command(word: &str) -> Option<String> {
    let started = match interpreter(Path::new(word)).filter(|_| !word.contains(' ')) {
        Some(interpreter) => format!("{interpreter} {word}"),
        None if word.contains(' ') || word.starts_with(['/', '.', '~']) || Path::new(word).is_file() => word.to_owned(),
        None => return None,
    };
    Some(format!("to start a command, put `--` before it: -- {started}"))
}

fn as_url(word: &str) -> Option<String> {
    if !word.contains([':', '/']) && word != "localhost" {
        return None;
    }
    let (scheme, rest) = word.split_once(":/").unwrap_or(("http", word));
    let host = if rest.starts_with(':') { "localhost" } else { "" };
    Some(format!("for a URL, write {scheme}://{host}{rest}; for a command, put `--` before it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_names_no_server_gets_the_same_hint_with_and_without_a_configuration() {
        for (word, expected) in [
            ("127.0.0.1:3000", "for a URL, write http://127.0.0.1:3000; for a command, put `--` before it"),
            (":3000", "for a URL, write http://localhost:3000; for a command, put `--` before it"),
            ("http:/h/mcp", "for a URL, write http://h/mcp; for a command, put `--` before it"),
            ("example.com/mcp", "for a URL, write http://example.com/mcp; for a command, put `--` before it"),
            ("server.js", "to start a command, put `--` before it: -- node server.js"),
            ("./server", "to start a command, put `--` before it: -- ./server"),
            ("node server.js", "to start a command, put `--` before it: -- node server.js"),
        ] {
            for (file, known) in [(None, &[][..]), (Some("mcp.json"), &["shop"][..])] {
                let (_, hint) = UnknownWord { word, file, known, inside: &[] }.told();
                assert_eq!(hint, expected, "{word} {known:?}");
            }
        }
    }

    #[test]
    fn a_file_is_told_apart_from_one_that_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let inside = ["shop".to_owned()];
        let check = |name: &str, inside: &[String], message: &str, hint: &str| {
            let word = path(name);
            let (found, advice) = UnknownWord { word: &word, file: None, known: &[], inside }.told();
            let shown = |text: &str| text.replace("FILE", &word);
            assert_eq!((found, advice), (shown(message), shown(hint)));
        };
        for name in ["mcp.json", "shop.mcproof.yaml", "mcproof.lock", "a.mcptrace", "other.json"] {
            std::fs::write(path(name), "").expect("a file");
        }
        check("mcp.json", &inside, "`FILE` is a configuration file, not a server", "name one of its servers with --config FILE: shop");
        check("shop.mcproof.yaml", &[], "`FILE` is a suite, not a server", "run it with `mcproof test FILE`");
        check("mcproof.lock", &[], "`FILE` is a lock, not a server", "compare a server with it: mcproof diff FILE -- COMMAND");
        check("a.mcptrace", &[], "`FILE` is a trace, not a server", "show it with `mcproof trace show FILE`");
        check("other.json", &[], "`FILE` is a file, not a server", "pass a URL, or a command after `--`");
        check("", &[], "`FILE` is a directory, not a server", "pass a URL, or a command after `--`");
        for name in ["no.json", "no.mcproof.yaml", "no.lock", "no.mcptrace"] {
            check(name, &[], "file `FILE` does not exist", "check the path");
        }
    }
}
