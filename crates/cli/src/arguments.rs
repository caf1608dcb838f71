//! `key=value` and `key:=JSON` as typed, and the types that a tool's schema gives them. Knows no methods.

use crate::failure::Failure;
use crate::json_mistake::json_mistake;
use serde_json::{Map, Value};

/// One argument as typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: ArgumentValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentValue {
    /// `key=value`: what it means depends on the schema.
    Text(String),
    /// `key:=JSON`: means what it says.
    Json(Value),
}

/// Reads `key=value` and `key:=JSON`.
pub(crate) fn parse(words: &[String]) -> Result<Vec<Argument>, Failure> {
    let mut arguments: Vec<Argument> = Vec::with_capacity(words.len());
    for word in words {
        let argument = parse_one(word)?;
        if arguments.iter().any(|known| known.name == argument.name) {
            let message = format!("argument `{}` is given twice", argument.name);
            return Err(Failure::bad_input("bad-argument", message).hint("for a list, write it as JSON: name:='[1, 2]'"));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn parse_one(word: &str) -> Result<Argument, Failure> {
    let wrong = |message| Failure::bad_input("bad-argument", message);
    let hint = match word {
        word if word.starts_with('{') => "to pass all arguments as one object, use --args, or --tool-args-json with `inspect`",
        word if word.starts_with("http://") || word.starts_with("https://") => {
            "put the URL of the server first, or after --server-url; for an argument, write name=value"
        }
        _ => "write name=value, or name:=JSON for a JSON value",
    };
    let (name, value) = word.split_once('=').ok_or_else(|| wrong(format!("`{word}` is not a valid argument")).hint(hint))?;
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let parsed = serde_json::from_str(value).map_err(|error| {
                let mistake = json_mistake(value, &error);
                wrong(format!("value of `{name}` is not valid JSON: {mistake}")).hint("write name=value for plain text")
            })?;
            (name, ArgumentValue::Json(parsed))
        }
        None => (name, ArgumentValue::Text(value.to_owned())),
    };
    if name.is_empty() {
        return Err(wrong(format!("`{word}` has no name before the `=`")).hint(hint));
    }
    Ok(Argument { name: name.to_owned(), value })
}

/// Reads a JSON object, for a flag that takes one.
pub(crate) fn parse_object(flag: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::bad_input("bad-argument", format!("{flag} requires a JSON object"))),
        Err(error) => Err(Failure::bad_input("bad-argument", format!("{flag} is not valid JSON: {}", json_mistake(text, &error)))),
    }
}

/// Whether the types of some arguments depend on the tool's schema. If not, nobody has to ask for it.
pub(crate) fn need_schema(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| matches!(&argument.value, ArgumentValue::Text(text) if guess(text).is_some()))
}

/// The arguments as JSON. `schema` is the tool's `inputSchema`, if it is known.
pub(crate) fn to_json(arguments: &[Argument], schema: Option<&Value>) -> Map<String, Value> {
    let value = |argument: &Argument| match &argument.value {
        ArgumentValue::Json(value) => value.clone(),
        ArgumentValue::Text(text) => typed(text, schema.and_then(|schema| Types::of_property(schema, &argument.name))),
    };
    arguments.iter().map(|argument| (argument.name.clone(), value(argument))).collect()
}

/// The arguments as the strings that prompts and completion take.
pub(crate) fn to_strings(arguments: &[Argument]) -> Map<String, Value> {
    let value = |argument: &Argument| match &argument.value {
        ArgumentValue::Json(value) => value.clone(),
        ArgumentValue::Text(text) => Value::String(text.clone()),
    };
    arguments.iter().map(|argument| (argument.name.clone(), value(argument))).collect()
}

/// What a text means: where the schema allows a string it is one; else JSON, if that is of a type that is allowed.
/// Nothing else is made to fit: a wrong value is the server's to refuse.
fn typed(text: &str, types: Option<Types>) -> Value {
    let guessed = match &types {
        Some(types) if types.allow("string") => None,
        Some(types) if text == "null" && types.allow("null") => Some(Value::Null),
        Some(types) => guess(text).filter(|value| types.allow(kind(value)) || (kind(value) == "integer" && types.allow("number"))),
        None => guess(text),
    };
    guessed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The JSON object, array, number or boolean that a text is. A number that JSON numbers cannot hold exactly is none.
fn guess(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    match &value {
        Value::Null | Value::String(_) => None,
        Value::Number(number) if number.is_f64() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => None,
        _ => Some(value),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The JSON types that a schema allows, as far as it says so plainly.
struct Types(Vec<String>);

/// How deep references and unions are followed.
const DEEPEST: usize = 8;

impl Types {
    /// `None` if the schema does not say.
    fn of_property(schema: &Value, name: &str) -> Option<Self> {
        let property = schema.get("properties")?.get(name)?;
        let mut types = Vec::new();
        collect(property, schema, DEEPEST, &mut types);
        (!types.is_empty()).then_some(Self(types))
    }

    fn allow(&self, kind: &str) -> bool {
        self.0.iter().any(|known| known == kind)
    }
}

fn collect(schema: &Value, root: &Value, depth: usize, types: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match schema.get("type") {
        Some(Value::String(name)) => types.push(name.clone()),
        Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    if !types.is_empty() {
        return;
    }
    let constants = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    types.extend(constants.map(|value| kind(value).to_owned()));
    for union in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(union).and_then(Value::as_array).into_iter().flatten() {
            let mut found = Vec::new();
            collect(branch, root, depth - 1, &mut found);
            types.append(&mut found);
        }
    }
    let referenced = schema.get("$ref").and_then(Value::as_str).and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    if let Some(referenced) = referenced {
        collect(referenced, root, depth - 1, types);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(words: &[&str], schema: Option<Value>, expected: &Value) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let arguments = parse(&words).unwrap();
        assert_eq!(&Value::Object(to_json(&arguments, schema.as_ref())), expected, "{words:?}");
    }

    fn property(schema: Value) -> Option<Value> {
        Some(json!({ "properties": { "k": schema }, "$defs": { "Id": { "type": "string" } } }))
    }

    #[test]
    fn without_a_schema_what_reads_as_json_is_json() {
        check(&["a=1", "b=-1.5", "c=true", "d=[1]", r#"e={"x":1}"#], None, &json!({"a":1,"b":-1.5,"c":true,"d":[1],"e":{"x":1}}));
        check(&["a=text", "b=", "c=null", r#"d="q""#, "e=007"], None, &json!({"a":"text","b":"","c":"null","d":"\"q\"","e":"007"}));
        check(&["a=12345678901234567890123", "b=x=y", "c=1e400"], None, &json!({"a":"12345678901234567890123","b":"x=y","c":"1e400"}));
    }

    #[test]
    fn a_schema_decides_what_text_means() {
        check(&["k=123"], property(json!({"type": "string"})), &json!({"k": "123"}));
        check(&["k=123"], property(json!({"type": "integer"})), &json!({"k": 123}));
        check(&["k=2"], property(json!({"type": "number"})), &json!({"k": 2}));
        check(&["k=2.5"], property(json!({"type": "integer"})), &json!({"k": "2.5"}));
        check(&["k=abc"], property(json!({"type": "integer"})), &json!({"k": "abc"}));
        check(&["k=true"], property(json!({"type": "boolean"})), &json!({"k": true}));
        check(&["k=[1]"], property(json!({"type": "array"})), &json!({"k": [1]}));
        check(&["k=[1]"], property(json!({"type": ["string", "null"]})), &json!({"k": "[1]"}));
        check(&["k=null"], property(json!({"type": ["integer", "null"]})), &json!({"k": null}));
        check(&["k=1"], property(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), &json!({"k": "1"}));
        check(&["k=1"], property(json!({"$ref": "#/$defs/Id"})), &json!({"k": "1"}));
        check(&["k=1"], property(json!({"enum": ["1", "2"]})), &json!({"k": "1"}));
        check(&["k=1"], property(json!({"enum": [1, 2]})), &json!({"k": 1}));
        check(&["k=1"], property(json!({})), &json!({"k": 1}));
        check(&["k=1"], property(json!({"$ref": "#/properties/k"})), &json!({"k": 1}));
        check(&["other=1"], property(json!({"type": "string"})), &json!({"other": 1}));
    }

    #[test]
    fn colon_equals_says_the_type() {
        check(&["k:=123"], property(json!({"type": "string"})), &json!({"k": 123}));
        check(&[r#"k:="123""#], property(json!({"type": "integer"})), &json!({"k": "123"}));
        check(&["k:=null"], None, &json!({"k": null}));
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        let check = |words: &[&str], expected: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(parse(&words).unwrap_err().diagnostic.message, expected, "{words:?}");
        };
        check(&["text"], "`text` is not a valid argument");
        check(&["=1"], "`=1` has no name before the `=`");
        check(&["k:=nope"], "value of `k` is not valid JSON: unexpected word, at `nope`");
        check(&["k=1", "k=2"], "argument `k` is given twice");
    }
}
