//! The published JSON Schemas of what is recorded, made from the types themselves, so that the two cannot differ. A later
//! version may add members, so none is forbidden.

use crate::{AuditLine, Baseline, CheckReport, ContractDiff, ContractLock, Event, FORMAT_VERSION, ProbeReport};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema (2020-12) of one event: a line of `--reporter json`.
pub fn events() -> Value {
    of::<Event>("events")
}

/// The schema (2020-12) of one line of an audit.
pub fn audit() -> Value {
    of::<AuditLine>("audit lines")
}

/// The schema (2020-12) of the report of a check: `check --json`, `check --trace`.
pub fn check() -> Value {
    of::<CheckReport>("check")
}

/// The schema (2020-12) of the file of accepted findings.
pub fn baseline() -> Value {
    of::<Baseline>("baseline")
}

/// The schema (2020-12) of `mcproof.lock`.
pub fn lock() -> Value {
    of::<ContractLock>("lock")
}

/// The schema (2020-12) of `mcproof diff --json`.
pub fn diff() -> Value {
    of::<ContractDiff>("diff")
}

/// The schema (2020-12) of what `mcproof probe --json` prints.
pub fn probe() -> Value {
    of::<ProbeReport>("probe")
}

/// The schema (2020-12) of the messages of `mcproof drive`.
pub fn drive() -> Value {
    // From the point of view of the sender: optional members are not required.
    let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut schema = generator.into_root_schema_for::<crate::drive::DriveMessages>();
    schema.insert("title".into(), format!("mcproof drive, protocol version {}", crate::drive::PROTOCOL).into());
    schema.to_value()
}

fn of<T: JsonSchema>(what: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), format!("mcproof {what}, version {FORMAT_VERSION}").into());
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_and_bytes_are_text() {
        let schema = events();
        let definition = |name: &str, member: &str| schema["$defs"][name]["properties"][member].clone();
        assert_eq!(definition("StepOutcome", "duration_ms")["type"], "number");
        assert_eq!(definition("Frame", "at_us")["type"], "integer");
        assert_eq!(schema["$defs"]["Raw"]["anyOf"][0]["type"], "string");
    }
}
