//! Names that occur twice in one JSON object: a parser merges both into one value, so only the bytes show it.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// JSON pointers of the names that an object repeats, with `*` for the indices of lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepeatedNames(pub BTreeSet<String>);

impl RepeatedNames {
    fn within(&mut self, step: &str, inner: Self) {
        self.0.extend(inner.0.into_iter().map(|pointer| format!("/{step}{pointer}")));
    }
}

impl<'de> Deserialize<'de> for RepeatedNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatedNamesVisitor)
    }
}

struct RepeatedNamesVisitor;

impl<'de> Visitor<'de> for RepeatedNamesVisitor {
    type Value = RepeatedNames;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RepeatedNames, A::Error> {
        let (mut names, mut seen) = (RepeatedNames::default(), BTreeSet::new());
        while let Some(name) = map.next_key::<String>()? {
            let inner: RepeatedNames = map.next_value()?;
            names.within(&name, inner);
            if seen.contains(&name) {
                names.0.insert(format!("/{name}"));
            }
            seen.insert(name);
        }
        Ok(names)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RepeatedNames, A::Error> {
        let mut names = RepeatedNames::default();
        while let Some(inner) = items.next_element::<RepeatedNames>()? {
            names.within("*", inner);
        }
        Ok(names)
    }

    fn visit_bool<E>(self, _: bool) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }

    fn visit_unit<E>(self) -> Result<RepeatedNames, E> {
        Ok(RepeatedNames::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let RepeatedNames(found) = serde_json::from_str(text).expect("the row is JSON");
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn a_name_that_stands_twice_is_found_wherever_it_is() {
        check(r#"{"a":1,"b":{"a":2}}"#, &[]);
        check(r#"{"a":1,"a":1}"#, &["/a"]);
        check(r#"{"a":1,"b":2,"a":3,"a":4}"#, &["/a"]);
        check(r#"{"a":{"b":1,"b":2}}"#, &["/a/b"]);
        check(r#"{"a":[{"b":1},{"b":1,"b":null}]}"#, &["/a/*/b"]);
        check(r#"[{"id":1,"id":1.5}]"#, &["/*/id"]);
        check(r#"{"a":1,"\u0061":2}"#, &["/a"]);
    }
}
