//! What people tell the monitor from the command line: that a deploy is under way, that they take care of an incident, that they want
//! to hear nothing of a target. Writes rows; the monitor that runs sees them there.

use super::reading::Dashboard;
use super::{meant, of_store, reading};
use crate::conversation;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings, suggest};
use mcproof_report::escape;
use mcproof_suite::{BadDuration, parse_duration};
use mcproof_watch::clock::Clock;
use mcproof_watch::moment::Moment;
use mcproof_watch::store::audit::{self, AuditEvent};
use mcproof_watch::store::operations::is_full_hash;
use mcproof_watch::store::silences::Silence;
use mcproof_watch::store::{Store, StoreFailure, incidents};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// For a database that does not respond.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of what somebody mutes, silences or announces.
const SHORTEST: Duration = Duration::from_secs(1);
/// Between two attempts to open it.
const REST: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch deploy watch.yaml shop
  hash=$(mcproof hash --full --as modern/minimal https://staging.example.com/mcp)
  mcproof watch deploy watch.yaml shop --expect \"$hash\" --for 30m")]
pub(crate) struct DeployArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// The target to be deployed
    target: String,
    /// Expect this contract only: its full hash, as shown on the dashboard. Any other change is still reported
    #[arg(long, value_name = "HASH", value_parser = full_hash)]
    expect: Option<String>,
    /// Duration, such as 15m or 1h: from 1s to 168h
    #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = lasting)]
    lasts: Duration,
    /// Note, shown in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch mute watch.yaml shop --for 2h
  mcproof watch mute watch.yaml shop --off")]
pub(crate) struct MuteArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// The target to mute
    target: String,
    /// Duration, such as 30m or 2h: from 1s to 168h
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = lasting)]
    lasts: Duration,
    /// Unmute the target
    #[arg(long, conflicts_with = "lasts")]
    off: bool,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch silence watch.yaml --name 'shop-*' --reason 'the shop moves' --for 2h
  mcproof watch silence watch.yaml --tag billing --tag 'team-?' --reason 'ticket 4711' --for 1h")]
pub(crate) struct SilenceArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// Targets whose name matches this pattern (* matches any characters, ? one); may be repeated
    #[arg(long = "name", value_name = "PATTERN", required_unless_present = "tags")]
    names: Vec<String>,
    /// Only targets with a tag that matches this pattern; may be repeated
    #[arg(long = "tag", value_name = "PATTERN")]
    tags: Vec<String>,
    /// Reason, shown with the silence
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Duration, such as 30m or 2h: from 1s to 168h
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = lasting)]
    lasts: Duration,
    /// Author [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Accept patterns that match no target yet
    #[arg(long)]
    future: bool,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch unsilence watch.yaml 0197…")]
pub(crate) struct UnsilenceArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// The id of the silence or its start, as listed by `mcproof watch silences`
    silence: String,
    #[command(flatten)]
    kept: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof watch ack watch.yaml shop
  mcproof watch ack watch.yaml 01974c1e --by ann")]
pub(crate) struct AckArguments {
    /// The configuration, a YAML file
    config: PathBuf,
    /// The target that has the incident, or the id of the incident or its start
    #[arg(value_name = "TARGET|INCIDENT")]
    incident: String,
    /// Who acknowledges it [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    kept: DatabaseArgs,
}

fn full_hash(text: &str) -> Result<String, String> {
    match is_full_hash(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("a hash is `sha256:` and 64 hexadecimal digits: see `mcproof hash --full --as modern/minimal`, or `legacy/minimal`".into())
        }
    }
}

/// As long as somebody says: what is not that is refused. Nothing is without an end, and 0 is no time at all.
fn lasting(text: &str) -> Result<Duration, String> {
    let usual = "write how long it lasts, such as 30m or 2h";
    match parse_duration(text) {
        Ok(duration) if duration < SHORTEST => Err(format!("`{text}` is shorter than a second; {usual}")),
        Ok(duration) => Ok(duration),
        Err(_) if text.trim().trim_matches('0').is_empty() && !text.trim().is_empty() => Err(format!("`{text}` is zero; {usual}")),
        Err(BadDuration { reason, hint }) => Err(format!("`{text}` {reason}; {hint}")),
    }
}

/// Which database is meant.
#[derive(Debug, clap::Args)]
pub(super) struct DatabaseArgs {
    /// The database that the monitor uses instead of that of the file: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

pub(super) fn deploy(arguments: &DeployArguments) -> Result<Exit, Failure> {
    let DeployArguments { config, target, expect, lasts, note, kept } = arguments;
    with_store(config, kept, async |store, now| {
        known(store, target).await?;
        write_down(store, &audit::lasting("announce a deploy", *lasts), target, now).await?;
        store.announce_deploy(target, now, now + *lasts, expect.as_deref(), note).await.map_err(|failure| of_store(&failure))?;
        output::show(&format!("{}: contract changes are expected until {}\n", escape(target), now + *lasts))?;
        Ok(Exit::Passed)
    })
}

pub(super) fn mute(arguments: &MuteArguments) -> Result<Exit, Failure> {
    let MuteArguments { config, target, lasts, off, kept } = arguments;
    let done = with_store(config, kept, async |store, now| {
        known(store, target).await?;
        write_down(store, &audit::lasting("mute", if *off { Duration::ZERO } else { *lasts }), target, now).await?;
        let until = if *off { Moment(0) } else { now + *lasts };
        store.mute(target, until).await.map_err(|failure| of_store(&failure))?;
        let told = if *off { "unmuted".to_owned() } else { format!("alerts are muted until {until}") };
        output::show(&format!("{}: {told}\n", escape(target)))?;
        Ok(Exit::Passed)
    });
    let minutes = if *off { 0 } else { lasts.as_secs().div_ceil(60) };
    let call = format!("-d '{{\"minutes\": {minutes}}}' DASHBOARD/api/targets/{}/mute", segment(target));
    done.map_err(|failure| at_the_monitor(failure, config, if *off { "unmute it" } else { "mute it" }, &call))
}

pub(super) fn acknowledge(arguments: &AckArguments) -> Result<Exit, Failure> {
    let AckArguments { config, incident, by, kept } = arguments;
    let who = by.clone().unwrap_or_else(user);
    let done = with_store(config, kept, async |store, now| {
        let found = meant::incident(store, incident).await?;
        let action = if by.is_some() { format!("acknowledge as {who}") } else { "acknowledge".to_owned() };
        write_down(store, &action, &found.id, now).await?;
        match incidents::acknowledge(store, &found.id, &who, now).await.map_err(|failure| of_store(&failure))? {
            true => {
                output::show(&format!("{}: acknowledged by {}: {}\n", found.id, escape(&who), escape(&found.title)))?;
                Ok(Exit::Passed)
            }
            // It was open a moment ago.
            false => Err(meant::none(incident, &[])),
        }
    });
    let call = "DASHBOARD/api/incidents/ID/acknowledge";
    done.map_err(|failure| at_the_monitor(failure, config, "acknowledge the incident", call))
}

pub(super) fn silence(arguments: &SilenceArguments) -> Result<Exit, Failure> {
    let SilenceArguments { config, names, tags, reason, lasts, by, future, kept } = arguments;
    let done = with_store(config, kept, async |store, now| {
        let silence = Silence {
            names: names.clone(),
            tags: tags.clone(),
            author: by.clone().unwrap_or_else(user),
            reason: reason.clone(),
            starts: now,
            ends: now + *lasts,
        };
        if let Some(flaw) = silence.flaw() {
            return Err(Failure::bad_input("bad-silence", flaw.problem).hint(flaw.remedy));
        }
        let targets = store.targets().await.map_err(|failure| of_store(&failure))?;
        let known: Vec<(&str, &[String])> = targets.iter().map(|target| (target.name.as_str(), target.tags.as_slice())).collect();
        if let Some(unmatched) = silence.unmatched(&known).filter(|_| !future) {
            let hint = format!("{} For targets to come, add --future", unmatched.remedy);
            return Err(Failure::bad_input("unmatched-silence", unmatched.problem).hint(hint));
        }
        write_down(store, &audit::lasting("silence", *lasts), &names.iter().chain(tags).cloned().collect::<Vec<_>>().join(", "), now)
            .await?;
        let id = store.silence(&silence, now).await.map_err(|failure| of_store(&failure))?;
        output::show(&format!("{id}: alerts are silenced until {}\n", silence.ends))?;
        Ok(Exit::Passed)
    });
    let mut body = json!({ "names": names, "tags": tags, "reason": reason, "minutes": lasts.as_secs().div_ceil(60) });
    if *future {
        body["future"] = json!(true);
    }
    let call = format!("-d '{}' DASHBOARD/api/silences", body.to_string().replace('\'', "'\\''"));
    done.map_err(|failure| at_the_monitor(failure, config, "silence the targets", &call))
}

pub(super) fn unsilence(arguments: &UnsilenceArguments) -> Result<Exit, Failure> {
    let UnsilenceArguments { config, silence, kept } = arguments;
    let done = with_store(config, kept, async |store, now| {
        let found = meant::silence(store, silence, now).await?;
        write_down(store, "end a silence", &found, now).await?;
        match store.end_silence(&found, now).await.map_err(|failure| of_store(&failure))? {
            true => {
                output::show(&format!("{}: ended\n", escape(&found)))?;
                Ok(Exit::Passed)
            }
            false => {
                let failure = Failure::bad_input("no-such-silence", format!("no active silence `{silence}`"));
                Err(failure.hint("`mcproof watch silences` lists active silences"))
            }
        }
    });
    done.map_err(|failure| at_the_monitor(failure, config, "end the silence", "DASHBOARD/api/silences/ID"))
}

/// Whoever has this command line.
fn user() -> String {
    settings::variable("USER").filter(|user| !user.is_empty()).unwrap_or_else(|| "unknown".into())
}

/// For the audit log. Whoever can write the database can be anybody.
async fn write_down(store: &Store, action: &str, subject: &str, now: Moment) -> Result<(), Failure> {
    let event = AuditEvent { who: &user(), via: "command line", action, subject };
    store.write_down(&event, now).await.map(drop).map_err(|failure| of_store(&failure))
}

pub(super) fn with_store(
    path: &Path,
    kept: &DatabaseArgs,
    work: impl AsyncFnOnce(&Store, Moment) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let database = match &kept.database {
        Some(database) => database.clone(),
        None => match reading::database(path)? {
            Some(database) => database,
            None => return Ok(Exit::BadInput),
        },
    };
    if let Some(file) = database.strip_prefix("sqlite:")
        && !Path::new(file.split('?').next().unwrap_or_default()).exists()
    {
        let failure = Failure::bad_input("no-database", format!("there is no database {}: nothing has been monitored yet", escape(file)));
        return Err(failure.hint("start the monitor first, or name the database that it uses with --database"));
    }
    conversation::run(async {
        let store = open(&database).await.map_err(|failure| of_store(&failure))?;
        let clock = Clock::of_machine(settings::now);
        clock.follow(&store).await.map_err(|failure| of_store(&failure))?;
        work(&store, clock.now()).await
    })?
}

/// A database that is gone for a moment, such as one that is started anew, is waited for.
async fn open(database: &str) -> Result<Store, StoreFailure> {
    let began = Instant::now();
    loop {
        match Store::open(database).await {
            Err(failure) if failure.may_pass() && began.elapsed() < PATIENCE => sleep(REST).await,
            opened => return opened,
        }
    }
}

/// This process opens the database itself, and cannot do without it. A monitor that runs can.
fn at_the_monitor(failure: Failure, config: &Path, what: &str, call: &str) -> Failure {
    if failure.diagnostic.code != "no-database" {
        return failure;
    }
    let mut hint = failure.diagnostic.hint.clone().unwrap_or_default();
    hint.push_str("; nothing was recorded: repeat it when the database responds");
    let told = match reading::dashboard(config) {
        Dashboard::None => {
            let text = "; the configuration has no `listen`, so a running monitor cannot be told: acknowledge the alert in the service that received it";
            write!(hint, "{text}")
        }
        Dashboard::Unknown => write!(hint, "; a running monitor accepts it meanwhile and keeps it in memory: {what} on its dashboard"),
        Dashboard::At { url, needs_token } => {
            let method = if call.ends_with("/silences/ID") { "DELETE" } else { "POST" };
            let token = if needs_token { " -H 'Authorization: Bearer TOKEN'" } else { "" };
            let call = call.replace("DASHBOARD", &url);
            write!(
                hint,
                "; a running monitor accepts it meanwhile and keeps it in memory: {what} on {url}, or with \
                 `curl -X {method}{token} -H 'Content-Type: application/json' {call}`"
            )
        }
    };
    told.expect("a String takes all text");
    failure.hint(hint)
}

/// As a part of a path.
fn segment(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

async fn known(store: &Store, target: &str) -> Result<(), Failure> {
    let targets = store.targets().await.map_err(|failure| of_store(&failure))?;
    if targets.iter().any(|known| known.name == target) {
        return Ok(());
    }
    let names: Vec<&str> = targets.iter().map(|known| known.name.as_str()).collect();
    let failure = Failure::bad_input("unknown-target", format!("no target `{target}` is watched in this database"));
    Err(failure.hint(suggest::hint(target, &names).unwrap_or_else(|| "start the monitor first".into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_lasts_as_long_as_it_says_or_is_refused() {
        for (text, expected) in [
            ("30m", Ok(1_800)),
            ("48h", Ok(172_800)),
            ("168h", Ok(604_800)),
            ("1s", Ok(1)),
            ("0", Err("`0` is zero; write how long")),
            ("00", Err("is zero")),
            ("0s", Err("`0s` is zero")),
            ("10ms", Err("shorter than a second")),
            ("169h", Err("a week is the longest")),
            ("60", Err("`60` has no unit; write 60s")),
            ("", Err("is not a valid duration")),
            ("-1h", Err("is not a valid duration")),
        ] {
            match (lasting(text), expected) {
                (Ok(found), Ok(seconds)) => assert_eq!(found, Duration::from_secs(seconds), "{text}"),
                (Err(said), Err(part)) => assert!(said.contains(part), "{text}: {said}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
