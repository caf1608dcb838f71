//! Names that must not be there, where one that is almost the same is: most likely they are misspelled, and prove nothing. Warnings, never
//! mistakes.

use super::matcher::{Matcher, Test};
use mcproof_analysis::did_you_mean;
use mcproof_record::Diagnostic;
use serde_json::Value;
use std::collections::BTreeSet;

/// Warnings of one expectation that are told.
const MOST: usize = 4;

impl Matcher {
    /// Keys that this expectation takes for absent, or asks for in what it denies, and that are almost one that is there and that it does
    /// not name. To be asked of an expectation that matches.
    pub fn near_names(&self, actual: &Value) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        self.look_for_near(actual, Denied::No, &mut found);
        let mut told = BTreeSet::new();
        found.retain(|one| told.insert(one.message.clone()));
        found.truncate(MOST);
        found
    }

    fn look_for_near(&self, actual: &Value, denied: Denied, found: &mut Vec<Diagnostic>) {
        match (&self.test, actual) {
            _ if found.len() >= 2 * MOST => {}
            (Test::Members { members, .. }, Value::Object(there)) => {
                let is_named = |key: &str| members.iter().any(|(name, _)| name == key);
                for (key, member) in members {
                    if let Some(value) = there.get(key) {
                        member.look_for_near(value, denied, found);
                    } else if denied == Denied::Yes || member.accepts_missing() {
                        let unnamed = there.keys().map(String::as_str).filter(|name| !is_named(name));
                        let Some(near) = did_you_mean(key, unnamed) else { continue };
                        let message = format!("there is no `{key}`, but there is `{near}`");
                        let warning = Diagnostic::warning("near-name", message).at(member.place.clone());
                        found.push(warning.hint(format!("if `{near}` is meant, correct the name: a misspelled one is always absent")));
                    }
                }
            }
            (Test::Elements(parts), Value::Array(items)) => {
                parts.iter().zip(items).for_each(|(part, item)| part.look_for_near(item, denied, found));
            }
            (Test::Every(parts), _) => parts.iter().for_each(|part| part.look_for_near(actual, denied, found)),
            (Test::Not(part), _) => part.look_for_near(actual, Denied::Yes, found),
            (Test::OneOf(parts), _) if denied == Denied::Yes => {
                parts.iter().for_each(|part| part.look_for_near(actual, denied, found));
            }
            (Test::Contains(part), Value::Array(items)) if denied == Denied::Yes => {
                items.iter().for_each(|item| part.look_for_near(item, denied, found));
            }
            (Test::ContainsAll(parts), Value::Array(items)) if denied == Denied::Yes => {
                items.iter().for_each(|item| parts.iter().for_each(|part| part.look_for_near(item, denied, found)));
            }
            (Test::All(part), Value::Array(items)) => items.iter().for_each(|item| part.look_for_near(item, denied, found)),
            (Test::All(part), Value::Object(members)) => members.values().for_each(|item| part.look_for_near(item, denied, found)),
            _ => {}
        }
    }

    /// Methods of notifications in this expectation that no revision knows, and that are almost one that is known.
    pub(crate) fn unknown_notifications(&self) -> Vec<Diagnostic> {
        let mut named = Vec::new();
        methods_in(&self.written, &mut named);
        let known = || mcproof_protocol::methods::notifications::ALL.into_iter();
        let unknown = named.into_iter().filter(|method| !method.contains("${") && !known().any(|name| name == *method));
        let tell = |method: &str| {
            let near = did_you_mean(method, known())?;
            let warning = Diagnostic::warning("unknown-method", format!("no revision has the notification `{method}`"));
            Some(warning.at(self.place.clone()).hint(format!("did you mean `{near}`?")))
        };
        unknown.filter_map(tell).take(MOST).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Denied {
    No,
    /// Within `$not`: that a key is not there is enough.
    Yes,
}

/// The texts of members called `method`, but not those in `params`.
fn methods_in<'v>(written: &'v Value, named: &mut Vec<&'v str>) {
    match written {
        Value::Array(parts) => parts.iter().for_each(|part| methods_in(part, named)),
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(method) if key == "method" => named.push(method),
                    _ if key == "params" => {}
                    _ => methods_in(value, named),
                }
            }
        }
        _ => {}
    }
}
