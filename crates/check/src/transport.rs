//! Which of the two HTTP transports a URL speaks, where that was left open. A client tries Streamable HTTP first (2025-11-25,
//! basic/transports, backward compatibility); what an HTTP+SSE server responds to that attempt is no violation, so the attempt is
//! made here, aside from the conversations that are judged. It is judged only where nothing was served after it.

use super::CheckOptions;
use super::explorer::end;
use mcproof_analysis::ConversationView;
use mcproof_client::{ConnectOptions, ShutdownTimeouts, Tap, Target, open_session};
use mcproof_protocol::{EraChoice, Revision, Transport};
use mcproof_record::{Conversation, Opened};
use std::time::Duration;
use tokio::time::sleep;

/// How often to look whether an event stream has begun: one that is faulty never lets a session open.
const LOOK: Duration = Duration::from_millis(50);

/// Enough for the end of a session; the server goes on.
const BRIEF_SHUTDOWN: ShutdownTimeouts =
    ShutdownTimeouts { end_of_input: Duration::from_millis(500), terminate: Duration::from_millis(500) };

/// What the attempt brought.
#[derive(Default)]
pub(super) struct Settled {
    /// The transport of the URL; `None` where it was given, or where nothing tells.
    pub(super) kind: Option<Transport>,
    /// The attempt itself, if `initialize` got a result over Streamable HTTP.
    pub(super) greeted: Option<Conversation>,
}

pub(super) async fn settle(check_options: &CheckOptions) -> Settled {
    let Target::Http { kind: None, .. } = &check_options.target else { return Settled::default() };
    let tap = check_options.new_tap("transport");
    let options = ConnectOptions { era: EraChoice::Legacy, ..check_options.options.clone() };
    let stream = async {
        while !begins_stream(&tap) {
            sleep(LOOK).await;
        }
    };
    let kind = tokio::select! {
        opened = open_session(&check_options.target, &options, &tap) => match opened {
            Ok(session) => {
                let kind = session.handshake().transport;
                end(session, &tap, BRIEF_SHUTDOWN).await;
                Some(kind)
            }
            Err(_) => begins_stream(&tap).then_some(Transport::Sse),
        },
        () = stream => Some(Transport::Sse),
    };
    let attempt = attempt(&tap);
    let greeted = ConversationView::new(&attempt).handshake().is_some();
    Settled { kind, greeted: Some(attempt).filter(|_| greeted && kind != Some(Transport::Sse)) }
}

fn attempt(tap: &Tap) -> Conversation {
    Conversation {
        name: "first contact".into(),
        transport: Transport::Http.to_string(),
        revision: Revision::LATEST_LEGACY.as_str().to_owned(),
        opened: Opened::Bare,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript: tap.transcript(),
    }
}

/// Whether a GET, which follows only upon a POST that was refused, got an event stream.
fn begins_stream(tap: &Tap) -> bool {
    let take = attempt(tap);
    let conversation = ConversationView::new(&take);
    conversation.exchanges.values().any(|exchange| {
        exchange.method == "GET" && exchange.status() == Some(200) && exchange.media_type().as_deref() == Some("text/event-stream")
    })
}

/// Fixes the transport of a target over HTTP that left it open.
pub(super) fn set(target: &mut Target, settled: Option<Transport>) {
    if let (Target::Http { kind, .. }, Some(settled)) = (target, settled) {
        *kind = kind.or(Some(settled));
    }
}
