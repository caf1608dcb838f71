//! Minimal HTTP for the attacks: blocking sockets, a thread for each connection. Knows no attack.

use super::attacks::{HostileServer, Reaction, reaction};
use super::wire::{Framing, Wire};
use crate::raw_http;
use mcproof_protocol::Transport;
use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// HTTP+SSE: the event streams for the responses, each to the requests that are posted to `/messages?` and its index.
type Streams = Arc<Mutex<Vec<TcpStream>>>;

pub(super) fn serve(peer: &'static HostileServer, port: u16, kind: Transport) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let streams = Streams::default();
    for connection in listener.incoming() {
        let (connection, streams) = (connection?, Arc::clone(&streams));
        // Ends with an error when the client disconnects.
        thread::spawn(move || converse(peer, connection, kind, &streams));
    }
    Ok(())
}

fn converse(peer: &HostileServer, connection: TcpStream, kind: Transport, streams: &Streams) -> io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    writer.set_nodelay(true)?;
    while let Some(request) = raw_http::read(&mut reader, &mut writer)? {
        if request.method == "GET" && kind == Transport::Sse {
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
        if request.method != "POST" || kind == Transport::Sse && events.is_none() {
            writer.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let reaction = reaction(peer, &request.body);
        let mut wire = match events {
            Some(events) => Wire::new(Box::new(events), Framing::Events),
            None => Wire::new(Box::new(writer.try_clone()?), Framing::Response),
        };
        if !wire.is_response() || matches!(reaction, Reaction::Nothing) {
            writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")?;
        }
        match reaction {
            Reaction::Nothing => {}
            Reaction::Respond(answer) if wire.is_response() && !answer.contains(&b'\n') => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
                wire.raw(&[head.as_bytes(), &answer].concat())?;
            }
            Reaction::Respond(answer) => {
                let closes = wire.is_response();
                wire.send_all(answer.split(|byte| *byte == b'\n'))?;
                if closes {
                    return writer.shutdown(std::net::Shutdown::Write);
                }
            }
            Reaction::Attack(id) => (peer.attack)(&mut wire, id)?,
        }
    }
    Ok(())
}
