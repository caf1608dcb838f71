//! Puts the servers of a configuration behind the proxy, or takes them out, as changes of its text.

use crate::known::Format;
use crate::{Host, goose, json};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    Install,
    Uninstall,
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    Installed,
    Uninstalled,
    /// It was behind the proxy, or not behind it, as it should be.
    AsBefore,
    /// It is behind a proxy that somebody wrote there, with options of its own, which the server may need.
    OwnOptions,
    /// It is at a URL; only servers that the host starts are put behind the proxy.
    AtUrl,
    /// An extension of the host says how it is started, as those of Zed do.
    OfExtension,
    /// It is not written in a way that is understood.
    NotUnderstood,
}

/// A configuration after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub text: String,
    /// All servers that were meant, in the order of the file.
    pub servers: Vec<(String, ServerChange)>,
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostFileError {
    #[error("it is not valid: {0}")]
    Invalid(String),
    #[error("it has no `{0}`")]
    NoServers(&'static str),
    #[error("it has `{0}` twice, and programs differ in which one they read")]
    ServersTwice(&'static str),
    #[error("it has no server `{0}`")]
    NoSuchServer(String),
    #[error("it would not be valid afterwards, so it was not changed")]
    Unsafe,
}

/// A piece of text in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// What is done to one server.
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) change: ServerChange,
    pub(crate) splices: Vec<Splice>,
}

/// Edits the servers with these names, or all. `program` is the mcproof that the host is to start.
///
/// # Errors
/// The file is not understood, or has no such server.
pub fn edit(host: Host, text: &str, edit: Edit, names: &[String], program: &str) -> Result<Changed, HostFileError> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let plan = |body: &str| match host.format() {
        Format::Json(member) => json::plan(body, member, host.has_projects(), edit, program),
        Format::Yaml => goose::plan(body, edit, program),
    };
    let mut planned = plan(body)?;
    if let Some(missing) = names.iter().find(|name| !planned.iter().any(|server| server.name == **name)) {
        return Err(HostFileError::NoSuchServer(missing.clone()));
    }
    planned.retain(|server| names.is_empty() || names.contains(&server.name));
    let mut splices: Vec<Splice> = planned.iter().flat_map(|server| server.splices.clone()).collect();
    splices.sort_by_key(|splice| splice.range.start);
    let mut after = String::from(mark);
    let mut end = 0;
    for Splice { range, text } in splices {
        after.push_str(&body[end..range.start]);
        after.push_str(&text);
        end = range.end;
    }
    after.push_str(&body[end..]);
    // What was written is read once more: a host that cannot read its configuration starts no server at all.
    let reread = plan(after.trim_start_matches('\u{feff}')).map_err(|_| HostFileError::Unsafe)?;
    let is_done = |server: &Planned| reread.iter().any(|again| again.name == server.name && again.splices.is_empty());
    if planned.iter().any(|server| !server.splices.is_empty() && !is_done(server)) {
        return Err(HostFileError::Unsafe);
    }
    Ok(Changed { text: after, servers: planned.into_iter().map(|server| (server.name, server.change)).collect() })
}

/// Whether a command is a proxy of ours: the program and its first argument.
pub(crate) fn is_proxy(program: &str, arguments: &[String]) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    matches!(name, "mcproof" | "mcproof.exe")
        && arguments.first().is_some_and(|first| first == "proxy")
        && end_of_flags(arguments).is_some()
}

/// Whether a proxy has other options than those that are installed here, which are none.
pub(crate) fn has_own_options(arguments: &[String]) -> bool {
    arguments.get(1).is_some_and(|second| second != "--")
}

/// Where among the arguments of a proxy the command of the server stands.
pub(crate) fn end_of_flags(arguments: &[String]) -> Option<usize> {
    let dashes = arguments.iter().position(|argument| argument == "--")?;
    (dashes + 1 < arguments.len()).then_some(dashes + 1)
}
