//! The environment: variables, the terminal, the working directory, the clock. The only place that reads them; everything else receives
//! what it needs.

use crate::output;
use mcproof_report::{Charset, Color, Style};
use mcproof_system::{commands, machine};
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf, is_separator};
use std::time::SystemTime;

/// Columns if the terminal width is unknown.
pub(crate) const WIDTH: usize = 100;

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// For what the grammar of the command line prints by itself.
    pub(crate) fn of_grammar(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }
}

/// Makes everything that is written from here on follow `--color`.
pub(crate) fn choose_colors(when: ColorWhen) {
    match when {
        ColorWhen::Auto => anstream::ColorChoice::Auto,
        ColorWhen::Always => anstream::ColorChoice::Always,
        ColorWhen::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// How text is laid out. Colours are always put in: [`output`] drops them where they are not wanted.
pub(crate) fn style() -> Style {
    Style { color: Color::Ansi, charset: charset(), width: width() }
}

/// The value of a variable that is set and is text.
#[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// All variables that are text.
#[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
pub(crate) fn variables() -> BTreeMap<String, String> {
    env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// The file that this process runs.
pub(crate) fn own_binary() -> Option<PathBuf> {
    env::current_exe().ok()
}

/// Whether a shell would find this program.
#[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
pub(crate) fn program_exists(name: &str) -> bool {
    if name.contains(is_separator) {
        return Path::new(name).is_file();
    }
    env::var_os("PATH").is_some_and(|path| commands::find(name, &path).is_some())
}

/// The file that a shell with this PATH would run.
pub(crate) fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    commands::find(name, OsStr::new(path))
}

/// Where programs keep what they remember between runs, if there is such a place.
pub(crate) fn state_folder() -> Option<PathBuf> {
    machine::state_folder(variable).map(|folder| folder.join("mcproof"))
}

pub(crate) fn temporary_folder() -> PathBuf {
    env::temp_dir()
}

/// Whether a machine runs this, as all usual CI systems say.
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// The commands that may open a page for the user, best first. A `%s` in them stands for its URL.
pub(crate) fn browsers() -> Vec<Vec<String>> {
    let chosen = variable("BROWSER").unwrap_or_default();
    let chosen: Vec<_> = chosen.split(':').filter_map(shlex::split).filter(|command| !command.is_empty()).collect();
    if !chosen.is_empty() {
        return chosen;
    }
    let usual: Vec<String> = machine::PAGE_OPENER.iter().map(|word| (*word).to_owned()).collect();
    if usual.first().is_some_and(|program| program_exists(program)) { vec![usual] } else { Vec::new() }
}

/// What this machine calls itself.
#[cfg(feature = "monitor")]
pub(crate) fn host_name() -> String {
    machine::host_name().filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".into())
}

/// What was typed, from the first word after the name of the program.
pub(crate) fn command_line() -> Vec<String> {
    env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "this is the module that looks at the surroundings")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// A job of GitHub Actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GithubJob {
    /// The file that the summary of this step is appended to.
    pub(crate) summary: Option<PathBuf>,
    /// From the top of the repository to the working folder, with a slash at its end; empty at the top.
    pub(crate) folder: String,
}

/// The job of GitHub Actions that this runs in, if it does.
pub(crate) fn github() -> Option<GithubJob> {
    variable("GITHUB_ACTIONS").filter(|value| value == "true")?;
    let summary = variable("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from);
    let here = current_folder();
    let below = variable("GITHUB_WORKSPACE").and_then(|top| Some(here.strip_prefix(top).ok()?.to_path_buf()));
    let folder = below.map(|folder| folder.join("").to_string_lossy().into_owned()).unwrap_or_default();
    Some(GithubJob { summary, folder })
}

/// Whether a CI system takes lines with `##` and brackets for commands: Azure Pipelines and TeamCity do.
pub(crate) fn obeys_number_signs() -> bool {
    ["TF_BUILD", "TEAMCITY_VERSION"].into_iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// Whether a user is present.
pub(crate) fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

pub(crate) fn current_folder() -> PathBuf {
    // A working folder that was deleted is no reason to refuse what does not need one.
    env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

fn charset() -> Charset {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    match locale {
        Some(locale) if matches!(locale.as_str(), "C" | "POSIX") => Charset::Ascii,
        Some(locale) if locale.contains('.') && !locale.to_ascii_lowercase().replace('-', "").ends_with("utf8") => Charset::Ascii,
        _ => Charset::Unicode,
    }
}

/// Columns of the terminal on stderr.
pub(crate) fn stderr_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(WIDTH, |(width, _)| usize::from(width.0).max(40))
}

fn width() -> usize {
    if !output::stdout_is_terminal() {
        return WIDTH;
    }
    terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0).max(40))
}
