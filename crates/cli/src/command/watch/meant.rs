//! Which incident or silence a person means who types what they have: a name, an id, or its start. Reads; where several fit, none is
//! taken, and all are told.

use super::of_store;
use crate::failure::Failure;
use crate::suggest;
use mcproof_report::escape;
use mcproof_watch::incident::Class;
use mcproof_watch::moment::Moment;
use mcproof_watch::store::Store;
use mcproof_watch::store::read::{IncidentRow, Which};
use mcproof_watch::store::silences::SilenceRow;

/// Open incidents that are looked through.
const MOST: i64 = 1_000;
/// Fewer characters of an id are no id, and may be the begin of a name.
const SHORTEST_START: usize = 4;
/// Told one by one.
const MOST_TOLD: usize = 5;

/// The open incident that nobody has acknowledged: of this id or the start of it, or of the target of this name. What is a part of a storm
/// or of a group is acknowledged with it, because that is what people are alerted of.
pub(super) async fn incident(store: &Store, typed: &str) -> Result<IncidentRow, Failure> {
    let mut open = store.incidents(Which::Open, None, MOST).await.map_err(|failure| of_store(&failure))?;
    if !open.iter().any(|incident| incident.id == typed)
        && let Some(known) = store.incident(typed).await.map_err(|failure| of_store(&failure))?.filter(|known| known.resolved.is_none())
    {
        open.push(known);
    }
    let mut found = match open.iter().find(|incident| incident.id == typed) {
        Some(exact) => vec![exact],
        None => open.iter().filter(|incident| incident.subject == typed).collect(),
    };
    if found.is_empty() && typed.len() >= SHORTEST_START {
        found = open.iter().filter(|incident| incident.id.starts_with(typed)).collect();
    }
    // A person who names a target means what woke them.
    let told = |incident: &IncidentRow| {
        let whole = open.iter().find(|whole| incident.parent.as_ref() == Some(&whole.id));
        whole.filter(|whole| matches!(whole.class, Class::Storm | Class::Group) && incident.id != typed).cloned()
    };
    let mut meant: Vec<IncidentRow> = found.iter().map(|incident| told(incident).unwrap_or_else(|| (*incident).clone())).collect();
    meant.sort_by(|one, other| one.id.cmp(&other.id));
    meant.dedup_by(|one, other| one.id == other.id);
    if let [one] = meant.as_slice()
        && let Some(who) = &one.acknowledged_by
    {
        let message = format!("{} is acknowledged already, by {}", escape(&one.id), escape(who));
        return Err(Failure::bad_input("no-such-incident", message));
    }
    meant.retain(|incident| incident.acknowledged.is_none());
    match meant.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(none(typed, &open)),
        several => {
            let told = several.iter().take(MOST_TOLD).map(|one| format!("{} ({} of {})", one.id, one.class, escape(&one.subject)));
            let rest = several.len().saturating_sub(MOST_TOLD);
            let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
            let message = format!("`{}` may be {} incidents", escape(typed), several.len());
            let hint = format!("name the id of one: {}{more}", told.collect::<Vec<_>>().join(", "));
            Err(Failure::bad_input("several-incidents", message).hint(hint))
        }
    }
}

/// There is no such incident.
pub(super) fn none(typed: &str, open: &[IncidentRow]) -> Failure {
    let message = format!("there is no open, unacknowledged incident `{}`", escape(typed));
    let subjects: Vec<&str> = open.iter().take(MOST_TOLD).map(|incident| incident.subject.as_str()).collect();
    let hint = "it may be resolved or acknowledged already: `mcproof watch incidents` lists open incidents".to_owned();
    Failure::bad_input("no-such-incident", message).hint(suggest::hint(typed, &subjects).unwrap_or(hint))
}

/// The id of the active silence that has it or begins with it.
pub(super) async fn silence(store: &Store, typed: &str, now: Moment) -> Result<String, Failure> {
    let silences = store.silences(now).await.map_err(|failure| of_store(&failure))?;
    let fits = |row: &&SilenceRow| row.id == typed || (typed.len() >= SHORTEST_START && row.id.starts_with(typed));
    let found: Vec<&SilenceRow> = silences.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => Ok(typed.to_owned()),
        several => {
            let ids: Vec<&str> = several.iter().take(MOST_TOLD).map(|row| row.id.as_str()).collect();
            let message = format!("`{}` is the start of {} silences", escape(typed), several.len());
            Err(Failure::bad_input("several-silences", message).hint(format!("name one in full: {}", ids.join(", "))))
        }
    }
}
