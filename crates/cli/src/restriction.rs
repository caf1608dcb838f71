//! The flags for untrusted suites and configuration files, and the resulting restriction. Reads the environment and the file system;
//! knows nothing of suites.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings;
use crate::suites::folder_of;
use mcproof_client::ListedHost;
use mcproof_record::Diagnostic;
use mcproof_suite::restriction::{CommandPattern, Folder, Restriction, Variables};
use mcproof_system::files::without_dots;
use mcproof_system::machine::is_basic_variable;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Restrictions for untrusted files")]
pub(crate) struct RestrictionArgs {
    /// Restrict suites and configuration files that you do not trust
    ///
    /// They start no command, read no environment variable, touch no file outside their directory, and reach no host, except those on
    /// this command line.
    #[arg(long)]
    restricted: bool,
    /// With --restricted, allow commands that match this glob, such as 'node server.js *'; may be repeated
    #[arg(long, value_name = "GLOB", requires = "restricted", value_parser = CommandPattern::parse, hide_short_help = true)]
    allow_command: Vec<CommandPattern>,
    /// With --restricted, allow this environment variable to be read and set, or * for all; may be repeated
    #[arg(long, value_name = "NAME", requires = "restricted", hide_short_help = true)]
    allow_env: Vec<String>,
    /// With --restricted, allow this host besides those on the command line, or * for all; may be repeated
    #[arg(long, value_name = "HOST[:PORT]", requires = "restricted", hide_short_help = true)]
    allow_host: Vec<ListedHost>,
    /// With --restricted, allow this directory or file to be read and written; may be repeated
    #[arg(long, value_name = "PATH", requires = "restricted", hide_short_help = true)]
    allow_path: Vec<PathBuf>,
}

impl RestrictionArgs {
    /// What may be touched. `typed`: the paths on the command line; `hosts`: those that it names.
    ///
    /// # Errors
    /// A path does not exist, or is a link out of the folder in which it was typed.
    pub(crate) fn restriction(
        &self,
        typed: &[PathBuf],
        hosts: impl IntoIterator<Item = ListedHost>,
    ) -> Result<Option<Arc<Restriction>>, Failure> {
        if !self.restricted {
            return Ok(None);
        }
        let here = folder(&settings::current_folder())?;
        let mut folders = typed.iter().map(|path| self.typed(path, &here)).collect::<Result<Vec<_>, _>>()?;
        for path in &self.allow_path {
            folders.push(folder(path)?);
        }
        let variables = match self.allow_env.iter().any(|name| name == "*") {
            true => Variables::All,
            false => Variables::Only(self.allow_env.iter().cloned().collect()),
        };
        let all = settings::variables().into_iter();
        let inherited = all.filter(|(name, _)| is_basic_variable(name) || variables.allow(name)).collect();
        let hosts = self.allow_host.iter().cloned().chain(hosts).collect();
        Ok(Some(Arc::new(Restriction { folders, commands: self.allow_command.clone(), variables, hosts, inherited })))
    }

    /// Whether these files may be written, or those in them if they are folders: outputs that flags name, and those that are written by default.
    /// A path anywhere is the user's; one in this directory, or in one of `typed`, has to end up there, since a checkout has its links from
    /// strangers.
    ///
    /// # Errors
    /// A path is, or leads through, a link out of there.
    pub(crate) fn permit_outputs<'a>(&self, typed: &[PathBuf], outputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
        if !self.restricted {
            return Ok(());
        }
        let here = settings::current_folder();
        let mut untrusted = vec![folder(&here)?];
        untrusted.extend(typed.iter().filter_map(|path| Folder::at(start_of(path)).ok()));
        let allowed = self.allow_path.iter().map(|path| folder(path)).collect::<Result<Vec<_>, _>>()?;
        let stays = |path: &Path| untrusted.iter().chain(&allowed).any(|folder| folder.holds(path));
        for output in outputs {
            let written = without_dots(&here.join(output));
            let mut above = written.ancestors().filter_map(|above| above.canonicalize().ok());
            if !above.any(|above| untrusted.iter().any(|folder| above.starts_with(folder.path()))) {
                continue;
            }
            // The names of the files in a folder are not known yet.
            let entries = std::fs::read_dir(output).into_iter().flatten().flatten().map(|entry| entry.path());
            let links = entries.filter(|path| path.is_symlink());
            if let Some(away) = std::iter::once(output.to_owned()).chain(links).find(|path| !stays(path)) {
                let end = away.ancestors().find_map(|above| above.canonicalize().ok());
                return Err(leads_out(&away, end.as_deref().unwrap_or(&away)));
            }
        }
        Ok(())
    }

    /// The folder that a typed path stands for. What looks as if it lay in here has to.
    fn typed(&self, path: &Path, here: &Folder) -> Result<Folder, Failure> {
        let whole = folder(path)?;
        let leads_away = path.is_absolute() || path.components().any(|part| part == Component::ParentDir);
        let start = start_of(path);
        if leads_away
            || here.holds(start)
            || self.allow_path.iter().any(|allowed| folder(allowed).is_ok_and(|allowed| allowed.holds(start)))
        {
            return Ok(Folder::at(start).unwrap_or(whole));
        }
        Err(leads_out(path, whole.path()))
    }
}

fn leads_out(path: &Path, to: &Path) -> Failure {
    let message = format!("`{}` is a link out of this directory: --restricted is on", path.display());
    let diagnostic = Diagnostic::error("restricted-path", message);
    Failure::new(Exit::BadInput, diagnostic.hint(format!("allow it with --allow-path {}", to.display())))
}

/// The folder itself, or that of a file.
fn start_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { folder_of(path) }
}

fn folder(path: &Path) -> Result<Folder, Failure> {
    Folder::at(path).map_err(|error| Failure::bad_input("no-such-path", format!("cannot find {}: {error}", path.display())))
}
