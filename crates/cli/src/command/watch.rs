//! `mcproof watch CONFIG`: the monitor, and what belongs to it. Wires the parts of `mcproof-watch` together; knows none of them
//! from inside.

mod alert;
mod log;
mod look;
mod meant;
mod operations;
mod reading;
mod serve;
mod shown;

use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::parse_listen_address;
use crate::output;
use crate::suggest::did_you_mean;
use mcproof_watch::store::StoreFailure;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Monitor servers: probe them on a schedule, send alerts and serve a dashboard
///
/// Reads targets and channels from a file. The file is reloaded when it changes and on SIGHUP; a file with errors is
/// not applied.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  # validate the configuration and show it
  mcproof watch watch.yaml --check
  # probe, send alerts and serve the dashboard
  mcproof watch watch.yaml
  # for cron: probe each target once and send alerts
  mcproof watch watch.yaml --once
  mcproof watch watch.yaml --database postgres://db/watch --role worker
  # send a test alert to each channel
  mcproof watch test-alert watch.yaml
  # state of each target: 0 if all are up, else 1
  mcproof watch status watch.yaml
  # list open and resolved incidents
  mcproof watch incidents watch.yaml --all
  mcproof watch silence watch.yaml --name 'shop-*' --reason moving --for 2h
  # expect contract changes for 15 minutes
  mcproof watch deploy watch.yaml shop
  # the format of the file, for editors
  mcproof schema watch > watch.schema.json"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The configuration, a YAML file
    #[arg(required = true)]
    config: Option<PathBuf>,
    /// Validate the configuration, show it and exit
    #[arg(long)]
    check: bool,
    /// Probe each target once, retry failures, send alerts and exit: 0 if all targets are healthy and every page was delivered, 4 if there are no targets, or none for this region, else 1
    #[arg(long, conflicts_with = "check")]
    once: bool,
    /// What this process does, where several share a database
    #[arg(long, value_name = "ROLE", default_value = "serve", conflicts_with = "once")]
    role: Part,
    /// With --check print JSON; otherwise write logs as JSON, a line each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    instead: ConfigOverrides,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Probe, send alerts and serve the dashboard
    Serve,
    /// Only probe
    Worker,
    /// Only send alerts
    Notifier,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Worker => "worker",
            Self::Notifier => "notifier",
        }
    }
}

/// What a command line says in place of the file.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConfigOverrides {
    /// Serve the dashboard here instead of where the file says
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    listen: Option<SocketAddr>,
    /// Store data in this database instead of the one in the file: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Probe from this region instead of the one in the file
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Send a test alert to each channel and resolve it
    TestAlert(AlertArguments),
    /// Announce a deployment: expect contract changes for some time
    Deploy(operations::DeployArguments),
    /// Mute alerts for a target
    Mute(operations::MuteArguments),
    /// Silence alerts for targets by name or tag
    Silence(operations::SilenceArguments),
    /// End a silence
    Unsilence(operations::UnsilenceArguments),
    /// List silences
    Silences(look::SilencesArguments),
    /// Acknowledge an incident
    Ack(operations::AckArguments),
    /// Show the state of each target
    Status(look::StatusArguments),
    /// List incidents, newest first
    Incidents(look::IncidentsArguments),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch test-alert watch.yaml
  mcproof watch test-alert watch.yaml on-call mail")]
pub(crate) struct AlertArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// Only these channels
    channels: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, _watching: Watching) -> Result<Exit, Failure> {
    match (&arguments.action, &arguments.config) {
        (Some(Action::TestAlert(alert)), _) => alert::run(alert),
        (Some(Action::Deploy(deploy)), _) => operations::deploy(deploy),
        (Some(Action::Mute(mute)), _) => operations::mute(mute),
        (Some(Action::Silence(silence)), _) => operations::silence(silence),
        (Some(Action::Unsilence(unsilence)), _) => operations::unsilence(unsilence),
        (Some(Action::Silences(silences)), _) => look::silences(silences),
        (Some(Action::Ack(ack)), _) => operations::acknowledge(ack),
        (Some(Action::Status(status)), _) => look::status(status),
        (Some(Action::Incidents(incidents)), _) => look::incidents(incidents),
        (None, Some(path)) => {
            if let Some(near) = misspelled(path) {
                let failure = Failure::bad_input("cannot-read", format!("{} cannot be read: there is no such file", path.display()));
                return Err(failure.hint(format!("did you mean `mcproof watch {near}`?")));
            }
            let seen = serve::look(path);
            let log = if arguments.json && !arguments.check { log::Form::Json } else { log::Form::Text };
            let Some(config) = reading::read(path, &arguments.instead)?.or_tell(log) else { return Ok(Exit::BadInput) };
            if arguments.check {
                if let Some(address) = config.listen.filter(|_| arguments.role == Part::Serve) {
                    serve::may_listen(address, &config)?;
                }
                let text = if arguments.json { shown::json(&config) } else { shown::text(&config) };
                output::show(&text)?;
                return Ok(Exit::Passed);
            }
            serve::run(path, arguments, config, seen)
        }
        (None, None) => unreachable!("a configuration file or a subcommand is required"),
    }
}

/// The command that somebody may have meant who typed this in the place of a file that there is not.
fn misspelled(path: &Path) -> Option<String> {
    if path.exists() {
        return None;
    }
    let grammar = <Arguments as clap::Args>::augment_args(clap::Command::new("watch"));
    did_you_mean(path.to_str()?, grammar.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
}

fn of_store(failure: &StoreFailure) -> Failure {
    let told = Failure::bad_input("no-database", format!("the database cannot be used: {failure}"));
    told.hint(failure.hint().unwrap_or("check `database` in the configuration, or pass --database"))
}
