//! The published JSON Schema of a line of a trace, made from the types themselves. A later version may add members, so none is forbidden.

use crate::line::TraceLine;
use crate::manifest::TRACE_FORMAT;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema (2020-12) of one line of a trace.
pub fn trace_schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<TraceLine>();
    schema.insert("title".into(), format!("mcproof trace lines, format {TRACE_FORMAT}").into());
    schema.to_value()
}
