//! Compares what two sides of the page promise, with what `mcproof diff` is made of. Other than there, each side may have an era or a revision
//! of its own.

use super::{CommandLine, is_trace, read};
use crate::command::diff::{self, Shown};
use crate::command::lock::visitors_of;
use crate::contracts::{self, CaptureExtent, CapturedContracts, ClientArgs, Contracts, pinned_era};
use crate::exit::Exit;
use crate::failure::Failure;
use mcproof_contract::{Extent, Profile, Visitor, of_trace};
use mcproof_protocol::Era;
use mcproof_record::{ContractDiff, Transcript};
use mcproof_ui::{Compared, ComparedSide, Offered, ServerSpec};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Files that the page offers.
const MOST_FILES: usize = 200;

/// A side, and what the user chose for it.
struct Chosen {
    shown: Shown,
    /// Only this era.
    era: Option<Era>,
    /// Only one revision of it.
    has_revision: bool,
}

/// A side that is there, or a server that is still to be visited.
enum Found<'a> {
    Shown(Shown),
    Server(&'a ServerSpec),
}

pub(super) fn compare(line: &CommandLine, old: &ComparedSide, new: &ComparedSide) -> Result<Compared, Failure> {
    // What is saved says as which kinds of clients a server is to be visited.
    let (before, after) = match (found(line, old)?, found(line, new)?) {
        (Found::Shown(before), Found::Shown(after)) => (Chosen::saved(before), Chosen::saved(after)),
        (Found::Shown(before), Found::Server(spec)) => {
            let after = visited(line, spec, Some(&before))?;
            (Chosen::saved(before), after)
        }
        (Found::Server(spec), Found::Shown(after)) => (visited(line, spec, Some(&after))?, Chosen::saved(after)),
        (Found::Server(one), Found::Server(other)) => (visited(line, one, None)?, visited(line, other, None)?),
    };
    let (old, new) = (offered(&before.shown), offered(&after.shown));
    Ok(Compared { diff: changes(before, after), old, new })
}

/// The locks and traces of a folder.
pub(super) fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<String> = names.filter(|name| name.ends_with("mcproof.lock") || name.ends_with(".mcptrace")).collect();
    found.sort();
    found.truncate(MOST_FILES);
    found
}

impl Chosen {
    fn saved(shown: Shown) -> Self {
        Self { shown, era: None, has_revision: false }
    }
}

fn found<'a>(line: &CommandLine, side: &'a ComparedSide) -> Result<Found<'a>, Failure> {
    Ok(match side {
        ComparedSide::Server(spec) => Found::Server(spec),
        ComparedSide::Recorded(name, transcript) => Found::Shown(recorded(name.clone(), vec![transcript.clone()])?),
        ComparedSide::File(name) => {
            let path = line.folder.join(name);
            if let Some(restriction) = line.base.restriction()? {
                restriction.path(&path, name).map_err(|refused| Failure::new(Exit::BadInput, refused))?;
            }
            match is_trace(&path) {
                true => {
                    let sessions = read(&path)?.into_iter().map(|session| session.transcript).collect();
                    Found::Shown(recorded(name.clone(), sessions)?)
                }
                false => Found::Shown(Shown::of_file(name.clone(), &path)?),
            }
        }
    })
}

/// What recorded sessions show; of each kind of client, the first that shows anything.
fn recorded(name: String, sessions: Vec<Transcript>) -> Result<Shown, Failure> {
    let mut contracts = Contracts::new();
    let mut reason = "has no sessions".to_owned();
    for transcript in sessions {
        match of_trace(transcript) {
            Ok((visitor, contract)) => {
                contracts.entry(visitor.key(None)).or_insert(contract);
            }
            Err(failure) => reason = failure.to_string(),
        }
    }
    if contracts.is_empty() {
        return Err(Failure::bad_input("bad-trace", format!("{name} {reason}")).hint("list its tools in the session that is recorded"));
    }
    Ok(Shown { name, contracts, extent: Extent::Part, transport: None })
}

/// A server, visited as the kinds of clients that the other side is about.
fn visited(line: &CommandLine, spec: &ServerSpec, other: Option<&Shown>) -> Result<Chosen, Failure> {
    let (typed, resolved) = line.resolved(spec, None)?;
    let era = pinned_era(&typed);
    let mut visitors: Vec<Visitor> = match other {
        Some(other) => visitors_of(&other.contracts)?,
        None => Vec::new(),
    };
    // What a client of no profile has declared is not known.
    visitors.retain(|visitor| era.is_none_or(|era| visitor.era == era) && visitor.profile != Profile::Own);
    let is_whole = other.is_some_and(|other| other.extent == Extent::Whole);
    let effort = if is_whole && !visitors.is_empty() { CaptureExtent::Again } else { CaptureExtent::Whole };
    if visitors.is_empty() {
        visitors = ClientArgs::default().visitors(&typed)?;
    }
    let CapturedContracts { contracts, transport } = contracts::take_unseen(&resolved, &visitors, effort)?;
    let has_revision = typed.protocol_version.is_some();
    let name = [Some(spec.title()), era.map(|era| format!("{era} era")), typed.protocol_version, spec.transport.clone()];
    let name = name.into_iter().flatten().filter(|part| part != "auto").collect::<Vec<_>>().join(", ");
    Ok(Chosen { shown: Shown { name, contracts, extent: Extent::Whole, transport: Some(transport) }, era, has_revision })
}

/// All changes. Which era and which revision the user chose for a side is none of them.
fn changes(mut before: Chosen, mut after: Chosen) -> ContractDiff {
    match (before.era, after.era) {
        (Some(era), None) => keep_era(&mut after.shown.contracts, era),
        (None, Some(era)) => keep_era(&mut before.shown.contracts, era),
        _ => {}
    }
    let is_chosen = before.era.is_some() || after.era.is_some();
    let aligned = if is_chosen { align(&before.shown.contracts, &mut after.shown.contracts) } else { None };
    let has_versions = aligned.is_none() && !before.has_revision && !after.has_revision;
    if !has_versions {
        for (key, contract) in &mut after.shown.contracts {
            if let Some(known) = before.shown.contracts.get(key) {
                contract.protocol_versions.clone_from(&known.protocol_versions);
            }
        }
    }
    let mut found = diff::compared(before.shown, after.shown);
    if !has_versions {
        found.not_compared.push("the protocol versions of the two sides, which were chosen".to_owned());
    }
    if let Some((one, other)) = aligned {
        let both = format!("{one}, {other}");
        let keys = found.changes.iter_mut().flat_map(|change| &mut change.keys).chain(&mut found.keys);
        keys.filter(|key| **key == one).for_each(|key| key.clone_from(&both));
    }
    found
}

/// Leaves the contracts of an era, if there are any.
fn keep_era(contracts: &mut Contracts, era: Era) {
    let is_of = |key: &String| Visitor::of_key(key).is_ok_and(|(visitor, _)| visitor.era == era);
    if contracts.keys().any(is_of) {
        contracts.retain(|key, _| is_of(key));
    }
}

/// Puts the one contract of the new side under the key of the one of the old side, if that is another. Gives both keys.
fn align(before: &Contracts, after: &mut Contracts) -> Option<(String, String)> {
    let only = |contracts: &Contracts| contracts.keys().next().cloned().filter(|_| contracts.len() == 1);
    let (one, other) = (only(before)?, only(after)?);
    if one == other {
        return None;
    }
    let contract = after.remove(&other)?;
    after.insert(one.clone(), contract);
    Some((one, other))
}

fn offered(shown: &Shown) -> BTreeMap<String, Offered> {
    shown.contracts.iter().map(|(key, contract)| (key.clone(), Offered::from(contract))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{ChangeLevel, Contract};
    use serde_json::json;

    fn chosen(key: &str, versions: &[&str], tools: &[&str], era: Option<Era>) -> Chosen {
        let tools = tools.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect();
        let mut contract = Contract { tools: Some(tools), ..Contract::default() };
        contract.protocol_versions = versions.iter().map(|version| (*version).to_owned()).collect();
        contract.hashes.full = format!("{versions:?}");
        let contracts = Contracts::from([(key.to_owned(), contract)]);
        let shown = Shown { name: key.to_owned(), contracts, extent: Extent::Whole, transport: None };
        Chosen { shown, era, has_revision: false }
    }

    fn codes(found: &ContractDiff) -> Vec<&str> {
        found.changes.iter().map(|change| change.code.as_str()).collect()
    }

    #[test]
    fn two_eras_that_were_chosen_are_compared_by_what_they_offer() {
        let legacy = || chosen("legacy/full", &["2025-11-25"], &["a", "b"], Some(Era::Legacy));
        let modern = || chosen("modern/full", &["2026-07-28"], &["a"], Some(Era::Modern));
        let found = changes(legacy(), modern());
        assert_eq!(codes(&found), ["tool-removed"]);
        assert_eq!(found.keys, ["legacy/full, modern/full"]);
        assert_eq!(found.changes[0].keys, found.keys);
        assert_eq!(found.not_compared.len(), 1);
        // Nobody chose them: the server has lost an era.
        let found = changes(Chosen { era: None, ..legacy() }, Chosen { era: None, ..modern() });
        assert_eq!(codes(&found), ["era-removed", "era-added"]);
        assert!(found.reaches(ChangeLevel::Breaking));
    }

    #[test]
    fn revisions_count_unless_they_were_chosen() {
        let of = |version: &str| chosen("legacy/full", &[version], &["a"], Some(Era::Legacy));
        assert_eq!(codes(&changes(of("2025-06-18"), of("2025-11-25"))), ["protocol-version-removed", "protocol-version-added"]);
        let found = changes(Chosen { has_revision: true, ..of("2025-06-18") }, of("2025-11-25"));
        assert_eq!(codes(&found), Vec::<&str>::new());
    }

    #[test]
    fn an_era_that_was_chosen_for_one_side_is_chosen_for_both() {
        let mut both = chosen("legacy/full", &["2025-11-25"], &["a"], None);
        both.shown.contracts.extend(chosen("modern/full", &["2026-07-28"], &["a"], None).shown.contracts);
        let found = changes(chosen("legacy/full", &["2025-11-25"], &["a"], Some(Era::Legacy)), both);
        assert_eq!(codes(&found), Vec::<&str>::new());
        assert_eq!(found.keys, ["legacy/full"]);
    }
}
