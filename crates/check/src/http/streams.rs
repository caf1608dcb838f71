//! Two legacy clients at the same time, each with an event stream, and an unknown session. Knows what is worth trying, not what is right.

use super::super::CheckOptions;
use super::super::explorer::Explorer;
use super::request_variants::Questions;
use mcproof_analysis::probes::{UNKNOWN_STREAM, session_in};
use mcproof_client::{RawHttpRequest, Session};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::{Conversation, ExchangeId, FrameBody, Transcript};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the response to one of the requests is waited for.
const LONGEST: Duration = Duration::from_secs(2);

/// How long a response may be on its way to a stream on which it has no business.
const STRAY: Duration = Duration::from_millis(200);

const PAUSE: Duration = Duration::from_millis(10);

/// The ids of the two requests. Nothing else has them, so that each response is known wherever it comes.
const IDS: [&str; 2] = ["mcproof-stream-of-the-first", "mcproof-stream-of-the-second"];

/// Streams besides those of the two clients, so that what names their sessions can be compared.
const MORE: usize = 1;

/// Nothing, if the server does not take two clients at the same time, which it does not have to.
pub(super) async fn explore(check_options: &CheckOptions) -> Vec<Conversation> {
    let Ok(mut first) = Explorer::open_in(check_options, "first client", EraChoice::Legacy).await else { return Vec::new() };
    let mut second = match Explorer::open_in(check_options, "second client", EraChoice::Legacy).await {
        Ok(second) => second,
        Err(failed) => {
            let first = first.with_brief_shutdown().end().await;
            return if is_accepted(&failed.0.transcript) { vec![first, failed.0] } else { Vec::new() };
        }
    };
    if first.kind() == Transport::Http {
        tokio::join!(await_stream(&first), await_stream(&second));
    }
    tokio::join!(ask(&mut first, IDS[0]), ask(&mut second, IDS[1]));
    if first.kind() == Transport::Http {
        // What goes to the stream of the other client may come after the response.
        sleep(STRAY).await;
    } else if !first.is_over() && !second.is_over() {
        let (of_first, of_second) = (Questions::of_session(&first), Questions::of_session(&second));
        for _ in 0..MORE {
            let stream = of_first.stream();
            first.http("stream", None, &stream).await;
        }
        if let Some(nobodys) = of_first.path().zip(of_second.path()).and_then(|(one, other)| nobodys(one, other)) {
            // Some servers do not respond to it at all: that is not to count for what they do with messages of their own.
            let http_request = RawHttpRequest { path: Some(nobodys), ..of_first.notification(&first) };
            first.http_within(UNKNOWN_STREAM, &http_request, LONGEST).await;
        }
    }
    let are_whole = !first.is_over() && !second.is_over();
    let conversations = vec![first.with_brief_shutdown().end().await, second.with_brief_shutdown().end().await];
    // Whoever came last may have taken the place of the other one.
    if are_whole { conversations } else { Vec::new() }
}

/// Whether a server took the messages of a client, which is to say that it will respond.
fn is_accepted(transcript: &Transcript) -> bool {
    let posts = || {
        transcript.frames.iter().filter_map(|frame| match &frame.body {
            FrameBody::HttpRequest { exchange, method, .. } if method == "POST" => Some(*exchange),
            _ => None,
        })
    };
    let is_of_post = |wanted: ExchangeId| posts().any(|exchange| exchange == wanted);
    let accepts = |body: &FrameBody| matches!(body, FrameBody::HttpResponse { exchange, status: 200..300, .. } if is_of_post(*exchange));
    transcript.frames.iter().any(|frame| accepts(&frame.body))
}

/// Until the server has responded to the request for a stream.
async fn await_stream(explorer: &Explorer<'_>) {
    let until = Instant::now() + LONGEST;
    while !has_response_to_get(&explorer.transcript()) && Instant::now() < until {
        sleep(PAUSE).await;
    }
}

fn has_response_to_get(transcript: &Transcript) -> bool {
    let frames = || transcript.frames.iter().map(|frame| &frame.body);
    let is_get = |wanted: ExchangeId| {
        frames().any(|body| matches!(body, FrameBody::HttpRequest { exchange, method, .. } if *exchange == wanted && method == "GET"))
    };
    frames().any(|body| matches!(body, FrameBody::HttpResponse { exchange, .. } if is_get(*exchange)))
}

/// Asks with this id, and listens.
async fn ask(explorer: &mut Explorer<'_>, id: &str) {
    let message = explorer.build_request(json!(id), explorer.any_method(), json!({}));
    let Value::Object(message) = message else { return };
    let patience = LONGEST + explorer.pace() * 2;
    let work = async |session: &Session, most: Duration| {
        // What came of it, and on which stream, is in the transcripts.
        let _ = session.send_message(&message, patience.min(most)).await;
    };
    explorer.together_on("own-stream", Some(id), work).await;
}

/// Where nobody's messages go: an endpoint whose session has the form of another one, in other characters.
fn nobodys(endpoint: &str, other: &str) -> Option<String> {
    let session = session_in(endpoint, other)?;
    let turned: String = endpoint[session.clone()].chars().map(turned).collect();
    Some(format!("{}{turned}{}", &endpoint[..session.start], &endpoint[session.end..]))
}

/// The next digit of its kind.
fn turned(character: char) -> char {
    match character {
        '9' => '0',
        'f' => 'a',
        'F' => 'A',
        '0'..='8' | 'a'..='e' | 'A'..='E' => char::from_u32(character as u32 + 1).unwrap_or(character),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_what_differs_in_two_endpoints() {
        let check = |endpoint: &str, other: &str, expected: Option<&str>| {
            assert_eq!(session_in(endpoint, other).map(|range| &endpoint[range]), expected, "{endpoint} {other}");
        };
        check("/messages?session=a1b-2", "/messages?session=a1c-2", Some("a1b-2"));
        check("/messages/17/", "/messages/18/", Some("17"));
        check("/m?sessionId=9&v=1", "/m?sessionId=10&v=1", Some("9"));
        check("/messages", "/messages", None);
    }

    #[test]
    fn nobodys_session_has_the_form_of_the_others() {
        assert_eq!(nobodys("/m?s=09af-9", "/m?s=123b-1").as_deref(), Some("/m?s=10ba-0"));
        assert_eq!(nobodys("/m", "/m"), None);
    }
}
