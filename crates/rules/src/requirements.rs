//! The table of normative sentences: each MUST and SHOULD of each revision and official extension, and the rule that judges it, or why
//! none can. Does not hold the sentences themselves; `cargo xtask requirements` compares it with the specification.
//!
//! The owner of a row is one of: ids of rules, separated by spaces; `unseen:` and a reason; `client`, `authorization-server`,
//! `intermediary` or `nobody`, which bind no server.

use crate::{self as rules, Area};
use mcproof_record::{Requirement, RequirementOwner, Unseen};

/// Names of revisions and extensions, with their rows.
const TABLES: [(&str, &str); 8] = [
    ("2024-11-05", include_str!("../requirements/2024-11-05.tsv")),
    ("2025-03-26", include_str!("../requirements/2025-03-26.tsv")),
    ("2025-06-18", include_str!("../requirements/2025-06-18.tsv")),
    ("2025-11-25", include_str!("../requirements/2025-11-25.tsv")),
    ("2026-07-28", include_str!("../requirements/2026-07-28.tsv")),
    ("ext-tasks", include_str!("../requirements/ext-tasks.tsv")),
    ("ext-auth", include_str!("../requirements/ext-auth.tsv")),
    ("ext-apps", include_str!("../requirements/ext-apps.tsv")),
];

/// Owners that are not servers.
const OTHERS: [&str; 4] = ["client", "authorization-server", "intermediary", "nobody"];

/// All rows, revision by revision, in the order of the pages.
///
/// # Panics
/// A row is in none of the forms: the table is part of the program.
pub fn all() -> impl Iterator<Item = Requirement> {
    TABLES.into_iter().flat_map(|(table, rows)| {
        let lines = rows.lines().filter(|line| !line.starts_with('#'));
        lines.map(move |line| row(table, line).unwrap_or_else(|| panic!("{table}: `{line}` is not a valid row")))
    })
}

fn row(table: &'static str, line: &'static str) -> Option<Requirement> {
    let mut cells = line.split('\t');
    let (place, _hash, level, owner) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let (words, note) = (cells.next()?, cells.next()?);
    Some(Requirement { table, place, level, words, owner: owner_of(owner)?, note })
}

fn owner_of(cell: &'static str) -> Option<RequirementOwner> {
    if let Some(reason) = cell.strip_prefix("unseen:") {
        return Unseen::EVERY.into_iter().find(|unseen| unseen.name() == reason).map(RequirementOwner::Unseen);
    }
    if let Some(other) = OTHERS.into_iter().find(|other| *other == cell) {
        return Some(RequirementOwner::Other(other));
    }
    let ids: Vec<&str> = cell.split(' ').collect();
    let areas: Vec<Area> = ids.iter().map(|id| rules::find(id).map(|rule| rule.area)).collect::<Option<_>>()?;
    Some(match areas.iter().all(|area| *area == Area::Fixtures) {
        true => RequirementOwner::Fixtures(ids),
        false => RequirementOwner::Rules(ids),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequirementLevel, Rule};
    use std::collections::BTreeSet;

    /// The revision that the rules of a table have to cover.
    fn revision(table: &'static str) -> &'static str {
        if table.starts_with("ext-") { "2026-07-28" } else { table }
    }

    fn ids(owner: &RequirementOwner) -> &[&'static str] {
        match owner {
            RequirementOwner::Rules(ids) | RequirementOwner::Fixtures(ids) => ids,
            _ => &[],
        }
    }

    #[test]
    fn every_row_has_an_owner_that_exists_in_its_revision() {
        for requirement in all() {
            for id in ids(&requirement.owner) {
                let rule = rules::find(id).unwrap_or_else(|| panic!("{requirement:?}: there is no rule `{id}`"));
                assert!(
                    rule.requirement_in(revision(requirement.table)).is_some(),
                    "{requirement:?}: `{id}` has no requirement in this revision"
                );
            }
        }
    }

    /// Rules without a normative sentence: the specification states them without a keyword, or outside of prose.
    const WITHOUT_SENTENCE: &[&str] = &[
        // The basis of everything else: no single sentence states it.
        "requests-continue-to-be-served",
        "sessions-exist-side-by-side",
        "meta-client-info-is-optional",
        "log-level-is-honored",
        "tool-required-properties-exist",
        "tool-annotations-are-consistent",
        "listed-tool-is-callable",
        "idempotent-changes-nothing-twice",
        "listed-resource-is-readable",
        "resource-read-names-uri",
        "resource-template-parses",
        "listed-prompt-is-retrievable",
        "completion-has-at-most-100",
        "completion-total-is-consistent",
        "client-response-is-processed",
    ];

    #[test]
    fn each_rule_with_a_place_in_the_specification_judges_a_sentence_of_it() {
        let judged: BTreeSet<&str> = all().flat_map(|requirement| ids(&requirement.owner).to_vec()).collect();
        let is_of_specification = |rule: &&Rule| {
            let has_place = |law: &rules::RequirementSource| !law.source.is_empty() && !law.source.contains("://");
            rule.sources.iter().any(|law| has_place(law) && matches!(law.level, RequirementLevel::Must | RequirementLevel::Should))
        };
        let unnamed: Vec<&str> = rules::all()
            .filter(|rule| rule.area != Area::Fixtures)
            .filter(is_of_specification)
            .map(|rule| rule.id)
            .filter(|id| !judged.contains(id))
            .collect();
        assert_eq!(unnamed, WITHOUT_SENTENCE);
    }
}
