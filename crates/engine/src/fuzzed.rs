//! Entry points for the fuzz targets (`fuzz/`): internals that no other crate needs.

use crate::check::arguments as made;
use crate::contract::of_parts;
use crate::json_schema::Schema;
use crate::suite::plan::{Action, Step};
use mcproof_record::Contract;
use serde_json::{Map, Value};

/// Whether a schema accepts a value, and the number of errors; `None` if the schema is invalid or too expensive to evaluate.
pub fn held_against(schema: &Value, value: &Value) -> Option<(bool, usize)> {
    let schema = Schema::of(schema).ok()?;
    let is_valid = schema.is_valid(value).ok()?;
    Some((is_valid, schema.errors(value, 10).ok()?.len()))
}

/// Arguments that a schema accepts. Generates each kind of invalid and unusual arguments as well.
pub fn arguments(schema: &Value) -> Option<Value> {
    let valid = made::minimal(schema)?;
    let _ = (made::missing(schema, &valid), made::mistyped(schema, &valid));
    for what in made::Unusual::EVERY {
        let _ = made::unusual(schema, &valid, what);
    }
    Some(valid)
}

/// The arguments of a step that calls a tool, as a run fills them in.
pub fn arguments_of_call(step: &Step) -> Option<&Map<String, Value>> {
    match &step.action {
        Action::Call { arguments, .. } => Some(arguments),
        _ => None,
    }
}

/// The contract of a server that has only tools.
pub fn contract_of_tools(tools: Vec<Value>) -> Contract {
    of_parts(Contract::default(), Some(tools), None, None, None)
}

/// The same contract, sorted and with correct hashes.
pub fn with_hashes(mut contract: Contract) -> Contract {
    let Contract { tools, prompts, resources, resource_templates, .. } = &mut contract;
    let parts = (tools.take(), prompts.take(), resources.take(), resource_templates.take());
    of_parts(contract, parts.0, parts.1, parts.2, parts.3)
}
