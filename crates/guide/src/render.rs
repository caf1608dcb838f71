//! A page of Markdown for a terminal: paragraphs wrapped, code indented, tables aligned, links as what to type.

use crate::find;
use anstyle::{AnsiColor, Style as Paint};
use comfy_table::{ContentArrangement, Table, presets};
use mcproof_report::{Color, Style};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

/// Lines of text that are longer are hard to read.
const WIDEST: usize = 100;

const HEADING: Paint = Paint::new().bold();
const CODE: Paint = AnsiColor::Cyan.on_default();
const PROMPT: Paint = Paint::new().bold();
const DIM: Paint = Paint::new().dimmed();

/// The page, with a line break at its end.
pub fn render(markdown: &str, style: &Style) -> String {
    let mut page = Page::new(style);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.text.trim_end().to_owned() + "\n"
}

struct Page {
    text: String,
    width: usize,
    color: Color,
    /// The paragraph, heading or cell that is being read.
    words: Inline,
    /// Where each open link leads.
    links: Vec<String>,
    /// The next number of each open list, or `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Stands before the first line of a list item.
    mark: Option<String>,
    code: Option<Code>,
    table: Option<Rows>,
}

/// Text with the style of each part, before it is broken into lines.
#[derive(Default)]
struct Inline {
    parts: Vec<(Paint, String)>,
    bold: usize,
}

#[derive(Default)]
struct Code {
    text: String,
    is_console: bool,
}

#[derive(Default)]
struct Rows {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn new(style: &Style) -> Self {
        Self {
            text: String::new(),
            width: style.width.clamp(40, WIDEST),
            color: style.color,
            words: Inline::default(),
            links: Vec::new(),
            lists: Vec::new(),
            mark: None,
            code: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text += &text,
                None => self.words.add(if self.words.bold > 0 { HEADING } else { Paint::new() }, &text),
            },
            Event::Code(text) => self.words.add(CODE, &format!("`{text}`")),
            Event::SoftBreak | Event::HardBreak => self.words.add(Paint::new(), " "),
            Event::Rule => self.text += "\n",
            // Comments say what the tests do with a block.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong | Tag::Emphasis => self.words.bold += 1,
            Tag::Link { dest_url, .. } => self.links.push(dest_url.into_string()),
            Tag::Image { .. } => self.words.add(DIM, "picture: "),
            Tag::List(first) => {
                self.paragraph(Spacing::Tight);
                self.lists.push(first);
            }
            Tag::Item => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                self.mark = Some(number.map_or_else(
                    || "- ".to_owned(),
                    |number| {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    },
                ));
            }
            Tag::CodeBlock(kind) => {
                self.paragraph(Spacing::Tight);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                if let Some(title) = info.split_once("title=\"").and_then(|(_, rest)| rest.split('"').next()) {
                    self.gap();
                    self.text += &format!("{}  {}\n", self.indent(), self.paint(DIM, &format!("{title}:")));
                }
                self.code = Some(Code { text: String::new(), is_console: info.starts_with("console") });
            }
            Tag::Table(_) => self.table = Some(Rows::default()),
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.gap();
                let title = self.words.take_plain();
                self.text += &format!("{}\n", self.paint(HEADING, &title));
            }
            TagEnd::Paragraph => self.paragraph(if self.lists.is_empty() { Spacing::Apart } else { Spacing::Tight }),
            TagEnd::Strong | TagEnd::Emphasis => self.words.bold = self.words.bold.saturating_sub(1),
            TagEnd::Link => {
                let target = self.links.pop().and_then(|link| typed(&link));
                if let Some(target) = target.filter(|target| !self.words.ends_with(target)) {
                    self.words.add(DIM, &format!(" ({target})"));
                }
            }
            TagEnd::Item => self.paragraph(Spacing::Tight),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::TableCell => {
                let cell = self.words.take_plain();
                if let Some(table) = &mut self.table {
                    table.rows.last_mut().unwrap_or(&mut table.head).push(cell);
                }
            }
            TagEnd::Table => self.table(),
            _ => {}
        }
    }

    fn indent(&self) -> String {
        " ".repeat(self.lists.len() * 2)
    }

    /// An empty line, unless there is one.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn paragraph(&mut self, spacing: Spacing) {
        if self.words.parts.is_empty() {
            return;
        }
        let mark = self.mark.take();
        if spacing == Spacing::Apart || (mark.is_none() && !self.lists.is_empty()) || (mark.is_some() && self.starts_list()) {
            self.gap();
        }
        let hanging = self.indent();
        let first = mark.map_or_else(|| hanging.clone(), |mark| format!("{:>width$}", mark, width = hanging.len()));
        let parts = std::mem::take(&mut self.words.parts);
        let mut line = first;
        let (mut used, mut is_fresh) = (line.width(), true);
        for word in words(&parts) {
            let width: usize = word.iter().map(|(_, text)| text.width()).sum();
            if !is_fresh && used + 1 + width > self.width {
                self.text += line.trim_end();
                self.text.push('\n');
                line.clone_from(&hanging);
                (used, is_fresh) = (hanging.width(), true);
            }
            if !is_fresh {
                line.push(' ');
                used += 1;
            }
            for (paint, text) in word {
                line += &self.paint(paint, text);
            }
            (used, is_fresh) = (used + width, false);
        }
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// Whether the line above belongs to no list.
    fn starts_list(&self) -> bool {
        let line = self.text.lines().last().unwrap_or_default();
        let above = line.trim_start();
        let is_item = above.starts_with("- ") || above.split_once(". ").is_some_and(|(number, _)| number.parse::<u64>().is_ok());
        !is_item && !line.starts_with("  ")
    }

    fn code_block(&mut self) {
        let Code { text, is_console } = self.code.take().unwrap_or_default();
        if !self.text.ends_with(":\n") || self.lists.is_empty() {
            self.gap();
        }
        for line in text.lines() {
            let line = match line.strip_prefix("$ ").filter(|_| is_console) {
                Some(command) => format!("$ {}", self.paint(PROMPT, command)),
                None => line.to_owned(),
            };
            self.text += format!("{}    {line}", self.indent()).trim_end();
            self.text.push('\n');
        }
    }

    fn table(&mut self) {
        let Rows { head, rows } = self.table.take().unwrap_or_default();
        self.gap();
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        if head.iter().any(|cell| !cell.is_empty()) {
            table.set_header(head.iter().map(|cell| cell.to_uppercase()));
        }
        table.add_rows(rows);
        for line in table.lines() {
            self.text += line.trim_end();
            self.text.push('\n');
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        match self.color {
            Color::Ansi if paint != Paint::new() => format!("{paint}{text}{paint:#}"),
            _ => text.to_owned(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Apart,
    Tight,
}

impl Inline {
    fn add(&mut self, paint: Paint, text: &str) {
        self.parts.push((paint, text.to_owned()));
    }

    fn ends_with(&self, text: &str) -> bool {
        self.parts.last().is_some_and(|(_, last)| last.ends_with(text))
    }

    fn take_plain(&mut self) -> String {
        std::mem::take(&mut self.parts).into_iter().map(|(_, text)| text).collect()
    }
}

/// What a reader of the terminal types, or opens, instead of following a link; nothing for a place on the same page.
fn typed(link: &str) -> Option<String> {
    if link.contains("://") {
        return Some(link.to_owned());
    }
    let (path, _) = link.split_once('#').unwrap_or((link, ""));
    let mut parts = path.rsplit('/');
    let name = parts.next()?.strip_suffix(".md")?;
    match parts.next() {
        Some("rules") if name == "README" => Some("mcproof explain".to_owned()),
        Some("rules") => Some(format!("mcproof explain {name}")),
        Some("reference") if name == "commands" => Some("mcproof help".to_owned()),
        _ => find(name).map(|topic| format!("mcproof help {}", topic.path())),
    }
}

/// The parts between spaces; a word may have several styles.
fn words(parts: &[(Paint, String)]) -> Vec<Vec<(Paint, &str)>> {
    let mut words: Vec<Vec<(Paint, &str)>> = vec![Vec::new()];
    for (paint, text) in parts {
        for (at, piece) in text.split(' ').enumerate() {
            if at > 0 {
                words.push(Vec::new());
            }
            if let Some(word) = words.last_mut().filter(|_| !piece.is_empty()) {
                word.push((*paint, piece));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOPICS;

    #[track_caller]
    fn check(markdown: &str, expected: &str) {
        assert_eq!(render(markdown, &Style { width: 40, ..Style::default() }), expected);
    }

    #[test]
    fn paragraphs_are_wrapped_and_code_is_not() {
        check(
            "# A title\n\nSome words that do not fit into forty columns.\n\n```console\n$ mcproof test a-long-name.mcproof.yaml --quiet\npassed\n```\n",
            "A title\n\nSome words that do not fit into forty\ncolumns.\n\n    $ mcproof test a-long-name.mcproof.yaml --quiet\n    passed\n",
        );
    }

    #[test]
    fn a_file_is_named_and_a_comment_is_dropped() {
        check("Write it:\n\n<!-- not run: because -->\n```yaml title=\"a.yaml\"\nb: 1\n```\n", "Write it:\n\n  a.yaml:\n\n    b: 1\n");
    }

    #[test]
    fn lists_have_hanging_lines() {
        check(
            "Two:\n\n- **one** has words beyond the edge of the screen\n- `two`\n\n1. a\n2. b\n",
            "Two:\n\n- one has words beyond the edge of the\n  screen\n- `two`\n1. a\n2. b\n",
        );
    }

    #[test]
    fn links_say_what_to_type() {
        check("See [CI](../guide/ci.md#gitlab).", "See CI (mcproof help guide/ci).\n");
        check("See [x](../rules/http-body-is-json.md).", "See x (mcproof explain\nhttp-body-is-json).\n");
        check("See [a site](https://a.example).", "See a site (https://a.example).\n");
        check("See [below](#below).", "See below.\n");
    }

    #[test]
    fn every_page_fits_the_width() {
        for topic in TOPICS {
            let text = render(topic.text, &Style { width: 80, ..Style::default() });
            let code_or_link = |line: &&str| line.starts_with("    ") || line.contains("://") || line.contains("  ");
            for line in text.lines().filter(|line| !code_or_link(line)) {
                assert!(line.width() <= 80, "{}: {line}", topic.path());
            }
        }
    }
}
