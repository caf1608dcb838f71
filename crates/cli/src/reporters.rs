//! The reporters of a run or a check: their selection, their destinations, and their failures. Knows formats and files, not the content of
//! reports.

mod checked;
mod destination;

use crate::ci_commands::BrokenUp;
use crate::failure::Failure;
use crate::offered::offered;
use crate::{output, settings, suggest};
use destination::Destination;
use mcproof_record::{Diagnostic, Event};
use mcproof_report::agent::Agent;
use mcproof_report::github::Github;
use mcproof_report::html::Html;
use mcproof_report::json::JsonLines;
use mcproof_report::junit::Junit;
use mcproof_report::tap::Tap;
use mcproof_report::terminal::{Detail, Progress, Terminal};
use mcproof_report::{Color, Repeat, Reporter, Style, diagnostic};
use mcproof_system::files;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

/// The flags that select the reporters.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReporterArgs {
    /// Reporter, and the file for its output [default: terminal on stdout]; may be repeated
    ///
    /// Reporters: terminal, agent, json, junit, tap, github, html, and for `check` also sarif. The terminal reporter is added if no other
    /// reporter writes to stdout.
    #[arg(long = "reporter", value_name = "NAME[=FILE]", value_parser = offered(parse, names), hide_possible_values = true)]
    reporters: Vec<ReporterSpec>,
    /// Print JSON on stdout, as --reporter json: one event per line, or one document for `check`
    #[arg(long)]
    json: bool,
    /// Print only failures and the summary
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ReporterSpec {
    form: ReportFormat,
    /// Stdout where there is none.
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportFormat {
    Terminal,
    Agent,
    Json,
    Junit,
    Tap,
    Github,
    Html,
    Sarif,
}

const FORMS: [(&str, ReportFormat); 8] = [
    ("terminal", ReportFormat::Terminal),
    ("agent", ReportFormat::Agent),
    ("json", ReportFormat::Json),
    ("junit", ReportFormat::Junit),
    ("tap", ReportFormat::Tap),
    ("github", ReportFormat::Github),
    ("html", ReportFormat::Html),
    ("sarif", ReportFormat::Sarif),
];

/// The reporters of one run. A failed one is not used again, and does not stop the others.
pub(crate) struct Reporters {
    sinks: Vec<Sink>,
}

struct Sink {
    /// As one would type it.
    name: String,
    reporter: Box<dyn Reporter>,
    destination: Destination,
    failure: Option<io::Error>,
}

impl ReporterArgs {
    /// Whether a reporter shows the wire of cases that passed, too.
    pub(crate) fn show_every_wire(&self) -> bool {
        self.reporters.iter().any(|wanted| wanted.form == ReportFormat::Html)
    }

    /// The files that are written.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.reporters.iter().filter_map(|wanted| wanted.file.as_deref())
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Opens all of them, so that a mistyped path costs no run. `used` are the files that the run reads, or writes otherwise.
    pub(crate) fn open(
        &self,
        detail: Detail,
        repeat: &Repeat,
        used: impl FnOnce() -> Result<Vec<PathBuf>, Failure>,
    ) -> Result<Reporters, Failure> {
        let (wanted, shares_stdout) = self.checked(used)?;
        if wanted.iter().any(|wanted| wanted.form == ReportFormat::Sarif) {
            return Err(Failure::bad_input("bad-flag", "`sarif` is only supported by `mcproof check`")
                .hint("use mcproof check TARGET --reporter sarif=FILE"));
        }
        let open = |wanted: &ReporterSpec| {
            let destination = wanted.destination()?;
            let reporter = reporter(wanted, &destination, detail, repeat, shares_stdout)?;
            Ok(Sink { name: wanted.name(), reporter, destination, failure: None })
        };
        Ok(Reporters { sinks: wanted.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// What is wanted, none of it in another's way, and whether several write to stdout.
    fn checked(&self, used: impl FnOnce() -> Result<Vec<PathBuf>, Failure>) -> Result<(Vec<ReporterSpec>, bool), Failure> {
        let wanted = self.wanted(settings::github().is_some());
        check(&wanted)?;
        if wanted.iter().any(|wanted| wanted.file.is_some()) {
            spare(&wanted, &used()?)?;
        }
        let shares_stdout = wanted.iter().filter(|wanted| wanted.file.is_none()).count() > 1;
        Ok((wanted, shares_stdout))
    }

    fn wanted(&self, is_on_github: bool) -> Vec<ReporterSpec> {
        let mut wanted = self.reporters.clone();
        let on_stdout = |form| ReporterSpec { form, file: None };
        if self.json && !wanted.contains(&on_stdout(ReportFormat::Json)) {
            wanted.push(on_stdout(ReportFormat::Json));
        }
        if wanted.is_empty() && is_on_github {
            wanted.push(on_stdout(ReportFormat::Github));
        }
        if wanted.iter().all(|wanted| wanted.file.is_some() || wanted.form == ReportFormat::Github) {
            wanted.insert(0, on_stdout(ReportFormat::Terminal));
        }
        // Its commands only count after all other output.
        wanted.sort_by_key(|wanted| wanted.form == ReportFormat::Github);
        wanted
    }
}

impl Reporters {
    pub(crate) fn event(&mut self, event: &Event) {
        for sink in &mut self.sinks {
            if sink.failure.is_none() {
                sink.failure = sink.reporter.event(event).err();
            }
        }
    }

    /// Moves the files into place, and reports those that could not be written.
    pub(crate) fn close(self) -> Written {
        let settled = self.sinks.into_iter().map(|Sink { name, reporter, destination, failure }| {
            drop(reporter);
            settle(&name, failure.map_or_else(|| destination.keep(), Err))
        });
        all(settled)
    }
}

/// Reports a file that could not be written.
fn settle(name: &str, outcome: io::Result<()>) -> Written {
    match outcome {
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let diagnosis = Diagnostic::error("cannot-write", format!("`--reporter {name}` failed: {error}"));
            output::talk(&diagnostic::render(&diagnosis, &settings::style()));
            Written::Incompletely
        }
        _ => Written::All,
    }
}

fn all(settled: impl Iterator<Item = Written>) -> Written {
    settled.fold(Written::All, |all, one| if one == Written::All { all } else { one })
}

/// Whether every report is where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    Incompletely,
}

fn names() -> Vec<String> {
    FORMS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn parse(text: &str) -> Result<ReporterSpec, String> {
    let (name, file) = match text.split_once('=') {
        Some((_, "")) => return Err("missing file after `=`".into()),
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (text, None),
    };
    let known = FORMS.map(|(name, _)| name);
    match FORMS.iter().find(|(form, _)| *form == name) {
        Some((_, form)) => Ok(ReporterSpec { form: *form, file }),
        None => Err(of_file(text).or_else(|| suggest::hint(name, &known)).unwrap_or_default()),
    }
}

/// What was meant by the name of a file alone.
fn of_file(text: &str) -> Option<String> {
    let form = match Path::new(text).extension()?.to_str()? {
        "xml" => "junit",
        form @ ("html" | "json" | "sarif" | "tap") => form,
        _ => return None,
    };
    (!text.contains('=')).then(|| format!("write it to a file with `{form}={text}`"))
}

fn check(wanted: &[ReporterSpec]) -> Result<(), Failure> {
    for (index, one) in wanted.iter().enumerate() {
        let is_rival = |other: &&ReporterSpec| match (&one.file, &other.file) {
            (Some(one), Some(other)) => place_of(one) == place_of(other),
            (None, None) => one.form != ReportFormat::Github && other.form != ReportFormat::Github,
            _ => false,
        };
        if let Some(rival) = wanted[..index].iter().find(is_rival) {
            let place = one.file.as_ref().map_or_else(|| "stdout".to_owned(), |file| file.display().to_string());
            let message = format!("two reporters write to {place}: `{}` and `{}`", rival.form.name(), one.form.name());
            return Err(
                Failure::bad_input("bad-flag", message).hint(format!("give one of them a file: --reporter {}=FILE", one.form.name()))
            );
        }
    }
    Ok(())
}

/// Refuses reports that would take the place of a file that the run uses.
fn spare(wanted: &[ReporterSpec], used: &[PathBuf]) -> Result<(), Failure> {
    for one in wanted {
        let Some(place) = one.file.as_deref().map(place_of) else { continue };
        if let Some(file) = used.iter().find(|file| place_of(file) == place) {
            let message = format!("`--reporter {}` would write over {}, which this run uses", one.name(), file.display());
            return Err(Failure::bad_input("bad-flag", message)
                .hint(format!("write the report to another file: --reporter {}=FILE", one.form.name())));
        }
    }
    Ok(())
}

/// Where a path leads, however it is spelled; folders on the way, and the file, may be missing yet.
fn place_of(path: &Path) -> PathBuf {
    if let Ok(place) = fs::canonicalize(path) {
        return place;
    }
    let Ok(absolute) = std::path::absolute(path) else { return path.to_owned() };
    match (absolute.parent(), absolute.components().next_back()) {
        (Some(folder), Some(Component::Normal(name))) => place_of(folder).join(name),
        (Some(folder), Some(Component::ParentDir)) => {
            let mut place = place_of(folder);
            place.pop();
            place
        }
        _ => path.to_owned(),
    }
}

impl ReportFormat {
    fn name(self) -> &'static str {
        FORMS.iter().find(|(_, form)| *form == self).map_or("", |(name, _)| name)
    }
}

impl ReporterSpec {
    /// As one would type it.
    fn name(&self) -> String {
        let Self { form, file } = self;
        file.as_ref().map_or_else(|| form.name().to_owned(), |file| format!("{}={}", form.name(), file.display()))
    }

    fn destination(&self) -> Result<Destination, Failure> {
        match &self.file {
            None => Ok(Destination::Stdout),
            // A stream of events is followed while it grows; another report appears when it is whole.
            Some(path) if self.form == ReportFormat::Json => Destination::growing(path),
            Some(path) => Destination::whole(path),
        }
    }
}

fn reporter(
    wanted: &ReporterSpec,
    destination: &Destination,
    detail: Detail,
    repeat: &Repeat,
    shares_stdout: bool,
) -> Result<Box<dyn Reporter>, Failure> {
    let ReporterSpec { form, file } = wanted;
    let writer = destination.writer()?;
    Ok(match form {
        ReportFormat::Terminal if file.is_none() => {
            // The progress line is written over with an escape sequence, which goes where colors go.
            let progress = if output::stdout_is_terminal() && output::colors_are_on() { Progress::Live } else { Progress::Off };
            Box::new(Terminal::new(BrokenUp::new(anstream::stdout()), settings::style(), detail, progress).repeating(repeat.clone()))
        }
        ReportFormat::Terminal => {
            let style = Style { color: Color::Plain, width: settings::WIDTH, ..settings::style() };
            Box::new(Terminal::new(writer, style, detail, Progress::Off).repeating(repeat.clone()))
        }
        ReportFormat::Agent => Box::new(Agent::new(writer, repeat.clone())),
        ReportFormat::Json | ReportFormat::Sarif => Box::new(JsonLines::new(writer)),
        ReportFormat::Junit => Box::new(Junit::new(writer)),
        ReportFormat::Tap => Box::new(Tap::new(writer)),
        ReportFormat::Html => Box::new(Html::new(writer)),
        ReportFormat::Github => {
            let github = settings::github().unwrap_or_default();
            let summary = github.summary.as_deref().map(open_summary).transpose()?;
            let pause = (file.is_none() && shares_stdout).then(unguessable);
            Box::new(Github::new(writer, summary, github.folder, pause))
        }
    })
}

fn open_summary(path: &Path) -> Result<File, Failure> {
    let opened = files::make_folder_of(path).and_then(|()| OpenOptions::new().append(true).create(true).open(path));
    opened.map_err(|error| Failure::cannot_write(path, &error))
}

/// A word that a server cannot know: the seeds of a hash map come from the system's random numbers.
fn unguessable() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("mcproof-{:016x}{:016x}", random(), random())
}

/// What every destination gives.
type Writer = Box<dyn Write>;

#[cfg(test)]
mod tests {
    use super::*;

    fn check_wanted(typed: &[&str], json: bool, is_on_github: bool, expected: &[&str]) {
        let reporters = typed.iter().map(|text| parse(text).unwrap()).collect();
        let wanted = ReporterArgs { reporters, json, quiet: false }.wanted(is_on_github);
        let names: Vec<String> = wanted
            .iter()
            .map(|wanted| {
                wanted.file.as_ref().map_or(wanted.form.name().into(), |file| format!("{}={}", wanted.form.name(), file.display()))
            })
            .collect();
        assert_eq!(names, expected, "{typed:?}");
        let rivals = names.iter().filter(|name| !name.contains('=') && *name != "github").count();
        assert_eq!(check(&wanted).is_ok(), rivals <= 1, "{typed:?}");
    }

    #[test]
    fn a_file_alone_is_told_its_reporter() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(of_file(text).as_deref(), expected, "{text}");
        check("junit.xml", Some("write it to a file with `junit=junit.xml`"));
        check("out/report.html", Some("write it to a file with `html=out/report.html`"));
        check("junt=a.xml", None);
        check("junt", None);
    }

    #[test]
    fn the_terminal_reports_unless_another_has_stdout() {
        check_wanted(&[], false, false, &["terminal"]);
        check_wanted(&[], true, false, &["json"]);
        check_wanted(&["json"], true, true, &["json"]);
        check_wanted(&["junit=a.xml", "html=b.html"], false, false, &["terminal", "junit=a.xml", "html=b.html"]);
        check_wanted(&["tap", "junit=a.xml"], false, false, &["tap", "junit=a.xml"]);
        check_wanted(&["agent"], true, false, &["agent", "json"]);
    }

    #[test]
    fn github_comes_by_itself_only_where_nothing_was_asked_for() {
        check_wanted(&[], false, true, &["terminal", "github"]);
        check_wanted(&["junit=a.xml"], false, true, &["terminal", "junit=a.xml"]);
        check_wanted(&["github", "agent"], false, false, &["agent", "github"]);
    }

    #[test]
    fn a_mistyped_reporter_is_told_with_what_it_may_mean() {
        assert_eq!(parse("jnuit=x").unwrap_err(), "did you mean `junit`?");
        assert!(parse("xyz").unwrap_err().contains("terminal, agent"));
        assert!(parse("html=").unwrap_err().contains("missing file"));
        let same = [parse("tap=x").unwrap(), parse("junit=x").unwrap()];
        assert!(check(&same).unwrap_err().diagnostic.message.contains("two reporters write to x"));
    }

    #[test]
    fn a_file_is_the_same_however_its_path_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::write(at("suite.yaml"), "").unwrap();
        std::os::unix::fs::symlink("suite.yaml", at("link.yaml")).unwrap();
        for (one, other) in
            [("new.xml", "./new.xml"), ("new.xml", "no/../new.xml"), ("no/new.xml", "no/./new.xml"), ("suite.yaml", "link.yaml")]
        {
            assert_eq!(place_of(&at(one)), place_of(&at(other)), "{one} and {other}");
        }
        assert_ne!(place_of(&at("a/new.xml")), place_of(&at("b/new.xml")));
        let wanted = |path: &str| [ReporterSpec { form: ReportFormat::Junit, file: Some(at(path)) }];
        let refused = spare(&wanted("./link.yaml"), &[at("suite.yaml")]).unwrap_err();
        assert!(refused.diagnostic.message.contains("suite.yaml, which this run uses"), "{}", refused.diagnostic.message);
        assert!(spare(&wanted("junit.xml"), &[at("suite.yaml")]).is_ok());
    }
}
