//! HTTP exchanges with whatever origins a flow leads to: through the tap, one after another, with no redirect followed.

use super::authorization_failure::AuthorizationFailure;
use super::flow::{FlowControl, FlowEvent, FlowRequest, FlowStep};
use super::secret_finder;
use crate::Tap;
use crate::session::Headers;
use crate::transport::{Endpoint, Exchanger, HttpHead, Limits, Network, Repeat};
use hyper::Method;
use mcproof_record::duration::readable;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

pub(super) struct Web {
    limits: Limits,
    network: Network,
    tap: Tap,
    /// Sent with requests for metadata (2025-03-26, authorization, server metadata discovery headers).
    version: String,
    control: Option<Arc<dyn FlowControl>>,
    exchangers: Mutex<HashMap<String, Arc<Exchanger>>>,
    /// For each request, from the connection to the end of its response.
    patience: Duration,
    /// The request whose response is awaited, or was when the whole flow ran out of time.
    awaited: Mutex<Option<Url>>,
}

/// A user may take minutes; a server that does not respond for this long is told.
const PATIENCE: Duration = Duration::from_secs(30);

/// A response, read to its end.
pub(super) struct WebResponse {
    pub(super) head: Arc<HttpHead>,
    body: Vec<u8>,
}

/// Parameters of a form or a query, in order.
pub(super) type Form = Vec<(&'static str, String)>;

impl Web {
    pub(super) fn new(limits: Limits, network: Network, tap: &Tap, version: String, control: Option<Arc<dyn FlowControl>>) -> Self {
        let tap = tap.finding(secret_finder::secrets);
        Self { limits, network, tap, version, control, exchangers: Mutex::default(), patience: PATIENCE, awaited: Mutex::default() }
    }

    /// Waits no longer than this for each response.
    pub(super) fn limit_patience(&mut self, most: Duration) {
        self.patience = self.patience.min(most);
    }

    /// The request without a response that a flow was given up at.
    pub(super) fn awaited(&self) -> Option<Box<Url>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).clone().map(Box::new)
    }

    fn set_awaited(&self, url: Option<Url>) {
        *self.awaited.lock().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// Fetches a metadata document.
    pub(super) async fn metadata(&self, step: FlowStep, url: &Url) -> Result<WebResponse, AuthorizationFailure> {
        let headers = vec![("accept".to_owned(), "application/json".to_owned()), ("mcp-protocol-version".to_owned(), self.version.clone())];
        self.exchange(step, Method::GET, url, headers, Vec::new()).await
    }

    /// Opens a page as a browser would.
    pub(super) async fn page(&self, url: &Url) -> Result<WebResponse, AuthorizationFailure> {
        let headers = vec![("accept".to_owned(), "text/html, */*".to_owned())];
        self.exchange(FlowStep::Consent, Method::GET, url, headers, Vec::new()).await
    }

    pub(super) async fn post_form(
        &self,
        step: FlowStep,
        url: &Url,
        mut headers: Headers,
        form: &Form,
    ) -> Result<WebResponse, AuthorizationFailure> {
        headers.push(("accept".to_owned(), "application/json".to_owned()));
        headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.exchange(step, Method::POST, url, headers, body.into_bytes()).await
    }

    pub(super) async fn post_json(&self, step: FlowStep, url: &Url, document: &Value) -> Result<WebResponse, AuthorizationFailure> {
        let json = "application/json".to_owned();
        let headers = vec![("accept".to_owned(), json.clone()), ("content-type".to_owned(), json)];
        self.exchange(step, Method::POST, url, headers, document.to_string().into_bytes()).await
    }

    /// Hides a value that we are about to send.
    pub(super) fn keep_secret(&self, secret: &str) {
        self.tap.keep_secret(secret);
    }

    /// What a server said, for a sentence that people read.
    pub(super) fn redacted(&self, text: String) -> String {
        self.tap.redacted(text)
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        self.tap.note(text);
    }

    /// Tells who goes through the flow what happens in it.
    pub(super) fn tell(&self, event: FlowEvent<'_>) {
        if let Some(control) = &self.control {
            control.tell(event);
        }
    }

    async fn exchange(
        &self,
        step: FlowStep,
        method: Method,
        url: &Url,
        headers: Headers,
        body: Vec<u8>,
    ) -> Result<WebResponse, AuthorizationFailure> {
        if let Some(control) = &self.control {
            let approved = control.approve(FlowRequest { step, method: method.as_str(), url }).await;
            approved.map_err(|reason| AuthorizationFailure::Stopped { url: Box::new(plain(url)), reason })?;
        }
        self.set_awaited(Some(plain(url)));
        let exchanged = timeout(self.patience, self.exchange_at_once(method, url, headers, body)).await;
        self.set_awaited(None);
        let exchanged = exchanged.unwrap_or_else(|_| {
            let reason = format!("no response within {}", readable(self.patience));
            Err(AuthorizationFailure::Unreachable { url: Box::new(plain(url)), reason })
        });
        match &exchanged {
            Ok(response) => self.tell(FlowEvent::Answered { status: response.status() }),
            Err(failure) => self.tell(FlowEvent::Unanswered { reason: &failure.to_string() }),
        }
        exchanged
    }

    async fn exchange_at_once(
        &self,
        method: Method,
        url: &Url,
        headers: Headers,
        body: Vec<u8>,
    ) -> Result<WebResponse, AuthorizationFailure> {
        let unreachable = |reason: String| AuthorizationFailure::Unreachable { url: Box::new(plain(url)), reason };
        let exchanger = self.exchanger(url).map_err(unreachable)?;
        // A code and a refresh token count once.
        let repeat = if method == Method::GET { Repeat::Once } else { Repeat::Never };
        let (exchange, _, prepared) = exchanger.prepare(method, url, &headers, body, repeat);
        self.tell(FlowEvent::Sent { exchange });
        let opened = exchanger.open(exchange, prepared.map_err(unreachable)?).await;
        let open = opened.map_err(|broken| unreachable(broken.to_string()))?;
        let head = Arc::clone(&open.head);
        match exchanger.body(open).await {
            (body, None, _) => Ok(WebResponse { head, body: body.as_bytes().to_vec() }),
            (_, Some(broken), _) => Err(unreachable(format!("the response broke off: {broken}"))),
        }
    }

    fn exchanger(&self, url: &Url) -> Result<Arc<Exchanger>, String> {
        let mut exchangers = self.exchangers.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = url.origin().ascii_serialization();
        if let Some(known) = exchangers.get(&origin) {
            return Ok(Arc::clone(known));
        }
        let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
        let made = Arc::new(Exchanger::new(&endpoint, self.limits, &self.network, &self.tap).map_err(|failure| failure.to_string())?);
        exchangers.insert(origin, Arc::clone(&made));
        Ok(made)
    }
}

impl WebResponse {
    pub(super) fn status(&self) -> u16 {
        self.head.status
    }

    /// The body, if it is a JSON object.
    pub(super) fn object(&self) -> Option<serde_json::Map<String, Value>> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The code of an OAuth error response, such as `invalid_client` (RFC 6749, 5.2).
    pub(super) fn error_code(&self) -> Option<String> {
        self.object()?.get("error")?.as_str().map(str::to_owned)
    }

    /// Whether it is a web page, for people.
    pub(super) fn is_page(&self) -> bool {
        self.head.header("content-type").is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"))
    }

    /// What an OAuth error response says (RFC 6749, 5.2; RFC 7591, 3.2.2), or else what came.
    pub(super) fn complaint(&self) -> String {
        let text = |name: &str| self.object().and_then(|object| Some(object.get(name)?.as_str()?.to_owned()));
        match (text("error"), text("error_description")) {
            (Some(error), Some(description)) => format!("`{error}`: {description}"),
            (Some(error), None) => format!("`{error}`"),
            (None, _) => format!("status {}, {}", self.status(), self.head.header("content-type").unwrap_or("no content type")),
        }
    }
}

/// Without query and fragment, which hold what is nobody's business.
pub(super) fn plain(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url
}
