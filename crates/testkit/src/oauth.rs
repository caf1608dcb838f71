//! An MCP server (`rs`) and an authorization server (`as`), on two ports, that behave as configured and record their
//! requests. In configured texts, `{rs}` and `{as}` stand for their URLs. Knows no client.

#![expect(clippy::unwrap_used, reason = "servers of tests, which fail by panicking")]

use base64::{Engine as _, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::form_urlencoded;

/// How the two servers behave.
#[derive(Clone)]
pub struct Wish {
    /// Responses to GET, by server and path.
    pub documents: Vec<(&'static str, Value)>,
    /// `WWW-Authenticate` of a 401; none if empty.
    pub challenge: &'static str,
    /// The body of a 401.
    pub refusal: &'static str,
    /// Where the authorization page redirects to; an HTML page if empty.
    pub redirect: &'static str,
    pub registration: (u16, Value),
    pub token: (u16, Value),
    /// Methods that need a scope; `*` is a different one each time.
    pub needs: Vec<(&'static str, &'static str)>,
    /// Methods that need no token.
    pub open_to_all: &'static [&'static str],
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            challenge: "",
            refusal: "",
            redirect: "{redirect_uri}?code={code}&state={state}&iss={issuer}",
            registration: (201, json!({ "client_id": "registered-at-as" })),
            token: (200, json!({ "access_token": "{access}", "token_type": "Bearer" })),
            needs: Vec::new(),
            open_to_all: &[],
        }
    }
}

/// The two servers, for as long as the runtime runs in which they were started.
pub struct OauthServers {
    shared: Arc<Shared>,
}

struct Shared {
    names: HashMap<&'static str, String>,
    state: Mutex<State>,
    seen: watch::Sender<usize>,
}

struct State {
    wish: Wish,
    log: Vec<String>,
    /// The latest value of each parameter, of a page or of a token request.
    parameters: HashMap<String, String>,
    authentication: String,
    registration: Value,
    secrets: Vec<String>,
    issued: usize,
    granted: String,
    valid: Option<String>,
    refresh: Option<String>,
    challenge: String,
    stream: Option<tokio::sync::mpsc::UnboundedSender<String>>,
}

struct Request {
    server: &'static str,
    method: String,
    path: String,
    query: String,
    headers: HashMap<String, String>,
    body: String,
}

impl OauthServers {
    /// The usual behavior, with open registration.
    pub fn usual() -> Wish {
        let resource = json!({ "resource": "{rs}/mcp", "authorization_servers": ["{as}"] });
        let server = json!({
            "issuer": "{as}",
            "authorization_endpoint": "{as}/authorize",
            "token_endpoint": "{as}/token",
            "registration_endpoint": "{as}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "private_key_jwt"],
            "authorization_response_iss_parameter_supported": true,
        });
        let documents =
            vec![("rs/.well-known/oauth-protected-resource/mcp", resource), ("as/.well-known/oauth-authorization-server", server)];
        let challenge = r#"Bearer resource_metadata="{rs}/.well-known/oauth-protected-resource/mcp""#;
        Wish { documents, challenge, ..Wish::default() }
    }

    pub async fn new(wish: Wish) -> Self {
        let resource = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authorization = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let names = HashMap::from([("rs", url(&resource)), ("as", url(&authorization))]);
        let state = State {
            wish,
            log: Vec::new(),
            parameters: HashMap::new(),
            authentication: String::new(),
            registration: Value::Null,
            secrets: Vec::new(),
            issued: 0,
            granted: String::new(),
            valid: None,
            refresh: None,
            challenge: String::new(),
            stream: None,
        };
        let shared = Arc::new(Shared { names, state: Mutex::new(state), seen: watch::Sender::new(0) });
        for (name, listener) in [("rs", resource), ("as", authorization)] {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(converse(name, stream, Arc::clone(&shared)));
                }
            });
        }
        Self { shared }
    }

    /// The MCP server names another authorization server from now on.
    pub fn migrate(&self, other: &Self, resource: &Value, server: &Value) {
        let place = other.shared.names["as"].clone();
        let moved: Value = serde_json::from_str(&resource.to_string().replace("{as}", &place)).unwrap();
        self.shared.state().wish.documents.insert(0, ("rs/.well-known/oauth-protected-resource/mcp", moved));
        let mut state = other.shared.state();
        state.wish.documents.push(("as/.well-known/oauth-authorization-server", server.clone()));
        // Tokens of the new one are valid at the old server.
        drop(state);
        let (other, here) = (Arc::clone(&other.shared), Arc::clone(&self.shared));
        let mut seen = other.seen.subscribe();
        tokio::spawn(async move {
            while seen.changed().await.is_ok() {
                let valid = other.state().valid.clone();
                if valid.is_some() {
                    here.state().valid = valid;
                }
            }
        });
    }

    /// Revokes all tokens.
    pub fn revoke(&self) {
        self.shared.state().valid = None;
    }

    pub fn forget_refresh(&self) {
        self.shared.state().refresh = None;
    }

    /// The requests to both servers, without those to the MCP endpoint.
    pub fn steps(&self) -> Vec<String> {
        self.shared.state().log.iter().filter(|step| !step.contains(" rs/mcp")).cloned().collect()
    }

    pub fn count(&self, step: &str) -> usize {
        self.shared.state().log.iter().filter(|known| known.starts_with(step)).count()
    }

    /// Waits until a request got this response.
    pub async fn until(&self, step: &str) {
        let mut seen = self.shared.seen.subscribe();
        let there = async {
            while self.count(step) == 0 {
                seen.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(5), there).await.unwrap();
    }

    pub fn last(&self, parameter: &str) -> String {
        self.shared.state().parameters.get(parameter).cloned().unwrap_or_default()
    }

    /// At the token endpoint: `Basic PAIR`, `post ID:SECRET`, or `none ID`.
    pub fn client_authentication(&self) -> String {
        self.shared.state().authentication.clone()
    }

    pub fn registered(&self) -> Value {
        self.shared.state().registration.clone()
    }

    pub fn filled(&self, text: &str) -> String {
        self.shared.filled(text)
    }

    pub fn anonymous(&self, text: &str) -> String {
        text.replace(&self.shared.names["rs"], "{rs}").replace(&self.shared.names["as"], "{as}")
    }

    /// All secrets that were exchanged.
    pub fn secrets(&self) -> Vec<String> {
        self.shared.state().secrets.clone()
    }

    /// Whether a text contains a secret, in any form in which JSON may encode it.
    pub fn tells(text: &str, secret: &str) -> bool {
        // The last is what an encoder of JSON may make of it, inside the JSON of a transcript.
        let spellings = [secret.to_owned(), form_urlencoded::byte_serialize(secret.as_bytes()).collect(), secret.replace('/', "\\\\/")];
        spellings.iter().any(|spelling| text.contains(spelling.as_str()))
    }

    /// Makes this token valid.
    pub fn accept(&self, token: &str) {
        self.shared.state().valid = Some(token.to_owned());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{rs}", &self.names["rs"]).replace("{as}", &self.names["as"])
    }

    fn respond(&self, request: &Request) -> String {
        let place = format!("{}{}", request.server, request.path);
        let answer = match (request.method.as_str(), request.path.as_str()) {
            (_, "/mcp" | "/messages") if request.server == "rs" => self.mcp(request),
            ("GET", "/authorize") => self.page(request),
            ("POST", "/register") => self.register(request),
            ("POST", "/token") => self.token(request),
            _ => {
                let state = self.state();
                match state.wish.documents.iter().find(|(known, _)| *known == place) {
                    Some((_, Value::String(page))) => response(200, &[("content-type", "text/html")], page),
                    Some((_, document)) => json_response(200, &self.filled(&document.to_string())),
                    None => response(404, &[("content-type", "text/plain")], "nothing here"),
                }
            }
        };
        let status = if request.path == "/mcp" { answer[8..12].to_owned() } else { String::new() };
        self.state().log.push(format!("{} {place}{status}", request.method));
        self.seen.send_modify(|count| *count += 1);
        answer
    }

    fn mcp(&self, request: &Request) -> String {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        let mut state = self.state();
        let token = request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let good = token.is_some() && token == state.valid.as_deref();
        if !good && !state.wish.open_to_all.contains(&method) {
            let challenge = self.filled(state.wish.challenge);
            let kind = if state.wish.refusal.starts_with('{') { "application/json" } else { "text/plain" };
            let mut headers = vec![("content-type", kind)];
            headers.extend((!challenge.is_empty()).then_some(("www-authenticate", challenge.as_str())));
            return response(401, &headers, state.wish.refusal);
        }
        let needed = state.wish.needs.iter().find(|(known, _)| *known == method).map(|(_, scope)| *scope);
        if let Some(scope) = needed.filter(|scope| !state.granted.split(' ').any(|granted| granted == *scope)) {
            let scope = if scope == "*" { format!("more{}", state.log.len()) } else { scope.to_owned() };
            let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
            return response(403, &[("www-authenticate", &challenge)], "");
        }
        if request.method == "GET" {
            let (sender, _) = tokio::sync::mpsc::unbounded_channel();
            state.stream = Some(sender);
            // What opens HTTP+SSE has no place on the stream of Streamable HTTP, which follows a POST.
            let endpoint =
                if state.log.iter().any(|step| step.starts_with("POST rs/mcp")) { ": hello" } else { "event: endpoint\ndata: /messages" };
            return format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{endpoint}\n\n");
        }
        let id = &message["id"];
        let result = match method {
            "server/discover" => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
            "initialize" => json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } }),
            _ => json!({}),
        };
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        match (&state.stream, request.path.as_str()) {
            _ if id.is_null() => response(202, &[], ""),
            (Some(_), "/messages") => {
                let sender = state.stream.take().unwrap();
                let _ = sender.send(body);
                state.stream = Some(sender);
                response(202, &[], "")
            }
            _ => json_response(200, &body),
        }
    }

    fn page(&self, request: &Request) -> String {
        let mut state = self.state();
        let query: HashMap<String, String> = form_urlencoded::parse(request.query.as_bytes()).into_owned().collect();
        assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
        state.challenge = query["code_challenge"].clone();
        state.granted = query.get("scope").cloned().unwrap_or_default().replace("withheld", "");
        state.issued += 1;
        let code = format!("code/{}", state.issued);
        state.secrets.push(code.clone());
        let code: String = form_urlencoded::byte_serialize(code.as_bytes()).collect();
        let redirect = self.filled(state.wish.redirect).replace("{code}", &code).replace("{state}", &query["state"]);
        let redirect = redirect.replace("{issuer}", &self.issuer(&state, request)).replace("{redirect_uri}", &query["redirect_uri"]);
        state.parameters = query;
        match redirect.is_empty() {
            true => response(200, &[("content-type", "text/html")], "<form>"),
            false => response(302, &[("location", &redirect)], ""),
        }
    }

    /// As the metadata has it.
    fn issuer(&self, state: &State, request: &Request) -> String {
        let of = |document: &Value| document.get("issuer").and_then(Value::as_str).map(|issuer| self.filled(issuer));
        let named = state.wish.documents.iter().find_map(|(_, document)| of(document));
        named.unwrap_or_else(|| self.names[request.server].clone())
    }

    fn register(&self, request: &Request) -> String {
        let mut state = self.state();
        state.registration = serde_json::from_str(&request.body).unwrap();
        let (status, answer) = state.wish.registration.clone();
        state.secrets.extend(answer["client_secret"].as_str().map(str::to_owned));
        json_response(status, &answer.to_string())
    }

    fn token(&self, request: &Request) -> String {
        let mut state = self.state();
        let form: HashMap<String, String> = form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
        for name in ["code_verifier", "client_secret", "client_assertion", "assertion", "refresh_token"] {
            state.secrets.extend(form.get(name).cloned());
        }
        let basic = request.headers.get("authorization").and_then(|value| value.strip_prefix("Basic "));
        state.authentication = match (basic, form.get("client_secret")) {
            (Some(pair), _) => {
                state.secrets.push(pair.to_owned());
                format!("Basic {}", String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap())
            }
            (None, Some(secret)) => format!("post {}:{secret}", form["client_id"]),
            (None, None) => format!("none {}", form["client_id"]),
        };
        let refused = |reason: &str| json_response(400, &json!({ "error": reason }).to_string());
        match form["grant_type"].as_str() {
            "authorization_code" => {
                let verified = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes())) == state.challenge;
                if !verified || form["code"] != format!("code/{}", state.issued) || form["resource"] != state.parameters["resource"] {
                    return refused("invalid_grant");
                }
            }
            "refresh_token" if state.refresh != form.get("refresh_token").cloned() => return refused("invalid_grant"),
            _ => {}
        }
        state.parameters.extend(form);
        state.issued += 1;
        let (access, refresh) = (format!("access/token-{}", state.issued), format!("refresh+token-{}", state.issued));
        let (status, template) = state.wish.token.clone();
        let code = state.parameters.get("code").cloned().unwrap_or_default();
        let mut answer = template.to_string().replace("{access}", &access).replace("{refresh}", &refresh).replace("{code}", &code);
        // As some encoders write it.
        let _ = write!(answer, " ");
        let answer = answer.replace("access/", "access\\/");
        if template["access_token"] == "{access}" {
            state.secrets.push(access.clone());
            state.valid = Some(access);
        }
        if template.get("refresh_token").is_some() {
            state.secrets.push(refresh.clone());
            state.refresh = Some(refresh);
        }
        json_response(status, &answer)
    }
}

fn json_response(status: u16, body: &str) -> String {
    response(status, &[("content-type", "application/json")], body)
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| write!(text, "{name}: {value}\r\n").unwrap());
    text + "\r\n" + body
}

async fn converse(server: &'static str, stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        let body = String::from_utf8(body).ok()?;
        let request = Request { server, method, path: path.to_owned(), query: query.to_owned(), headers, body };
        let answer = shared.respond(&request);
        stream.write_all(answer.as_bytes()).await.ok()?;
        if answer.contains("text/event-stream") {
            let (sender, mut events) = tokio::sync::mpsc::unbounded_channel::<String>();
            shared.state().stream = Some(sender);
            while let Some(event) = events.recv().await {
                stream.write_all(format!("event: message\ndata: {event}\n\n").as_bytes()).await.ok()?;
            }
            return None;
        }
    }
}

/// A private key in PEM, and its public half.
pub fn key_pair() -> (String, Vec<u8>) {
    let random = SystemRandom::new();
    let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(document.as_ref()));
    (pem, pair.public_key().as_ref().to_vec())
}

/// The claims of a JWT whose signature is right.
pub fn verified(token: &str, public: &[u8]) -> Value {
    let (signed, signed_by) = token.rsplit_once('.').unwrap();
    let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, public);
    key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signed_by).unwrap()).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap()).unwrap()
}
