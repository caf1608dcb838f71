//! What a suite may touch that a stranger wrote: which commands, variables, files and hosts. Decides; reads nothing of the suite itself.
//!
//! Every key of a suite that starts, reads, writes or connects asks here before anything is done (`restriction/tests.rs` holds the table
//! of all keys against the format). What a server does with what it is asked is not ours to see.

#[cfg(test)]
mod tests;

use super::plan::{Inherited, Launch};
use super::server::PORT;
use super::template::{is_template, template_ranges};
use globset::{GlobBuilder, GlobMatcher};
use mcproof_client::ListedHost;
use mcproof_record::Diagnostic;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use url::Url;

/// Who starts the server at a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlOwner {
    /// A command of the suite: then the free port of this machine that it is given is its own.
    Suite,
    Others,
}

/// What is allowed; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    /// Where files may lie that are read or written.
    pub folders: Vec<Folder>,
    pub commands: Vec<CommandPattern>,
    pub variables: Variables,
    pub hosts: Vec<ListedHost>,
    /// What a process has of our own environment.
    pub inherited: Vec<(String, String)>,
}

/// Environment variables that may be read and set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variables {
    All,
    Only(BTreeSet<String>),
}

impl Default for Variables {
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl Variables {
    pub fn allow(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// A folder without symbolic links in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// It is not there.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        path.canonicalize().map(Self)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a path ends up in here once every symbolic link in it was followed. What is not there yet is taken as it is written.
    pub fn holds(&self, path: &Path) -> bool {
        resolved(path).is_some_and(|path| path.starts_with(&self.0))
    }
}

/// Command lines, with `*` for any text and `?` for one character.
#[derive(Clone, Debug)]
pub struct CommandPattern(GlobMatcher);

impl CommandPattern {
    /// # Errors
    /// Says what is wrong with the pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("a pattern for commands is not empty".to_owned());
        }
        let glob = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
        glob.map(|glob| Self(glob.compile_matcher())).map_err(|error| error.to_string())
    }

    pub fn covers(&self, words: &[String]) -> bool {
        self.0.is_match(line(words))
    }
}

/// A command in one line: words with anything in them that parts or ends words are quoted, so that two commands are never one line.
pub fn line(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |character: char| character.is_alphanumeric() || "-_./:=@,+%${}".contains(character);
        match word.is_empty() || !word.chars().all(plain) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.clone(),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

impl Restriction {
    /// # Errors
    /// The command is not allowed.
    pub fn command(&self, words: &[String]) -> Result<(), Diagnostic> {
        if self.commands.iter().any(|pattern| pattern.covers(words)) {
            return Ok(());
        }
        let line = line(words);
        let hint = format!("allow it with --allow-command {}", line_of_one(&line));
        Err(refused("restricted-command", format!("`{line}` may not be started")).hint(hint))
    }

    /// A program that is only looked for.
    ///
    /// # Errors
    /// The name is a path that leads out of the folders.
    pub fn program(&self, name: &str) -> Result<(), Diagnostic> {
        if name.contains(['/', '\\']) { self.path(Path::new(name), name) } else { Ok(()) }
    }

    /// # Errors
    /// The variable may neither be read nor set.
    pub fn variable(&self, name: &str) -> Result<(), Diagnostic> {
        match self.variables.allow(name) {
            true => Ok(()),
            false => {
                let message = format!("the environment variable `{name}` may not be used");
                Err(refused("restricted-variable", message).hint(format!("allow it with --allow-env {name}")))
            }
        }
    }

    /// # Errors
    /// The path leads out of the folders; `named` is how it is written.
    pub fn path(&self, path: &Path, named: &str) -> Result<(), Diagnostic> {
        if self.folders.iter().any(|folder| folder.holds(path)) {
            return Ok(());
        }
        let wanted = resolved(path).unwrap_or_else(|| path.to_owned());
        let folder = if wanted.is_dir() { Some(wanted.as_path()) } else { wanted.parent() }.unwrap_or(Path::new("/"));
        let hint = format!("allow it with --allow-path {}", line_of_one(&folder.display().to_string()));
        Err(refused("restricted-path", format!("`{named}` leads out of the folder that may be used")).hint(hint))
    }

    /// A path that a run completes: only `${tmp}` may stand in it, at its beginning.
    ///
    /// # Errors
    /// The path leads out of the folders, or nobody knows where it leads.
    pub fn template_path(&self, folder: &Path, written: &str) -> Result<(), Diagnostic> {
        let own = written.strip_prefix("${tmp}").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(rest) = own
            && !is_template(rest)
            && Path::new(rest).components().all(|part| part != Component::ParentDir)
        {
            return Ok(());
        }
        if !is_template(written) {
            return self.path(&folder.join(written), written);
        }
        let hint = "begin it with `${tmp}`, or write a path without variables of a run";
        Err(refused("restricted-path", format!("`{written}` cannot be resolved before the run")).hint(hint))
    }

    /// # Errors
    /// The host of the URL is not allowed.
    pub fn url(&self, written: &str, owner: UrlOwner) -> Result<(), Diagnostic> {
        let url = match parse(written) {
            Some(url) if !has_template_in_host(written) => url,
            _ => {
                let hint = "write the host as it is: only `${port}` may be filled in by a run";
                return Err(refused("restricted-host", format!("`{written}` cannot be resolved before the run")).hint(hint));
            }
        };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Ok(()) };
        if owner == UrlOwner::Suite && fills_in_port(written) && is_loopback(&url) {
            return Ok(());
        }
        let listed = mcproof_client::Destinations::Listed(self.hosts.clone());
        if !written[authority(written)].contains(PORT) && listed.admit(host, port) {
            return Ok(());
        }
        self.host(&ListedHost::of(&url))
    }

    /// # Errors
    /// Always: the host is not allowed.
    fn host(&self, host: &Option<ListedHost>) -> Result<(), Diagnostic> {
        let host = host.as_ref().map(ToString::to_string).unwrap_or_default();
        let diagnostic = refused("restricted-host", format!("{host} may not be reached"));
        Err(diagnostic.hint(format!("allow it with --allow-host {host}, or name the server on the command line")))
    }

    /// A URI that a client or a server may open as a file.
    ///
    /// # Errors
    /// It is a `file:` URI that leads out of the folders.
    pub fn uri(&self, written: &str) -> Result<(), Diagnostic> {
        let is_file = written.trim_start().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
        if !is_file {
            return Ok(());
        }
        match Url::parse(written.trim_start()).ok().and_then(|url| url.to_file_path().ok()) {
            Some(path) if !is_template(written) => self.path(&path, written),
            _ => {
                let hint = "write the path as it is, without variables of a run";
                Err(refused("restricted-path", format!("`{written}` cannot be resolved before the run")).hint(hint))
            }
        }
    }

    /// Why certificates are not left unchecked.
    pub(crate) fn insecure() -> Diagnostic {
        let message = "certificates may not go unchecked".to_owned();
        refused("restricted-tls", message).hint("trust the authority of the server with `ca`, or allow it with --insecure")
    }

    /// What a process has of our environment.
    pub fn inherited(&self) -> Inherited {
        Inherited::Only(self.inherited.clone())
    }

    /// # Errors
    /// The command, one of the variables that it is given, or its folder is not allowed.
    pub fn launch(&self, launch: &Launch) -> Result<(), Diagnostic> {
        self.command(&launch.command)?;
        launch.env.iter().try_for_each(|(name, _)| self.variable(name))?;
        match &launch.cwd {
            Some(cwd) => self.template_path(&launch.folder, cwd),
            None => self.path(&launch.folder, &launch.folder.display().to_string()),
        }
    }
}

fn parse(written: &str) -> Option<Url> {
    with_port(written, "1")
}

fn with_port(written: &str, port: &str) -> Option<Url> {
    Url::parse(&written.replace(PORT, port).replace("${tmp}", "tmp")).ok()
}

/// Whether `${port}` is the port of a URL, and stands for nothing else before its path.
pub(crate) fn fills_in_port(written: &str) -> bool {
    let authority = &written[authority(written)];
    let is_port = |number: &str| {
        // With other templates in it, it cannot be read yet.
        with_port(written, number).is_none_or(|url| url.port().is_some_and(|port| port.to_string() == number))
    };
    authority.strip_suffix(PORT).is_some_and(|host| host.ends_with(':') && !host.contains(PORT)) && is_port("1") && is_port("2")
}

/// User, host and port of a URL.
fn authority(written: &str) -> Range<usize> {
    let start = written.find("://").map_or(0, |at| at + 3);
    let end = written[start..].find(['/', '?', '#', '\\']).map_or(written.len(), |end| start + end);
    start..end
}

/// Whether a run fills in anything before the path but a port.
fn has_template_in_host(written: &str) -> bool {
    let end = authority(written).end;
    template_ranges(written).into_iter().any(|range| range.start < end && &written[range] != PORT)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The path with every symbolic link followed, as far as it is there; `None` where `..` follows what is not.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(whole) = path.canonicalize() {
        return Some(whole);
    }
    // A link that leads nowhere is made to lead somewhere by whoever writes through it.
    if path.is_symlink() {
        let target = std::fs::read_link(path).ok()?;
        let parent = path.parent().unwrap_or(Path::new("."));
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        return parent
            .canonicalize()
            .ok()
            .map(|parent| parent.join(target))
            .filter(|path| !path.is_symlink())
            .and_then(|path| resolved(&path));
    }
    let name = match path.components().next_back()? {
        Component::Normal(name) => name,
        _ => return None,
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(resolved(parent)?.join(name))
}

fn refused(code: &str, message: String) -> Diagnostic {
    Diagnostic::error(code, format!("{message}: --restricted is on"))
}

/// As one word of a shell.
fn line_of_one(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}
