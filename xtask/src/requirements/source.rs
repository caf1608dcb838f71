//! Finds the normative sentences of a page of Markdown, or of the comments of TypeScript. Knows neither files nor the table.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use sha2::{Digest as _, Sha256};

/// Words of a sentence that are kept, so that a reader finds it.
const WORDS: usize = 8;
/// Digits of a hash: few enough to read, enough to tell a page's sentences apart.
const DIGITS: usize = 10;

/// A sentence with a keyword of RFC 2119.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Page and anchor.
    pub(super) place: String,
    /// Of the sentence without markup, and of the list that it introduces.
    pub(super) hash: String,
    /// The strongest.
    pub(super) keyword: &'static str,
    pub(super) words: String,
    /// All of it, which no file of ours holds.
    pub(super) text: String,
}

/// Text that belongs together: a paragraph, an item, a row of a table.
struct Block {
    anchor: String,
    /// Lists around it.
    depth: usize,
    text: String,
}

pub(super) fn in_markdown(page: &str, text: &str) -> Vec<Found> {
    let place = |anchor: &str| if anchor.is_empty() { page.to_owned() } else { format!("{page}#{anchor}") };
    let blocks = blocks(without_front_matter(text));
    let mut found = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        for sentence in sentences(&block.text) {
            let Some(keyword) = keyword(sentence) else { continue };
            let list: Vec<&str> = match sentence.ends_with(':') {
                true => blocks[at + 1..].iter().take_while(|next| next.depth > block.depth).map(|next| next.text.as_str()).collect(),
                false => Vec::new(),
            };
            let words = sentence.split(' ').take(WORDS).collect::<Vec<_>>().join(" ");
            found.push(Found {
                place: place(&block.anchor),
                hash: hash(sentence, &list),
                keyword,
                words,
                text: [&[sentence], list.as_slice()].concat().join(" / "),
            });
        }
    }
    found
}

fn without_front_matter(text: &str) -> &str {
    text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).map_or(text, |(_, rest)| rest)
}

fn hash(sentence: &str, list: &[&str]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(sentence);
    list.iter().for_each(|item| hasher.update(item));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..DIGITS].to_owned()
}

/// Splits a page; code is left out, and so are tags.
fn blocks(text: &str) -> Vec<Block> {
    let mut reader = Reader { blocks: Vec::new(), anchor: String::new(), depth: 0, text: String::new(), is_hidden: false };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        reader.event(event);
    }
    reader.flush();
    reader.blocks
}

struct Reader {
    blocks: Vec<Block>,
    anchor: String,
    depth: usize,
    text: String,
    /// Inside of code or an image.
    is_hidden: bool,
}

impl Reader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::List(_)) => {
                self.flush();
                self.depth += 1;
            }
            Event::End(TagEnd::List(_)) => {
                self.flush();
                self.depth -= 1;
            }
            Event::Start(Tag::CodeBlock(_) | Tag::Image { .. }) => self.is_hidden = true,
            Event::End(TagEnd::CodeBlock | TagEnd::Image) => self.is_hidden = false,
            Event::End(TagEnd::Heading(_)) => {
                self.anchor = slug(&self.text);
                self.flush();
            }
            Event::Start(Tag::Paragraph | Tag::Item | Tag::Heading { .. } | Tag::TableRow | Tag::TableHead | Tag::HtmlBlock)
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableRow | TagEnd::TableHead | TagEnd::HtmlBlock) => self.flush(),
            Event::End(TagEnd::TableCell) => self.text.push_str(" | "),
            Event::Text(text) | Event::Code(text) if !self.is_hidden => self.text.push_str(&text),
            Event::Html(html) => self.text.push_str(&without_tags(&html)),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            _ => {}
        }
    }

    fn flush(&mut self) {
        let text = self.text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        self.text.clear();
        if !text.is_empty() {
            self.blocks.push(Block { anchor: self.anchor.clone(), depth: self.depth, text });
        }
    }
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in html.chars() {
        match character {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            _ => text.push(character),
        }
    }
    text
}

/// The anchor of a heading, as the published pages have it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

/// Abbreviations that end no sentence.
const NO_ENDS: [&str; 5] = ["e.g.", "i.e.", "etc.", "vs.", "cf."];

fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        let before = &text[start..at];
        let last = before.rsplit(' ').next().unwrap_or_default().trim_start_matches('(');
        let ends = before.trim_end_matches(['"', ')', '”']).ends_with(['.', '!', '?']) && !NO_ENDS.contains(&last.trim_end_matches(','));
        if ends {
            sentences.push(before);
            start = at + 1;
        }
    }
    sentences.push(&text[start..]);
    sentences
}

/// The strongest keyword of a sentence.
fn keyword(sentence: &str) -> Option<&'static str> {
    let words: Vec<&str> = sentence.split(|one: char| !one.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |keyword: &str| {
        let keyword: Vec<&str> = keyword.split(' ').collect();
        words.windows(keyword.len()).any(|some| some == keyword)
    };
    const KEYWORDS: [&str; 9] =
        ["MUST NOT", "SHALL NOT", "MUST", "SHALL", "REQUIRED", "SHOULD NOT", "NOT RECOMMENDED", "SHOULD", "RECOMMENDED"];
    KEYWORDS.into_iter().find(|keyword| has(keyword))
}

/// Comments as Markdown, each below the name of what it stands before.
pub(super) fn in_typescript(page: &str, text: &str) -> Vec<Found> {
    let (mut found, mut declared) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/**") {
        let Some((comment, after)) = after.split_once("*/") else { break };
        if let Some(name) = before.lines().rev().find_map(declaration) {
            declared = name;
        }
        let next = after.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let anchor = declaration(next).unwrap_or_else(|| format!("{declared}-{}", member(next)));
        for one in in_markdown(page, &comment_text(comment)) {
            found.push(Found { place: format!("{page}#{}", anchor.to_lowercase()), ..one });
        }
        rest = after;
    }
    found
}

/// What a line declares for the whole file.
fn declaration(line: &str) -> Option<String> {
    let rest = line.strip_prefix("export ")?;
    let (_, name) = rest.split_once(' ')?;
    Some(name.split(|one: char| !one.is_alphanumeric() && one != '_').next()?.to_owned())
}

/// The name of a member, without what the published pages leave out.
fn member(line: &str) -> String {
    let name = line.trim().trim_start_matches(['"', '[']);
    name.chars().take_while(|one| !matches!(one, '?' | ':' | '"' | ']')).filter(|one| one.is_alphanumeric() || *one == '_').collect()
}

/// A comment without its stars; its examples are left out, and its links are their texts.
fn comment_text(comment: &str) -> String {
    let mut text = String::new();
    let mut is_example = false;
    for line in comment.lines() {
        let line = line.trim_start().trim_start_matches('*').trim_start();
        match line.strip_prefix('@').map(|tag| tag.split_once(' ').unwrap_or((tag, ""))) {
            Some((tag, words)) => {
                is_example = tag == "example";
                if !is_example {
                    text += &format!("\n\n{words}\n");
                }
            }
            None if is_example => {}
            None => text += &format!("{line}\n"),
        }
    }
    while let Some((before, (link, after))) = text.split_once("{@link ").and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        text = format!("{before}`{}`{after}", link.rsplit('|').next().unwrap_or_default().trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(found: &[Found]) -> Vec<String> {
        found.iter().map(|one| format!("{} {} {}", one.place, one.keyword, one.words)).collect()
    }

    #[test]
    fn sentences_with_keywords_are_found_with_their_places() {
        let page = "---\ntitle: MUST not count\n---\n\n## Pings & Pongs\n\nPlain. The receiver **MUST** respond, e.g. at once. It `may` not.\n\n\
                    - Servers\n  [SHOULD NOT](x) wait\n\n```\nMUST be code\n```\n\n<Note>\n  Notes are RECOMMENDED.\n</Note>\n\n\
                    | a | SHALL |\n|---|---|\n| b | MUST NOT |\n";
        assert_eq!(
            told(&in_markdown("basic/ping", page)),
            [
                "basic/ping#pings-pongs MUST The receiver MUST respond, e.g. at once.",
                "basic/ping#pings-pongs SHOULD NOT Servers SHOULD NOT wait",
                "basic/ping#pings-pongs RECOMMENDED Notes are RECOMMENDED.",
                "basic/ping#pings-pongs SHALL a | SHALL |",
                "basic/ping#pings-pongs MUST NOT b | MUST NOT |",
            ]
        );
    }

    #[test]
    fn a_list_belongs_to_the_sentence_that_introduces_it() {
        let hash = |text: &str| in_markdown("p", text).remove(0).hash;
        assert_ne!(hash("It MUST have:\n\n- a\n- b\n"), hash("It MUST have:\n\n- a\n- c\n"));
        assert_eq!(hash("It MUST have one.\n\n- a\n"), hash("It **MUST**\nhave one.\n\n- b\n"));
    }

    #[test]
    fn comments_stand_below_what_they_describe() {
        let text = "/**\n * The {@link X | thing} MUST be.\n *\n * @example\n * {@includeCode MUST.json}\n */\nexport interface Thing {\n  /**\n   * It SHOULD\n   * fit.\n   */\n  size?: number;\n}\n";
        assert_eq!(
            told(&in_typescript("schema", text)),
            ["schema#thing MUST The thing MUST be.", "schema#thing-size SHOULD It SHOULD fit."]
        );
    }
}
