//! A session whose transport is the test library: output of the client is sent as notifications, and input is what the server wrote. Knows
//! line feeds, and of messages only whether they are JSON.

use crate::envelope;
use crate::error::DriveError;
use crate::outlet::Outlet;
use mcproof_client::{Carrier, DirectChannel};
use mcproof_record::Raw;
use mcproof_record::drive::{RelayClosedParams, RelayEnded, RelayForm, RelayReceivedParams, RelayWritten};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// The relays that are open, by their sessions.
#[derive(Default)]
pub(crate) struct Relays(RefCell<HashMap<String, Inlet>>);

/// Where what a server wrote goes in.
struct Inlet {
    /// Read at once by the session, whose bounds count; `None` once the server has hung up.
    bytes: Option<UnboundedSender<io::Result<Vec<u8>>>>,
    /// Where messages go, as long as none had to go with the bytes.
    shortcut: Option<Arc<DirectChannel>>,
}

/// Both ends of a relay, as the session has them.
pub(crate) struct Ends {
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// Where whole messages are carried.
    pub(crate) shortcut: Option<Arc<DirectChannel>>,
}

impl Relays {
    /// From here on the driver may say what the server wrote.
    pub(crate) fn open(&self, session: &str, form: RelayForm, outlet: &Outlet) -> Result<Ends, DriveError> {
        let mut relays = self.0.borrow_mut();
        if relays.contains_key(session) {
            return Err(DriveError::bad("name-taken", format!("session `{session}` is being closed: wait for the response to `close`")));
        }
        let (bytes, received) = mpsc::unbounded_channel();
        let quoted = serde_json::to_string(session).expect("a text is JSON");
        let head = format!(r#"{{"jsonrpc":"2.0","method":"relay/write","params":{{"session":{quoted},"message":"#);
        let writer = Writer { session: session.to_owned(), head, form, outlet: outlet.clone() };
        let shortcut = (form == RelayForm::Messages).then(|| DirectChannel::new(writer.clone()));
        relays.insert(session.to_owned(), Inlet { bytes: Some(bytes), shortcut: shortcut.clone() });
        let (input, output) = (Input { received, rest: Vec::new(), read: 0 }, Output { writer, has_ended: false });
        Ok(Ends { input, output, shortcut })
    }

    pub(crate) fn receive(&self, received: &RelayReceivedParams<'_>) -> Result<(), DriveError> {
        let mut relays = self.0.borrow_mut();
        let inlet = relays.get_mut(&*received.session).ok_or_else(|| DriveError::gone("session with a relay", &received.session));
        let bytes = match (&received.data, received.message) {
            (Some(data), None) => data.as_bytes().to_vec(),
            (None, Some(message)) => {
                let inlet = inlet.as_ref().ok().filter(|inlet| inlet.bytes.is_some());
                if inlet.and_then(|inlet| inlet.shortcut.as_ref()).is_some_and(|shortcut| shortcut.deliver(message.get().as_bytes())) {
                    return Ok(());
                }
                [message.get().as_bytes(), b"\n"].concat()
            }
            _ => return Err(DriveError::bad("bad-params", "`data` or `message` is required, but not both")),
        };
        let inlet = inlet?;
        // What comes later must not overtake it.
        inlet.shortcut = None;
        if let Some(sender) = &inlet.bytes {
            // A session that is closed reads no more.
            let _ = sender.send(Ok(bytes));
        }
        Ok(())
    }

    pub(crate) fn close(&self, closed: RelayClosedParams) -> Result<(), DriveError> {
        let mut relays = self.0.borrow_mut();
        let inlet = relays.get_mut(&closed.session).ok_or_else(|| DriveError::gone("session with a relay", &closed.session))?;
        if let (Some(sender), Some(reason)) = (inlet.bytes.take(), closed.reason) {
            let _ = sender.send(Err(io::Error::other(reason)));
        }
        Ok(())
    }

    pub(crate) fn forget(&self, session: &str) {
        self.0.borrow_mut().remove(session);
    }
}

/// What the server wrote.
pub(crate) struct Input {
    received: UnboundedReceiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    /// Bytes of the rest that were read.
    read: usize,
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.read == self.rest.len() {
            match ready!(self.received.poll_recv(context)) {
                Some(bytes) => (self.rest, self.read) = (bytes?, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = buffer.remaining().min(self.rest.len() - self.read);
        buffer.put_slice(&self.rest[self.read..self.read + count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

/// Sends the output of the client to the driver.
#[derive(Clone)]
struct Writer {
    session: String,
    /// What comes before a message.
    head: String,
    form: RelayForm,
    outlet: Outlet,
}

impl Writer {
    fn write(&self, bytes: &[u8]) {
        match self.form {
            RelayForm::Lines => self.send(None, Some(bytes.into())),
            RelayForm::Messages => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    match serde_json::from_slice::<&RawValue>(line) {
                        Ok(message) => self.send(Some(message), None),
                        Err(_) => self.send(None, Some(line.into())),
                    }
                }
            }
        }
    }

    fn send(&self, message: Option<&RawValue>, data: Option<Raw>) {
        let written = RelayWritten { session: &self.session, message, data };
        self.outlet.send(envelope::notification("relay/write", &written));
    }
}

impl Carrier for Writer {
    fn carry(&self, message: &[u8]) {
        // What our client made is JSON without a look at it.
        self.outlet.send_parts(&[self.head.as_bytes(), message, b"}}\n"]);
    }

    fn carry_bytes(&self, bytes: &[u8]) {
        self.write(bytes);
    }
}

/// What our client writes, where it takes the stream.
pub(crate) struct Output {
    writer: Writer,
    has_ended: bool,
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writer.write(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.has_ended {
            self.has_ended = true;
            let Writer { session, outlet, .. } = &self.writer;
            outlet.send(envelope::notification("relay/end", &RelayEnded { session: session.clone() }));
        }
        Poll::Ready(Ok(()))
    }
}
