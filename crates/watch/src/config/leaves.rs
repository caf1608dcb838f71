//! The leaves that only this format has: references to secrets, URLs, periods, times of day. What a file or a variable holds
//! that a secret names is read here; no place that is shown later tells it.

use crate::moment::Moment;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_client::auth::Secret;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Key, Presence, Shape};
use mcproof_suite::reader::Reader;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// How a key is read into a draft.
pub(super) type Read<T> = fn(&mut Reader<'_>, &Node, &mut T) -> Result<(), Fault>;

pub(super) const fn optional<T>(name: &'static str, doc: &'static str, shape: Shape, read: Read<T>) -> Key<T> {
    Key { name, doc, shape, presence: Presence::Optional, read }
}

pub(super) const fn required<T>(name: &'static str, doc: &'static str, shape: Shape, read: Read<T>) -> Key<T> {
    Key { name, doc, shape, presence: Presence::Required, read }
}

pub(super) const fn one_of<T>(name: &'static str, doc: &'static str, shape: Shape, read: Read<T>) -> Key<T> {
    Key { name, doc, shape, presence: Presence::OneOf, read }
}

/// Whether a value that is written in full gives something away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// It does.
    Secret,
    /// It may stand in the file.
    Public,
}

/// `env:NAME`, `file:PATH`, a text with `${env.NAME}`, or the secret itself, of which one is warned.
pub(super) fn read_secret(reader: &mut Reader<'_>, node: &Node, secrecy: Secrecy) -> Result<Secret, Fault> {
    let written = reader.text(node)?;
    let (secret, is_literal) = match referred(reader, node, &written)? {
        Some(secret) => (secret, false),
        None => (written, is_literal(node)),
    };
    if secret.is_empty() {
        reader.error("empty-secret", "this secret is empty", node.span);
        return Err(Fault::Reported);
    }
    if is_literal && secrecy == Secrecy::Secret {
        let warning = Diagnostic::warning("literal-secret", "this file contains a secret in plain text");
        reader.report(warning.hint("write `env:NAME` and set NAME in the environment of mcproof, or write `file:PATH`"), reader.key);
    }
    Ok(Secret::new(secret))
}

/// What `env:NAME` or `file:PATH` stands for; nothing if a text is no reference.
pub(super) fn referred(reader: &mut Reader<'_>, node: &Node, written: &str) -> Result<Option<String>, Fault> {
    match written.split_once(':') {
        Some(("env", name)) => variable(reader, node, name).map(Some),
        Some(("file", path)) => file(reader, node, path).map(Some),
        _ => Ok(None),
    }
}

/// Whether a value stands in the file in full.
pub(super) fn is_literal(node: &Node) -> bool {
    match &node.kind {
        Kind::Text(text) => !text.contains("${"),
        Kind::Number(_) => true,
        _ => false,
    }
}

fn variable(reader: &mut Reader<'_>, node: &Node, name: &str) -> Result<String, Fault> {
    if let Some(value) = reader.environment.variables.get(name) {
        return Ok(value.clone());
    }
    let missing = Diagnostic::error("missing-variable", format!("the variable `{name}` is not set"));
    let hint = match did_you_mean(name, reader.environment.variables.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("set {name} in the environment of mcproof, or read a file with `file:PATH`"),
    };
    reader.report(missing.hint(hint), node.span);
    Err(Fault::Reported)
}

fn file(reader: &mut Reader<'_>, node: &Node, path: &str) -> Result<String, Fault> {
    match mcproof_suite::bounds::read_text(&reader.folder.join(path)) {
        Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => {
            let unreadable = Diagnostic::error("cannot-read", format!("`{path}` cannot be read: {error}"));
            reader.report(unreadable.hint(BEGINS), node.span);
            Err(Fault::Reported)
        }
    }
}

const BEGINS: &str = "paths are relative to this file";

/// A file that has to be there when somebody needs it.
pub(super) fn read_path(reader: &mut Reader<'_>, node: &Node) -> Result<PathBuf, Fault> {
    let written = reader.text(node)?;
    let path = reader.folder.join(&written);
    match std::fs::metadata(&path) {
        Ok(about) if about.is_file() => Ok(path),
        Ok(_) => {
            reader.error("cannot-read", format!("`{written}` is not a file"), node.span);
            Err(Fault::Reported)
        }
        Err(error) => {
            reader.report(Diagnostic::error("cannot-read", format!("`{written}` cannot be read: {error}")).hint(BEGINS), node.span);
            Err(Fault::Reported)
        }
    }
}

/// Refuses what is no `http://` or `https://` URL. Never repeats it: it may hold a secret.
pub(super) fn check_url(reader: &mut Reader<'_>, node: &Node, url: &str) -> Result<Url, Fault> {
    match Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => Ok(parsed),
        _ => {
            let diagnostic = Diagnostic::error("bad-url", "this is not an HTTP URL");
            reader.report(diagnostic.hint("write `https://HOST/PATH` or `http://HOST/PATH`"), node.span);
            Err(Fault::Reported)
        }
    }
}

pub(super) fn read_url(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let url = reader.text(node)?;
    check_url(reader, node, &url)?;
    Ok(url)
}

pub(super) fn read_secret_url(reader: &mut Reader<'_>, node: &Node, secrecy: Secrecy) -> Result<Secret, Fault> {
    let url = read_secret(reader, node, secrecy)?;
    let parsed = check_url(reader, node, url.expose())?;
    let is_literal = matches!(&node.kind, Kind::Text(text) if *text == url.expose());
    if is_literal && secrecy == Secrecy::Public && parsed.password().is_some() {
        return read_secret(reader, node, Secrecy::Secret);
    }
    Ok(url)
}

/// A text, or a list of texts.
pub(super) fn read_texts(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<String>, Fault> {
    match &node.kind {
        Kind::Seq(_) => reader.texts(node),
        _ => reader.text(node).map(|text| vec![text]),
    }
}

/// Words of a list, each with its node for what else is wrong with it.
pub(super) fn read_items(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<(String, Node)>, Fault> {
    match &node.kind {
        Kind::Seq(items) => items.iter().map(|item| Ok((reader.text(item)?, item.clone()))).collect(),
        _ => reader.text(node).map(|text| vec![(text, node.clone())]),
    }
}

/// One of some words.
pub(super) fn choose<T>(reader: &mut Reader<'_>, node: &Node, all: &[(&'static str, T)], what: &str) -> Result<T, Fault>
where
    T: Copy,
{
    let written = reader.text(node)?;
    if let Some((_, found)) = all.iter().find(|(word, _)| *word == written) {
        return Ok(*found);
    }
    let words = || all.iter().map(|(word, _)| *word);
    let diagnostic = Diagnostic::error("unknown-word", format!("`{written}` is no {what}"));
    let hint = match did_you_mean(&written, words()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it is one of {}", listed(words())),
    };
    reader.report(diagnostic.hint(hint), node.span);
    Err(Fault::Reported)
}

/// Days or hours: for how long something is kept.
pub(super) fn read_period(reader: &mut Reader<'_>, node: &Node) -> Result<Duration, Fault> {
    let written = reader.text(node)?;
    let trimmed = written.trim();
    let digits = trimmed.find(|character: char| !character.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = match unit.trim() {
        "d" | "day" | "days" => 86_400,
        "h" | "hour" | "hours" => 3_600,
        _ => 0,
    };
    match number.parse::<u64>().ok().filter(|number| unit > 0 && (1..=MOST_DAYS).contains(number)) {
        Some(number) => Ok(Duration::from_secs(number * unit)),
        None => {
            let diagnostic = Diagnostic::error("bad-period", format!("`{written}` is not a period"));
            reader.report(diagnostic.hint("write a period such as 7d or 36h"), node.span);
            Err(Fault::Reported)
        }
    }
}

/// A century: more is a slip of the keyboard.
const MOST_DAYS: u64 = 36_500;

pub(super) fn read_percentage(reader: &mut Reader<'_>, node: &Node) -> Result<f64, Fault> {
    let resolved = reader.final_value(node);
    match &resolved.kind {
        Kind::Number(number) if number.as_f64() == Some(100.0) => {
            let diagnostic = Diagnostic::error("bad-objective", "100 % allows no failure at all, so there is no error budget to measure");
            reader.report(
                diagnostic.hint("use a lower objective, such as 99.9; outages are alerted without an objective as well"),
                node.span,
            );
            Err(Fault::Reported)
        }
        Kind::Number(number) => number.as_f64().filter(|share| *share > 0.0 && *share < 100.0).ok_or(Fault::Shape),
        Kind::Broken => Err(Fault::Reported),
        _ => Err(Fault::Shape),
    }
}

/// A point in time with its offset from UTC.
pub(super) fn read_time(reader: &mut Reader<'_>, node: &Node) -> Result<Moment, Fault> {
    let written = reader.text(node)?;
    match written.parse::<jiff::Timestamp>() {
        Ok(time) => Ok(Moment(time.as_millisecond())),
        Err(_) => {
            let diagnostic = Diagnostic::error("bad-time", format!("`{written}` is not a point in time"));
            reader.report(diagnostic.hint("write it as 2027-01-31T02:00:00Z or 2027-01-31T02:00:00+01:00"), node.span);
            Err(Fault::Reported)
        }
    }
}

/// A duration that is not below `least`.
pub(super) fn read_at_least(reader: &mut Reader<'_>, node: &Node, least: Duration) -> Result<Duration, Fault> {
    let duration = reader.duration(node)?;
    if duration < least {
        let diagnostic = Diagnostic::error("too-often", format!("this is shorter than {} s", least.as_secs()));
        reader.report(diagnostic.hint(format!("use {}s or more", least.as_secs())), node.span);
        return Err(Fault::Reported);
    }
    Ok(duration)
}

/// A duration that is not above `most`.
pub(super) fn read_at_most(reader: &mut Reader<'_>, node: &Node, most: Duration) -> Result<Duration, Fault> {
    let duration = reader.duration(node)?;
    if duration > most {
        let diagnostic = Diagnostic::error("too-long", format!("this is longer than {} s", most.as_secs()));
        reader.report(diagnostic.hint(format!("use {}s or less", most.as_secs())), node.span);
        return Err(Fault::Reported);
    }
    Ok(duration)
}

/// A whole number from 1 on.
pub(super) fn read_count(reader: &mut Reader<'_>, node: &Node, most: u32) -> Result<u32, Fault> {
    let resolved = reader.final_value(node);
    match &resolved.kind {
        Kind::Number(number) => match number.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            Some(number) if number > most => {
                let diagnostic = Diagnostic::error("too-many", format!("this is greater than {most}"));
                reader.report(diagnostic.hint(format!("use {most} or less")), node.span);
                Err(Fault::Reported)
            }
            _ => Err(Fault::Shape),
        },
        Kind::Broken => Err(Fault::Reported),
        _ => Err(Fault::Shape),
    }
}
