//! Words that the project no longer uses (`docs/retired-words.txt`). Only a test: it looks through every file that git knows.

use std::path::Path;
use std::process::Command;

/// The list itself, and decisions, which may name what was.
const MAY_USE_THEM: [&str; 2] = ["docs/retired-words.txt", "docs/decisions/"];

#[test]
fn retired_words_are_gone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let list = std::fs::read_to_string(root.join("docs/retired-words.txt")).unwrap();
    let words: Vec<&str> = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert!(words.len() > 50, "the list is read");
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    assert!(listed.status.success(), "git lists the files of the checkout");
    let mut found = Vec::new();
    for file in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|file| !file.is_empty()) {
        if MAY_USE_THEM.iter().any(|start| file.starts_with(start)) {
            continue;
        }
        // Fixtures are bytes, too.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        found.extend(words.iter().filter(|word| holds(&text, word)).map(|word| format!("{file}: {word}")));
    }
    assert!(found.is_empty(), "retired words (docs/GLOSSARY.md has those that took their place):\n{}", found.join("\n"));
}

/// Whether a text holds a word that is not a part of a longer one.
fn holds(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    text.match_indices(word).any(|(start, _)| !text[..start].ends_with(is_part) && !text[start + word.len()..].starts_with(is_part))
}

#[test]
fn words_are_whole() {
    for (text, expected) in [("a parcel.", true), ("parcels", false), ("a_parcel", false), ("air-parcel:", false), ("parcel", true)] {
        assert_eq!(holds(text, "parcel"), expected, "{text}");
    }
}
