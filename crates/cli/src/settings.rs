//! What the surroundings say: environment variables, the terminal, the working folder. The only place that reads the
//! environment; everything else is given what it needs.

use crate::output;
use mcproof_report::{Charset, Color, Style};
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// Columns where no terminal tells its own.
const WIDTH: usize = 100;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
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
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
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

fn width() -> usize {
    if !output::stdout_is_terminal() {
        return WIDTH;
    }
    terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0).max(40))
}
