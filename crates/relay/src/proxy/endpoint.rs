//! The `endpoint` event of HTTP+SSE, which tells a client where to send its messages. A relative one leads back through the proxy by
//! itself; one that is absolute and leads to the server has to name the proxy, or the client leaves it.
//! Source: 2024-11-05, basic/transports, HTTP with SSE.

use super::bodies::is_event_stream;
use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Response};
use std::net::SocketAddr;
use url::Url;

/// Bytes of a first event that are looked at. Longer ones are no `endpoint`.
const LONGEST: usize = 8 << 10;

/// The server and the proxy, as their URLs begin.
#[derive(Clone)]
pub(super) struct Origins {
    server: url::Origin,
    pub(super) server_authority: String,
    proxy: String,
}

impl Origins {
    /// `host` is what the client calls us.
    pub(super) fn new(server: &Url, host: Option<&HeaderValue>, own: SocketAddr) -> Self {
        let proxy = host.and_then(|host| host.to_str().ok()).map_or_else(|| own.to_string(), str::to_owned);
        Self {
            server: server.origin(),
            server_authority: server[url::Position::BeforeHost..url::Position::BeforePath].to_owned(),
            proxy: format!("http://{proxy}"),
        }
    }

    /// The same address at the proxy, if it is an absolute one at the server.
    fn moved(&self, address: &str) -> Option<String> {
        let url = Url::parse(address.trim()).ok()?;
        (url.origin() == self.server).then(|| format!("{}{}", self.proxy, &url[url::Position::BeforePath..]))
    }
}

/// Passes an event stream on and changes an `endpoint` event at its beginning, if it has to.
pub(super) struct EndpointRewriter {
    stage: RewriteStage,
    is_event_stream: bool,
    begun: Vec<u8>,
    origins: Origins,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RewriteStage {
    /// So far it may be an `endpoint` event.
    Looking,
    Passing,
}

impl EndpointRewriter {
    pub(super) fn for_response<B>(method: &Method, response: &Response<B>, origins: Origins) -> Self {
        let is_event_stream = is_event_stream(response.headers());
        // A stream of known length is none that a client reads its messages from.
        let looks = *method == Method::GET && is_event_stream && !response.headers().contains_key(CONTENT_LENGTH);
        let stage = if looks { RewriteStage::Looking } else { RewriteStage::Passing };
        Self { stage, is_event_stream, begun: Vec::new(), origins }
    }

    pub(super) fn is_event_stream(&self) -> bool {
        self.is_event_stream
    }

    pub(super) fn is_passive(&self) -> bool {
        self.stage == RewriteStage::Passing && self.begun.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// What of these bytes, and of those before, goes on now.
    pub(super) fn pass(&mut self, bytes: Bytes) -> Bytes {
        if self.stage == RewriteStage::Passing {
            return bytes;
        }
        self.begun.extend_from_slice(&bytes);
        if let Some(end) = end_of_event(&self.begun) {
            self.stage = RewriteStage::Passing;
            let begun = std::mem::take(&mut self.begun);
            let mut passed = rewritten(&begun[..end], &self.origins).unwrap_or_else(|| begun[..end].to_vec());
            passed.extend_from_slice(&begun[end..]);
            return passed.into();
        }
        if !may_be_endpoint(&self.begun) {
            self.stage = RewriteStage::Passing;
            return std::mem::take(&mut self.begun).into();
        }
        Bytes::new()
    }

    /// What is left when the stream ends.
    pub(super) fn rest(&mut self) -> Option<Bytes> {
        Some(std::mem::take(&mut self.begun)).filter(|rest| !rest.is_empty()).map(Bytes::from)
    }
}

/// After the blank line.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"];
    ends.iter().filter_map(|end| memchr::memmem::find(bytes, end).map(|place| place + end.len())).min()
}

/// Whether the event, which has not ended, begins like one: its name comes first, or its data, which is then an address.
fn may_be_endpoint(begun: &[u8]) -> bool {
    let begins = |prefix: &[u8]| begun.starts_with(prefix) || prefix.starts_with(begun);
    begun.len() <= LONGEST && (begins(b"event: endpoint") || begins(b"event:endpoint") || begins(b"data: http") || begins(b"data:http"))
}

fn rewritten(event: &[u8], origins: &Origins) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(event).ok()?;
    let value = |line: &str, field: &str| line.strip_prefix(field)?.strip_prefix(':').map(|rest| rest.trim().to_owned());
    text.lines().find(|line| value(line, "event").as_deref() == Some("endpoint"))?;
    let address = text.lines().find_map(|line| value(line, "data"))?;
    Some(text.replacen(&address, &origins.moved(&address)?, 1).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &[&str]) {
        let server = Url::parse("http://127.0.0.1:3000/sse").unwrap();
        let origins = Origins::new(&server, Some(&HeaderValue::from_static("localhost:9")), ([127, 0, 0, 1], 9).into());
        let response = Response::builder().header("content-type", "text/event-stream; charset=utf-8").body(()).unwrap();
        let mut rewriter = EndpointRewriter::for_response(&Method::GET, &response, origins);
        let mut passed: Vec<String> =
            pieces.iter().map(|piece| String::from_utf8(rewriter.pass(piece.as_bytes().to_vec().into()).to_vec()).unwrap()).collect();
        passed.extend(rewriter.rest().map(|rest| String::from_utf8(rest.to_vec()).unwrap()));
        assert_eq!(passed, expected, "{pieces:?}");
    }

    #[test]
    fn only_an_absolute_endpoint_at_the_server_is_moved_to_the_proxy() {
        let moved = "event: endpoint\ndata: http://localhost:9/m?s=1\n\n";
        check(&["event: endpoint\ndata: http://127.0.0.1:3000/m?s=1\n\n"], &[moved]);
        check(&["event: endp", "oint\ndata: http://127.0.0.1:3000/m?s=1\n\ndata: x\n\n"], &["", &format!("{moved}data: x\n\n")]);
        check(&["event: endpoint\r\ndata: http://127.0.0.1:3000/m\r\n\r\n"], &["event: endpoint\r\ndata: http://localhost:9/m\r\n\r\n"]);
        check(&["event: endpoint\ndata: /m?s=1\n\n"], &["event: endpoint\ndata: /m?s=1\n\n"]);
        check(&["event: endpoint\ndata: http://elsewhere:3000/m\n\n"], &["event: endpoint\ndata: http://elsewhere:3000/m\n\n"]);
    }

    #[test]
    fn nothing_else_waits() {
        check(&["data: {\"jsonrpc\"", ":\"2.0\"}"], &["data: {\"jsonrpc\"", ":\"2.0\"}"]);
        check(&[": ping", "\n\n"], &[": ping", "\n\n"]);
        check(&["event: message\n"], &["event: message\n"]);
        check(&["event: endpoint"], &["", "event: endpoint"]);
    }
}
