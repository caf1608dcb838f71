//! What two traces have in common: events are matched by kind, direction, method, target and canonical arguments, the nth with the nth.
//! Ids, progress tokens, session ids and times are no difference. Knows no rendering.

use crate::calls::{Call, CallKey, CallKind, CallStatus, messages};
use crate::filter::Filter;
use crate::line::TracedFrame;
use crate::manifest::SessionKey;
use crate::reader::{Trace, TraceError, TraceRoom};
use crate::stream::{CallStream, Item};
use mcproof_record::{Direction, FrameBody, Raw, RepeatedNames};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// Differences of one event that are listed.
const MOST_POINTERS: usize = 50;

/// Requests of the other trace among which the nearest is looked for.
const MOST_ALIKE: usize = 50;

/// Below this, a float that is whole is exactly that number.
const EXACT: f64 = 9e15;

/// Characters of a value in a difference.
const LONGEST_VALUE: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceDiff {
    /// Events that are the same in both.
    pub same: u64,
    /// Events that both have, with other contents.
    pub changed: Vec<ChangedEvent>,
    /// Events that only the first trace has.
    pub removed: Vec<OneSided>,
    /// Events that only the second trace has.
    pub added: Vec<OneSided>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    Request,
    Notification,
    /// An HTTP request without a message.
    Http,
    /// A response to no open request.
    Unmatched,
    /// A line of the server that is no message.
    NotAMessage,
    /// The end of the server's process, unless it was asked for and went well.
    Exit,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedEvent {
    pub kind: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<CallKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<CallKey>,
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub differences: Vec<PointerDifference>,
    /// Differences beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// A place at which two events differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointerDifference {
    /// JSON pointer into the response, or into the params of a notification; `status` for how a request ended, `HTTP status`, and
    /// `repeated names` for members that stand there twice.
    pub pointer: String,
    /// As JSON; missing if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// An event that only one trace has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneSided {
    pub kind: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallKey>,
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Of a request its arguments, of a notification its params, else what came.
    pub arguments: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CallStatus>,
    /// The request of the other trace with the same method and target whose arguments differ, and where they do.
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

/// What is compared of an event.
struct Compared {
    kind: EventKind,
    direction: Direction,
    call: Option<CallKey>,
    method: String,
    target: Option<String>,
    arguments: Value,
    status: Option<CallStatus>,
    http_status: Option<u16>,
    response: Value,
    repeated: BTreeSet<String>,
}

/// What is compared of a trace.
pub struct ComparedTrace(Vec<Compared>);

impl ComparedTrace {
    /// Reads it into memory, as far as it is compared. With a filter, only calls that match are.
    ///
    /// # Errors
    /// If it cannot be read to its end, or is too large.
    pub fn read(trace: Trace, filter: Option<&Filter>) -> Result<Self, TraceError> {
        compared(trace, filter).map(Self)
    }
}

/// Compares two traces.
pub fn diff(ComparedTrace(old): &ComparedTrace, ComparedTrace(new): &ComparedTrace) -> TraceDiff {
    let mut matched = vec![None; old.len()];
    // What cannot be told apart by what it says is matched by its place among its kind.
    for name in [exact_name, loose_name] {
        let taken: BTreeSet<usize> = matched.iter().flatten().copied().collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, event) in new.iter().enumerate().rev().filter(|(index, _)| !taken.contains(index)) {
            if let Some(name) = name(event) {
                places.entry(name).or_default().push(index);
            }
        }
        for (event, place) in old.iter().zip(&mut matched).filter(|(_, place)| place.is_none()) {
            *place = name(event).and_then(|name| places.get_mut(&name)?.pop());
        }
    }
    let mut result = TraceDiff::default();
    for (old, new) in old.iter().zip(&matched).filter_map(|(event, place)| Some((event, &new[(*place)?]))) {
        let (differences, more) = differences(old, new);
        if differences.is_empty() {
            result.same += 1;
        } else {
            let (method, target) = (old.method.clone(), old.target.clone());
            result.changed.push(ChangedEvent { kind: old.kind, old: old.call, new: new.call, method, target, differences, more });
        }
    }
    let taken: BTreeSet<usize> = matched.iter().flatten().copied().collect();
    let removed: Vec<&Compared> = old.iter().zip(&matched).filter(|(_, place)| place.is_none()).map(|(event, _)| event).collect();
    let added: Vec<&Compared> = new.iter().enumerate().filter(|(index, _)| !taken.contains(index)).map(|(_, event)| event).collect();
    let (of_removed, of_added) = (by_subject(&removed), by_subject(&added));
    result.removed = removed.iter().map(|event| one_sided(event, &of_added)).collect();
    result.added = added.iter().map(|event| one_sided(event, &of_removed)).collect();
    result
}

fn compared(trace: Trace, filter: Option<&Filter>) -> Result<Vec<Compared>, TraceError> {
    let (mut calls, mut others) = (Vec::new(), Vec::new());
    // Sessions whose server was asked to end.
    let mut ending = BTreeSet::new();
    let mut stream = CallStream::new(trace.within(TraceRoom::default()));
    while let Some(item) = stream.next() {
        match item? {
            Item::Call(call) if filter.is_none_or(|filter| filter.matches(&call, stream.session(call.session))) => {
                calls.push(of_call(&call));
            }
            Item::Frame(frame) if filter.is_none() => others.extend(of_frame(&frame, &mut ending)),
            _ => {}
        }
    }
    calls.sort_by_key(|event| event.call);
    calls.extend(others);
    Ok(calls)
}

fn of_call(call: &Call) -> Compared {
    let kind = match call.kind {
        CallKind::Request => EventKind::Request,
        CallKind::Notification => EventKind::Notification,
        CallKind::Http => EventKind::Http,
        CallKind::Unmatched => EventKind::Unmatched,
    };
    let bytes = if kind == EventKind::Notification { Some(&call.request) } else { call.response.as_ref() };
    let repeated = bytes.and_then(|bytes| serde_json::from_slice::<RepeatedNames>(bytes.as_bytes()).ok()).unwrap_or_default();
    let mut response = call.response_json().unwrap_or(Value::Null);
    if let Some(members) = response.as_object_mut() {
        members.shift_remove("id");
    }
    let mut arguments = call.arguments();
    if kind == EventKind::Notification
        && let Some(members) = arguments.as_object_mut()
    {
        members.retain(|name, _| name != "progressToken" && name != "requestId");
    }
    // What a notification or a lone response is about, it says itself.
    let (arguments, response) = match kind {
        EventKind::Notification => (Value::Null, arguments),
        _ => (arguments, response),
    };
    Compared {
        kind,
        direction: call.direction,
        call: Some(call.key),
        method: call.method.clone(),
        target: call.target.clone().filter(|_| matches!(kind, EventKind::Request | EventKind::Http)),
        arguments,
        status: matches!(kind, EventKind::Request | EventKind::Unmatched).then_some(call.status),
        http_status: call.http.as_ref().and_then(|http| http.status),
        response,
        repeated: repeated.0,
    }
}

/// What the server did beside its messages.
fn of_frame(frame: &TracedFrame, ending: &mut BTreeSet<SessionKey>) -> Option<Compared> {
    let not_a_message = |bytes: &Raw| {
        let is_one = frame.direction == Direction::FromServer && messages(bytes.as_bytes()).is_empty();
        is_one.then(|| (EventKind::NotAMessage, "not a message", Value::String(bytes.to_text().into_owned())))
    };
    let (kind, method, response) = match &frame.body {
        FrameBody::Signalled { .. } => {
            ending.insert(frame.session);
            None
        }
        FrameBody::Closed { pipe } if pipe == "stdin" => {
            ending.insert(frame.session);
            None
        }
        FrameBody::Spawned { .. } => {
            ending.remove(&frame.session);
            None
        }
        FrameBody::Exited { code, signal } => {
            let went_well = *code == Some(0) || code.is_none() && signal.is_some();
            let as_asked = ending.contains(&frame.session) && went_well;
            (!as_asked).then(|| (EventKind::Exit, "exit", json!({ "code": code, "signal": signal })))
        }
        FrameBody::Line { bytes, .. } => not_a_message(bytes),
        FrameBody::SseEvent { event, data: Some(data), .. }
            if event.as_ref().is_none_or(|event| event == "message") && !data.is_empty() =>
        {
            not_a_message(data)
        }
        _ => None,
    }?;
    Some(Compared {
        kind,
        direction: frame.direction,
        call: None,
        method: method.into(),
        target: None,
        arguments: Value::Null,
        status: None,
        http_status: None,
        response,
        repeated: BTreeSet::new(),
    })
}

/// The name under which requests are matched, and what says the same.
fn exact_name(event: &Compared) -> Option<String> {
    let says = if is_request(event) { &event.arguments } else { &event.response };
    Some(format!("{}\0{}\0{}", kind_name(event), event.target.as_deref().unwrap_or_default(), canonical(says)))
}

/// The name under which the rest is matched that is not a request.
fn loose_name(event: &Compared) -> Option<String> {
    (!is_request(event)).then(|| kind_name(event))
}

fn is_request(event: &Compared) -> bool {
    matches!(event.kind, EventKind::Request | EventKind::Http)
}

fn kind_name(event: &Compared) -> String {
    format!("{:?}\0{:?}\0{}", event.kind, event.direction, event.method)
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
    let mut beside = |name: &str, old: Option<String>, new: Option<String>| {
        if old != new {
            all.push(PointerDifference { pointer: name.into(), old, new });
        }
    };
    let shown = |status: Option<CallStatus>| status.map(|status| status.name().to_owned());
    beside("status", shown(old.status), shown(new.status));
    // A message over stdio has none, and is the same message.
    if old.kind == EventKind::Http || old.http_status.is_some() && new.http_status.is_some() {
        let shown = |status: Option<u16>| status.map(|status| status.to_string());
        beside("HTTP status", shown(old.http_status), shown(new.http_status));
    }
    let shown = |names: &BTreeSet<String>| (!names.is_empty()).then(|| names.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    beside("repeated names", shown(&old.repeated), shown(&new.repeated));
    let mut more = 0;
    walk(&old.response, &new.response, &mut String::new(), &mut |pointer, old, new| {
        if all.len() < MOST_POINTERS {
            let shown = |value: Option<&Value>| value.map(|value| shortened(&value.to_string()));
            all.push(PointerDifference { pointer: pointer.to_owned(), old: shown(old), new: shown(new) });
        } else {
            more += 1;
        }
    });
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

/// Requests of one trace by method and target, of each the first ones.
type BySubject<'a> = HashMap<(&'a str, Option<&'a str>), Vec<&'a Compared>>;

fn by_subject<'a>(events: &[&'a Compared]) -> BySubject<'a> {
    let mut found = BySubject::new();
    for &event in events {
        let alike = found.entry((event.method.as_str(), event.target.as_deref())).or_default();
        if alike.len() < MOST_ALIKE {
            alike.push(event);
        }
    }
    found
}

fn one_sided(event: &Compared, others: &BySubject<'_>) -> OneSided {
    let alike = others.get(&(event.method.as_str(), event.target.as_deref())).filter(|_| is_request(event));
    let nearest = alike
        .into_iter()
        .flatten()
        .filter_map(|other| {
            let mut pointers = Vec::new();
            walk(&event.arguments, &other.arguments, &mut String::new(), &mut |pointer, _, _| pointers.push(pointer.to_owned()));
            Some((pointers, other.call?))
        })
        .min_by_key(|(pointers, _)| pointers.len());
    OneSided {
        kind: event.kind,
        call: event.call,
        method: event.method.clone(),
        target: event.target.clone(),
        arguments: if is_request(event) { event.arguments.clone() } else { event.response.clone() },
        status: event.status,
        nearest: nearest.and_then(|(pointers, call)| Some(Nearest { call, pointer: pointers.into_iter().next()? })),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
