//! Just enough HTTP to be attacked through: blocking sockets, a thread for each connection. Knows no attack.

use super::deeds::{Deed, Peer, deed};
use super::wire::{Framing, Wire};
use crate::raw_http;
use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Streamable,
    Sse,
}

/// HTTP+SSE: the event streams that bring the answers, each to what is posted to `/messages?` and its place.
type Streams = Arc<Mutex<Vec<TcpStream>>>;

pub(super) fn serve(peer: &'static Peer, port: u16, kind: Kind) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let streams = Streams::default();
    for connection in listener.incoming() {
        let (connection, streams) = (connection?, Arc::clone(&streams));
        // Ends with an error when the client goes, as it does sooner or later.
        thread::spawn(move || converse(peer, connection, kind, &streams));
    }
    Ok(())
}

fn converse(peer: &Peer, connection: TcpStream, kind: Kind, streams: &Streams) -> io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    writer.set_nodelay(true)?;
    while let Some(request) = raw_http::read(&mut reader, &mut writer)? {
        if request.method == "GET" && kind == Kind::Sse {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            write!(writer, "{head}event: endpoint\ndata: /messages?{}\n\n", streams.len())?;
            streams.push(writer.try_clone()?);
            continue;
        }
        let events = match request.target.strip_prefix("/messages?").and_then(|place| place.parse::<usize>().ok()) {
            Some(place) => streams.lock().unwrap_or_else(PoisonError::into_inner).get(place).map(TcpStream::try_clone).transpose()?,
            None => None,
        };
        if request.method != "POST" || kind == Kind::Sse && events.is_none() {
            writer.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let deed = deed(peer, &request.body);
        let mut wire = match events {
            Some(events) => Wire::new(Box::new(events), Framing::Events),
            None => Wire::new(Box::new(writer.try_clone()?), Framing::Response),
        };
        if !wire.is_response() || matches!(deed, Deed::Nothing) {
            writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")?;
        }
        match deed {
            Deed::Nothing => {}
            Deed::Answer(answer) if wire.is_response() && !answer.contains(&b'\n') => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
                wire.raw(&[head.as_bytes(), &answer].concat())?;
            }
            Deed::Answer(answer) => {
                let closes = wire.is_response();
                wire.send_all(answer.split(|byte| *byte == b'\n'))?;
                if closes {
                    return writer.shutdown(std::net::Shutdown::Write);
                }
            }
            Deed::Attack(id) => (peer.attack)(&mut wire, id)?,
        }
    }
    Ok(())
}
