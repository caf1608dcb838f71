//! A correct server that offers much.

use super::server::Catalogue;
use serde_json::json;

const MANY: usize = 3000;

/// All on one page: as large as a message gets.
pub(super) fn many_tools(catalogue: &mut Catalogue) {
    let species = json!({ "type": "string", "description": "The species, such as `wolf`.", "minLength": 1, "maxLength": 40 });
    let count = json!({ "type": "integer", "description": "How many of them.", "minimum": 1, "maximum": 10 });
    let properties = json!({ "species": species, "count": count });
    let schema = json!({ "type": "object", "properties": properties, "required": ["species"], "additionalProperties": false });
    let tool = |number: usize| {
        json!({
            "name": format!("move_animal_{number}"),
            "description": format!("Moves an animal to enclosure {number}."),
            "inputSchema": schema,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false }
        })
    };
    catalogue.tools.extend((0..MANY).map(tool));
    catalogue.page = 2 * MANY;
}
