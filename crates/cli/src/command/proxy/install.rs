//! `mcproof proxy install` and `uninstall`: changes the configuration of hosts. Knows no traffic.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::offered::offered;
use crate::{output, settings, suggest};
use clap::builder::StringValueParser;
use mcproof_hosts::{Edit, Host, Places, ServerChange, backup_of, difference, edit, read, replace};
use mcproof_report::{escape, escape_block};
use mcproof_system::machine::{HOME_VARIABLE, config_folder};
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Route the servers of a host through the proxy
    ///
    /// Each stdio server in the configuration of the host is started through `mcproof proxy`. Nothing else in the file changes. Restart the
    /// host afterwards. Without HOST, the hosts on this machine are listed.
    Install(HostArgs),
    /// Take the servers of a host out of the proxy
    Uninstall(HostArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct HostArgs {
    /// claude-desktop, claude-code, cursor, vscode, windsurf, zed, goose, or project (.mcp.json)
    #[arg(value_parser = offered(StringValueParser::new(), hosts), hide_possible_values = true)]
    host: Option<String>,
    /// Names of servers [default: all]
    servers: Vec<String>,
    /// Change this configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

fn hosts() -> Vec<String> {
    Host::ALL.map(|host| host.name().to_owned()).to_vec()
}

pub(super) fn run(action: &Action) -> Result<Exit, Failure> {
    let (what, arguments) = match action {
        Action::Install(arguments) => (Edit::Install, arguments),
        Action::Uninstall(arguments) => (Edit::Uninstall, arguments),
    };
    let places = places()?;
    let Some(host) = arguments.host()? else { return list(&places) };
    let file = match &arguments.config {
        Some(file) => file.clone(),
        None => host.found(&places).ok_or_else(|| {
            let looked = host.files(&places).iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
            let failure = Failure::bad_input("no-configuration", format!("{} has no configuration on this machine", host.title()));
            failure.hint(format!("searched: {looked}; name another file with --config FILE"))
        })?,
    };
    let unusable = |reason: String| Failure::bad_input("bad-configuration", format!("cannot use {}: {reason}", file.display()));
    let before = read(&file).map_err(|error| unusable(error.to_string()))?;
    let program = settings::own_binary().and_then(|path| path.to_str().map(str::to_owned));
    let program = program.ok_or_else(|| unusable("the path of mcproof is not known".into()))?;
    let changed = edit(host, &before, what, &arguments.servers, &program).map_err(|error| unusable(error.to_string()))?;
    let mut text = String::new();
    for (name, change) in &changed.servers {
        writeln!(text, "{}: {}", escape(name), told(what, *change)).expect("a String takes all text");
    }
    if changed.text == before {
        text += &format!("{} is unchanged\n", file.display());
    } else if arguments.dry_run {
        text += &escape_block(&difference(&before, &changed.text));
    } else {
        replace(&file, &before, &changed.text).map_err(|error| Failure::cannot_write(&file, &error))?;
        text += &format!("changed {}", file.display());
        let backup = backup_of(&file);
        text += &if backup.exists() { format!(" (the original is in {})\n", backup.display()) } else { "\n".into() };
        text += &format!("restart {} to apply the change\n", host.title());
    }
    output::show(&text)?;
    let is_odd = changed.servers.iter().any(|(_, change)| matches!(change, ServerChange::NotUnderstood | ServerChange::OwnOptions));
    Ok(if is_odd { Exit::Failed } else { Exit::Passed })
}

fn told(what: Edit, change: ServerChange) -> &'static str {
    match (change, what) {
        (ServerChange::Installed, _) => "starts through the proxy",
        (ServerChange::Uninstalled, _) => "starts without the proxy",
        (ServerChange::AsBefore, Edit::Install) => "already starts through the proxy",
        (ServerChange::AsBefore, Edit::Uninstall) => "does not start through the proxy",
        (ServerChange::OwnOptions, _) => "unchanged: its `mcproof proxy` has options of its own; take it out by hand",
        (ServerChange::AtUrl, _) => "unchanged: it is at a URL; record it with `mcproof proxy --listen ADDRESS URL`",
        (ServerChange::OfExtension, _) => "unchanged: an extension of the host starts it",
        (ServerChange::NotUnderstood, _) => {
            "unchanged: its entry is not understood; expected `command` (string) and `args` (list of strings)"
        }
    }
}

impl HostArgs {
    fn host(&self) -> Result<Option<Host>, Failure> {
        match (&self.host, &self.config) {
            (Some(name), _) => match Host::ALL.into_iter().find(|host| host.name() == name) {
                Some(host) => Ok(Some(host)),
                None => {
                    let names = Host::ALL.map(Host::name);
                    let failure = Failure::bad_input("unknown-host", format!("unknown host `{}`", escape(name)));
                    Err(failure.hint(match suggest::did_you_mean(name, names) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("known hosts: {}; name a file with --config FILE", names.join(", ")),
                    }))
                }
            },
            (None, Some(file)) => Ok(Some(Host::of_file(file))),
            (None, None) => Ok(None),
        }
    }
}

/// The hosts that have a configuration here.
fn list(places: &Places) -> Result<Exit, Failure> {
    let mut text = String::new();
    for host in Host::ALL {
        if let Some(file) = host.found(places) {
            writeln!(text, "{:<16}{}", host.name(), file.display()).expect("a String takes all text");
        }
    }
    if text.is_empty() {
        let names = Host::ALL.map(Host::name).join(", ");
        return Err(Failure::bad_input("no-host", "no host has a configuration on this machine")
            .hint(format!("known hosts: {names}; name a file with --config FILE")));
    }
    output::show(&text)?;
    output::talk("name a host to change its configuration: mcproof proxy install HOST\n");
    Ok(Exit::Passed)
}

fn places() -> Result<Places, Failure> {
    let absolute = |name: &str| settings::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let missing = || Failure::bad_input("no-home", format!("{HOME_VARIABLE} is not set")).hint("set it to your home directory");
    let home = absolute(HOME_VARIABLE).ok_or_else(missing)?;
    let config = config_folder(&home, settings::variable);
    Ok(Places { home, config, project: settings::current_folder() })
}
