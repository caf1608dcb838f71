//! Who may come in. A token or a proxy in front of us says who somebody is; what changes something has to come from our own pages.
//! Where nobody has to log in, only this machine is served, by its own names.

use super::decisions::{Decision, is_kept_in_memory};
use super::{Peer, State};
use crate::config::{Config, Login, Secret};
use crate::moment::Moment;
use crate::role::Role;
use crate::store::StoreFailure;
use crate::store::audit::{self, AuditEvent};
use crate::worker::LONGEST_ANSWER;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SecureRandom as _;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::Duration;

/// How long a login holds.
const SESSION: Duration = Duration::from_secs(14 * 86_400);
/// What a form or a request of the API may send, and how long it may take.
const LARGEST_BODY: usize = 256 * 1024;
const BODY: Duration = Duration::from_secs(10);
/// Wrong tokens in a minute, of one client_network. A good token is not guessed, and always gets in; this tells who tries to.
const REFUSALS: u32 = 30;
/// Households whose wrong tokens are counted. Those beyond have had their share.
const COUNTED: usize = 10_000;

const SESSION_COOKIE: &str = "mcproof_session";
const VISIT_COOKIE: &str = "mcproof_visit";
/// All that a page needs is our own, and nobody may put it into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Goes into every form.
    pub(crate) seal: String,
    /// With a login that can be ended.
    pub(crate) may_leave: bool,
}

/// What pages for everybody need to know.
#[derive(Clone, Debug)]
pub(crate) struct Anonymous {
    pub(crate) seal: String,
}

/// Wrong tokens of this minute, by client_network.
#[derive(Default)]
pub(super) struct Refusals(Mutex<(i64, HashMap<IpAddr, u32>)>);

impl Refusals {
    /// Counts one more, and says whether that is too many.
    pub(super) fn count(&self, peer: Option<Peer>, now: Moment) -> bool {
        self.exceeds(peer, now, REFUSALS)
    }

    /// Counts one more of something of which there may be so many in a minute.
    pub(super) fn exceeds(&self, peer: Option<Peer>, now: Moment, most: u32) -> bool {
        let mut refusals = self.0.lock().expect("no thread panics while it holds the lock");
        let (minute, counts) = &mut *refusals;
        if *minute != now.0.div_euclid(60_000) {
            *minute = now.0.div_euclid(60_000);
            counts.clear();
        }
        let client_network = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), Peer::client_network);
        if counts.len() >= COUNTED && !counts.contains_key(&client_network) {
            return true;
        }
        let count = counts.entry(client_network).or_default();
        *count = count.saturating_add(1);
        *count > most
    }
}

/// Whether nobody has to log in.
pub fn is_open(config: &Config) -> bool {
    config.login.is_open()
}

/// Whether it is the address of a proxy that says who somebody is.
pub(super) fn is_proxy(login: &Login, address: IpAddr) -> bool {
    login.proxy.as_ref().is_some_and(|proxy| proxy.from.contains(&address))
}

/// The same in all processes of a monitor with a login; otherwise new with each start.
pub(super) fn key(config: &Config) -> hmac::Key {
    match config.login.secrets().next() {
        Some((_, _, token)) => {
            let master = hmac::Key::new(hmac::HMAC_SHA256, token.expose().as_bytes());
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&master, b"mcproof forms").as_ref())
        }
        None => hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()),
    }
}

pub(super) fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// Somebody who logged in: a cookie that proves it, and who that is. It is signed with their token, so that it ends with it, and says
/// nothing of who they are: the token does.
pub(super) fn session(config: &Config, token: &str, now: Moment) -> Option<(String, HeaderValue)> {
    let is_this = |known: &Secret| same(known.expose().as_bytes(), token.as_bytes());
    let (name, _) = config.login.whose(is_this)?;
    let claim = format!("{}.{}", (now + SESSION).0, URL_SAFE_NO_PAD.encode(random::<12>()));
    let signature = hmac::sign(&session_key(token.as_bytes()), claim.as_bytes());
    let value = format!("{claim}.{}", URL_SAFE_NO_PAD.encode(signature));
    Some((name, cookie(config, SESSION_COOKIE, &value, SESSION)))
}

/// Ends a login in this browser.
pub(super) fn no_session(config: &Config) -> HeaderValue {
    cookie(config, SESSION_COOKIE, "", Duration::ZERO)
}

/// The cookie of a login that was let in, and when it ends by itself.
pub(super) fn current(headers: &HeaderMap) -> Option<(&str, Moment)> {
    let value = cookies(headers, SESSION_COOKIE)?;
    Some((value, Moment(value.split('.').next()?.parse().ok()?)))
}

/// Lets in whom the configuration lets in, and lets only our own pages change something.
pub(super) async fn admit(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let config = state.config();
    let api = request.uri().path().starts_with("/api/") || request.uri().path() == "/metrics";
    if let Some(refusal) = refuse_host(&config, request.headers(), api) {
        return refusal;
    }
    let peer = request.extensions().get::<Peer>().copied();
    let known = match recognize(&state, &config, request.headers(), peer).await {
        Ok(known) => known,
        Err(response) => return response,
    };
    let Some(Known { name, role, by }) = known else {
        if bearer(request.headers()).is_some() && state.inner.refusals.count(peer, state.now()) {
            let network = peer.map(|peer| peer.client_network().to_string()).unwrap_or_default();
            let event = AuditEvent { who: "unknown", via: By::Bearer.word(), action: "try tokens", subject: &network };
            write_refusal(&state, peer, event, StatusCode::TOO_MANY_REQUESTS, 1).await;
            let (problem, remedy) = ("too many wrong tokens", "wait a minute, or send a valid token");
            return super::api::refuse(StatusCode::TOO_MANY_REQUESTS, "too-many", problem, remedy);
        }
        if api {
            return super::api::refuse(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "no valid token or login",
                "send `Authorization: Bearer TOKEN`",
            );
        }
        // What a form was sent to is no page to come back to.
        let back = request.uri().path_and_query().filter(|_| matches!(*request.method(), Method::GET | Method::HEAD));
        let login = back.map_or_else(|| "/login".to_owned(), |back| format!("/login?next={}", super::shown::segment(back.as_str())));
        return Redirect::to(&login).into_response();
    };
    let (seed, new_visit) = match cookies(request.headers(), SESSION_COOKIE) {
        Some(session) if by == By::Session => (session.to_owned(), false),
        _ => visit(request.headers()),
    };
    let seal = seal(&state, &seed);
    let mut request = request;
    let matched = request.extensions().get::<MatchedPath>().map_or_else(String::new, |path| path.as_str().to_owned());
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let needed = needed(&matched, is_reading);
    let mut action = if is_reading { format!("{} {matched}", request.method()) } else { action(request.method(), &matched) };
    if role < needed {
        let subject = subject(&matched, request.uri().path()).unwrap_or_default();
        let event = AuditEvent { who: &name, via: by.word(), action: &action, subject: &subject };
        write_refusal(&state, peer, event, StatusCode::FORBIDDEN, REFUSALS).await;
        let problem = format!("this requires the role `{needed}`, but {} has the role `{role}`", super::shown::plain(&name));
        return if api {
            super::api::refuse(StatusCode::FORBIDDEN, "forbidden", &problem, "use a token with that role")
        } else {
            super::pages::Fault::Refused(StatusCode::FORBIDDEN, problem).into_response()
        };
    }
    let mut entry = None;
    let is_kept = is_kept_in_memory(&matched);
    if !is_reading {
        let known = subject(&matched, request.uri().path());
        let (vouched, said) = match vouched(request, &config, by, &seal).await {
            Ok(vouched) => vouched,
            Err(response) => {
                let event = AuditEvent { who: &name, via: by.word(), action: &action, subject: known.as_deref().unwrap_or_default() };
                write_refusal(&state, peer, event, response.status(), REFUSALS).await;
                return response;
            }
        };
        request = vouched;
        action = said.tell(action);
        let subject = known.or(said.subject).unwrap_or_default();
        let id = audit::new_id(state.now());
        let event = AuditEvent { who: &name, via: by.word(), action: &action, subject: &subject };
        let written = match is_kept {
            true => state.decide(Decision::WriteDown { entry: &id, event }).await.map(drop),
            false => state.store.write_down_as(&id, &event, state.now()).await,
        };
        match written {
            Ok(()) => entry = Some((id, subject)),
            // What nobody could look up later is not done.
            Err(failure) if api => return super::api::ApiError::from(failure).into_response(),
            Err(failure) => return super::pages::Fault::from(failure).into_response(),
        }
    }
    request.extensions_mut().insert(Identity { name: name.clone(), role, seal, may_leave: by == By::Session });
    let mut response = next.run(request).await;
    if let Some((entry, subject)) = &entry {
        let status = response.status();
        let outcome = if status.is_client_error() || status.is_server_error() { format!("refused: {status}") } else { "done".to_owned() };
        let event = AuditEvent { who: &name, via: by.word(), action: &action, subject };
        // That somebody tried is written down already.
        let _ = match is_kept {
            true => state.decide(Decision::WriteOutcome { entry, event, outcome: &outcome }).await.map(|decided| decided.is_done),
            false => state.store.write_outcome(entry, &outcome).await,
        };
    }
    if new_visit && by != By::Bearer {
        response.headers_mut().append(header::SET_COOKIE, cookie(&config, VISIT_COOKIE, &seed, SESSION));
    }
    response
}

/// What is refused is written down as well, but of one client network only so often in a minute. It is refused whether that works or not.
async fn write_refusal(state: &State, peer: Option<Peer>, event: AuditEvent<'_>, status: StatusCode, most: u32) {
    let now = state.now();
    if state.inner.refused.exceeds(peer, now, most) {
        return;
    }
    let id = audit::new_id(now);
    let writing = async {
        state.store.write_down_as(&id, &event, now).await?;
        state.store.write_outcome(&id, &format!("refused: {status}")).await
    };
    let _ = tokio::time::timeout(LONGEST_ANSWER, writing).await;
}

/// What somebody has to be for what is at this path.
fn needed(matched: &str, is_reading: bool) -> Role {
    match matched {
        "/tokens" | "/tokens/{name}/remove" | "/audit" | "/api/audit" => Role::Admin,
        "/api/targets/{name}" if !is_reading => Role::Admin,
        "/logout" => Role::Viewer,
        _ if is_reading => Role::Viewer,
        _ => Role::Operator,
    }
}

/// What is done at this path, in words of the audit log.
fn action(method: &Method, matched: &str) -> String {
    let known = match (method.as_str(), matched) {
        (_, "/targets/{name}/mute" | "/api/targets/{name}/mute") => "mute",
        (_, "/targets/{name}/deploys" | "/api/targets/{name}/deploys") => "announce a deploy",
        (_, "/incidents/{id}/acknowledge" | "/api/incidents/{id}/acknowledge") => "acknowledge",
        (_, "/maintenance" | "/api/maintenance") => "announce work",
        (_, "/maintenance/{id}/end" | "/api/maintenance/{id}") => "end work",
        (_, "/silences" | "/api/silences") => "silence",
        (_, "/silences/{id}/end" | "/api/silences/{id}") => "end a silence",
        (_, "/notices" | "/api/notices") => "publish a notice",
        (_, "/notices/{id}/updates" | "/api/notices/{id}/updates") => "update a notice",
        (_, "/notices/{id}/withdraw" | "/api/notices/{id}") => "withdraw a notice",
        (_, "/tokens") => "make a token",
        (_, "/tokens/{name}/remove") => "revoke a token",
        ("POST", "/api/targets/{name}") => "add a target",
        ("PUT", "/api/targets/{name}") => "replace a target",
        ("DELETE", "/api/targets/{name}") => "remove a target",
        (_, "/logout") => "log out",
        _ => return format!("{method} {matched}"),
    };
    known.to_owned()
}

/// The part of a path that names what it is about.
fn subject(matched: &str, path: &str) -> Option<String> {
    let (_, found) = matched.split('/').zip(path.split('/')).find(|(part, _)| part.starts_with('{'))?;
    let form = format!("x={}", found.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned())
}

/// For pages that everybody may see.
pub(super) async fn greet(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let config = state.config();
    if let Some(refusal) = refuse_host(&config, request.headers(), false) {
        return refusal;
    }
    // Not of a session: it may have ended, and a browser does not send it where it comes from another site.
    let (seed, new_visit) = visit(request.headers());
    let seal = seal(&state, &seed);
    let mut request = request;
    let form = request.uri().path() == "/login";
    if request.method() == Method::POST {
        request = match vouched(request, &config, By::Session, &seal).await {
            Ok((request, _)) => request,
            Err(response) => return response,
        };
    }
    request.extensions_mut().insert(Anonymous { seal });
    let mut response = next.run(request).await;
    if new_visit && form {
        response.headers_mut().append(header::SET_COOKIE, cookie(&config, VISIT_COOKIE, &seed, SESSION));
    }
    response
}

/// What every response says to browsers.
pub(super) async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// How somebody was recognized. All but a bearer token are sent along by a browser without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Bearer,
    Session,
    Proxy,
    Loopback,
}

impl By {
    /// As the audit log says it.
    fn word(self) -> &'static str {
        match self {
            Self::Bearer => "token",
            Self::Session => "login",
            Self::Proxy => "proxy",
            Self::Loopback => "local",
        }
    }
}

struct Known {
    name: String,
    role: Role,
    by: By,
}

async fn recognize(state: &State, config: &Config, headers: &HeaderMap, peer: Option<Peer>) -> Result<Option<Known>, Response> {
    if let Some(token) = bearer(headers) {
        if let Some((name, role)) = config.login.whose(|known| same(known.expose().as_bytes(), token.as_bytes())) {
            return Ok(Some(Known { name, role, by: By::Bearer }));
        }
        return match state.store.token(token).await {
            Ok(found) => Ok(found.map(|(name, role)| Known { name, role, by: By::Bearer })),
            Err(failure) => Err(unrecognized(headers, &failure)),
        };
    }
    if let Some(proxy) = &config.login.proxy {
        let name = HeaderName::from_bytes(proxy.header.as_bytes()).ok().and_then(|header| text(headers, &header));
        if let (Some(peer), Some(name)) = (peer, name)
            && is_proxy(&config.login, peer.address())
            && !name.is_empty()
        {
            let role = config.login.users.get(name).map(|user| user.role).or(proxy.role);
            return match role {
                Some(role) => Ok(Some(Known { name: name.to_owned(), role, by: By::Proxy })),
                None => {
                    let why = format!("{} has no role here", super::shown::plain(name));
                    Err(super::pages::Fault::Refused(StatusCode::FORBIDDEN, why).into_response())
                }
            };
        }
    }
    if let Some(value) = cookies(headers, SESSION_COOKIE)
        && let Some((name, role)) = verified(&config.login, value, state.now())
    {
        match state.store.is_login_ended(value).await {
            Ok(false) => return Ok(Some(Known { name, role, by: By::Session })),
            Ok(true) => {}
            Err(failure) => return Err(unrecognized(headers, &failure)),
        }
    }
    Ok(is_open(config).then(|| Known { name: "local".to_owned(), role: Role::Admin, by: By::Loopback }))
}

/// The database knows which tokens it has made, and which logins were ended.
fn unrecognized(headers: &HeaderMap, failure: &StoreFailure) -> Response {
    const REMEDY: &str = "send `Authorization: Bearer TOKEN` with a token of `login.tokens` or `login.users` in the configuration: \
                          such tokens are valid without the database";
    let (what, is_program) = match bearer(headers) {
        Some(_) => ("token", true),
        None => ("login", text(headers, &header::ACCEPT).is_some_and(|accepted| accepted.contains("json"))),
    };
    let problem = format!("the database does not respond, so this {what} cannot be verified: {failure}");
    match is_program {
        true => super::api::refuse(StatusCode::SERVICE_UNAVAILABLE, "database", &problem, REMEDY),
        false => super::pages::Fault::Refused(StatusCode::SERVICE_UNAVAILABLE, format!("{problem}: {REMEDY}")).into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::AUTHORIZATION)?.strip_prefix("Bearer ").map(str::trim)
}

/// Whose login a cookie proves: that of the token which has signed it, whatever else it says.
fn verified(login: &Login, value: &str, now: Moment) -> Option<(String, Role)> {
    let (claim, signature) = value.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let found = login.whose(|token| hmac::verify(&session_key(token.expose().as_bytes()), claim.as_bytes(), &signature).is_ok())?;
    let until: i64 = claim.split('.').next()?.parse().ok()?;
    (now.0 < until).then_some(found)
}

fn session_key(token: &[u8]) -> hmac::Key {
    let master = hmac::Key::new(hmac::HMAC_SHA256, token);
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&master, b"mcproof session").as_ref())
}

/// A page of another name that resolves to this machine must not read what a browser on it may see.
fn refuse_host(config: &Config, headers: &HeaderMap, api: bool) -> Option<Response> {
    if !is_open(config) {
        return None;
    }
    let host = text(headers, &header::HOST).unwrap_or_default();
    let name = host_name(host);
    let own = public_host(config);
    if is_loopback_name(name) || own.as_deref() == Some(name) {
        return None;
    }
    let (problem, remedy) = ("without `login`, only loopback names are served", "open http://127.0.0.1, or set `public_url` or `login`");
    let status = StatusCode::MISDIRECTED_REQUEST;
    Some(if api {
        super::api::refuse(status, "misdirected", problem, remedy)
    } else {
        super::pages::Fault::Refused(status, format!("{problem}: {remedy}")).into_response()
    })
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Without the port.
fn host_name(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host.ends_with(']') => &host[..colon],
        _ => host,
    }
}

fn public_host(config: &Config) -> Option<String> {
    url::Url::parse(config.public_url.as_deref()?).ok()?.host_str().map(str::to_owned)
}

/// The request, if it comes from one of our own pages. Its body is read on the way.
async fn vouched(request: Request, config: &Config, by: By, seal: &str) -> Result<(Request, Said), Response> {
    let (parts, body) = request.into_parts();
    let refused = |status, problem: &str| {
        let remedy = "reload the page and try again";
        if parts.uri.path().starts_with("/api/") {
            super::api::refuse(status, "refused", problem, "send it from the dashboard, or with `Authorization: Bearer TOKEN`")
        } else {
            super::pages::Fault::Refused(status, format!("{problem}: {remedy}")).into_response()
        }
    };
    if by != By::Bearer && !is_same_origin(&parts.headers, config) {
        return Err(refused(StatusCode::FORBIDDEN, "the request comes from another site"));
    }
    let read = tokio::time::timeout(BODY, axum::body::to_bytes(body, LARGEST_BODY)).await;
    let body: Bytes = match read {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or incomplete")),
        Err(_) => return Err(refused(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    };
    if by != By::Bearer {
        let kind = text(&parts.headers, &header::CONTENT_TYPE).unwrap_or_default();
        if parts.uri.path().starts_with("/api/") {
            // No other site can make a browser send this without asking us first.
            if !kind.starts_with("application/json") && parts.method != Method::DELETE {
                let (status, problem) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not declared as JSON");
                let remedy = "send it with `content-type: application/json`, or with `Authorization: Bearer TOKEN`";
                return Err(super::api::refuse(status, "refused", problem, remedy));
            }
        } else if !url::form_urlencoded::parse(&body).any(|(name, value)| name == "seal" && same(value.as_bytes(), seal.as_bytes())) {
            return Err(refused(StatusCode::FORBIDDEN, "the form is from another page, or too old"));
        }
    }
    let said = Said::of(parts.uri.path(), &body);
    Ok((Request::from_parts(parts, Body::from(body)), said))
}

/// What a body says for the audit log: of form or JSON.
#[derive(Default)]
struct Said {
    /// The name or title of a thing, or the patterns of a silence.
    subject: Option<String>,
    minutes: Option<u64>,
}

impl Said {
    fn of(path: &str, body: &[u8]) -> Self {
        let fields: Map<String, Value> = match path.starts_with("/api/") {
            true => serde_json::from_slice(body).unwrap_or_default(),
            false => url::form_urlencoded::parse(body).map(|(name, value)| (name.into_owned(), Value::from(value))).collect(),
        };
        let texts = |key: &str| match fields.get(key) {
            Some(Value::String(text)) => vec![text.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let groups = [vec!["name"], vec!["title"], vec!["names", "tags"]].into_iter();
        let subjects = groups.map(|keys| keys.into_iter().flat_map(texts).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", "));
        let minutes = fields.get("minutes").and_then(|minutes| minutes.as_u64().or_else(|| minutes.as_str()?.parse().ok()));
        Self { subject: subjects.into_iter().find(|subject| !subject.is_empty()), minutes }
    }

    /// An action with the time that it holds.
    fn tell(&self, action: String) -> String {
        self.minutes.map_or_else(|| action.clone(), |minutes| audit::lasting(&action, Duration::from_secs(minutes.saturating_mul(60))))
    }
}

fn is_same_origin(headers: &HeaderMap, config: &Config) -> bool {
    if let Some(site) = text(headers, &HeaderName::from_static("sec-fetch-site"))
        && site != "same-origin"
    {
        return false;
    }
    let Some(origin) = text(headers, &header::ORIGIN) else { return true };
    let Ok(origin) = url::Url::parse(origin) else { return false };
    let authority = |url: &url::Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    if config.public_url.as_deref().and_then(|url| url::Url::parse(url).ok()).is_some_and(|own| authority(&own) == authority(&origin)) {
        return true;
    }
    let host = text(headers, &header::HOST).unwrap_or_default();
    let own = url::Url::parse(&format!("{}://{host}", origin.scheme()));
    own.is_ok_and(|own| authority(&own) == authority(&origin))
}

/// What the seal of forms is made from where no session was proven: a cookie of no other meaning. Says whether it is new.
fn visit(headers: &HeaderMap) -> (String, bool) {
    match cookies(headers, VISIT_COOKIE).filter(|value| !value.is_empty()) {
        Some(known) => (known.to_owned(), false),
        None => (URL_SAFE_NO_PAD.encode(random::<18>()), true),
    }
}

fn seal(state: &State, seed: &str) -> String {
    URL_SAFE_NO_PAD.encode(hmac::sign(&state.inner.key, seed.as_bytes()))
}

fn cookie(config: &Config, name: &str, value: &str, age: Duration) -> HeaderValue {
    let secure = if config.public_url.as_deref().is_some_and(|url| url.starts_with("https:")) { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", age.as_secs());
    HeaderValue::from_str(&cookie).expect("its parts are digits and Base64")
}

fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// In a time that does not depend on where they differ.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &random::<32>());
    hmac::verify(&key, other, hmac::sign(&key, one).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tokens_are_counted_for_each_household_and_minute() {
        let refusals = Refusals::default();
        let peer = |address: &str| Some(Peer(format!("{address}:80").parse().unwrap()));
        let minute = Moment(60_000);
        assert!((0..REFUSALS).all(|_| !refusals.count(peer("192.0.2.7"), minute)));
        assert!(refusals.count(peer("192.0.2.7"), minute));
        assert!(!refusals.count(peer("192.0.2.8"), minute));
        assert!(!refusals.count(peer("192.0.2.7"), Moment(120_000)));
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for (host, expected) in [
            ("localhost:7130", true),
            ("LOCALHOST", true),
            ("127.0.0.1:7130", true),
            ("[::1]:7130", true),
            ("[::1]", true),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:80", false),
            ("evil.example", false),
            ("", false),
        ] {
            assert_eq!(is_loopback_name(host_name(host)), expected, "{host}");
        }
    }

    #[test]
    fn another_origin_is_told_apart() {
        let config = Config { public_url: Some("https://watch.example".into()), ..Config::default() };
        for (host, origin, site, expected) in [
            ("127.0.0.1:7130", "http://127.0.0.1:7130", "same-origin", true),
            ("127.0.0.1:7130", "http://127.0.0.1:7131", "", false),
            ("127.0.0.1:7130", "http://evil.example", "", false),
            ("127.0.0.1:7130", "null", "", false),
            ("10.0.0.7:7130", "https://watch.example", "same-origin", true),
            ("127.0.0.1:7130", "", "cross-site", false),
            ("127.0.0.1:7130", "", "", true),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("host", host), ("origin", origin), ("sec-fetch-site", site)] {
                if !value.is_empty() {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            assert_eq!(is_same_origin(&headers, &config), expected, "{origin} {site}");
        }
    }
}
