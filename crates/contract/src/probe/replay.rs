//! A probe that was saved, as a conversation that rules can judge again, without the server. Does no I/O.

use crate::legacy_revision;
use mcproof_analysis::ConversationView;
use mcproof_protocol::Revision;
use mcproof_record::{Conversation, FrameBody, Opened, ProbeReport, Transcript};

/// The conversation of a saved probe. Without its report, what can be known of it stands in the transcript.
pub fn take_of(transcript: Transcript, report: Option<&ProbeReport>) -> Conversation {
    let handshake = report.and_then(|report| report.handshake.as_ref());
    let mut take = Conversation {
        name: "probe".into(),
        transport: handshake.map(|handshake| handshake.transport.clone()).unwrap_or_else(|| transport_of(&transcript).into()),
        revision: handshake.map_or_else(|| Revision::MODERN.as_str().into(), |handshake| handshake.protocol_version.clone()),
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript,
    };
    let cause = report.and_then(ProbeReport::cause).map(|cause| cause.message.clone());
    let conversation = ConversationView::new(&take);
    let (revision, opened) = match (handshake, legacy_revision(&conversation)) {
        (Some(handshake), _) => (handshake.protocol_version.clone(), Opened::Yes),
        (None, Some(revision)) if cause.is_none() => (revision, Opened::Yes),
        (None, None) if cause.is_none() && conversation.handshake().is_some() => (Revision::MODERN.as_str().into(), Opened::Yes),
        (None, revision) => {
            let reason = cause.unwrap_or_else(|| "there is no handshake in the transcript".into());
            (revision.unwrap_or_else(|| Revision::MODERN.as_str().into()), Opened::No { reason })
        }
    };
    (take.revision, take.opened) = (revision, opened);
    take
}

fn transport_of(transcript: &Transcript) -> &'static str {
    let over_http = |body: &FrameBody| matches!(body, FrameBody::HttpRequest { .. } | FrameBody::HttpResponse { .. });
    if transcript.frames.iter().any(|frame| over_http(&frame.body)) { "http" } else { "stdio" }
}
