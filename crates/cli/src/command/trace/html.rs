//! A trace as one page that opens offline: the page of `mcproof ui` with the sessions in it.

use super::lines::header;
use mcproof_record::Frame;
use mcproof_trace::export::ExportError;
use mcproof_trace::{Ending, SessionInfo, SessionKey, Trace, TraceLine};
use mcproof_ui::{ShownSession, Viewer};
use std::collections::BTreeMap;
use std::io::Write;

/// Frames that are written together.
const BATCH: usize = 500;

pub(super) fn write(mut trace: Trace, out: &mut dyn Write) -> Result<Ending, ExportError> {
    let mut viewer = Viewer::begin(out, env!("CARGO_PKG_VERSION"))?;
    let mut known: BTreeMap<SessionKey, Option<SessionInfo>> = BTreeMap::new();
    let mut batch: (SessionKey, Vec<Frame>) = (SessionKey(0), Vec::new());
    for line in &mut trace {
        match line? {
            TraceLine::Session(session) => {
                known.insert(session.key, Some(session));
            }
            TraceLine::Frame(frame) => {
                let key = frame.session;
                known.entry(key).or_default();
                if batch.0 != key || batch.1.len() >= BATCH {
                    viewer.frames(u64::from(batch.0.0), &batch.1)?;
                    batch = (key, Vec::new());
                }
                batch.1.push(frame.into_frame());
            }
            _ => {}
        }
    }
    viewer.frames(u64::from(batch.0.0), &batch.1)?;
    let shown: Vec<ShownSession> = known
        .into_iter()
        .map(|(key, session)| ShownSession {
            id: u64::from(key.0),
            title: title(key, session.as_ref()),
            transport: session.map(|session| session.transport).unwrap_or_default(),
        })
        .collect();
    viewer.end(&shown)?;
    Ok(trace.ending())
}

/// What the user knows the server as, and which client or test it was.
fn title(key: SessionKey, session: Option<&SessionInfo>) -> String {
    let Some(session) = session.filter(|session| !session.server.is_empty()) else { return header(key, session) };
    let client = session.client.as_deref().filter(|client| *client != "mcproof");
    [Some(session.server.as_str()), session.test.as_deref(), client].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
