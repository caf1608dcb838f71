//! What two traces have in common: calls are matched by session, direction, method, target and canonical arguments, the nth with the nth.
//! Ids, progress tokens, session ids and times are no difference. Knows no rendering.

use crate::calls::{Call, CallKey, CallKind, CallStatus};
use crate::reader::{Trace, TraceError};
use crate::stream::{CallStream, Item};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Differences of one call that are listed.
const MOST_POINTERS: usize = 50;

/// Below this, a float that is whole is exactly that number.
const EXACT: f64 = 9e15;

/// Characters of a value in a difference.
const LONGEST_VALUE: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceDiff {
    /// Calls that are the same in both.
    pub same: u64,
    /// Calls that both have, with other responses.
    pub changed: Vec<ChangedCall>,
    /// Calls that only the first trace has.
    pub removed: Vec<OneSided>,
    /// Calls that only the second trace has.
    pub added: Vec<OneSided>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedCall {
    pub old: CallKey,
    pub new: CallKey,
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub differences: Vec<PointerDifference>,
    /// Differences beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// A place in the response at which two calls differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointerDifference {
    /// JSON pointer into the response; `status` for how the call ended.
    pub pointer: String,
    /// As JSON; missing if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// A call that only one trace has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneSided {
    pub call: CallKey,
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub arguments: Value,
    pub status: CallStatus,
    /// The call of the other trace with the same method and target whose arguments differ, and where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    pub call: CallKey,
    /// JSON pointer into the arguments.
    pub pointer: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl TraceDiff {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty() && self.added.is_empty()
    }
}

/// What is compared of a call.
struct Compared {
    key: CallKey,
    method: String,
    target: Option<String>,
    arguments: Value,
    status: CallStatus,
    response: Value,
}

/// Compares two traces, of which both are read into memory as far as they are compared.
///
/// # Errors
/// If one of them cannot be read to its end.
pub fn diff(old: Trace, new: Trace) -> Result<TraceDiff, TraceError> {
    let (old, new) = (compared(old)?, compared(new)?);
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, call) in new.iter().enumerate().rev() {
        places.entry(name_of(call)).or_default().push(index);
    }
    let (mut result, mut matched) = (TraceDiff::default(), vec![false; new.len()]);
    let mut lonely = Vec::new();
    for call in &old {
        let Some(index) = places.get_mut(&name_of(call)).and_then(Vec::pop) else {
            lonely.push(call);
            continue;
        };
        matched[index] = true;
        let (differences, more) = differences(call, &new[index]);
        if differences.is_empty() {
            result.same += 1;
        } else {
            let (method, target) = (call.method.clone(), call.target.clone());
            result.changed.push(ChangedCall { old: call.key, new: new[index].key, method, target, differences, more });
        }
    }
    let unmatched: Vec<&Compared> = new.iter().zip(&matched).filter(|(_, matched)| !**matched).map(|(call, _)| call).collect();
    result.removed = lonely.iter().map(|call| one_sided(call, &unmatched)).collect();
    result.added = unmatched.iter().map(|call| one_sided(call, &lonely)).collect();
    Ok(result)
}

fn compared(trace: Trace) -> Result<Vec<Compared>, TraceError> {
    let mut calls = Vec::new();
    for item in CallStream::new(trace) {
        let Item::Call(call) = item? else { continue };
        if call.kind == CallKind::Request {
            calls.push(of_call(&call));
        }
    }
    calls.sort_by_key(|call| call.key);
    Ok(calls)
}

fn of_call(call: &Call) -> Compared {
    let mut response = call.response_json().unwrap_or(Value::Null);
    if let Some(members) = response.as_object_mut() {
        members.shift_remove("id");
    }
    let arguments = call.arguments();
    Compared { key: call.key, method: call.method.clone(), target: call.target.clone(), arguments, status: call.status, response }
}

fn name_of(call: &Compared) -> String {
    format!("{}\0{}\0{}", call.method, call.target.as_deref().unwrap_or_default(), canonical(&call.arguments))
}

/// The same text for the same value, whatever the order of its members.
pub fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&members[name]))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        // 1.0 and 1 are the same number.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                let whole = serde_json::from_str(&format!("{float:.0}"));
                whole.unwrap_or_else(|_| value.clone())
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn differences(old: &Compared, new: &Compared) -> (Vec<PointerDifference>, usize) {
    let mut all = Vec::new();
    if old.status != new.status {
        let shown = |status: CallStatus| Some(status.name().to_owned());
        all.push(PointerDifference { pointer: "status".into(), old: shown(old.status), new: shown(new.status) });
    }
    let mut count = 0_usize;
    walk(&old.response, &new.response, &mut String::new(), &mut |pointer, old, new| {
        count += 1;
        if all.len() < MOST_POINTERS {
            let shown = |value: Option<&Value>| value.map(|value| shortened(&value.to_string()));
            all.push(PointerDifference { pointer: pointer.to_owned(), old: shown(old), new: shown(new) });
        }
    });
    let more = count.saturating_sub(MOST_POINTERS);
    (all, more)
}

fn walk(old: &Value, new: &Value, pointer: &mut String, found: &mut impl FnMut(&str, Option<&Value>, Option<&Value>)) {
    match (old, new) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                inside(pointer, name, |pointer| match right.get(name) {
                    Some(other) => walk(value, other, pointer, found),
                    None => found(pointer, Some(value), None),
                });
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                inside(pointer, name, |pointer| found(pointer, None, Some(value)));
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                inside(pointer, &index.to_string(), |pointer| match (left.get(index), right.get(index)) {
                    (Some(left), Some(right)) => walk(left, right, pointer, found),
                    (left, right) => found(pointer, left, right),
                });
            }
        }
        _ if canonical(old) == canonical(new) => {}
        _ => found(pointer, Some(old), Some(new)),
    }
}

fn inside(pointer: &mut String, name: &str, look: impl FnOnce(&mut String)) {
    let length = pointer.len();
    *pointer += &format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    look(pointer);
    pointer.truncate(length);
}

fn one_sided(call: &Compared, others: &[&Compared]) -> OneSided {
    let alike = others.iter().filter(|other| other.method == call.method && other.target == call.target);
    let nearest = alike
        .map(|other| {
            let mut pointers = Vec::new();
            walk(&call.arguments, &other.arguments, &mut String::new(), &mut |pointer, _, _| pointers.push(pointer.to_owned()));
            (pointers, other.key)
        })
        .min_by_key(|(pointers, _)| pointers.len());
    OneSided {
        call: call.key,
        method: call.method.clone(),
        target: call.target.clone(),
        arguments: call.arguments.clone(),
        status: call.status,
        nearest: nearest.and_then(|(pointers, call)| Some(Nearest { call, pointer: pointers.into_iter().next()? })),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
