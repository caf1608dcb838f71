//! The command that runs one case or judges one rule again, as one would type it into a shell. Knows the flags that select it;
//! the caller passes the others.

use mcproof_record::CasePlan;

/// What was typed besides the selection of cases, and has to be typed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeat {
    /// Flags, each value after its flag: `--era`, `modern`.
    pub flags: Vec<String>,
    /// The command that starts the server, if it came from the command line.
    pub server: Vec<String>,
}

impl Repeat {
    /// `mcproof test shop.mcproof.yaml --filter 'name(=an order) & transport(=stdio)'`
    pub fn command(&self, case: &CasePlan) -> String {
        let filter = format!("{} & transport(={})", name_filter(&case.name), case.transport);
        let words = vec!["mcproof".to_owned(), "test".into(), quoted(&case.suite), "--filter".into(), quoted(&filter)];
        self.finish(words)
    }

    /// `mcproof check --only stdio-is-utf8 -- node server.js`
    pub fn rule(&self, rule: &str) -> String {
        self.finish(vec!["mcproof".to_owned(), "check".into(), "--only".into(), quoted(rule)])
    }

    fn finish(&self, mut words: Vec<String>) -> String {
        words.extend(self.flags.iter().map(|flag| quoted(flag)));
        if !self.server.is_empty() {
            words.push("--".into());
            words.extend(self.server.iter().map(|word| quoted(word)));
        }
        words.join(" ")
    }
}

/// Selects by the exact name, or by a pattern where the name holds what could end the matcher or paint on a terminal.
fn name_filter(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_' | '.');
    let is_bare = |name: &str| name.trim() == name && !name.is_empty();
    if name.chars().all(is_plain) && is_bare(name) {
        return format!("name(={name})");
    }
    let mut pattern = String::new();
    for character in name.chars() {
        match character {
            // A dot matches itself as well, but no line break.
            '\n' => pattern.push_str(r"\s"),
            plain if is_plain(plain) => pattern.push(plain),
            _ => pattern.push('.'),
        }
    }
    format!("name(/^{pattern}$/)")
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::CaseId;

    fn check(suite: &str, name: &str, repeat: &Repeat, expected: &str) {
        let case = CasePlan {
            id: CaseId(0),
            suite: suite.into(),
            name: name.into(),
            transport: "stdio".into(),
            line: 1,
            repetition: 0,
            tags: vec![],
            servers: vec![],
        };
        assert_eq!(repeat.command(&case), expected);
    }

    #[test]
    fn a_shell_reads_the_command_as_it_is_meant() {
        let bare = Repeat::default();
        check("a.yaml", "an order", &bare, "mcproof test a.yaml --filter 'name(=an order) & transport(=stdio)'");
        check("my suite.yaml", "x", &bare, "mcproof test 'my suite.yaml' --filter 'name(=x) & transport(=stdio)'");
        check("a", "it's (a/b)", &bare, "mcproof test a --filter 'name(/^it.s .a.b.$/) & transport(=stdio)'");
        check("a", "\u{1b}[2J\n", &bare, r"mcproof test a --filter 'name(/^..2J\s$/) & transport(=stdio)'");
        check("it's", "naïve", &bare, r"mcproof test 'it'\''s' --filter 'name(=naïve) & transport(=stdio)'");
        let repeat = Repeat {
            flags: vec!["--era".into(), "modern".into(), "--var".into(), "q=two words".into()],
            server: vec!["node".into(), "my server.js".into()],
        };
        assert_eq!(repeat.rule("r"), "mcproof check --only r --era modern --var 'q=two words' -- node 'my server.js'");
        let expected = "mcproof test a --filter 'name(=b) & transport(=stdio)' --era modern --var 'q=two words' -- node 'my server.js'";
        check("a", "b", &repeat, expected);
    }
}
