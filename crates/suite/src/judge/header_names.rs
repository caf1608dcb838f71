//! Names of headers in a JSON Schema, in lower case as a response has them. Knows the keywords that hold names.

use serde_json::Value;

/// For a schema of headers.
pub(super) fn lower_names(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "required" => lower_texts(value),
            "properties" | "dependentRequired" | "dependentSchemas" | "dependencies" => {
                let Value::Object(named) = value else { continue };
                *named = std::mem::take(named).into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
                named.values_mut().for_each(lower_texts);
            }
            _ => for_the_same_value(keyword, value, lower_names),
        }
    }
}

/// For a schema of a whole response.
pub(super) fn lower_names_of_headers(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => value.get_mut("headers").into_iter().for_each(lower_names),
            _ => for_the_same_value(keyword, value, lower_names_of_headers),
        }
    }
}

fn for_the_same_value(keyword: &str, value: &mut Value, lower: fn(&mut Value)) {
    match (keyword, value) {
        ("not" | "if" | "then" | "else", schema) => lower(schema),
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(lower),
        _ => {}
    }
}

fn lower_texts(list: &mut Value) {
    for item in list.as_array_mut().into_iter().flatten() {
        if let Value::String(text) = item {
            text.make_ascii_lowercase();
        }
    }
}
