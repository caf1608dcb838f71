//! A supervisor: ends the server, if it is ours, by SIGTERM. Over stdio that may be the end of any conversation.

use super::CheckOptions;
use super::explorer::Explorer;
use mcproof_client::ProcessSignal;
use mcproof_protocol::EraChoice;
use mcproof_record::Conversation;

pub(super) async fn explore(check_options: &CheckOptions, era: EraChoice) -> Vec<Conversation> {
    if check_options.target.command().is_none() {
        return Vec::new();
    }
    match Explorer::open_in(check_options, "supervisor", era).await {
        Ok(mut explorer) => {
            terminate(&mut explorer).await;
            vec![explorer.end().await]
        }
        Err(failed) => vec![failed.0],
    }
}

/// At the end of a conversation in which nothing else is left to say.
pub(super) async fn terminate(explorer: &mut Explorer<'_>) {
    explorer.signal(TERMINATE, ProcessSignal::TERMINATE).await;
}

const TERMINATE: &str = "terminate";

pub(super) fn was_terminated(take: &Conversation) -> bool {
    take.probes.iter().any(|probed| probed.probe == TERMINATE)
}
