//! Reads the configuration of the monitor, and puts what was typed in the place of what the file says.

use super::ConfigOverrides;
use super::log::{Form, Level};
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_record::{Diagnostic, Severity, counted};
use mcproof_report::diagnostic;
use mcproof_suite::Environment;
use mcproof_watch::config::{Config, Loaded, Window, database_of, database_of_broken, files_of, load, targets_of};
use mcproof_watch::web::is_open;
use std::path::{Path, PathBuf};

/// A configuration that was read, or all its mistakes.
pub(super) enum Read {
    Flawless(Box<Loaded>),
    Mistaken(Vec<Diagnostic>),
}

impl Read {
    /// The configuration; its warnings, or its mistakes, are told on stderr. Warnings are as logs are: who collects those reads them, too.
    pub(super) fn or_tell(self, log: Form) -> Option<Config> {
        let style = settings::style();
        match self {
            Self::Flawless(loaded) => {
                match log {
                    Form::Text if loaded.warnings.is_empty() => {}
                    Form::Text => output::talk(&format!("{}\n", diagnostic::render_all(&loaded.warnings, &style))),
                    Form::Json => point_out(log, Level::Warning, &loaded.warnings),
                }
                Some(loaded.config)
            }
            Self::Mistaken(mistakes) => {
                let count = mistakes.iter().filter(|mistake| mistake.severity == Severity::Error).count();
                output::talk(&diagnostic::render_all(&mistakes, &style));
                output::talk(&format!("\n{}; nothing is monitored\n", counted(count, "error")));
                None
            }
        }
    }
}

/// What is to be said about the file.
pub(super) fn point_out(log: Form, level: Level, found: &[Diagnostic]) {
    if log == Form::Text && !found.is_empty() {
        output::talk(&diagnostic::render_all(found, &settings::style()));
    }
    for one in found.iter().filter(|_| log == Form::Json) {
        let place = one.place.as_ref().map(|place| format!("{}:{}:{}", place.file, place.line, place.column)).unwrap_or_default();
        log.say(level, "mistake", &[("at", &place), ("code", &one.code), ("why", &one.message)]);
    }
}

/// The database that the file names, as far as that is certain; its mistakes are told on stderr.
pub(super) fn database(path: &Path) -> Result<Option<String>, Failure> {
    let File { shown, text, folder, environment } = File::open(path)?;
    match database_of(&shown, &text, &folder, &environment) {
        Ok(database) => Ok(Some(database)),
        Err(mistakes) => {
            output::talk(&diagnostic::render_all(&mistakes, &settings::style()));
            let database = database_of_broken(&shown, &text, &folder, &environment);
            if database.is_some() {
                output::talk("\nthe configuration cannot be read; going on with its database\n");
            }
            Ok(database)
        }
    }
}

/// Where the dashboard of this configuration is, as far as it can be read; nothing is told of its mistakes.
pub(super) fn dashboard(path: &Path) -> Dashboard {
    let Ok(File { shown, text, folder, environment }) = File::open(path) else { return Dashboard::Unknown };
    let Ok(Loaded { config, .. }) = load(&shown, &text, &folder, &environment) else { return Dashboard::Unknown };
    let needs_token = !is_open(&config);
    match (config.public_url, config.listen) {
        (_, None) => Dashboard::None,
        (Some(url), _) => Dashboard::At { url: url.trim_end_matches('/').to_owned(), needs_token },
        (None, Some(address)) => Dashboard::At { url: format!("http://{address}"), needs_token },
    }
}

/// The names of the targets in this configuration, also of one with mistakes; nothing is told of those.
pub(super) fn targets(path: &Path) -> Vec<String> {
    let Ok(File { shown, text, folder, environment }) = File::open(path) else { return Vec::new() };
    let loaded = load(&shown, &text, &folder, &environment);
    loaded.map_or_else(|_| targets_of(&shown, &text), |loaded| loaded.config.targets.into_keys().collect())
}

/// The maintenance windows of this configuration, as far as it can be read; nothing is told of its mistakes.
pub(super) fn windows(path: &Path) -> Vec<Window> {
    let Ok(File { shown, text, folder, environment }) = File::open(path) else { return Vec::new() };
    load(&shown, &text, &folder, &environment).map(|loaded| loaded.config.maintenance).unwrap_or_default()
}

/// The mistakes of a file in a few words: where the first one is, what it is, and how many more there are.
pub(super) fn in_short(mistakes: &[Diagnostic]) -> String {
    let mut errors = mistakes.iter().filter(|mistake| mistake.severity == Severity::Error);
    let Some(first) = errors.next() else { return "it has mistakes".to_owned() };
    let place = first.place.as_ref().map(|place| format!("{}:{}:{}: ", place.file, place.line, place.column)).unwrap_or_default();
    let more = errors.count();
    format!("{place}{}{}", first.message, if more > 0 { format!(" (and {more} more)") } else { String::new() })
}

pub(super) enum Dashboard {
    At { url: String, needs_token: bool },
    None,
    Unknown,
}

/// A file, and all that it may refer to.
struct File {
    shown: String,
    text: String,
    folder: PathBuf,
    environment: Environment,
}

impl File {
    fn open(path: &Path) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let text = mcproof_suite::bounds::read_text(path)
            .map_err(|error| Failure::bad_input("cannot-read", format!("{shown} cannot be read: {error}")))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = settings::current_folder().join(folder.unwrap_or_else(|| Path::new("")));
        let environment = Environment { variables: settings::variables(), ..Environment::default() };
        Ok(Self { shown, text, folder, environment })
    }
}

/// The other files that the configuration is made of.
pub(super) fn other_files(path: &Path) -> Vec<PathBuf> {
    let Ok(File { shown, text, folder, environment }) = File::open(path) else { return Vec::new() };
    files_of(&shown, &text, &folder, &environment)
}

pub(super) fn read(path: &Path, instead: &ConfigOverrides) -> Result<Read, Failure> {
    let File { shown, text, folder, environment } = File::open(path)?;
    Ok(match load(&shown, &text, &folder, &environment) {
        Ok(mut loaded) => {
            let config = &mut loaded.config;
            config.listen = instead.listen.or(config.listen);
            if let Some(database) = &instead.database {
                config.database.clone_from(database);
            }
            if let Some(region) = &instead.region {
                config.region.clone_from(region);
            }
            Read::Flawless(Box::new(loaded))
        }
        Err(mistakes) => Read::Mistaken(mistakes),
    })
}
