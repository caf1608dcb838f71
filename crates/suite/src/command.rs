//! A command line that no shell will read: split into words, and refused where it counts on a shell.

use super::template::template_ranges;

/// What is wrong with a command line; `part` is the text to point at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadCommand {
    pub(crate) part: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Splits as a POSIX shell would. A variable stays inside of its word, whatever its value turns out to be.
pub(crate) fn split_command(line: &str) -> Result<Vec<String>, BadCommand> {
    // A private-use character stands for each variable while quotes and spaces are looked at.
    const STAND_IN: char = '\u{f8ff}';
    let mut plain = String::new();
    let mut variables = Vec::new();
    let mut at = 0;
    for range in template_ranges(line) {
        plain.push_str(&line[at..range.start]);
        plain.push(STAND_IN);
        variables.push(&line[range.clone()]);
        at = range.end;
    }
    plain.push_str(&line[at..]);
    check_without_shell(&plain)?;
    let words = shlex::split(&plain).ok_or_else(|| BadCommand {
        part: String::new(),
        message: "a quote in this command is never closed".to_owned(),
        hint: "close it, or write the command as a list of words".to_owned(),
    })?;
    if words.is_empty() {
        return Err(BadCommand { part: String::new(), message: "this command is empty".to_owned(), hint: "name a program".to_owned() });
    }
    let mut variables = variables.into_iter();
    let fill = |word: String| {
        let mut filled = String::new();
        for character in word.chars() {
            match (character, character == STAND_IN) {
                (_, true) => filled.push_str(variables.next().unwrap_or_default()),
                (other, false) => filled.push(other),
            }
        }
        filled
    };
    Ok(words.into_iter().map(fill).collect())
}

fn check_without_shell(line: &str) -> Result<(), BadCommand> {
    let first = line.split_whitespace().next().unwrap_or_default();
    if let Some((name, _)) = first.split_once('=')
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    {
        return Err(BadCommand {
            part: name.to_owned(),
            message: format!("no shell reads this command, so `{name}=…` sets nothing"),
            hint: format!("write `env: {{ {name}: … }}` beside `command`"),
        });
    }
    let mut quote = None;
    let mut characters = line.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        let rest = &line[index..];
        match (quote, character) {
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None | Some('"'), '`') => return Err(shell("`")),
            (None | Some('"'), '$') if rest.starts_with("$(") => return Err(shell("$(")),
            (None | Some('"'), '$') => {
                let end = rest[1..]
                    .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
                    .map_or(rest.len(), |end| end + 1);
                if end > 1 && !rest[1..].starts_with(|digit: char| digit.is_ascii_digit()) {
                    let (variable, name) = (&rest[..end], &rest[1..end]);
                    return Err(BadCommand {
                        part: variable.to_owned(),
                        message: format!("no shell reads this command, so `{variable}` stays as it is"),
                        hint: format!("write `${{env.{name}}}`"),
                    });
                }
            }
            (None, '|' | '&' | ';' | '<' | '>' | '\n') => {
                let operator = ["&&", "||", ">>", "<<"].into_iter().find(|operator| rest.starts_with(operator));
                return Err(shell(operator.unwrap_or(&rest[..1])));
            }
            _ => {}
        }
    }
    Ok(())
}

fn shell(operator: &str) -> BadCommand {
    let shown = if operator == "\n" { "a line break" } else { &format!("`{operator}`") };
    BadCommand {
        part: operator.trim().to_owned(),
        message: format!("no shell reads this command, so {shown} means nothing in it"),
        hint: "write `command: [\"sh\", \"-c\", \"…\"]`, or put the text in quotes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        let check = |line: &str, expected: &[&str]| assert_eq!(split_command(line).unwrap(), expected, "{line}");
        check("python shop.py", &["python", "shop.py"]);
        check("  npx -y 'a b'  \"c d\" e\\ f ", &["npx", "-y", "a b", "c d", "e f"]);
        check("python -c 'a > b && c'", &["python", "-c", "a > b && c"]);
        check("python --port ${port} --x=${a b}", &["python", "--port", "${port}", "--x=${a b}"]);
        check("${env.PY:-/usr/my bin/python} x", &["${env.PY:-/usr/my bin/python}", "x"]);
        check("a '${b}' $${c}", &["a", "${b}", "$${c}"]);
        check("node --opt=1 a=b", &["node", "--opt=1", "a=b"]);
        check("awk '{print $1}' $1", &["awk", "{print $1}", "$1"]);
        check("echo \\$HOME '$HOME'", &["echo", "$HOME", "$HOME"]);
    }

    #[test]
    fn a_command_that_counts_on_a_shell_is_refused() {
        let check = |line: &str, part: &str, message: &str| {
            let bad = split_command(line).unwrap_err();
            assert_eq!((bad.part.as_str(), bad.message.as_str()), (part, message), "{line}");
        };
        check("cd x && python y", "&&", "no shell reads this command, so `&&` means nothing in it");
        check("a | b", "|", "no shell reads this command, so `|` means nothing in it");
        check("a > log", ">", "no shell reads this command, so `>` means nothing in it");
        check("a 2>>log", ">>", "no shell reads this command, so `>>` means nothing in it");
        check("a; b", ";", "no shell reads this command, so `;` means nothing in it");
        check("a $(pwd)", "$(", "no shell reads this command, so `$(` means nothing in it");
        check("a \"$(pwd)\"", "$(", "no shell reads this command, so `$(` means nothing in it");
        check("a `pwd`", "`", "no shell reads this command, so ``` means nothing in it");
        check("a\nb", "", "no shell reads this command, so a line break means nothing in it");
        check("PORT=3 node x", "PORT", "no shell reads this command, so `PORT=…` sets nothing");
        check("cat $HOME/x", "$HOME", "no shell reads this command, so `$HOME` stays as it is");
        check("a 'b", "", "a quote in this command is never closed");
        check("   ", "", "this command is empty");
    }
}
