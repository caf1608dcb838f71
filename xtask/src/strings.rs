//! Every text in the sources that a user may read: literals of several words, and the help of the command line. A list to be read by
//! a person, in one sitting. Knows tokens of Rust, not what becomes of a text.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

/// Prints a line for each text: its file, a tab, and the text.
///
/// # Errors
/// A source cannot be read.
pub(crate) fn strings(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    let crates = fs::read_dir(root.join("crates")).map_err(|error| format!("cannot read crates: {error}"))?;
    for folder in crates.flatten() {
        sources(&folder.path().join("src"), &mut files)?;
    }
    files.sort();
    let mut lines = String::new();
    for file in files {
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {shown}: {error}"))?;
        let tokens: TokenStream = text.parse().map_err(|error| format!("{shown} is not Rust: {error}"))?;
        for text in texts(tokens, Within::Code) {
            lines += &format!("{shown}\t{text}\n");
        }
    }
    Ok(lines)
}

/// Files of Rust below a folder, without those that hold tests only.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" {
            continue;
        } else if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Where tokens stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    /// The declaration of flags or commands, whose comments are help.
    Help,
}

fn texts(tokens: TokenStream, within: Within) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    // What the attributes before an item say of it.
    let (mut is_test, mut is_help) = (false, false);
    for (index, token) in tokens.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).map(|place| tokens[place].to_string()).unwrap_or_default();
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && before(1) == "#" => {
                let attribute = group.stream().to_string();
                is_test |= attribute.starts_with("cfg (test)") || attribute.starts_with("cfg(test)");
                is_help |= attribute.starts_with("derive") && ["Args", "Parser", "Subcommand"].iter().any(|name| attribute.contains(name));
                if within == Within::Help || is_help && attribute.starts_with("doc") {
                    found.extend(group.stream().into_iter().filter_map(|token| sentence(&token)));
                }
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                if !is_test {
                    found.extend(texts(group.stream(), if is_help { Within::Help } else { Within::Code }));
                }
                (is_test, is_help) = (false, false);
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => (is_test, is_help) = (false, false),
            // What `expect` names is an invariant, for us.
            TokenTree::Group(_) if before(1) == "expect" && before(2) == "." => {}
            TokenTree::Group(group) => found.extend(texts(group.stream(), within)),
            token => found.extend(sentence(token)),
        }
    }
    found
}

/// A literal of several words, on one line.
fn sentence(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let literal = literal.to_string();
    let inner = literal.trim_start_matches(['r', '#']).trim_end_matches('#').strip_prefix('"')?.strip_suffix('"')?;
    let text: Vec<&str> = inner.split_whitespace().filter(|word| *word != "\\").collect();
    let has_words =
        text.windows(2).any(|two| two.iter().all(|word| word.starts_with(|first: char| first.is_ascii_lowercase() || first == '`')));
    has_words.then(|| text.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: &[&str]) {
        assert_eq!(texts(code.parse().unwrap(), Within::Code), expected, "{code}");
    }

    #[test]
    fn literals_of_several_words_and_help_are_listed() {
        check(r#"fn a() { b("no free port", 1, "tools/list"); }"#, &["no free port"]);
        check(r##"fn a() { b(r#"a raw text"#) }"##, &["a raw text"]);
        check(r#"fn a() { b.expect("the lock is held"); c("one word: Error") }"#, &["one word: Error"]);
        check("/// Not for users.\nfn a() {}", &[]);
        check(
            "#[derive(clap::Args)]\nstruct A {\n    /// Send this header\n    header: u8,\n}\n/// not for users\nfn a() {}",
            &["Send this header"],
        );
        check("#[cfg(test)]\nmod tests { fn a() { b(\"not for users\") } }\nfn a() { b(\"but this is\") }", &["but this is"]);
    }

    #[test]
    fn the_sources_are_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let listed = strings(root).unwrap();
        for line in
            ["crates/cli/src/exit.rs\tserver could not be reached or started\n", "crates/cli/src/target.rs\tCommand that starts the server"]
        {
            assert!(listed.contains(line), "{line}");
        }
    }
}
