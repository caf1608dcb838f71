//! The loopback listener for the redirect of the browser. Knows a little HTTP and the `state` that it expects, but no other OAuth.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Host, Url};

/// Where to come back to, unless the user says: any free port (RFC 8252, 7.3).
const USUAL: &str = "http://127.0.0.1:0/callback";

/// A bound address, and the URL that leads to it.
pub(super) struct Callback {
    listener: TcpListener,
    pub(super) url: Url,
}

/// What the user reads in the browser when they have come back.
#[derive(Clone, Copy)]
pub(super) struct ReturnTexts {
    pub(super) accepted: &'static str,
    pub(super) refused: &'static str,
}

/// # Errors
/// Says what a callback URL looks like.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("no URL: {error}"))?;
    match address(&url) {
        // The code comes over plain HTTP, so it must not leave this machine.
        None => Err("expected http:// on localhost, 127.0.0.1 or [::1]; from another machine, forward the port".into()),
        Some(_) if url.query().is_some() || url.fragment().is_some() => Err("query and fragment are not allowed".into()),
        Some(_) => Ok(url),
    }
}

pub(super) fn usual() -> Url {
    Url::parse(USUAL).expect("the usual callback is a URL")
}

fn address(url: &Url) -> Option<SocketAddr> {
    let ip = match url.host()? {
        Host::Domain("localhost") => Ipv4Addr::LOCALHOST.into(),
        Host::Domain(_) => return None,
        Host::Ipv4(ip) => ip.into(),
        Host::Ipv6(ip) => std::net::IpAddr::from(ip),
    };
    (url.scheme() == "http" && ip.is_loopback()).then(|| SocketAddr::new(ip, url.port_or_known_default().unwrap_or(80)))
}

impl Callback {
    /// # Errors
    /// The address is taken, or not to be had.
    pub(super) fn bind(wanted: &Url) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot listen at {wanted}: {error}");
        let address = address(wanted).ok_or_else(|| format!("{wanted} is not on this machine"))?;
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let mut url = wanted.clone();
        let port = listener.local_addr().map_err(failed)?.port();
        url.set_port(Some(port)).map_err(|()| format!("{wanted} cannot have a port"))?;
        Ok(Self { listener, url })
    }

    /// Waits for the one request that brings `state` back, and gives its URL. The caller sets the deadline.
    pub(super) async fn arrival(&self, state: &str, texts: ReturnTexts) -> io::Result<Url> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let (arrive, mut arrived) = mpsc::channel(1);
        // Browsers open connections in advance and ask for icons: none of that may keep the one that counts waiting.
        let mut conversations = JoinSet::new();
        loop {
            tokio::select! {
                Some(url) = arrived.recv() => return Ok(url),
                accepted = listener.accept(), if conversations.len() < MOST_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    let (base, state, arrive) = (self.url.clone(), state.to_owned(), arrive.clone());
                    conversations.spawn(async move {
                        if let Ok(Ok(Some(url))) = timeout(PATIENCE, converse(stream, &base, &state, texts)).await {
                            // The second of two would find the channel full, or closed.
                            let _ = arrive.try_send(url);
                        }
                    });
                }
                Some(_) = conversations.join_next() => {}
            }
        }
    }
}

const MOST_CONNECTIONS: usize = 32;
/// For one connection to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// A request line with a long code in it, and the headers of a browser.
const LONGEST_HEAD: u64 = 64 << 10;

/// Answers one request; gives its URL if it is the one that is waited for.
async fn converse(mut stream: TcpStream, base: &Url, state: &str, texts: ReturnTexts) -> io::Result<Option<Url>> {
    let mut head = Vec::new();
    let mut bytes = (&mut stream).take(LONGEST_HEAD);
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if bytes.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let url = base.join(target).ok().filter(|url| url.origin() == base.origin() && url.path() == base.path());
    let parameter = |url: &Url, wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    let (status, text, arrival) = match (method, url) {
        ("GET", Some(url)) => match parameter(&url, "state") {
            Some(found) if found == state => match parameter(&url, "error") {
                None => ("200 OK", texts.accepted, Some(url)),
                Some(_) => ("200 OK", texts.refused, Some(url)),
            },
            _ => ("400 Bad Request", "Unknown authorization response.", None),
        },
        ("GET", None) => ("404 Not Found", "Not found.", None),
        _ => ("405 Method Not Allowed", "Only GET is allowed.", None),
    };
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>mcproof</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(arrival)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_stays_on_this_machine() {
        let check = |text: &str, good: bool| assert_eq!(parse(text).is_ok(), good, "{text}");
        check(USUAL, true);
        check("http://localhost:6276/oauth/callback", true);
        check("http://[::1]:8080/", true);
        check("http://127.1.2.3/", true);
        check("https://localhost:1/", false);
        check("http://localhost.example:1/", false);
        check("http://10.0.0.1:1/", false);
        check("http://0.0.0.0:1/", false);
        check("http://localhost:1/?a=b", false);
        check("http://localhost:1/#a", false);
        check("localhost:1", false);
    }

    async fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_the_answer_to_our_question_arrives() {
        let callback = Callback::bind(&usual()).unwrap();
        let port = callback.url.port().unwrap();
        let asking = async {
            // One that says nothing holds nobody up.
            let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            let mut seen = Vec::new();
            for request in [
                "POST /callback?state=s&code=c",
                "GET /favicon.ico",
                "GET /callback?code=x",
                "GET /callback?code=x&state=other",
                "GET //evil.example/callback?state=s",
                "GET /callback?state=s&code=c",
            ] {
                let answer = ask(port, &format!("{request} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
                seen.push(answer.split(' ').nth(1).unwrap().to_owned());
            }
            seen
        };
        let (arrival, seen) = tokio::join!(callback.arrival("s", ReturnTexts { accepted: "in", refused: "out" }), asking);
        assert_eq!(seen, ["405", "404", "400", "400", "404", "200"]);
        assert_eq!(arrival.unwrap().as_str(), format!("http://127.0.0.1:{port}/callback?state=s&code=c"));
    }
}
