//! Reads the leaves of a suite, or of another file of the same making: texts, durations, lists. Fills in variables on the way, and collects what is wrong.

use super::Environment;
use super::bounds::{MOST_MISTAKES, too_large};
use super::document::{Kind, Node};
use super::duration::parse_duration;
use super::format::{Fault, Shape};
use super::plan::{Inherited, Launch, Needs, OutputCheck, Redaction, Spanned};
use super::restriction::Restriction;
use super::source::{Source, Span};
use super::template::{self, Outcome, Scope, resolve};
use super::test::TMP;
use mcproof_record::{Diagnostic, Place, Severity};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub struct Reader<'a> {
    pub source: &'a Source,
    pub folder: &'a Path,
    pub environment: &'a Environment,
    pub diagnostics: Vec<Diagnostic>,
    /// Variables with a known value.
    pub(crate) known: Map<String, Value>,
    /// Variables that a run fills in.
    pub(crate) open: Vec<String>,
    /// Variables that a later step saves, with its line.
    pub(crate) later: Vec<(String, u32)>,
    /// The key whose value is being read.
    pub key: Span,
    /// What proves less than it seems to. No mistake: the suite can be run.
    pub(crate) warnings: Vec<Diagnostic>,
    /// What steps do with the output of tools if they do not say.
    pub(crate) output: OutputCheck,
    /// What all snapshots of the suite replace.
    pub(crate) redact: Vec<Redaction>,
    /// Snapshots of the case so far.
    pub(crate) snapshots: u32,
    /// The places of those that a case has so far, by what tells their files apart.
    pub(crate) snapshot_names: BTreeMap<String, Place>,
    /// Whether the files of the snapshots may be touched.
    pub(crate) snapshots_permitted: bool,
    /// Which of `later` is still to come.
    pub(crate) later_from: usize,
    /// The servers that a profile puts in the place of those that the suite was written for.
    pub(crate) swapped: Vec<String>,
    /// What the servers of the suite and of all its profiles have, where some are swapped.
    pub(crate) offered: Vec<Needs>,
}

impl<'a> Reader<'a> {
    pub fn new(source: &'a Source, folder: &'a Path, environment: &'a Environment) -> Self {
        Self {
            source,
            folder,
            environment,
            diagnostics: Vec::new(),
            known: environment.overrides.clone(),
            open: Vec::new(),
            later: Vec::new(),
            key: Span::default(),
            warnings: Vec::new(),
            output: OutputCheck::default(),
            redact: Vec::new(),
            snapshots: 0,
            snapshot_names: BTreeMap::new(),
            snapshots_permitted: false,
            later_from: 0,
            swapped: Vec::new(),
            offered: Vec::new(),
        }
    }

    pub fn mistakes(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    pub fn report(&mut self, diagnostic: Diagnostic, span: Span) {
        self.report_at(diagnostic, self.source.place(span));
    }

    /// As `report`, where only the place is left.
    pub(crate) fn report_at(&mut self, diagnostic: Diagnostic, place: Place) {
        // Whoever has so many mistakes looks at the first ones.
        if self.diagnostics.len() < MOST_MISTAKES {
            self.diagnostics.push(diagnostic.at(place));
        }
    }

    /// Whether it is no use to read on. That there is no room left is reported once.
    pub(crate) fn is_full(&mut self, span: Span) -> bool {
        let told = too_large();
        if self.room() == 0 && !self.diagnostics.iter().any(|known| known.code == told.code) {
            self.report(told, span);
        }
        self.room() == 0 || self.diagnostics.len() >= MOST_MISTAKES
    }

    /// Counts bytes that the suite comes to, by estimate.
    pub(crate) fn spend(&self, bytes: usize) {
        self.source.take(bytes);
    }

    /// How much of its room the suite has left.
    pub(crate) fn room(&self) -> usize {
        self.source.room()
    }

    /// Asks whether something may be touched, and tells if it may not.
    pub(crate) fn permit(&mut self, span: Span, ask: impl FnOnce(&Restriction) -> Result<(), Diagnostic>) -> Result<(), Fault> {
        let Some(restriction) = self.environment.restriction.as_deref() else { return Ok(()) };
        ask(restriction).map_err(|refused| {
            self.report(refused, span);
            Fault::Reported
        })
    }

    /// The same for a command, which has of our environment what it may have.
    pub(crate) fn permit_launch(&mut self, launch: &mut Launch, span: Span) -> Result<(), Fault> {
        self.permit(span, |restriction| restriction.launch(launch))?;
        launch.inherited = self.environment.restriction.as_deref().map_or(Inherited::All, Restriction::inherited);
        Ok(())
    }

    pub fn error(&mut self, code: &str, message: impl Into<String>, span: Span) {
        self.report(Diagnostic::error(code, message), span);
    }

    /// What proves less than it seems to.
    pub(crate) fn warn(&mut self, warning: Diagnostic, span: Span) {
        self.warnings.push(warning.at(self.source.place(span)));
    }

    /// Warns of an expectation that cannot fail, if there is a reason to.
    pub(crate) fn weak(&mut self, why: Option<&str>, span: Span) {
        if let Some(why) = why {
            self.warn(Diagnostic::warning("cannot-fail", why), span);
        }
    }

    pub fn wrong_type(&mut self, expected: &str, node: &Node) {
        if node.kind != Kind::Broken {
            self.error("wrong-type", format!("expected {expected}, found {}", node.kind.noun()), node.span);
        }
    }

    pub fn place(&self, span: Span) -> Place {
        self.source.place(span)
    }

    /// The place of the key that is being read, together with the beginning of its value.
    pub(crate) fn place_of_pair(&self, value: &Node) -> Place {
        let (key, value) = (self.key, value.span);
        let reaches = value.file == key.file && value.line == key.line && value.column > key.column;
        self.place(if reaches { Span { length: value.column + value.length - key.column, ..key } } else { key })
    }

    /// The value with its variables filled in for good.
    pub fn final_value(&mut self, node: &Node) -> Node {
        let scope = Scope {
            known: &self.known,
            environment: &self.environment.variables,
            open: &[],
            later: &self.later[self.later_from.min(self.later.len())..],
            restriction: self.environment.restriction.as_deref(),
        };
        resolve(node, Outcome::Final, scope, self.source, &mut self.diagnostics)
    }

    /// The value as a template for a run.
    pub(crate) fn template(&mut self, node: &Node) -> Node {
        let scope = Scope {
            known: &self.known,
            environment: &self.environment.variables,
            open: &self.open,
            later: &self.later[self.later_from.min(self.later.len())..],
            restriction: self.environment.restriction.as_deref(),
        };
        resolve(node, Outcome::Template, scope, self.source, &mut self.diagnostics)
    }

    pub fn text(&mut self, node: &Node) -> Result<String, Fault> {
        let resolved = self.final_value(node);
        self.as_text(resolved)
    }

    pub(crate) fn template_text(&mut self, node: &Node) -> Result<String, Fault> {
        let resolved = self.template(node);
        self.as_text(resolved)
    }

    /// For environment variables and headers, where everyone writes `DEBUG: 1` and `TRACE: true`.
    pub(crate) fn template_word(&mut self, node: &Node) -> Result<String, Fault> {
        match &node.kind {
            Kind::Bool(value) => Ok(self.as_written(node, Value::Bool(*value))),
            _ => self.template_text(node),
        }
    }

    pub fn texts(&mut self, node: &Node) -> Result<Vec<String>, Fault> {
        match &node.kind {
            Kind::Seq(items) => items.iter().map(|item| self.text(item)).collect(),
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    /// A whole number that is not negative.
    pub fn number(&mut self, node: &Node) -> Result<u64, Fault> {
        let resolved = self.final_value(node);
        match &resolved.kind {
            Kind::Number(number) => number.as_u64().ok_or(Fault::Shape),
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    pub fn duration(&mut self, node: &Node) -> Result<Duration, Fault> {
        let resolved = self.final_value(node);
        let written = match &resolved.kind {
            Kind::Text(text) => text.clone(),
            Kind::Number(number) => number.to_string(),
            Kind::Broken => return Err(Fault::Reported),
            _ => return Err(Fault::Shape),
        };
        parse_duration(&written).map_err(|problem| {
            let diagnostic = Diagnostic::error("bad-duration", format!("`{written}` {}", problem.reason));
            self.report(diagnostic.hint(problem.hint), resolved.span);
            Fault::Reported
        })
    }

    pub(crate) fn spanned_duration(&mut self, node: &Node) -> Result<Spanned<Duration>, Fault> {
        Ok(Spanned { value: self.duration(node)?, place: self.place_of_pair(node) })
    }

    /// `true`, or nothing where a key says it all.
    pub(crate) fn nothing_or_true(&mut self, node: &Node) -> Result<(), Fault> {
        match node.kind {
            Kind::Null | Kind::Bool(true) => Ok(()),
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    pub fn flag(&mut self, node: &Node) -> Result<bool, Fault> {
        match node.kind {
            Kind::Bool(value) => Ok(value),
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, node: &Node) -> Result<u32, Fault> {
        let resolved = self.final_value(node);
        match &resolved.kind {
            Kind::Number(number) => {
                number.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0).ok_or(Fault::Shape)
            }
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    /// A map of names to values; with values filled in one after the other.
    pub(crate) fn variables(&mut self, node: &Node) -> Result<(), Fault> {
        let entries = match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Null => return Ok(()),
            Kind::Broken => return Err(Fault::Reported),
            _ => return Err(Fault::Shape),
        };
        for entry in entries {
            self.variable_name(&entry.key.text, entry.key.span);
            let value = self.final_value(&entry.value);
            if !self.environment.overrides.contains_key(&entry.key.text) {
                self.known.insert(entry.key.text.clone(), value.to_value());
            }
        }
        Ok(())
    }

    /// Reads the `vars:` of a suite or a test.
    pub fn read_variables(&mut self, node: &Node) {
        if let Some(variables) = node.get("vars")
            && self.variables(variables) == Err(Fault::Shape)
        {
            self.wrong_type(&Shape::Values.expected(), variables);
        }
    }

    /// A name that `${…}` can hold.
    pub(crate) fn variable_name(&mut self, name: &str, span: Span) {
        if name == "env" {
            self.error("bad-name", "`env` already stands for the environment, as in `${env.HOME}`", span);
        } else if name == TMP {
            self.error("bad-name", "`tmp` already stands for the temporary folder of each test", span);
        } else if !template::is_name(name) {
            let diagnostic = Diagnostic::error("bad-name", format!("`{name}` cannot be the name of a variable"));
            self.report(diagnostic.hint("names start with a letter or `_`, then letters, digits, `_` and `-`"), span);
        }
    }

    fn as_text(&mut self, node: Node) -> Result<String, Fault> {
        match &node.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Number(number) => Ok(self.as_written(&node, Value::Number(number.clone()))),
            Kind::Broken => Err(Fault::Reported),
            _ => Err(Fault::Shape),
        }
    }

    /// A number or boolean keeps the spelling of its author: `1.10` stays `1.10`.
    fn as_written(&self, node: &Node, value: Value) -> String {
        let written = self.source.written(node.span);
        match super::scalar::read_plain(written) {
            Ok(kind) if kind.to_value() == value => written.to_owned(),
            _ => value.to_string(),
        }
    }
}
