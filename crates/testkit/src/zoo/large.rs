//! Correct servers that offer much: what they send is large, and nothing in it is wrong.

use super::server::Catalogue;
use serde_json::json;

/// Bytes of the one description.
const LARGE: usize = 12 << 20;
const MANY: usize = 5000;

pub(super) fn one_large_tool(catalogue: &mut Catalogue) {
    let sentence = "Tells what the keepers know of an animal. ";
    catalogue.tools.push(tool("tell_all", &sentence.repeat(LARGE / sentence.len())));
}

pub(super) fn many_tools(catalogue: &mut Catalogue) {
    catalogue
        .tools
        .extend((0..MANY).map(|number| tool(&format!("move_animal_{number}"), &format!("Moves an animal to enclosure {number}."))));
    // All on one page: as large as a message gets.
    catalogue.page = 2 * MANY;
}

/// One that nobody calls unasked.
fn tool(name: &str, description: &str) -> serde_json::Value {
    let species = json!({ "type": "string", "description": "The species, such as `wolf`.", "minLength": 1, "maxLength": 40 });
    let count = json!({ "type": "integer", "description": "How many of them.", "minimum": 1, "maximum": 10 });
    let properties = json!({ "species": species, "count": count });
    let schema = json!({ "type": "object", "properties": properties, "required": ["species"], "additionalProperties": false });
    json!({
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false }
    })
}
