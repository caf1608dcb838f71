//! What the correct server offers. Knows no method.

use serde_json::{Map, Value, json};

/// One pixel.
pub(crate) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The species that completion knows.
pub(crate) const SPECIES: [&str; 5] = ["gecko", "giraffe", "gnu", "lion", "okapi"];

/// What the server says that it has. Tools that have no code of their own answer with a short text.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    pub(crate) capabilities: Value,
    pub(crate) server: Value,
    pub(crate) instructions: String,
    pub(crate) tools: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    pub(crate) templates: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    /// Contents that can be read and are not listed: the pages of apps.
    pub(crate) pages: Vec<Value>,
    /// How many items a page of a list has.
    pub(crate) page: usize,
}

impl Catalogue {
    pub(super) fn correct() -> Self {
        Self {
            capabilities: json!({ "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {}, "logging": {} }),
            server: json!({ "name": "zoo", "version": "1.0.0" }),
            instructions: "Looks after the animals of a small zoo.".to_owned(),
            tools: tools(),
            resources: list(json!([
                { "uri": "zoo://gate/rules", "name": "rules", "description": "What visitors may do.", "mimeType": "text/plain" },
                { "uri": "zoo://gate/logo", "name": "logo", "description": "The sign at the gate.", "mimeType": "image/png" },
                { "uri": "zoo://notes", "name": "notes", "description": "What the keepers wrote down.", "mimeType": "application/json" },
            ])),
            templates: list(json!([
                { "uriTemplate": "zoo://animals/{species}", "name": "animal", "description": "What is known of a species.", "mimeType": "text/plain" },
            ])),
            prompts: list(json!([
                { "name": "feed", "description": "Asks how to feed an animal.", "arguments": [
                    { "name": "animal", "description": "Its species.", "required": true },
                    { "name": "amount", "description": "How much there is, in kilograms.", "required": false },
                ] },
                { "name": "tour", "description": "Asks for a walk through the zoo." },
                { "name": "close", "description": "Asks what to do in the evening." },
            ])),
            pages: Vec::new(),
            page: 5,
        }
    }

    /// The tool of that name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        self.tools.iter().find(|tool| tool["name"] == name)
    }

    /// The same, to change it.
    pub(crate) fn tool_mut(&mut self, name: &str) -> &mut Value {
        self.tools.iter_mut().find(|tool| tool["name"] == name).expect("deviations change existing tools")
    }

    /// Adds a tool that only reads and takes nothing.
    pub(crate) fn add_tool(&mut self, name: &str, description: &str) -> &mut Value {
        self.tools.push(tool(name, description, json!({}), &[], READS));
        self.tool_mut(name)
    }
}

/// Changes nothing.
const READS: [bool; 3] = [true, false, true];
/// Changes something, once.
const WRITES: [bool; 3] = [false, false, true];
/// Takes something away.
const DESTROYS: [bool; 3] = [false, true, true];

fn tools() -> Vec<Value> {
    let text = json!({ "type": "string", "description": "Any text." });
    let number = json!({ "type": "number" });
    let name = json!({ "type": "string", "minLength": 1, "description": "What the note is about." });
    let mut sum = tool("add", "Gives the sum of two numbers.", json!({ "a": number, "b": number }), &["a", "b"], READS);
    sum["outputSchema"] = json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
    let region = json!({ "type": "string", "description": "A part of the world, such as africa.", "x-mcp-header": "Region" });
    let most = json!({ "type": "integer", "minimum": 1, "maximum": 50, "description": "The most to name.", "x-mcp-header": "Most" });
    let places = json!({ "region": region, "most": most });
    let mut find = tool("find_animals", "Names the animals that come from a region.", places, &["region"], READS);
    let names = json!({ "type": "array", "items": { "type": "string" } });
    find["outputSchema"] = json!({ "type": "object", "properties": { "animals": names }, "required": ["animals"] });
    let steps = json!({ "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "Rounds of a tenth of a second." });
    vec![
        tool("echo", "Returns a text as it came.", json!({ "text": text }), &["text"], READS),
        sum,
        tool("patrol", "Walks around the zoo, and reports progress on the way.", json!({ "steps": steps }), &[], READS),
        find,
        tool("draw", "Draws the sign at the gate.", json!({}), &[], READS),
        tool("read_note", "Reads what was written down about something.", json!({ "name": name }), &["name"], READS),
        tool(
            "write_note",
            "Writes down a text, in place of an earlier one.",
            json!({ "name": name, "text": text }),
            &["name", "text"],
            WRITES,
        ),
        tool("discard_notes", "Throws away everything that was written down.", json!({}), &[], DESTROYS),
    ]
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str], [reads, destroys, again]: [bool; 3]) -> Value {
    let mut schema = Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), properties)]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    let mut annotations = json!({ "readOnlyHint": reads, "openWorldHint": false });
    if !reads {
        annotations["destructiveHint"] = json!(destroys);
        annotations["idempotentHint"] = json!(again);
    }
    json!({ "name": name, "description": description, "inputSchema": schema, "annotations": annotations })
}

pub(super) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}
