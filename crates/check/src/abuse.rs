//! A client that sends what it must not, and looks whether the server still answers afterwards. A server that does not
//! survive is started again for what comes next.

use super::explorer::Explorer;
use super::{CheckOptions, pieces, process};
use mcproof_analysis::probes::CONTROL;
use mcproof_client::WaitFor;
use mcproof_protocol::{EraChoice, Transport, methods};
use mcproof_record::Conversation;
use serde_json::{Value, json};
use std::time::Duration;

/// How long one that does not answer everything may take to accept what is sent.
const BRIEFLY: Duration = Duration::from_millis(500);

/// Bytes of the huge message.
const HUGE: usize = 4 << 20;

/// What is sent as it stands: the probe, and one message after the other.
fn abuses(explorer: &Explorer<'_>) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let ask = |id: &str, params: Value| {
        let method = if explorer.is_modern() { methods::SERVER_DISCOVER } else { methods::PING };
        line(&explorer.build_request(json!(id), method, params))
    };
    let tell = |method: &str, params: Value| line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    let mut invalid = ask("mcproof-invalid-utf8", json!({ "text": "?" }));
    for byte in invalid.iter_mut().filter(|byte| **byte == b'?') {
        *byte = 0xfc;
    }
    let twice = ask("mcproof-twice", json!({}));
    let mut abuses = vec![
        ("unknown-notification", vec![tell("notifications/mcproof-nothing", json!({}))]),
        ("unknown-cancel", vec![tell(methods::notifications::CANCELLED, json!({ "requestId": "mcproof-never-asked" }))]),
        ("duplicate-id", vec![twice.clone(), twice]),
        ("blank-line", vec![b"\n".to_vec()]),
        ("batch", vec![line(&json!([explorer.build_request(json!("mcproof-batch"), "tools/list", json!({}))]))]),
        ("malformed-json", vec![b"{\"jsonrpc\":\"2.0\",\"id\":\"mcproof-malformed\",\"method\":\n".to_vec()]),
        ("invalid-utf8", vec![invalid]),
        ("huge-message", vec![ask("mcproof-huge", json!({ "padding": "x".repeat(HUGE) }))]),
    ];
    // Lines are a matter of stdio.
    abuses.retain(|(probe, _)| *probe != "blank-line" || explorer.kind() == Transport::Stdio);
    abuses
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Of this kind of conversation.
const NAME: &str = "abuse";

/// Begins with a conversation that is under way, if there is one. Over stdio the last process is ended as by a supervisor.
pub(super) async fn explore<'a>(check_options: &'a CheckOptions, era: EraChoice, mut under_way: Option<Explorer<'a>>) -> Vec<Conversation> {
    let mut conversations = Vec::new();
    let (mut next, mut is_repeated) = (0, false);
    // Before the abuse, because it is none: a server that does not survive it is to have another chance.
    let mut tries_in_pieces = pieces::TRIES;
    loop {
        let opened = match under_way.take() {
            Some(explorer) => Ok(explorer.renamed(NAME)),
            None => Explorer::open_in(check_options, NAME, era).await,
        };
        let mut explorer = match opened {
            Ok(explorer) => explorer.with_brief_shutdown(),
            Err(failed) => {
                conversations.push(failed.0);
                return conversations;
            }
        };
        let abuses = abuses(&explorer);
        let is_in_pieces = explorer.kind() == Transport::Stdio && tries_in_pieces > 0;
        if is_in_pieces {
            let is_told = pieces::send_line(&mut explorer).await;
            tries_in_pieces = if is_told { 0 } else { tries_in_pieces - 1 };
        }
        // Whoever is not well before says nothing by being ill afterwards.
        let mut is_alive = explorer.is_alive_after(CONTROL).await;
        if !is_alive {
            conversations.push(explorer.end().await);
            if is_in_pieces {
                continue;
            }
            return conversations;
        }
        while let (true, Some((probe, messages))) = (is_alive, abuses.get(next)) {
            abuse(&mut explorer, probe, messages).await;
            is_alive = explorer.is_alive_after(probe).await;
            // What it did not survive is tried once more, on a server that was sent nothing else.
            match is_alive || is_repeated {
                true => (next, is_repeated) = (next + 1, false),
                false => is_repeated = true,
            }
        }
        let is_last = next >= abuses.len();
        if is_last && is_alive && explorer.kind() == Transport::Stdio {
            process::terminate(&mut explorer).await;
        }
        conversations.push(explorer.end().await);
        if is_last {
            return conversations;
        }
    }
}

async fn abuse(explorer: &mut Explorer<'_>, probe: &str, messages: &[Vec<u8>]) {
    let most = if explorer.was_silent() { BRIEFLY } else { explorer.sign_of_life() };
    explorer
        .together(probe, async |session, deadline| {
            for message in messages {
                // Whatever comes back is of no consequence.
                let _ = session.send_bytes(message.clone(), WaitFor::Nothing, deadline.min(most)).await;
            }
        })
        .await;
}
