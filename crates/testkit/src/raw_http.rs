//! Reads HTTP/1.1 requests from a blocking socket, for servers that no HTTP library can implement, because they are wrong on purpose.
//! Knows no MCP.

use std::io::{self, BufRead, Read as _, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The largest head, in bytes.
const LARGEST_HEAD: u64 = 64 << 10;
/// The largest body, in bytes.
const LARGEST_BODY: u64 = 64 << 20;

/// A request as received; values of headers are not trimmed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of the first header of that name, whatever its case, without the blanks around it (RFC 9110, 5.1 and 5.5).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim_matches([' ', '\t']))
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether the client wants the connection to end with this request.
    pub(crate) fn is_last(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The next request; `None` when the client has closed the connection.
///
/// # Errors
/// The connection broke, or, as `InvalidData`, the bytes are not a request.
pub(crate) fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Option<Request>> {
    read_up_to_pause(reader, writer, None)
}

/// The same with a body that ends at the first pause of this connection, if there is one.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_up_to_pause(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    connection: Option<&TcpStream>,
) -> io::Result<Option<Request>> {
    let mut head = reader.by_ref().take(LARGEST_HEAD);
    let first = line(&mut head)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Err(invalid("no request line"));
    };
    let mut request = Request { method, target, ..Request::default() };
    loop {
        let line = line(&mut head)?;
        match line.trim_end_matches(['\r', '\n']) {
            "" if line.is_empty() => return Err(invalid("the head ends early")),
            "" => break,
            header => {
                let (name, value) = header.split_once(':').ok_or_else(|| invalid("a header without a colon"))?;
                request.headers.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = match request.header("transfer-encoding") {
        Some(_) => chunks(reader)?,
        None => {
            let length = request.header("content-length").unwrap_or("0").parse().map_err(|_| invalid("no length"))?;
            match connection {
                Some(connection) => body_up_to_pause(reader, length, connection)?,
                None => body(reader, length)?,
            }
        }
    };
    Ok(Some(request))
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    String::from_utf8(line).map_err(|_| invalid("the head is no UTF-8"))
}

fn body(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > LARGEST_BODY {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = Vec::new();
    if reader.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

/// Shorter than the pause between two segments.
const PAUSE: Duration = Duration::from_millis(20);

fn body_up_to_pause(reader: &mut impl BufRead, length: u64, connection: &TcpStream) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    connection.set_read_timeout(Some(PAUSE))?;
    // What has come is there, whether the rest comes or not.
    let read = reader.take(length).read_to_end(&mut body);
    connection.set_read_timeout(None)?;
    match read {
        Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(error),
        _ => Ok(body),
    }
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("no size of a chunk"))?;
        if all.len() as u64 + size > LARGEST_BODY {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        all.extend(body(reader, size)?);
        // What ends a chunk, or the (empty) trailer.
        line(reader)?;
        if size == 0 {
            return Ok(all);
        }
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
