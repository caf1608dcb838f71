//! What the frames of an attempt to connect show, apart from its outcome.

use crate::steps::{StepId, Steps};
use mcproof_client::{ConnectionTiming, Tap, Target, is_gateway};
use mcproof_record::{Direction, ExchangeId, FrameBody, FrameId};
use serde_json::Value;

pub(crate) struct Evidence {
    /// The first line on stdout that is no message.
    pub(crate) noise: Option<(String, FrameId)>,
    /// Whether the server has said any message.
    pub(crate) has_response: bool,
    /// Whether its process has ended by itself.
    pub(crate) is_over: bool,
    /// HTTP responses: status, content type, `www-authenticate`, where it redirects to.
    pub(crate) heads: Vec<Head>,
    connections: Vec<ConnectionTiming>,
    has_process: bool,
    pub(crate) last: FrameId,
}

pub(crate) struct Head {
    exchange: ExchangeId,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    has_message: bool,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn is_html(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
    }
}

fn is_message(bytes: &[u8]) -> bool {
    let is_one = |value: &Value| value.get("jsonrpc").is_some();
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(all)) => !all.is_empty() && all.iter().all(is_one),
        Ok(value) => is_one(&value),
        Err(_) => false,
    }
}

fn beginning(text: &str) -> String {
    const MOST_CHARACTERS: usize = 80;
    let mut characters = text.trim().chars();
    let mut start: String = characters.by_ref().take(MOST_CHARACTERS).collect();
    if characters.next().is_some() {
        start.push('…');
    }
    start
}

impl Evidence {
    pub(crate) fn of(tap: &Tap) -> Self {
        let mut evidence = Self {
            noise: None,
            has_response: false,
            is_over: false,
            heads: Vec::new(),
            connections: tap.connections(),
            has_process: false,
            last: FrameId(tap.mark().0.saturating_sub(1)),
        };
        let mut is_asked_to_end = false;
        tap.look(|frames| {
            for frame in frames {
                match &frame.body {
                    FrameBody::Line { bytes, unterminated } if frame.direction == Direction::FromServer => {
                        if is_message(bytes.as_bytes()) && !unterminated {
                            evidence.has_response = true;
                        } else if evidence.noise.is_none() {
                            evidence.noise = Some((beginning(&bytes.to_text()), frame.id));
                        }
                    }
                    FrameBody::HttpResponse { exchange, status, headers } => {
                        evidence.heads.push(Head { exchange: *exchange, status: *status, headers: headers.clone(), has_message: false });
                    }
                    FrameBody::HttpBody { exchange, bytes } => evidence.told(*exchange, is_message(bytes.as_bytes())),
                    FrameBody::SseEvent { exchange, data: Some(data), .. } => evidence.told(*exchange, is_message(data.as_bytes())),
                    FrameBody::Spawned { .. } => evidence.has_process = true,
                    FrameBody::Closed { pipe } if pipe == "stdin" => is_asked_to_end = true,
                    FrameBody::Signalled { .. } => is_asked_to_end = true,
                    FrameBody::Exited { .. } => evidence.is_over = !is_asked_to_end,
                    _ => {}
                }
            }
        });
        evidence
    }

    fn told(&mut self, exchange: ExchangeId, is_message: bool) {
        if is_message {
            self.has_response = true;
            self.heads.iter_mut().filter(|head| head.exchange == exchange).for_each(|head| head.has_message = true);
        }
    }

    fn first(&self) -> Option<&ConnectionTiming> {
        self.connections.iter().find(|made| made.ready.is_some()).or_else(|| self.connections.last())
    }

    /// The head that says most: a demand for authorization, then a message, then the first one.
    pub(crate) fn telling_head(&self) -> Option<&Head> {
        let wants_authorization = self.heads.iter().find(|head| matches!(head.status, 401 | 403));
        wants_authorization.or_else(|| self.heads.iter().find(|head| head.has_message)).or_else(|| self.heads.first())
    }

    /// Which step of the way over the network failed; `None` if the server has responded with a message.
    pub(crate) fn network_step(&self, target: &Target) -> Option<StepId> {
        let Some(head) = self.telling_head() else {
            let made = self.first()?;
            let has_name = matches!(target, Target::Http { endpoint, .. } if endpoint.url.domain().is_some());
            return Some(match made {
                ConnectionTiming { tcp: None, name: None, refusal: None, .. } if has_name => StepId::Dns,
                ConnectionTiming { tcp: None, .. } => StepId::Tcp,
                ConnectionTiming { tls: None, .. } if target.is_over_tls() => StepId::Tls,
                // There is a connection, and nothing came over it.
                _ => StepId::Handshake,
            });
        };
        match head.status {
            _ if head.has_message => None,
            401 | 403 => Some(StepId::Authorization),
            405 | 406 | 415 | 421 => Some(StepId::Transport),
            404 | 410 | 300..=399 => Some(StepId::Path),
            200..=299 if head.is_html() => Some(StepId::Path),
            500..=599 => Some(StepId::Handshake),
            _ => Some(StepId::Transport),
        }
    }

    /// The session is open: how each step of the way went.
    pub(crate) fn connected(&self, target: &Target, steps: &mut Steps) {
        self.passed_before(StepId::Handshake, target, steps);
    }

    /// Those before the one that failed, of which there is evidence.
    pub(crate) fn passed_before(&self, failed: StepId, target: &Target, steps: &mut Steps) {
        let made = self.first();
        for id in steps.before(failed) {
            match id {
                StepId::Start if self.has_process && !self.is_over => steps.pass(id, "running".to_owned(), None),
                StepId::Start if self.has_process => steps.pass(id, "started".to_owned(), None),
                StepId::Dns => {
                    if let Some(name) = made.and_then(|made| made.name) {
                        steps.pass(id, host(target), Some(name));
                    } else if made.is_some_and(|made| made.tcp.is_some() || made.refusal.is_some()) {
                        steps.pass(id, host(target), None);
                    }
                }
                StepId::Tcp => {
                    if let Some(tcp) = made.and_then(|made| made.tcp) {
                        steps.pass(id, "connected".to_owned(), Some(tcp));
                    }
                }
                StepId::Tls => {
                    if let Some((made, tls)) = made.and_then(|made| Some((made, made.tls?))) {
                        let checked = if made.is_verified { "the certificate is trusted" } else { "the certificate was not checked" };
                        steps.pass(id, format!("{}, {checked}", made.tls_version.unwrap_or("TLS")), Some(tls));
                    }
                }
                StepId::Path => {
                    if let Some(head) = self.telling_head() {
                        steps.pass(id, format!("HTTP {}", head.status), None);
                    }
                }
                StepId::Authorization if self.has_response => steps.pass(id, "the server takes the requests".to_owned(), None),
                StepId::Authorization if self.telling_head().is_some_and(|head| !matches!(head.status, 401 | 403)) => {
                    steps.pass(id, "none is asked for".to_owned(), None);
                }
                _ => {}
            }
        }
    }

    /// The type of a response that has a message and that official clients refuse.
    pub(crate) fn refused_type(&self) -> Option<String> {
        let typed = self.heads.iter().filter(|head| head.has_message).map(|head| head.header("content-type").unwrap_or_default());
        let is_refused = |kind: &&str| {
            let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            !matches!(essence.as_str(), "application/json" | "text/event-stream")
        };
        typed.into_iter().find(is_refused).map(str::to_owned)
    }

    /// What is wrong, where the frames say it better than the failure.
    pub(crate) fn message(&self, step: StepId, target: &Target) -> Option<String> {
        let head = self.telling_head();
        match step {
            StepId::Stdout => self.noise.as_ref().map(|(line, _)| format!("stdout has a line that is not a message: `{line}`")),
            StepId::Dns => Some(format!("the name `{}` has no address", host(target))),
            StepId::Path => head.map(|head| match head.status {
                status @ 300..=399 => format!("HTTP {status}: redirects to {}", head.header("location").unwrap_or("nowhere")),
                status if head.is_html() && status < 300 => format!("HTTP {status}: a web page, not an MCP response"),
                status => format!("HTTP {status}: nothing is served at this path"),
            }),
            _ => None,
        }
    }

    pub(crate) fn hint(&self, step: StepId, target: &Target) -> Option<String> {
        let url = match target {
            Target::Http { endpoint, .. } => Some(&endpoint.url),
            Target::Stdio(_) => None,
        };
        match step {
            StepId::Stdout => Some("write logs to stderr: stdout belongs to the protocol".to_owned()),
            StepId::Dns => Some("check the spelling of the host, and the name servers of this machine".to_owned()),
            StepId::Path | StepId::Handshake if self.heads.is_empty() && url.is_some_and(|url| url.scheme() == "http") => {
                Some("check that an MCP server listens there; if it expects TLS, begin the URL with `https://`".to_owned())
            }
            StepId::Path if self.heads.is_empty() => {
                Some("check the host and the port of the URL: what listens there does not speak HTTP".to_owned())
            }
            StepId::Path => match url.map(url::Url::path) {
                _ if self.redirects_to(url).is_some() => self.redirects_to(url).map(|to| format!("use the URL that it redirects to: {to}")),
                Some("/" | "") => Some("add the path of the MCP endpoint, often `/mcp` or `/sse`".to_owned()),
                _ => Some("check the path of the URL: the MCP endpoint is often `/mcp` or `/sse`".to_owned()),
            },
            StepId::Handshake => match self.telling_head().filter(|head| !head.has_message).map(|head| head.status) {
                Some(status) if is_gateway(status) => Some(format!(
                    "HTTP {status} is the response of a proxy or a gateway: check that the server behind it runs, and where the requests are passed on to"
                )),
                Some(500..=599) => Some("the fault is in the server: read its log, at the time of this request".to_owned()),
                _ => None,
            },
            _ => None,
        }
    }

    fn redirects_to(&self, url: Option<&url::Url>) -> Option<url::Url> {
        let head = self.telling_head().filter(|head| (300..400).contains(&head.status))?;
        url?.join(head.header("location")?).ok()
    }
}

fn host(target: &Target) -> String {
    match target {
        Target::Http { endpoint, .. } => endpoint.url.host_str().unwrap_or_default().to_owned(),
        Target::Stdio(_) => String::new(),
    }
}
