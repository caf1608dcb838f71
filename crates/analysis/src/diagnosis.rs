//! Turns the failure of a connection or a request into a diagnostic: cause, evidence, remedy. The one place for these texts, for
//! suites and one-shot commands alike.

use crate::stdout_lines::{CUT_CHARACTER, has_half_surrogate, is_blank, remedy_for_banner, remedy_for_line};
use crate::wording::{self, shortened};
use crate::{interpreter, unread};
use mcproof_client::auth::AuthorizationFailure;
use mcproof_client::jsonrpc::{Flaw, Malformed};
use mcproof_client::{
    Bound, CallFailure, Closed, ConnectFailure, Exit, Fault, HttpHead, ListFailure, Session, SseFailure, Stage, StartFailure, Tap, Target,
    TaskFailure, Unanswered, ViolationKind,
};
use mcproof_protocol::methods;
use mcproof_record::{Diagnostic, Direction, Evidence, ExchangeId, FrameBody, FrameId, Raw, Transcript, names_reason};
use mcproof_system::errors::is_exhausted;
use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

/// The number of frames and stderr lines that a diagnostic shows.
const FRAMES: usize = 8;
const STDERR: usize = 12;

/// `EACCES`.
const PERMISSION_DENIED: i32 = 13;

/// Who reads the diagnostic: decides whether a hint names keys or flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A suite: its keys.
    Suite,
    /// A test library that drives sessions: the members of its requests.
    Driver,
    /// A command line: its flags.
    CommandLine,
    /// A monitor: the keys of a target in its configuration. Readers of its pages have no command line.
    Monitor,
}

impl Audience {
    pub fn hint(self, suite: &str, driver: &str, command_line: &str) -> Option<String> {
        Some(match self {
            // Both describe servers with the same keys.
            Self::Suite | Self::Monitor => suite.to_owned(),
            Self::Driver => driver.to_owned(),
            Self::CommandLine => command_line.to_owned(),
        })
    }

    fn credentials(self, transcript: &Transcript) -> Option<String> {
        if sent_a_token(transcript) {
            let why = "the server does not accept this token: it may be expired, revoked, or made for another server";
            return Some(why.to_owned());
        }
        self.without_token(transcript)
    }

    /// The hint for a server that got no token. Some want a key in a header of their own.
    fn without_token(self, transcript: &Transcript) -> Option<String> {
        if let Some(name) = key_sent(transcript) {
            return Some(format!("the server does not accept the header `{name}` that was sent: check its value, and its name"));
        }
        self.hint(
            "send credentials: `auth: { bearer: \"${env.TOKEN}\" }`, `auth: { client_id: …, client_secret: \"${env.SECRET}\" }`, or a key in a header of its own: `headers: { X-Api-Key: \"${env.KEY}\" }`",
            "send credentials: `headers: { \"Authorization\": \"Bearer …\" }` in `target`, or a key in a header of its own such as `X-Api-Key`, and the token or key in `secrets`",
            "send a token with --bearer env:NAME, request one with --auth client-credentials, sign in on a terminal, or send a key in a header of its own: --header 'X-Api-Key: …'",
        )
    }

    /// The hint for a token that was not obtained.
    fn authorization(self, failure: &AuthorizationFailure, transcript: &Transcript) -> Option<String> {
        use AuthorizationFailure as F;
        let code = match failure {
            F::TokenRefused => return self.credentials(transcript),
            F::NoToken { code, .. } => code.as_deref(),
            F::Unsigned(_) | F::ScopesRefused { .. } | F::ScopesTooLarge { .. } | F::TooMany { .. } => None,
            F::NoClient { .. } => {
                return self.hint(
                    "register a client with the authorization server by hand, and set `client_id` in `auth`",
                    "register a client with the authorization server by hand, and set its id",
                    "register a client with the authorization server by hand, and give its ID: --client-id ID, with --client-secret env:NAME if it has one",
                );
            }
            _ => return self.without_token(transcript),
        };
        match code? {
            "invalid_client" | "unauthorized_client" => self.hint(
                "the authorization server does not accept the client: check `client_id` and `client_secret` in `auth`",
                "the authorization server does not accept the client: check its id and its secret",
                "the authorization server does not accept the client: check --client-id and --client-secret",
            ),
            "invalid_scope" => self.hint(
                "the authorization server does not accept the scopes: check `scope` in `auth`",
                "the authorization server does not accept the scopes: check those that are requested",
                "the authorization server does not accept the scopes: check --scope",
            ),
            _ => None,
        }
    }

    /// The hint for a server that is started over stdio but serves HTTP.
    pub fn serves_http(self, url: &str) -> Option<String> {
        let listening = format!("the server reports that it listens at {url}: ");
        self.hint(
            &(listening.clone() + "use `http: { command: …, url: … }` instead of `stdio`, or start the server in stdio mode"),
            &(listening.clone() + "set `url` in `target`, or start the server in stdio mode"),
            &(listening + "put the URL before the `--`, or start the server in stdio mode"),
        )
    }

    /// The hint that sets an environment variable of the server.
    fn variable(self, name: &str) -> Option<String> {
        self.hint(
            &format!("set `{name}` in `env` of the server, or for a command after `--` with -e {name}=…"),
            &format!("set `{name}` in `env` of `target`"),
            &format!("set it: -e {name}=…"),
        )
    }

    /// The hint that raises a size limit.
    fn bound(self, bound: Bound) -> Option<String> {
        let (key, flag) = match bound {
            Bound::Line => ("line", "--max-line"),
            Bound::Body => ("body", "--max-body"),
            Bound::Event => ("event", "--max-event"),
            Bound::Head => ("head", "--max-head"),
            Bound::Depth => ("depth", "--max-depth"),
            Bound::Values => ("values", "--max-values"),
        };
        self.hint(
            &format!("raise `limits: {{ {key}: … }}` if the server is expected to send that much"),
            &format!("start `mcproof drive` with a larger {flag} if the server is expected to send that much"),
            &format!("raise {flag} if the server is expected to send that much"),
        )
    }
}

/// Whether the last HTTP request had a token in it.
fn sent_a_token(transcript: &Transcript) -> bool {
    names_sent(transcript).any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// The header of the last HTTP request that is called like one with a key.
fn key_sent(transcript: &Transcript) -> Option<&str> {
    let is_of_key = |name: &&str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "auth"].into_iter().any(|part| name.contains(part)) && !name.starts_with("sec-")
    };
    names_sent(transcript).find(is_of_key)
}

/// The names of the headers of the last HTTP request.
fn names_sent(transcript: &Transcript) -> impl Iterator<Item = &str> {
    let heads = transcript.frames.iter().rev().filter_map(|frame| match &frame.body {
        FrameBody::HttpRequest { headers, .. } => Some(headers),
        _ => None,
    });
    heads.take(1).flatten().map(|(name, _)| name.as_str())
}

/// The hint for a monitor: a target has one time limit.
const LONGER: &str = "raise `timeout` of the target in the configuration if the server needs longer";

/// The remedy for a script whose interpreter is missing.
pub const NO_INTERPRETER: &str = "install the interpreter that the first line of the script names, or make the virtual environment anew: one that was moved or copied still names its old place";

/// The remedy for a script from Windows.
const CARRIAGE_RETURNS: &str = "save the script with LF at the ends of its lines: its first line ends with CR LF";

/// The remedy for output that stays in a buffer of the server.
const FLUSH: &str =
    "flush stdout after each message: what the server wrote came only when its stdin was closed (Python: `print(…, flush=True)`)";

/// Whether a server over stdio wrote its first message only when its stdin was closed, and then at once.
fn kept_back(transcript: &Transcript) -> bool {
    const AT_ONCE: Duration = Duration::from_millis(500);
    let is_message =
        |body: &FrameBody| matches!(body, FrameBody::Line { bytes, .. } if bytes.as_bytes().trim_ascii_start().starts_with(b"{"));
    let closed = transcript.frames.iter().find(|frame| matches!(&frame.body, FrameBody::Closed { pipe } if pipe == "stdin"));
    let first = transcript.frames.iter().find(|frame| frame.direction == Direction::FromServer && is_message(&frame.body));
    let (Some(closed), Some(first)) = (closed, first) else { return false };
    first.id > closed.id && first.at.saturating_sub(closed.at) < AT_ONCE
}

/// The context of a failure: what else was recorded.
pub struct Scene {
    pub transcript: Transcript,
    pub faults: Vec<Fault>,
    /// How the server's process ended, if mcproof started it and it has ended.
    pub exit: Option<Exit>,
    pub audience: Audience,
}

impl Scene {
    /// Waits briefly for the last output of a server that is exiting.
    pub async fn of(session: &Session, tap: &Tap, audience: Audience) -> Self {
        session.settle().await;
        Self { transcript: tap.transcript(), faults: session.faults(), exit: session.exit(), audience }
    }
}

/// The diagnostic of a session that could not be opened.
pub fn of_connect_failure(failure: &ConnectFailure, target: &Target, transcript: &Transcript, audience: Audience) -> Diagnostic {
    let diagnostic = connect_failure(failure, target, transcript, audience);
    match unread::of_handshake(transcript) {
        Some(remedy) => Diagnostic { hint: Some(remedy.to_owned()), ..diagnostic },
        None => diagnostic,
    }
}

fn connect_failure(failure: &ConnectFailure, target: &Target, transcript: &Transcript, audience: Audience) -> Diagnostic {
    use ConnectFailure as F;
    let by_hand = || match audience {
        // Arguments may be secrets, and messages of a monitor are read by many.
        Audience::Monitor => target.command().map(|_| "run the command of the target in a terminal to see its output".to_owned()),
        _ => target.command().map(|command| format!("run `{}` in a terminal to see its output", shell_line(command))),
    };
    let fixed = |text: &str| Some(text.to_owned());
    let flags = |flags: &str, members: &str| audience.hint(if audience == Audience::Monitor { members } else { flags }, members, flags);
    let skip_discover =
        |flag: &str| match was_requested(transcript, methods::SERVER_DISCOVER) && was_requested(transcript, methods::INITIALIZE) {
            true => format!("; {flag} skips `server/discover`, in case the server cannot handle it"),
            false => String::new(),
        };
    let slow_start = || {
        if kept_back(transcript) {
            return fixed(FLUSH);
        }
        if audience == Audience::Monitor {
            return fixed(LONGER);
        }
        audience.hint(
            &format!("raise `timeouts.connect` if the server starts slowly{}", skip_discover("`era: legacy`")),
            &format!("raise `timeouts.connect_ms` if the server starts slowly{}", skip_discover("`\"era\": \"legacy\"`")),
            &format!("watch the wire with -v, or raise --connect-timeout if the server starts slowly{}", skip_discover("--era legacy")),
        )
    };
    let (code, hint) = match failure {
        F::Start(StartFailure::NotFound { program }) if program.contains(' ') => {
            ("command-not-found", fixed("the whole command is quoted as one word: remove the quotes around it"))
        }
        F::Start(StartFailure::NotFound { program }) if program.starts_with('~') => {
            ("command-not-found", fixed("the command does not run in a shell, so `~` is not expanded: write the full path"))
        }
        F::Start(StartFailure::NotFound { program }) if interpreter(Path::new(program)).is_some() => {
            let interpreter = interpreter(Path::new(program)).unwrap_or_default();
            ("command-not-found", Some(format!("start it with its interpreter: `{interpreter} {program}`")))
        }
        F::Start(StartFailure::NotFound { program }) => {
            ("command-not-found", Some(format!("check the spelling of `{program}`, and that it is installed and on PATH")))
        }
        F::Start(StartFailure::NoInterpreter { interpreter, .. }) => {
            ("command-not-found", fixed(if interpreter.ends_with('\r') { CARRIAGE_RETURNS } else { NO_INTERPRETER }))
        }
        F::Start(StartFailure::NoFolder(_)) => (
            "no-such-folder",
            audience.hint("correct `cwd`; it is relative to the file that names it", "correct `cwd` in `target`", "correct --cwd"),
        ),
        F::Start(StartFailure::Other { program, number: Some(PERMISSION_DENIED), .. }) => (
            "server-not-started",
            Some(format!(
                "run it with its interpreter, such as `node {program}` or `python {program}`, or make it executable: chmod +x {program}"
            )),
        ),
        F::Start(StartFailure::Other { number: Some(number), .. }) if is_exhausted(*number) => {
            ("server-not-started", fixed("raise the limits of this shell (`ulimit -n`, `ulimit -u`), or run less at the same time"))
        }
        F::Start(_) => ("server-not-started", by_hand()),
        F::Exited { .. } => ("server-exited", missing_piece(transcript, |name| audience.variable(name)).or_else(by_hand)),
        F::OtherListens { .. } => (
            "address-taken",
            fixed("run it again: two programs chose the same port; where the port is fixed, stop the other process, or use `${port}`"),
        ),
        F::WrongPath { url, failure } => {
            let there = connect_failure(failure, target, transcript, audience);
            let message = format!("{}; an MCP server responds at {url}", there.message);
            return Diagnostic { message, hint: Some(format!("use the URL {url}")), ..there };
        }
        F::AddressTaken { .. } => {
            ("address-taken", fixed("stop the process that listens on this address, or use `${port}` to have mcproof choose a free port"))
        }
        F::NotListening { elsewhere, .. } if !elsewhere.is_empty() => {
            ("listens-elsewhere", fixed("pass `${port}` to the server and use it in `url`, or correct `url`"))
        }
        F::NotListening { .. } => ("server-not-listening", slow_start()),
        F::NotLocated { .. } => ("port-not-announced", fixed("check that `port_from` matches a line that the server prints")),
        F::Address(_) => ("bad-url", None),
        F::Unauthorized { .. } => ("unauthorized", access_hint(failure, transcript).or_else(|| audience.credentials(transcript))),
        F::Unanswered { failure, method, faults } => {
            let scene = Scene { transcript: transcript.clone(), faults: faults.clone(), exit: None, audience };
            let mut diagnostic = of_call_failure(failure, method, &scene);
            match failure {
                CallFailure::TimedOut { .. } if faults.is_empty() => {
                    let elsewhere = served_url(transcript).filter(|_| matches!(target, Target::Stdio(_)));
                    diagnostic.hint = elsewhere.and_then(|url| audience.serves_http(&url)).or_else(slow_start);
                }
                CallFailure::Unanswered(Unanswered::Unreachable(broken)) if target.is_over_tls() && broken.bound.is_none() => {
                    diagnostic.hint = audience.hint(
                        "check the URL; `tls: { ca: … }` sets the CA to trust, `cert` the client certificate, `proxy` the proxy",
                        "check the URL; start `mcproof drive` with --cacert to set the CA to trust, --cert for the client certificate, --proxy for the proxy",
                        "check the URL; --cacert sets the CA to trust, --cert the client certificate, --proxy the proxy",
                    );
                }
                _ => {}
            }
            return diagnostic;
        }
        F::Refused { .. } if echoes(transcript) => {
            ("handshake-refused", fixed("the command sends every message back: check that it is the one that starts the server"))
        }
        F::Refused { .. } => (
            "handshake-refused",
            flags("try another era or revision: --era, --protocol-version", "try another `era` or `protocol_version`"),
        ),
        F::BadResult { .. } => ("handshake-invalid", None),
        F::OtherVersion { found, .. } => (
            "version-mismatch",
            flags(
                &format!("request that revision: --protocol-version {found}"),
                &format!("request that revision: `\"protocol_version\": \"{found}\"`"),
            ),
        ),
        F::UnknownVersion { .. } | F::NoCommonVersion { .. } => (
            "version-mismatch",
            flags(
                "request a revision that the server supports with --protocol-version",
                "request a revision that the server supports with `protocol_version`",
            ),
        ),
        F::Sse(SseFailure::Unauthorized { failure, .. }) => ("unauthorized", audience.authorization(failure, transcript)),
        F::Sse(SseFailure::Unreachable(broken) | SseFailure::Ended(Some(broken))) if broken.bound.is_some() => {
            broken.bound.map_or(("no-event-stream", None), |bound| (code_of_bound(bound), audience.bound(bound)))
        }
        F::Sse(SseFailure::Flawed(kind)) => ("no-event-stream", kind_hint(kind).map(str::to_owned)),
        F::SseTimedOut { faults, .. } if !faults.is_empty() => {
            ("no-event-stream", faults.first().and_then(|fault| kind_hint(&fault.kind)).map(str::to_owned))
        }
        F::Sse(_) | F::SseTimedOut { .. } => ("no-event-stream", fixed("check that the URL is the event stream endpoint, usually `/sse`")),
        F::NoModernSse => {
            ("version-mismatch", flags("use the `http` transport, or drop `--era modern`", "use the `http` transport, or another `era`"))
        }
    };
    finish(Diagnostic::error(code, sentence(failure, transcript)), hint, transcript)
}

/// What a failure is, with the reason that the server gives for a refusal in its body.
pub fn sentence(failure: &ConnectFailure, transcript: &Transcript) -> String {
    let reason = failure.access_refusal().and_then(|head| reason_in_body(head, transcript));
    reason.map_or_else(|| failure.to_string(), |reason| format!("{failure}: {reason}"))
}

fn reason_in_body(head: &HttpHead, transcript: &Transcript) -> Option<String> {
    transcript.frames.iter().find_map(|frame| match &frame.body {
        FrameBody::HttpBody { exchange, bytes } if *exchange == head.exchange => wording::reason(bytes.as_bytes()),
        _ => None,
    })
}

/// The hint for a server that compares the host of the URL with a list of its own.
fn access_hint(failure: &ConnectFailure, transcript: &Transcript) -> Option<String> {
    let reason = reason_in_body(failure.access_refusal()?, transcript)?;
    let is_about_host = reason.to_lowercase().contains("host");
    is_about_host.then(|| "add the host of the URL to the hosts that the server allows, or use a URL with one of those".to_owned())
}

const UNENDED: &str =
    "the body did not end: check whether its `Content-Length` is too large, or its last chunk is missing, before you raise the timeout";

/// Whether the last response is an event stream, which may go on.
fn is_streaming(transcript: &Transcript) -> bool {
    let heads = transcript.frames.iter().rev().filter_map(|frame| match &frame.body {
        FrameBody::HttpResponse { headers, .. } => Some(headers),
        _ => None,
    });
    heads.take(1).flatten().any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.starts_with("text/event-stream"))
}

/// The diagnostic of a request without a response.
pub fn of_call_failure(failure: &CallFailure, method: &str, scene: &Scene) -> Diagnostic {
    let mut message = failure.to_string();
    if let Some(bound) = bound_of(failure) {
        return finish(Diagnostic::error(code_of_bound(bound), message), scene.audience.bound(bound), &scene.transcript);
    }
    let (code, hint) = match (failure, scene.exit.as_ref()) {
        (CallFailure::NotAnAnswer(_), _) => {
            let malformed = scene.faults.iter().rfind(|fault| matches!(fault.kind, ViolationKind::Malformed(_)));
            ("not-a-message", malformed.and_then(|fault| fault_hint(fault, &scene.transcript, scene.audience)))
        }
        (CallFailure::Lost(kind), _) => (code_of_kind(kind), kind_hint(kind).map(str::to_owned)),
        // A process that exits after the deadline of the request is not the cause.
        (CallFailure::TimedOut { stage, .. }, _) => match scene.faults.first() {
            Some(fault) => {
                message += &format!("; meanwhile {}", describe_fault(fault, &scene.transcript));
                ("no-response", fault_hint(fault, &scene.transcript, scene.audience))
            }
            None if matches!(stage, Some(Stage::Responder { bytes: 1.. })) && !is_streaming(&scene.transcript) => {
                ("no-response", Some(UNENDED.to_owned()))
            }
            None if scene.audience == Audience::Monitor => ("no-response", Some(LONGER.to_owned())),
            None => {
                let hint = scene.audience.hint(
                    "raise `timeouts.request`, or `timeout` of the step, if the server needs longer",
                    "raise `timeouts.request_ms`, or `timeout_ms` of the request, if the server needs longer",
                    "raise --timeout if the server needs longer, or watch the wire with -v",
                );
                ("no-response", hint)
            }
        },
        (CallFailure::Closed(Closed::Exited(exit)), _) | (_, Some(exit)) => {
            message = format!("{exit}, before responding to `{method}`");
            ("server-exited", missing_piece(&scene.transcript, |name| scene.audience.variable(name)))
        }
        (CallFailure::Unauthorized { failure, .. }, None) => ("unauthorized", scene.audience.authorization(failure, &scene.transcript)),
        (CallFailure::Cancelled { .. }, None) => ("canceled", None),
        (CallFailure::Closed(_), None) => ("connection-closed", None),
        (CallFailure::Unanswered(Unanswered::Unreachable(_)), None) => {
            ("server-unreachable", Some("check that the server is running and that the URL is correct".into()))
        }
        (CallFailure::Unanswered(Unanswered::Response { head, excerpt, .. }), None) => {
            let fault = scene.faults.last().filter(|fault| belongs_to(fault, head.exchange, &scene.transcript));
            if let Some(fault) = fault {
                message += &format!("; {}", describe_fault(fault, &scene.transcript));
            }
            let hint =
                fault.and_then(|fault| fault_hint(fault, &scene.transcript, scene.audience)).or_else(|| http_hint(head, excerpt, scene));
            let hint = hint.or_else(|| unread::of_events(&scene.transcript).map(str::to_owned));
            ("no-response-in-http-response", hint)
        }
    };
    finish(Diagnostic::error(code, message), hint, &scene.transcript)
}

/// The diagnostic of a list that could not be retrieved.
pub fn of_list_failure(failure: &ListFailure, method: &str, scene: &Scene) -> Diagnostic {
    let (code, hint) = match failure {
        ListFailure::Call(failure) => {
            let mut diagnostic = of_call_failure(failure, method, scene);
            let pages = pages(&scene.transcript, method);
            if matches!(failure, CallFailure::TimedOut { .. }) && pages >= MANY_PAGES {
                diagnostic.message = format!("{}, after {pages} pages, each of which leads to another one", diagnostic.message);
                diagnostic.hint = Some("leave out `nextCursor` on the last page of the list".to_owned());
            }
            return diagnostic;
        }
        ListFailure::Rpc { .. } => ("rpc-error", None),
        ListFailure::NoArray { .. } => ("invalid-result", None),
        ListFailure::RepeatedCursor { .. } | ListFailure::TooManyPages { .. } | ListFailure::TooSlow { .. } => ("endless-pages", None),
        ListFailure::TooLarge { bound, .. } => ("list-too-large", scene.audience.bound(*bound)),
    };
    finish(Diagnostic::error(code, failure.to_string()), hint, &scene.transcript)
}

/// A list of more pages that does not end in time may have no end.
const MANY_PAGES: usize = 100;

/// How many pages of a list were asked for.
fn pages(transcript: &Transcript, method: &str) -> usize {
    let asks = |body: &FrameBody| match body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpRequest { body: bytes, .. } => unread::is_request_of(bytes, method),
        _ => false,
    };
    transcript.frames.iter().filter(|frame| asks(&frame.body)).count()
}

/// The diagnostic of a call that did not become a task, or whose task did not finish.
pub fn of_task_failure(failure: &TaskFailure, method: &str, scene: &Scene) -> Diagnostic {
    use TaskFailure as F;
    let fixed = |text: &str| Some(text.to_owned());
    let (code, hint) = match failure {
        F::Call(failure) => return of_call_failure(failure, method, scene),
        F::List(failure) => return of_list_failure(failure, methods::TOOLS_LIST, scene),
        F::NotInThisRevision { .. } | F::NotDeclared { .. } | F::NotForThisTool { .. } => {
            ("tasks-not-offered", fixed("remove `task`, or use a server that offers tasks in this revision"))
        }
        F::Rpc { .. } => ("rpc-error", None),
        F::NotATask { .. } => ("not-a-task", None),
        F::NoInput { .. } => ("no-policy", fixed("set the response under `answers`")),
        F::TimedOut { .. } => ("no-response", fixed("raise `timeouts.request`, or `timeout` of the step, if the task needs longer")),
    };
    finish(Diagnostic::error(code, failure.to_string()), hint, &scene.transcript)
}

/// The size limit that a request failed on, if any.
fn bound_of(failure: &CallFailure) -> Option<Bound> {
    match failure {
        CallFailure::Closed(Closed::TooLong { .. }) => Some(Bound::Line),
        CallFailure::Closed(Closed::StreamBroken(broken))
        | CallFailure::Unanswered(Unanswered::Unreachable(broken) | Unanswered::Response { broken: Some(broken), .. }) => broken.bound,
        CallFailure::NotAnAnswer(malformed) => bound_of_malformed(&malformed.flaw),
        _ => None,
    }
}

fn bound_of_malformed(flaw: &Flaw) -> Option<Bound> {
    match flaw {
        Flaw::TooDeep(_) => Some(Bound::Depth),
        Flaw::TooManyValues(_) => Some(Bound::Values),
        _ => None,
    }
}

fn code_of_bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Line => "too-long",
        Bound::Body => "body-too-large",
        Bound::Event => "event-too-large",
        Bound::Head => "head-too-large",
        Bound::Depth => "json-too-deep",
        Bound::Values => "json-too-many-values",
    }
}

/// Whether the diagnostic of a failed request already names the invalid data that the server sent.
pub fn names_fault(diagnostic: &Diagnostic) -> bool {
    let codes = [
        "no-response",
        "no-response-in-http-response",
        "not-a-message",
        "sse-event-name",
        "sse-event-unfinished",
        "event-without-data",
        "answer-off-stream",
        "id-of-another-type",
        "event-too-large",
        "json-too-deep",
        "json-too-many-values",
    ];
    codes.contains(&diagnostic.code.as_str())
}

/// The diagnostic of something that no conforming server sends.
pub fn of_fault(fault: &Fault, transcript: &Transcript, audience: Audience) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(code_of_kind(&fault.kind), describe_fault(fault, transcript));
    diagnostic.hint = fault_hint(fault, transcript, audience);
    diagnostic.evidence(transcript.around(Some(fault.frame), FRAMES, 0))
}

fn code_of_kind(kind: &ViolationKind) -> &'static str {
    match kind {
        ViolationKind::Malformed(malformed) => bound_of_malformed(&malformed.flaw).map_or("not-a-message", code_of_bound),
        ViolationKind::UnknownId(_) => "unknown-id",
        ViolationKind::TextForNumber(_) => "id-of-another-type",
        ViolationKind::NotWaitedFor(_) => "answered-twice",
        ViolationKind::NoId(_) => "answer-without-id",
        ViolationKind::OtherEvent(_) => "sse-event-name",
        ViolationKind::UnfinishedEvent => "sse-event-unfinished",
        ViolationKind::EventWithoutData(_) => "event-without-data",
        ViolationKind::AnswerOffStream => "answer-off-stream",
        ViolationKind::OtherMediaType(_) => "other-media-type",
        ViolationKind::UnknownRevision(_) => "unknown-revision",
        ViolationKind::UnfinishedLine => "line-unfinished",
        ViolationKind::NotificationRefused { .. } => "notification-refused",
        ViolationKind::TooManyRequests { .. } => "too-many-requests",
    }
}

/// The frames up to `end`, or the last ones, and the lines of stderr that tell most.
pub fn evidence(transcript: &Transcript, end: Option<FrameId>) -> Evidence {
    transcript.around(end, FRAMES, STDERR)
}

fn finish(mut diagnostic: Diagnostic, hint: Option<String>, transcript: &Transcript) -> Diagnostic {
    diagnostic.hint = hint;
    diagnostic.evidence(evidence(transcript, None))
}

fn describe_fault(fault: &Fault, transcript: &Transcript) -> String {
    let line = line_of(fault, transcript);
    match &fault.kind {
        ViolationKind::Malformed(malformed) => match line {
            Some(line) if is_blank(line.as_bytes()) => "the server wrote an empty line on stdout".to_owned(),
            Some(line) => format!("the server wrote a line on stdout that is not an MCP message ({malformed}): {}", excerpt(&line)),
            None => format!("the server sent something that is not an MCP message: {malformed}"),
        },
        kind => format!("the server sent {kind}"),
    }
}

fn fault_hint(fault: &Fault, transcript: &Transcript, audience: Audience) -> Option<String> {
    let ViolationKind::Malformed(Malformed { flaw, .. }) = &fault.kind else { return kind_hint(&fault.kind).map(str::to_owned) };
    let line = line_of(fault, transcript);
    let of_form = match flaw {
        Flaw::NotJson(_) => bytes_of_line(fault, transcript).and_then(remedy_for_line).or_else(|| http_form(fault, transcript)),
        Flaw::NotUtf8(_) => bytes_of_line(fault, transcript).and_then(remedy_for_line),
        Flaw::NotAMessage(_) | Flaw::NotAnObject(_) => http_form(fault, transcript),
        _ => None,
    };
    if let Some(remedy) = of_form {
        return Some(remedy.to_owned());
    }
    Some(match (flaw, line) {
        (Flaw::NotUtf8(_), _) if is_gzip(fault, transcript) => {
            "the body is compressed with gzip: set `Content-Encoding: gzip`, or send it as it is".into()
        }
        (Flaw::NotUtf8(_), _) => "encode the output as UTF-8, which JSON requires".into(),
        (Flaw::ByteOrderMark, _) => "remove the byte order mark".into(),
        (Flaw::TooManyValues(_), _) => return audience.bound(Bound::Values),
        (Flaw::TooDeep(_), _) => return audience.bound(Bound::Depth),
        (Flaw::NotAMessage(_) | Flaw::NotAnObject(_), _) => return None,
        (Flaw::NotJson(_), Some(line)) if is_json_in_form(&line) => {
            "write numbers that fit a double, below 1.8e308: JSON allows more than programs read".into()
        }
        (Flaw::NotJson(_), Some(line)) if is_piece_of_json(&line) => {
            "write each message on one line: pretty-printed JSON spans several lines".into()
        }
        (Flaw::NotJson(_), Some(line)) => match banner(transcript) {
            Some(remedy) if is_blank(line.as_bytes()) || line.starts_with("> ") => remedy.into(),
            _ => "write only messages to stdout, one per line, and write logs to stderr".into(),
        },
        (Flaw::NotJson(_), None) => return None,
    })
}

/// The remedy for what a package manager printed before the server ran, if it did.
fn banner(transcript: &Transcript) -> Option<&'static str> {
    const FIRST: usize = 8;
    let lines = transcript.frames.iter().filter_map(|frame| match &frame.body {
        FrameBody::Line { bytes, .. } if frame.direction == Direction::FromServer => Some(bytes.as_bytes()),
        _ => None,
    });
    lines.take(FIRST).find_map(remedy_for_banner)
}

/// The remedy for a kind of fault, where it does not depend on the data.
fn kind_hint(kind: &ViolationKind) -> Option<&'static str> {
    Some(match kind {
        ViolationKind::Malformed(_) | ViolationKind::NotWaitedFor(_) => return None,
        ViolationKind::UnknownId(_) | ViolationKind::TextForNumber(_) | ViolationKind::NoId(_) => {
            "set the `id` of each response to that of its request, with the same type: 1 is not \"1\""
        }
        ViolationKind::OtherEvent(_) => "send messages as events without a name, or with `event: message`",
        ViolationKind::UnfinishedEvent => "end each event with a blank line (two line feeds after its `data:` line), and flush the stream",
        ViolationKind::EventWithoutData(line) if line.trim_start().starts_with(['{', '[']) => {
            "write `data: ` before the message, or respond with plain JSON and `Content-Type: application/json`"
        }
        ViolationKind::EventWithoutData(_) => {
            "begin the line with `data: `, in lowercase: the fields of an event stream are data, event, id, and retry"
        }
        ViolationKind::UnknownRevision(_) => {
            "respond to `initialize` with a revision that the client supports, preferably the one that it requests"
        }
        ViolationKind::OtherMediaType(_) => "set `Content-Type: application/json`",
        ViolationKind::AnswerOffStream => "respond to the POST with 202 and no body, and send the message on the event stream",
        ViolationKind::UnfinishedLine => "end each message with a line feed, and flush the stream",
        ViolationKind::NotificationRefused { .. } => "respond to a notification with 202 and no body",
        ViolationKind::TooManyRequests { .. } => "read the client's responses to earlier requests before sending more",
    })
}

/// The remedy for an HTTP body that does not have the format that its headers announce.
fn http_form(fault: &Fault, transcript: &Transcript) -> Option<&'static str> {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame)?;
    match &frame.body {
        FrameBody::HttpBody { bytes, .. } => remedy_for_body(bytes.as_bytes()),
        FrameBody::SseEvent { bytes, .. } if bytes.to_text().lines().any(|line| !line.is_empty() && !is_field(line)) => {
            Some("begin each line of a message with `data: `, or write the JSON on one line")
        }
        _ => None,
    }
}

/// The remedy for a body of a successful response that is not a message, where its form tells what went wrong.
pub fn remedy_for_body(body: &[u8]) -> Option<&'static str> {
    /// Beyond it, a body is not read as a tree.
    const LONGEST: usize = 1 << 20;
    if body.trim_ascii().is_empty() {
        return Some("respond to a request with a message, as `application/json` or as an event stream");
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST)]);
    if is_event_stream(&text) {
        return Some("the body is an event stream: set `Content-Type: text/event-stream`");
    }
    if is_cut_off(body) {
        return Some("the body ends in the middle of its JSON: count bytes, not characters, in `Content-Length`");
    }
    if text.trim_start().starts_with('<') {
        return Some("the body is a page, not a message: check the path of the URL, and what stands between the client and the server");
    }
    if has_half_surrogate(body) {
        return Some(CUT_CHARACTER);
    }
    let is_message = |value: &Value| value.get("jsonrpc").is_some();
    match serde_json::from_str::<Value>(&text).ok()? {
        Value::String(inner) => serde_json::from_str::<Value>(&inner)
            .ok()
            .filter(is_message)
            .map(|_| "serialize the message once: the body is a JSON text that contains it"),
        Value::Object(members) if !members.contains_key("jsonrpc") => {
            let holds = |value: &Value| match value {
                Value::String(inner) => serde_json::from_str(inner).is_ok_and(|value| is_message(&value)),
                value => is_message(value),
            };
            members.values().any(holds).then_some("send the message itself as the body: it is inside of another object")
        }
        _ => None,
    }
}

fn is_gzip(fault: &Fault, transcript: &Transcript) -> bool {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame);
    frame.is_some_and(|frame| matches!(&frame.body, FrameBody::HttpBody { bytes, .. } if bytes.as_bytes().starts_with(&[0x1f, 0x8b])))
}

fn is_cut_off(body: &[u8]) -> bool {
    !body.trim_ascii().is_empty() && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

fn is_field(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    ["", "data", "event", "id", "retry"].contains(&name)
}

/// Whether a body with another content type begins like an event stream.
fn is_event_stream(body: &str) -> bool {
    let first = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.contains(':') && is_field(first)
}

/// Whether a line is JSON, apart from what its numbers and escapes mean.
fn is_json_in_form(line: &str) -> bool {
    serde_json::from_str::<&RawValue>(line).is_ok()
}

/// Whether a line looks like part of pretty-printed JSON, and not like `[info] started`.
fn is_piece_of_json(line: &str) -> bool {
    let line = line.trim();
    match line.strip_prefix('[') {
        Some(rest) => rest.trim_start().is_empty() || rest.trim_start().starts_with(['{', '[', '"']),
        None => line.starts_with(['{', '"', '}', ']']),
    }
}

/// Whether a fault is in the response of that exchange.
fn belongs_to(fault: &Fault, exchange: ExchangeId, transcript: &Transcript) -> bool {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame);
    frame.is_some_and(|frame| match &frame.body {
        FrameBody::HttpBody { exchange: found, .. } | FrameBody::SseEvent { exchange: found, .. } => *found == exchange,
        _ => false,
    })
}

/// The text of a stdio line with a fault; `None` over HTTP.
fn line_of(fault: &Fault, transcript: &Transcript) -> Option<String> {
    bytes_of_line(fault, transcript).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn bytes_of_line<'a>(fault: &Fault, transcript: &'a Transcript) -> Option<&'a [u8]> {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame)?;
    match &frame.body {
        FrameBody::Line { bytes, .. } => Some(bytes.as_bytes()),
        _ => None,
    }
}

fn excerpt(line: &str) -> String {
    const WIDTH: usize = 80;
    format!("`{}`", shortened(line, WIDTH))
}

/// The remedy for a missing module, file, port or variable that stderr names, in the wording of common runtimes; what looks like the
/// reason goes first. `variable` returns the hint that sets a variable.
pub fn missing_piece(transcript: &Transcript, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut lines = transcript.tail(0, 40).stderr;
    lines.sort_by_key(|line| !names_reason(line));
    let after = |line: &str, mark: &str| {
        let rest = &line[line.find(mark)? + mark.len()..];
        let name: String =
            rest.trim_start_matches(['\'', '"', ' ', '`', ':']).chars().take_while(|c| !matches!(c, '\'' | '"' | '`')).collect();
        (!name.is_empty()).then_some(name)
    };
    lines.iter().find_map(|line| {
        let marks = ["Cannot find module", "Cannot find package", "No module named"];
        if let Some(module) = marks.iter().find_map(|mark| after(line, mark)) {
            return Some(match module.starts_with('/') {
                true => format!("`{module}` does not exist: check the path, and run the build step if there is one"),
                false => format!("install or build the package that provides `{module}` before starting the server"),
            });
        }
        if let Some(file) = after(line, "can't open file") {
            return Some(format!("`{file}` does not exist: check the path"));
        }
        if let Some(program) = missing_for_env(line) {
            return Some(format!("`{program}` is not on the PATH of the server: install it, or start it with its full path"));
        }
        if line.contains("EADDRINUSE") || line.contains("ddress already in use") {
            return Some("the port of the server is in use: pass `${port}` to the server, and mcproof chooses a free one".into());
        }
        variable(missing_variable(line)?)
    })
}

/// The program that `env` did not find, as GNU, BSD and `BusyBox` say it.
fn missing_for_env(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("env: ")?;
    let name = rest.strip_suffix(": No such file or directory")?;
    let name = name.strip_prefix("can't execute ").unwrap_or(name).trim_matches(['‘', '’', '\'', '"', '`']);
    let is_env = before.is_empty() || before.ends_with('/');
    (is_env && !name.is_empty() && !name.contains([' ', ':'])).then_some(name)
}

/// Whether a process returns what it reads, as `cat` does.
fn echoes(transcript: &Transcript) -> bool {
    let lines = |wanted: Direction| {
        transcript.frames.iter().filter_map(move |frame| match &frame.body {
            FrameBody::Line { bytes, .. } if frame.direction == wanted => Some(bytes.as_bytes()),
            _ => None,
        })
    };
    let Some(request) = lines(Direction::ToServer).next() else { return false };
    lines(Direction::FromServer).any(|line| line == request)
}

fn was_requested(transcript: &Transcript, method: &str) -> bool {
    let names_method = |raw: &Raw| raw.to_text().contains(&format!("\"method\":\"{method}\""));
    transcript.frames.iter().any(|frame| match &frame.body {
        FrameBody::Line { bytes, .. } => frame.direction == Direction::ToServer && names_method(bytes),
        FrameBody::HttpRequest { body, .. } => names_method(body),
        _ => false,
    })
}

/// The local URL that stderr names.
fn served_url(transcript: &Transcript) -> Option<String> {
    transcript.tail(0, 40).stderr.iter().find_map(|line| served_url_in(line))
}

/// The local URL that a line names, by itself or by its port, where the line is one of a server that starts to listen.
pub fn served_url_in(line: &str) -> Option<String> {
    static URL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"https?://(127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1?\])(:\d+)?[^\s'\x22`<>\x1b]*").expect("a pattern"));
    static PORT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:listening|running|started|serving)\b.*?(?:\bport:? (\d{2,5})|:(\d{4,5}))\b").expect("a pattern")
    });
    if let Some(url) = URL.find(line) {
        return Some(url.as_str().trim_end_matches(['.', ',', ')']).to_owned());
    }
    let found = PORT.captures(line)?;
    Some(format!("http://127.0.0.1:{}", found.get(1).or(found.get(2))?.as_str()))
}

/// The remedy for a server that never responded over stdio: it kept its messages back, or serves HTTP.
pub fn remedy_for_silence(transcript: &Transcript) -> Option<String> {
    if kept_back(transcript) {
        return Some(FLUSH.to_owned());
    }
    served_url(transcript).and_then(|url| Audience::CommandLine.serves_http(&url))
}

/// The environment variable that a line reports as missing.
fn missing_variable(line: &str) -> Option<&str> {
    const COMPLAINTS: [&str; 13] = [
        "not set",
        "required",
        "missing",
        "undefined",
        "must be",
        "must set",
        "lease set",
        "not found",
        "not defined",
        "not provided",
        "not configured",
        "need",
        "KeyError",
    ];
    let is_name = |word: &&str| word.contains('_') && word.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    // Error codes look like variables.
    let is_code = |word: &&str| word.starts_with("ERR_") || word.ends_with("NOT_FOUND");
    let complains = COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    let mut words = line.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.find(|word| is_name(word) && !is_code(word)).filter(|_| complains)
}

fn http_hint(head: &HttpHead, excerpt: &str, scene: &Scene) -> Option<String> {
    let audience = scene.audience;
    let kind = head.header("content-type").unwrap_or_default();
    Some(match head.status {
        301 | 302 | 307 | 308 => "the server redirects: use the URL in its `Location` header".into(),
        404 => "check the path of the URL; many servers listen at /mcp".into(),
        405 => {
            return audience.hint(
                "check the path of the URL; for an HTTP+SSE server, use `sse:` instead of `http:`",
                "check the path of the URL; for an HTTP+SSE server, set `\"transport\": \"sse\"`",
                "check the path of the URL; for an HTTP+SSE server, use --transport sse",
            );
        }
        501 => "check the URL: this endpoint does not accept POST".into(),
        401 => return audience.credentials(&scene.transcript),
        406 => "the server must accept requests with `Accept: application/json, text/event-stream`".into(),
        200 if !kind.starts_with("application/json") && !kind.starts_with("text/event-stream") => match excerpt {
            text if is_event_stream(text) => "the body is an event stream: set `Content-Type: text/event-stream`".into(),
            text if is_page(kind, text) => PAGE.into(),
            text if text.trim_start().starts_with('{') => "the body is JSON: set `Content-Type: application/json`".into(),
            _ => "respond with `Content-Type: application/json` or `text/event-stream`".into(),
        },
        _ => return None,
    })
}

/// The remedy for a page for people in place of a message.
pub const PAGE: &str = "this is a web page, not an MCP endpoint: check the path of the URL (many servers listen at /mcp), and whether a login page or a gateway stands before the server";

/// Whether a body is a page for people.
pub fn is_page(kind: &str, excerpt: &str) -> bool {
    let beginning = excerpt.trim_start().to_ascii_lowercase();
    kind.to_ascii_lowercase().starts_with("text/html") && beginning.starts_with('<')
        || beginning.starts_with("<!doctype html")
        || beginning.starts_with("<html")
}

/// A command, quoted for a shell.
pub fn shell_line(command: &[String]) -> String {
    shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Frame;

    #[test]
    fn the_program_that_env_misses_is_named() {
        let check = |line: &str, expected: Option<&str>| assert_eq!(missing_for_env(line), expected, "{line}");
        check("/usr/bin/env: ‘node’: No such file or directory", Some("node"));
        check("env: node: No such file or directory", Some("node"));
        check("env: can't execute 'node': No such file or directory", Some("node"));
        check("cannot read .env: x.toml: No such file or directory", None);
        check("env: fine", None);
    }

    #[test]
    fn a_page_for_people_is_known_by_its_beginning() {
        let check = |kind: &str, text: &str, expected: bool| assert_eq!(is_page(kind, text), expected, "{kind}: {text}");
        check("text/html; charset=utf-8", "\n<!DOCTYPE html><html>", true);
        check("text/plain", "<HTML><body>", true);
        check("text/html", "<div>", true);
        check("text/html", "{\"jsonrpc\":\"2.0\"}", false);
        check("text/plain", "ok", false);
    }

    #[test]
    fn a_key_that_was_sent_is_named_and_one_that_was_not_is_proposed() {
        let sent = |headers: &[&str]| {
            let headers = headers.iter().map(|name| ((*name).to_owned(), "…".to_owned())).collect();
            let (exchange, method, url, body) = (ExchangeId(1), "POST".to_owned(), "http://h/mcp".to_owned(), Raw::from(Vec::<u8>::new()));
            let body = FrameBody::HttpRequest { exchange, method, url, headers, body };
            let frame = Frame { id: FrameId(0), at: Duration::ZERO, direction: Direction::ToServer, body };
            Transcript { frames: vec![frame], dropped: 0 }
        };
        let check = |headers: &[&str], audience: Audience, expected: &str| {
            let hint = audience.credentials(&sent(headers)).unwrap();
            assert!(hint.contains(expected), "{headers:?}: {hint}");
        };
        check(&["accept", "X-Api-Key"], Audience::CommandLine, "the header `X-Api-Key` that was sent");
        check(&["accept"], Audience::CommandLine, "--header 'X-Api-Key: …'");
        check(&["accept"], Audience::Suite, "`headers: { X-Api-Key: \"${env.KEY}\" }`");
        check(&["Authorization", "X-Api-Key"], Audience::Suite, "does not accept this token");
    }

    #[test]
    fn a_token_that_was_not_issued_is_not_called_refused() {
        let url = || Box::new("https://as.example/token".parse().unwrap());
        let no_token =
            |code: Option<&str>| AuthorizationFailure::NoToken { url: url(), reason: String::new(), code: code.map(str::to_owned) };
        let check = |failure: &AuthorizationFailure, expected: Option<&str>| {
            let hint = Audience::CommandLine.authorization(failure, &Transcript::default());
            let is_it = expected.map_or(hint.is_none(), |part| hint.as_ref().is_some_and(|hint| hint.contains(part)));
            assert!(is_it, "{failure}: {hint:?}");
        };
        check(&no_token(Some("invalid_client")), Some("--client-id and --client-secret"));
        check(&no_token(Some("invalid_scope")), Some("--scope"));
        check(&no_token(Some("invalid_grant")), None);
        check(&no_token(None), None);
        check(&AuthorizationFailure::NoUser("CI is set".into()), Some("--bearer env:NAME"));
    }

    #[test]
    fn log_lines_are_distinguished_from_pieces_of_json() {
        let check = |line: &str, expected: bool| assert_eq!(is_piece_of_json(line), expected, "{line}");
        check("{", true);
        check("  \"id\": 1,", true);
        check("}, {", true);
        check("[", true);
        check("[{", true);
        check("]", true);
        check("[info] started", false);
        check("[12:30:01] ready", false);
        check("Listening", false);
    }

    #[test]
    fn a_variable_that_a_line_reports_as_missing_is_found() {
        let check = |line: &str, expected: Option<&str>| assert_eq!(missing_variable(line), expected, "{line}");
        check("Error: DATABASE_URL environment variable is required", Some("DATABASE_URL"));
        check("KeyError: 'API_KEY'", Some("API_KEY"));
        check("BRAVE_API_KEY is not set", Some("BRAVE_API_KEY"));
        check("Please set WEATHER_API_KEY", Some("WEATHER_API_KEY"));
        check("no key: DATABASE_URL not provided", Some("DATABASE_URL"));
        check("the file is missing", None);
        check("loaded MAX_SIZE", None);
        check("TypeError [ERR_INVALID_ARG_TYPE]: the argument must be a string", None);
        check("MODULE_NOT_FOUND: module not found", None);
    }

    #[test]
    fn a_missing_piece_is_found_before_a_long_usage() {
        let check = |lines: &[&str], expected: Option<&str>| {
            let flags = (0..60).map(|number| format!("      --flag-{number} string   Sets SHOP_FLAG, which is required"));
            let frames = lines.iter().map(|line| (*line).to_owned()).chain(flags).zip(0..).map(|(line, id)| Frame {
                id: FrameId(id),
                at: Duration::ZERO,
                direction: Direction::FromServer,
                body: FrameBody::Stderr { bytes: line.as_str().into() },
            });
            let transcript = Transcript { frames: frames.collect(), dropped: 0 };
            assert_eq!(missing_piece(&transcript, |name| Some(name.to_owned())).as_deref(), expected, "{lines:?}");
        };
        check(&["Error: DATABASE_URL is not set", "Usage:"], Some("DATABASE_URL"));
        check(&["starting", "Usage:"], Some("SHOP_FLAG"));
    }

    #[test]
    fn a_body_that_is_not_a_message_gets_the_remedy_for_its_form() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let twice = Value::String(message.to_owned()).to_string();
        let rows = [
            ("", Some("respond to a request")),
            ("event: message\ndata: {}\n\n", Some("text/event-stream")),
            (&message[..20], Some("Content-Length")),
            ("<!DOCTYPE html><p>", Some("a page")),
            (&twice, Some("once")),
            (&format!(r#"{{"statusCode":200,"body":{twice}}}"#), Some("inside")),
            (&format!(r#"{{"data":{message}}}"#), Some("inside")),
            (message, None),
            (r#"{"status":"ok"}"#, None),
        ];
        for (body, expected) in rows {
            let remedy = remedy_for_body(body.as_bytes());
            let is_it = expected.map_or(remedy.is_none(), |part| remedy.is_some_and(|remedy| remedy.contains(part)));
            assert!(is_it, "{body}: {remedy:?}");
        }
    }

    #[test]
    fn the_url_at_which_a_server_says_that_it_listens_is_found() {
        let check = |line: &str, expected: Option<&str>| assert_eq!(served_url_in(line).as_deref(), expected, "{line}");
        check("Server listening on http://localhost:3000", Some("http://localhost:3000"));
        check("INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)", Some("http://127.0.0.1:8000"));
        check("\x1b[32mhttp://[::1]:8080/mcp\x1b[0m.", Some("http://[::1]:8080/mcp"));
        check("MCP server running on port 3001", Some("http://127.0.0.1:3001"));
        check("listening on :8080", Some("http://127.0.0.1:8080"));
        check("server started at 12:30:45", None);
        check("see https://example.com:8080/docs", None);
        check("port 3000 is taken", None);
    }
}
