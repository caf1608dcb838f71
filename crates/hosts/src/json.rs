//! Servers in JSON with comments: `command` and `args`, as all hosts but Goose have them.

use crate::edit::{Edit, HostFileError, Planned, ServerChange, Splice, end_of_flags, has_own_options, is_proxy};
use jsonc_parser::ast::{Array, Object, StringLit, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// The JSON that hosts read: with comments and trailing commas, and no other liberties.
pub const HOST_JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Stands before the command of the server in its arguments.
const BEFORE: &str = r#""proxy", "--", "#;

pub(crate) fn plan(text: &str, member: &'static str, has_projects: bool, edit: Edit, program: &str) -> Result<Vec<Planned>, HostFileError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &HOST_JSON);
    let parsed = parsed.map_err(|error| HostFileError::Invalid(error.to_string()))?;
    let Some(Value::Object(root)) = parsed.value else { return Err(HostFileError::NoServers(member)) };
    let is_twice = |object: &Object<'_>| object.properties.iter().filter(|property| property.name.as_str() == member).count() > 1;
    if is_twice(&root) {
        return Err(HostFileError::ServersTwice(member));
    }
    let mut lists: Vec<&Object<'_>> = object(&root, member).into_iter().collect();
    if has_projects && let Some(projects) = object(&root, "projects") {
        if projects.properties.iter().filter_map(|project| project.value.as_object()).any(is_twice) {
            return Err(HostFileError::ServersTwice(member));
        }
        let of_project = projects.properties.iter().filter_map(|project| object(project.value.as_object()?, member));
        lists.extend(of_project);
    }
    if lists.is_empty() {
        return Err(HostFileError::NoServers(member));
    }
    let servers = lists.iter().flat_map(|list| &list.properties);
    Ok(servers.map(|property| server(text, property.name.as_str(), &property.value, edit, program)).collect())
}

fn server(text: &str, name: &str, value: &Value<'_>, edit: Edit, program: &str) -> Planned {
    let (change, splices) = changes(text, value, edit, program).unwrap_or((ServerChange::NotUnderstood, Vec::new()));
    Planned { name: name.to_owned(), change, splices }
}

fn changes(text: &str, value: &Value<'_>, edit: Edit, program: &str) -> Option<(ServerChange, Vec<Splice>)> {
    let entry = value.as_object()?;
    // Parsers differ in which of two they take.
    let is_twice = |name: &str| entry.properties.iter().filter(|property| property.name.as_str() == name).count() > 1;
    if ["command", "args", "url"].into_iter().any(is_twice) {
        return None;
    }
    let is_at_url = ["url", "serverUrl", "httpUrl"].iter().any(|name| member(entry, name).is_some());
    let (entry, command) = match member(entry, "command") {
        None if is_at_url => return Some((ServerChange::AtUrl, Vec::new())),
        None if is_of_extension(entry) => return Some((ServerChange::OfExtension, Vec::new())),
        // Older settings of Zed.
        Some(Value::Object(inner)) => (inner, member(inner, "path")?),
        Some(command) => (entry, command),
        None => return None,
    };
    let Value::StringLit(command) = command else { return None };
    let arguments = match member(entry, "args") {
        None => None,
        Some(Value::Array(arguments)) => Some(arguments),
        Some(_) => return None,
    };
    let words = arguments.map_or(Some(Vec::new()), words)?;
    match (edit, is_proxy(&command.value, &words)) {
        (Edit::Install, true) | (Edit::Uninstall, false) => Some((ServerChange::AsBefore, Vec::new())),
        (Edit::Install, false) => Some((ServerChange::Installed, install(text, command, arguments, program))),
        (Edit::Uninstall, true) if has_own_options(&words) => Some((ServerChange::OwnOptions, Vec::new())),
        (Edit::Uninstall, true) => Some((ServerChange::Uninstalled, uninstall(text, command, arguments?, &words)?)),
    }
}

/// Whether the entry holds what Zed says of a server whose command an extension knows: its source, or its settings alone.
fn is_of_extension(entry: &Object<'_>) -> bool {
    let source = member(entry, "source").and_then(Value::as_string_lit);
    match source {
        Some(source) => source.value == "extension",
        None => member(entry, "settings").is_some(),
    }
}

fn install(text: &str, command: &StringLit<'_>, arguments: Option<&Array<'_>>, program: &str) -> Vec<Splice> {
    let written = &text[command.range.start..command.range.end];
    let named = serde_json::Value::from(program).to_string();
    let whole = command.range.start..command.range.end;
    match arguments {
        Some(arguments) => {
            let comma = if arguments.elements.is_empty() { "" } else { ", " };
            let place = arguments.range.start + 1;
            let before = Splice { range: place..place, text: format!("{BEFORE}{written}{comma}") };
            vec![Splice { range: whole, text: named }, before]
        }
        // Without a space: so it is known for what was not there.
        None => vec![Splice { range: whole, text: format!("{named}{}", added(written)) }],
    }
}

/// The member that a server without arguments gets.
fn added(command: &str) -> String {
    format!(r#","args":["proxy","--",{command}]"#)
}

fn uninstall(text: &str, command: &StringLit<'_>, arguments: &Array<'_>, words: &[String]) -> Option<Vec<Splice>> {
    let at = end_of_flags(words)?;
    let original = arguments.elements.get(at)?.range();
    let written = &text[original.start..original.end];
    let whole = command.range.start..command.range.end;
    let added = added(written);
    if text[whole.end..].starts_with(&added) {
        return Some(vec![Splice { range: whole.start..whole.end + added.len(), text: written.to_owned() }]);
    }
    let begin = arguments.range.start + 1;
    let exact = [format!("{BEFORE}{written}, "), format!("{BEFORE}{written}")];
    let removed = match exact.iter().find(|exact| text[begin..].starts_with(exact.as_str())) {
        Some(exact) => begin..begin + exact.len(),
        // Somebody has laid it out anew since.
        None => {
            let end = arguments.elements.get(at + 1).map_or(original.end, |next| next.range().start);
            arguments.elements.first()?.range().start..end
        }
    };
    Some(vec![Splice { range: whole, text: written.to_owned() }, Splice { range: removed, text: String::new() }])
}

fn words(arguments: &Array<'_>) -> Option<Vec<String>> {
    let word = |element: &Value<'_>| match element {
        Value::StringLit(word) => Some(word.value.to_string()),
        _ => None,
    };
    arguments.elements.iter().map(word).collect()
}

fn member<'a, 't>(object: &'a Object<'t>, name: &str) -> Option<&'a Value<'t>> {
    object.properties.iter().find(|property| property.name.as_str() == name).map(|property| &property.value)
}

fn object<'a, 't>(parent: &'a Object<'t>, name: &str) -> Option<&'a Object<'t>> {
    member(parent, name)?.as_object()
}
