//! Does a server keep what it should let go of? Its steps are run once to warm it up and then again and again, in fresh
//! sessions where the transport has them; before and after, its processes and file descriptors are counted.

use super::sessions::{Sessions, server_of};
use crate::plan::Leaks;
use mcproof_client::{ResourceUsage, SessionEnd};
use mcproof_record::{Diagnostic, Severity, counted};
use mcproof_system::COUNTS_RESOURCES;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server may take to let go of what it held.
const SETTLE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(25);
/// So many looks alike in a row are taken for the state of a server at rest.
const ALIKE: u32 = 4;
/// Kinds of descriptors that are reported.
const MOST_TOLD: usize = 5;

/// What a case found out about leaks so far.
#[derive(Default)]
pub(super) struct LeakCheck {
    before: BTreeMap<String, ResourceUsage>,
    /// Servers that cannot be looked into, and what else is not known.
    unknown: Vec<String>,
    /// A session that lived on after its end.
    kept: Option<String>,
}

impl LeakCheck {
    /// Counts what the servers hold now that they are warm.
    pub(super) async fn begin(&mut self, sessions: &Sessions<'_>) {
        for (name, open) in sessions.open.iter().filter(|(name, _)| server_of(name) == *name) {
            match at_rest(|| open.session.resource_usage()).await {
                Some(usage) => drop(self.before.insert(name.clone(), usage)),
                None if COUNTS_RESOURCES => {
                    self.unknown.push(format!("the processes and file descriptors of `{name}`, which mcproof did not start"));
                }
                None => self.unknown.push("processes and file descriptors: available only on Linux".into()),
            }
        }
    }

    /// Puts all sessions on fresh ones, and looks at what became of the old ones.
    pub(super) async fn renew(&mut self, sessions: &mut Sessions<'_>) -> Result<(), Diagnostic> {
        let names: Vec<String> = sessions.open.keys().cloned().collect();
        for name in names {
            match sessions.renew(&name).await.map_err(|diagnostic| *diagnostic)? {
                SessionEnd::StillKnown(status) => {
                    self.kept = Some(format!(
                        "`{name}` accepted DELETE for a session, but still serves it: a request with the old session id returned status {status}"
                    ));
                }
                SessionEnd::NotTaken(status) => self.know_not(format!("whether `{name}` ends sessions: DELETE returned status {status}")),
                SessionEnd::Silent => self.know_not(format!("whether `{name}` ends sessions: no response to DELETE")),
                SessionEnd::NoSession | SessionEnd::Refused => {}
            }
        }
        Ok(())
    }

    fn know_not(&mut self, what: String) {
        if !self.unknown.contains(&what) {
            self.unknown.push(what);
        }
    }

    /// Compares, once the servers have had time to let go.
    pub(super) async fn finish(self, leaks: &Leaks, sessions: &Sessions<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (name, before) in &self.before {
            let Some(open) = sessions.open.get(name) else { continue };
            let deadline = Instant::now() + SETTLE;
            let diagnostic = loop {
                // A server that has ended is told otherwise.
                let Some(now) = open.session.resource_usage() else { break None };
                let growth = growth(name, leaks, before, &now);
                if growth.is_none() || Instant::now() >= deadline {
                    break growth;
                }
                sleep(LOOK).await;
            };
            found.extend(diagnostic);
        }
        found.extend(
            self.kept.map(|message| Diagnostic::error("session-kept", message).hint("return 404 for requests of an ended session")),
        );
        found.extend(self.unknown.into_iter().map(|what| Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error("leak-untestable", format!("not tested for leaks: {what}"))
        }));
        found.into_iter().map(|diagnostic| diagnostic.at(leaks.place.clone())).collect()
    }
}

fn growth(name: &str, leaks: &Leaks, before: &ResourceUsage, now: &ResourceUsage) -> Option<Diagnostic> {
    let more = |before: &BTreeMap<String, usize>, now: &BTreeMap<String, usize>, allowed: u32, what: &str| {
        let total = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
        let more = total(now).saturating_sub(total(before));
        (more > usize::try_from(allowed).unwrap_or(usize::MAX))
            .then(|| format!("{more} more {what} ({})", told(&ResourceUsage::growth(before, now))))
    };
    let descriptors = more(&before.descriptors, &now.descriptors, leaks.descriptors, "open file descriptors");
    let processes = more(&before.processes, &now.processes, leaks.processes, "processes");
    let parts: Vec<String> = descriptors.into_iter().chain(processes).collect();
    if parts.is_empty() {
        return None;
    }
    let message = format!("after {} `{name}` holds {}", counted(leaks.repeat, "repeat"), parts.join(" and "));
    let hint = "close what a request or a session opened when it is over; allow for caches with `leaks: { fds: N, processes: N }`";
    Some(Diagnostic::error("leak", message).hint(hint))
}

/// The largest growths first.
fn told(growth: &BTreeMap<String, usize>) -> String {
    let mut all: Vec<(&String, &usize)> = growth.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let more = all.len().saturating_sub(MOST_TOLD);
    let mut parts: Vec<String> = all.iter().take(MOST_TOLD).map(|(what, count)| format!("{count} × {what}")).collect();
    if more > 0 {
        parts.push(format!("{more} other kinds"));
    }
    parts.join(", ")
}

/// The usage once it no longer changes, or the last one when time is up.
async fn at_rest(look: impl Fn() -> Option<ResourceUsage>) -> Option<ResourceUsage> {
    let deadline = Instant::now() + SETTLE;
    let mut last = look()?;
    let mut alike = 0;
    while alike < ALIKE && Instant::now() < deadline {
        sleep(LOOK).await;
        let now = look()?;
        alike = if now == last { alike + 1 } else { 0 };
        last = now;
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Place;

    #[test]
    fn growth_beyond_what_is_allowed_is_told_by_kind() {
        let usage = |sockets, files, processes| ResourceUsage {
            descriptors: BTreeMap::from([("socket".to_owned(), sockets), ("/tmp/log".to_owned(), files)]),
            processes: BTreeMap::from([("server".to_owned(), processes)]),
            resident: 0,
        };
        let place = Place { file: "s.yaml".into(), line: 1, column: 1, length: 1, text: "leaks: true".into() };
        let check = |now: ResourceUsage, descriptors: u32, expected: Option<&str>| {
            let leaks = Leaks { repeat: 10, descriptors, processes: 0, place: place.clone() };
            assert_eq!(growth("a", &leaks, &usage(2, 1, 1), &now).map(|found| found.message).as_deref(), expected);
        };
        check(usage(2, 1, 1), 0, None);
        check(usage(1, 2, 1), 0, None);
        check(usage(3, 11, 1), 0, Some("after 10 repeats `a` holds 11 more open file descriptors (10 × /tmp/log, 1 × socket)"));
        check(usage(3, 11, 1), 11, None);
        check(usage(2, 1, 3), 0, Some("after 10 repeats `a` holds 2 more processes (2 × server)"));
    }
}
