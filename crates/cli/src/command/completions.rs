//! `mcproof completions` and `mcproof man`: the grammar of the command line for shells and for man pages.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use clap::Command;
use clap_complete::{Shell, generate};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof completions bash > ~/.local/share/bash-completion/completions/mcproof
  mcproof completions zsh > ~/.zfunc/_mcproof
  mcproof completions fish > ~/.config/fish/completions/mcproof.fish

For zsh, ~/.zshrc needs `fpath+=~/.zfunc` before `compinit`.")]
pub(crate) struct Arguments {
    /// Shell to complete for
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, grammar: &Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut without_hidden(grammar), "mcproof", &mut script);
    output::data(&script)?;
    Ok(Exit::Passed)
}

/// The commands that are listed: a shell would offer the others as well.
fn without_hidden(grammar: &Command) -> Command {
    let listed = grammar.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let root = Command::new("mcproof").version(env!("CARGO_PKG_VERSION")).propagate_version(true).disable_help_subcommand(true);
    root.args(grammar.get_arguments().cloned()).subcommands(listed)
}

/// Write the man pages, one for each command
#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// Directory to write `mcproof.1` and `mcproof-COMMAND.1` to; it is created if it does not exist
    #[arg(value_name = "DIRECTORY")]
    folder: PathBuf,
}

pub(crate) fn man(arguments: &ManArguments, grammar: Command) -> Result<Exit, Failure> {
    let written = |folder: &Path| -> io::Result<()> {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(grammar.disable_help_subcommand(true), folder)
    };
    written(&arguments.folder).map_err(|error| Failure::cannot_write(&arguments.folder, &error))?;
    Ok(Exit::Passed)
}
