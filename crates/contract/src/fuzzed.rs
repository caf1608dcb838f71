//! For the fuzz targets (`fuzz/`): what nothing else needs from outside.

use crate::of_parts;
use mcproof_record::Contract;
use serde_json::Value;

/// The contract of a server that has only tools.
pub fn contract_of_tools(tools: Vec<Value>) -> Contract {
    of_parts(Contract::default(), Some(tools), None, None, None)
}

/// The same contract, sorted and with the hashes that it has to have.
pub fn with_hashes(mut contract: Contract) -> Contract {
    let Contract { tools, prompts, resources, resource_templates, .. } = &mut contract;
    let parts = (tools.take(), prompts.take(), resources.take(), resource_templates.take());
    of_parts(contract, parts.0, parts.1, parts.2, parts.3)
}
