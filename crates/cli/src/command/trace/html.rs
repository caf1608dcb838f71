//! A trace as one page that opens offline: the page of `mcproof ui` with the sessions in it.

use super::lines::header;
use mcproof_record::Frame;
use mcproof_trace::export::ExportError;
use mcproof_trace::{CallStream, Ending, Item, SessionInfo, SessionKey, Trace};
use mcproof_ui::{ShownPicture, ShownSession, Viewer};
use std::collections::BTreeSet;
use std::io::Write;

/// Bytes of the pictures that are shown below the sessions, together.
const MOST_ATTACHED: usize = 64 << 20;

/// Frames that are written together.
const BATCH: usize = 500;

pub(super) fn write(trace: Trace, out: &mut dyn Write) -> Result<Ending, ExportError> {
    let mut viewer = Viewer::begin(out, env!("CARGO_PKG_VERSION"))?;
    let mut stream = CallStream::new(trace);
    let mut known: BTreeSet<SessionKey> = BTreeSet::new();
    let (mut pictures, mut attached) = (Vec::new(), 0);
    let mut batch: (SessionKey, Vec<Frame>) = (SessionKey(0), Vec::new());
    for item in stream.by_ref() {
        match item? {
            Item::Session(session) => {
                known.insert(session.key);
            }
            Item::Frame(frame) => {
                let key = frame.session;
                known.insert(key);
                if batch.0 != key || batch.1.len() >= BATCH {
                    viewer.frames(u64::from(batch.0.0), &batch.1)?;
                    batch = (key, Vec::new());
                }
                batch.1.push(frame.into_frame());
            }
            Item::Attachment(file) => {
                let bytes = file.bytes.as_bytes();
                if attached + bytes.len() <= MOST_ATTACHED
                    && let Some(picture) = ShownPicture::of(&file.name, bytes)
                {
                    attached += bytes.len();
                    pictures.push(picture);
                }
            }
            _ => {}
        }
    }
    viewer.frames(u64::from(batch.0.0), &batch.1)?;
    let shown: Vec<ShownSession> = known
        .into_iter()
        .map(|key| {
            let session = stream.session(key);
            ShownSession {
                id: u64::from(key.0),
                title: title(key, session),
                transport: session.map(|session| session.transport.clone()).unwrap_or_default(),
            }
        })
        .collect();
    viewer.end(&shown, &pictures)?;
    Ok(stream.ending())
}

/// What the user knows the server as, and which client or test it was.
fn title(key: SessionKey, session: Option<&SessionInfo>) -> String {
    let Some(session) = session.filter(|session| !session.server.is_empty()) else { return header(key, session) };
    let client = session.client.as_deref().filter(|client| *client != "mcproof");
    [Some(session.server.as_str()), session.test.as_deref(), client].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
