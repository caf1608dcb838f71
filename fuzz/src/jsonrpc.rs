//! A message is equal after reading and writing, and valid JSON is never reported as "not JSON".

use mcproof_client::jsonrpc::{self, Flaw, Message};
use mcproof_record::Json;
use serde_json::Value;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    match jsonrpc::parse(bytes) {
        Ok(message) => {
            if let Some(written) = write(&message) {
                assert_eq!(jsonrpc::parse(&written).as_ref(), Ok(&message), "{}", String::from_utf8_lossy(&written));
                assert!(!written.contains(&b'\n'), "a message is one line");
            }
        }
        Err(malformed) => {
            let json = serde_json::from_slice::<Value>(bytes).is_ok();
            match &malformed.flaw {
                Flaw::NotJson(_) | Flaw::TooDeep(_) => assert!(!json, "{malformed}"),
                Flaw::NotUtf8(place) => assert_eq!(std::str::from_utf8(bytes).map_err(|error| error.valid_up_to()), Err(*place)),
                Flaw::ByteOrderMark | Flaw::TooManyValues(_) => {}
                Flaw::NotAnObject(_) | Flaw::NotAMessage(_) => assert!(json, "{malformed}"),
            }
            assert!(!malformed.to_string().is_empty());
        }
    }
}

/// `None` for what mcproof never writes: a response without an id, and parameters that are not an object.
fn write(message: &Message) -> Option<Vec<u8>> {
    let object = |params: &Option<Value>| match params {
        None => Some(None),
        Some(Value::Object(object)) => Some(Some(object.clone())),
        Some(_) => None,
    };
    Some(match message {
        Message::Response { id, answer } => jsonrpc::response(id.as_ref()?, answer.clone().map(Json::into_inner)),
        Message::Request { id, method, params } => jsonrpc::request(id, method, object(params)?.map(Json::from).as_ref()),
        Message::Notification { method, params } => jsonrpc::notification(method, object(params)?.as_ref()),
    })
}
