//! What a change of a contract means for those who call the server, and how much that matters.

use super::{IncidentContext, Turn};
use crate::incident::{Class, Detail, Severity};
use crate::state::{Counted, Drift, Effect};
use crate::store::{contracts, packed};
use mcproof_contract::{Extent, Side, diff};
use mcproof_record::{ChangeLevel, ContractChange, ContractDiff};
use sqlx::{Any, Transaction};
use std::collections::BTreeMap;

/// Changes that are told one by one.
const MOST_TOLD: usize = 3;

/// Looks at each change of the contract, keeps it, tells the state how much it matters, and says what to open.
pub(super) async fn weigh(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    turn: &mut Turn,
) -> Result<Vec<Effect>, sqlx::Error> {
    let drifts: Vec<Drift> =
        turn.effects.iter().filter_map(|effect| if let Effect::Drift(drift) = effect { Some(drift.clone()) } else { None }).collect();
    let mut opened = Vec::new();
    for mut drift in drifts {
        let (old, found) = nearest(transaction, &turn.target, &drift).await?;
        drift.old = old;
        if drift.counted == Counted::Suspicion && found.as_ref().is_none_or(|found| !is_suspicious(&found.changes)) {
            // One of the contracts that were there from the start is the one that is promised now.
            if !drift.is_mixed {
                turn.state.agree();
            }
            continue;
        }
        let step = Weight::of_drift(&drift, found.as_ref());
        keep(transaction, context, &turn.target, &drift, step, found.as_ref()).await?;
        if drift.is_announced {
            continue;
        }
        // What a server changes in several steps is told as a whole, unless the last step matters more than the whole shows.
        let whole = match &drift.agreed {
            Some(agreed) => compare(transaction, &turn.target, agreed, &drift.new).await?,
            None => found.clone(),
        };
        let of_whole = Weight::of_drift(&drift, whole.as_ref());
        if !drift.is_mixed {
            turn.state.weigh(step.level(), of_whole.level(), context.now);
        }
        let (found, weight) = if step > of_whole { (found, step) } else { (whole, of_whole) };
        let changes = found.as_ref().map_or(&[][..], |found| found.changes.as_slice());
        let title = title(&turn.target, &drift, weight, changes);
        let class = if drift.is_mixed { Class::MixedFleet } else { Class::Contract };
        let hint = if drift.is_mixed && drift.is_unstable {
            "take what changes by itself, such as a time or a counter, out of names, schemas and descriptions"
        } else if drift.is_mixed {
            "if a deployment is in progress, announce it; otherwise one of the instances was not updated"
        } else {
            "if this is intended, acknowledge it; announce the next deployment to avoid the alert"
        };
        let detail = Detail { layer: Some("contract".into()), message: told(changes), hint: Some(hint.into()), ..Detail::default() };
        // Texts that change by themselves are no attack, unless they say what only an attacker writes.
        let is_harmless = drift.is_unstable && drift.is_mixed && !is_suspicious(changes);
        let severity = if is_harmless { Severity::Notify } else { weight.severity() };
        add(&mut opened, Effect::Open { class, severity, title, detail, since: context.now });
    }
    Ok(opened)
}

/// Of several contracts of a fleet that are new at once, the worst one is told.
fn add(opened: &mut Vec<Effect>, opening: Effect) {
    let in_fleet = |effect: &Effect| match effect {
        Effect::Open { class: Class::MixedFleet, severity, .. } => Some(*severity),
        _ => None,
    };
    match (in_fleet(&opening), opened.iter().position(|other| in_fleet(other).is_some())) {
        (Some(severity), Some(at)) => {
            if in_fleet(&opened[at]) < Some(severity) {
                opened[at] = opening;
            }
        }
        _ => opened.push(opening),
    }
}

fn title(target: &str, drift: &Drift, weight: Weight, changes: &[ContractChange]) -> String {
    match (drift.is_mixed, weight) {
        (true, _) if drift.is_unstable && is_suspicious(changes) => {
            format!("the contract of {target} is different each time, and texts that models read are suspicious")
        }
        (true, _) if drift.is_unstable => format!("the contract of {target} is different each time, so changes of it are not told"),
        (true, Weight::Suspicious) if drift.is_added => {
            format!("{target} alternates between contracts, and texts that models read have changed in a new one")
        }
        (true, Weight::Breaking) if drift.is_added => format!("{target} alternates between contracts, and a new one has a breaking change"),
        (true, _) if drift.is_added => format!("{target} alternates between contracts, and a new one has no breaking change"),
        (true, _) => format!("{target} alternates between two contracts: its instances differ"),
        (false, Weight::Breaking) => format!("the contract of {target} has a breaking change"),
        (false, Weight::Suspicious) if breaks(changes) => {
            format!("the contract of {target} has a breaking change, and texts that models read have changed")
        }
        (false, Weight::Suspicious) => format!("the texts of {target} that models read have changed"),
        (false, Weight::Compatible | Weight::Cosmetic) => format!("the contract of {target} changed, without a breaking change"),
    }
}

/// The worst of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Cosmetic,
    Compatible,
    Breaking,
    /// Texts that models read: a server that was taken over changes these first.
    Suspicious,
}

impl Weight {
    /// What cannot be compared may break anything.
    fn of(found: Option<&ContractDiff>) -> Self {
        let Some(found) = found else { return Self::Breaking };
        found.changes.iter().map(Self::of_change).max().unwrap_or(Self::Cosmetic)
    }

    /// Where texts have changed by themselves, that they do not any more is no attack.
    fn of_drift(drift: &Drift, found: Option<&ContractDiff>) -> Self {
        match found {
            Some(found) if drift.is_unstable && !drift.is_mixed && !is_suspicious(&found.changes) => {
                found.changes.iter().map(|change| Self::of_level(change.level)).max().unwrap_or(Self::Cosmetic)
            }
            _ => Self::of(found),
        }
    }

    fn of_change(change: &ContractChange) -> Self {
        let is_text = change.suspicion.is_some() || matches!(change.code.as_str(), "description-changed" | "instructions-changed");
        if is_text { Self::Suspicious } else { Self::of_level(change.level) }
    }

    fn of_level(level: ChangeLevel) -> Self {
        match level {
            ChangeLevel::Breaking => Self::Breaking,
            ChangeLevel::Compatible => Self::Compatible,
            ChangeLevel::Cosmetic => Self::Cosmetic,
        }
    }

    fn level(self) -> ChangeLevel {
        match self {
            Self::Cosmetic => ChangeLevel::Cosmetic,
            Self::Compatible => ChangeLevel::Compatible,
            Self::Breaking | Self::Suspicious => ChangeLevel::Breaking,
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Cosmetic | Self::Compatible => Severity::Notify,
            Self::Breaking => Severity::Page,
            Self::Suspicious => Severity::Security,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Cosmetic => "cosmetic",
            Self::Compatible => "compatible",
            Self::Breaking => "breaking",
            Self::Suspicious => "security",
        }
    }
}

/// The known contract that the new one is most like, and what is new next to it. One that cannot be compared is like none.
async fn nearest(
    transaction: &mut Transaction<'_, Any>,
    target: &str,
    drift: &Drift,
) -> Result<(String, Option<ContractDiff>), sqlx::Error> {
    let mut nearest = (drift.old.clone(), compare(transaction, target, &drift.old, &drift.new).await?);
    for other in &drift.others {
        // What is no attack next to one of them is none: most fleets are not compared any further.
        let is_harmless = nearest.1.as_ref().is_some_and(|found| !is_suspicious(&found.changes));
        if drift.counted == Counted::Suspicion && is_harmless {
            break;
        }
        let Some(found) = compare(transaction, target, other, &drift.new).await? else { continue };
        if nearest.1.as_ref().is_none_or(|before| distance(&found) < distance(before)) {
            nearest = (other.clone(), Some(found));
        }
    }
    Ok(nearest)
}

fn distance(found: &ContractDiff) -> (Weight, bool, usize) {
    (Weight::of(Some(found)), is_suspicious(&found.changes), found.changes.len())
}

/// Nothing if one of the two is not known any more.
async fn compare(transaction: &mut Transaction<'_, Any>, target: &str, old: &str, new: &str) -> Result<Option<ContractDiff>, sqlx::Error> {
    let old = contracts::load(transaction, target, old).await?;
    let new = contracts::load(transaction, target, new).await?;
    let (Some(old), Some(new)) = (old, new) else { return Ok(None) };
    // Which kind of client a contract is for stands in neither: both were seen by the same probe.
    let key = "modern/minimal".to_owned();
    let (old, new) = (BTreeMap::from([(key.clone(), old)]), BTreeMap::from([(key, new)]));
    let side = |name, contracts| Side { name, contracts, extent: Extent::Whole };
    Ok(Some(diff(side("before", &old), side("now", &new))))
}

async fn keep(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    target: &str,
    drift: &Drift,
    weight: Weight,
    found: Option<&ContractDiff>,
) -> Result<(), sqlx::Error> {
    let statement = "INSERT INTO contract_change (id, target, at, old_hash, new_hash, level, announced, diff) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    sqlx::query(statement)
        .bind(context.id())
        .bind(target)
        .bind(context.now.0)
        .bind(&drift.old)
        .bind(&drift.new)
        .bind(if drift.is_mixed { "mixed-fleet" } else { weight.word() })
        .bind(i64::from(drift.is_announced))
        .bind(found.map_or_else(Vec::new, packed::pack))
        .execute(&mut **transaction)
        .await
        .map(drop)
}

fn breaks(changes: &[ContractChange]) -> bool {
    changes.iter().any(|change| change.level == ChangeLevel::Breaking)
}

fn is_suspicious(changes: &[ContractChange]) -> bool {
    changes.iter().any(|change| change.suspicion.is_some())
}

/// The worst ones first.
fn told(changes: &[ContractChange]) -> String {
    if changes.is_empty() {
        return "the changes are unknown: one of the two contracts is no longer stored".into();
    }
    let mut worst: Vec<&ContractChange> = changes.iter().collect();
    worst.sort_by_key(|change| std::cmp::Reverse(Weight::of_change(change)));
    let first: Vec<String> = worst.iter().take(MOST_TOLD).map(|change| format!("{}: {}", change.subject, change.reason)).collect();
    let more = changes.len().saturating_sub(MOST_TOLD);
    if more > 0 { format!("{}; and {more} more", first.join("; ")) } else { first.join("; ") }
}
