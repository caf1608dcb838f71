//! A page of Markdown as its code blocks, with what the tests are told about them.

use super::matching::{differences, normal};
use super::room::{Ran, Room};
use std::fmt::Write as _;
use std::path::Path;

pub(crate) struct Page {
    name: String,
    parts: Vec<Part>,
    /// From `<!-- with: NAME=VALUE … -->`.
    with: Vec<(String, String)>,
}

enum Part {
    Line(String),
    Block(Block),
}

pub(crate) struct Block {
    page: String,
    line: usize,
    /// Before each line, such as the spaces of a list.
    indent: String,
    info: String,
    lines: Vec<String>,
    /// From `<!-- not run: WHY -->` above it.
    reason: Option<String>,
}

/// A command with the output that the page shows.
struct Typed {
    command: String,
    output: Vec<String>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let name = super::name(path);
        let (mut parts, mut with, mut open, mut reason) = (Vec::new(), Vec::new(), None::<Block>, None);
        for (at, line) in text.lines().enumerate() {
            let bare = line.trim_start();
            if let Some(block) = &mut open {
                if bare == "```" {
                    parts.extend(open.take().map(Part::Block));
                } else {
                    block.lines.push(line.strip_prefix(block.indent.as_str()).unwrap_or(bare).to_owned());
                }
                continue;
            }
            if let Some(info) = bare.strip_prefix("```") {
                let indent = line[..line.len() - bare.len()].to_owned();
                open = Some(Block {
                    page: name.clone(),
                    line: at + 1,
                    indent,
                    info: info.to_owned(),
                    lines: Vec::new(),
                    reason: reason.take(),
                });
                continue;
            }
            let comment = |name: &str| bare.strip_prefix(name).and_then(|rest| rest.strip_suffix(" -->"));
            if !bare.is_empty() {
                reason = comment("<!-- not run: ").map(str::to_owned);
            }
            for pair in comment("<!-- with: ").into_iter().flat_map(str::split_whitespace) {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                with.push((name.to_owned(), value.to_owned()));
            }
            parts.push(Part::Line(line.to_owned()));
        }
        assert!(open.is_none(), "{name}: a code block does not end");
        Self { name, parts, with }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            Part::Line(_) => None,
        })
    }

    /// Types every command in order, and compares.
    pub(crate) fn run(&self) -> Result<(), String> {
        let Some(mut room) = self.room()? else { return Ok(()) };
        let mut wrong = String::new();
        let suites: Vec<&Block> = self.blocks().filter(|block| self.is_silent_suite(block)).collect();
        for block in self.blocks().filter(|block| block.reason.is_none()) {
            if let Some(file) = block.title() {
                room.lay(file, &block.text());
            }
            if !block.is_console() {
                continue;
            }
            let commands = block.commands();
            for (at, typed) in commands.iter().enumerate() {
                let ran = room.run(&typed.command)?;
                let code_is_shown = commands.get(at + 1).is_some_and(|next| next.command == "echo $?");
                if ran.code != 0 && !code_is_shown {
                    let Ran { code, lines } = &ran;
                    write!(
                        wrong,
                        "{}: `{}` exits with {code}, and no `echo $?` follows:\n{}\n",
                        block.place(),
                        typed.command,
                        lines.join("\n")
                    )
                    .unwrap();
                }
                if let Some(difference) = differences(&typed.output, &ran.lines) {
                    writeln!(wrong, "{}: `{}` {difference}", block.place(), typed.command).unwrap();
                }
            }
        }
        for file in suites.iter().filter_map(|block| block.title()) {
            let ran = room.run(&format!("mcproof test {file} --update-snapshots"))?;
            if ran.code != 0 {
                write!(wrong, "{}: {file} does not pass:\n{}\n", self.name, ran.lines.join("\n")).unwrap();
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Puts what the commands print where the page says something else.
    pub(crate) fn write(mut self, path: &Path) {
        let Some(mut room) = self.room().unwrap() else { return };
        for part in &mut self.parts {
            let Part::Block(block) = part else { continue };
            if block.reason.is_some() {
                continue;
            }
            if let Some(file) = block.title() {
                room.lay(file, &block.text());
            }
            if block.is_console() {
                let mut lines = Vec::new();
                for typed in block.commands() {
                    let ran = room.run(&typed.command).unwrap();
                    lines.extend(
                        typed.command.lines().enumerate().map(|(at, line)| if at == 0 { format!("$ {line}") } else { line.to_owned() }),
                    );
                    let keep = !typed.output.is_empty() && differences(&typed.output, &ran.lines).is_none();
                    lines.extend(if keep { typed.output } else { ran.lines });
                }
                block.lines = lines;
            }
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Line(line) => writeln!(text, "{line}").unwrap(),
                Part::Block(Block { indent, info, lines, .. }) => {
                    writeln!(text, "{indent}```{info}").unwrap();
                    for line in lines {
                        writeln!(text, "{}", format!("{indent}{line}").trim_end()).unwrap();
                    }
                    writeln!(text, "{indent}```").unwrap();
                }
            }
        }
        if text != std::fs::read_to_string(path).unwrap() {
            std::fs::write(path, text).unwrap();
        }
    }

    /// A folder for the page; nothing if there is nothing to run.
    fn room(&self) -> Result<Option<Room>, String> {
        let runs = self.blocks().any(|block| block.reason.is_none() && (block.is_console() || self.is_silent_suite(block)));
        if runs { Room::new(&self.with).map(Some).map_err(|why| format!("{}: {why}", self.name)) } else { Ok(None) }
    }

    /// A suite that no command of the page names is run as well.
    fn is_silent_suite(&self, block: &Block) -> bool {
        let named = |file: &str| self.blocks().filter(|block| block.is_console()).any(|block| block.text().contains(file));
        block.reason.is_none() && block.title().is_some_and(|file| file.ends_with(".mcproof.yaml") && !named(file))
    }
}

impl Block {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    /// The file that the block shows.
    fn title(&self) -> Option<&str> {
        self.info.split_once("title=\"").and_then(|(_, rest)| rest.split('"').next())
    }

    fn is_console(&self) -> bool {
        self.language() == "console"
    }

    /// Whether a reader would copy it, and nothing shows that it works.
    pub(crate) fn needs_a_reason(&self) -> bool {
        !matches!(self.language(), "text" | "console") && self.title().is_none() && self.reason.is_none()
    }

    fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    fn commands(&self) -> Vec<Typed> {
        let mut commands: Vec<Typed> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push(Typed { command: command.to_owned(), output: Vec::new() }),
                (None, Some(typed)) if typed.command.ends_with('\\') && typed.output.is_empty() => {
                    typed.command.push('\n');
                    typed.command += line;
                }
                (None, Some(typed)) => typed.output.push(normal(line)),
                (None, None) => panic!("{}: output before the first command", self.place()),
            }
        }
        commands
    }
}
