//! Turns what went wrong with a server into a diagnosis: named cause, evidence, next step. The one place where these
//! sentences live, for suites and one-shot commands alike.

use crate::wording::shortened;
use mcproof_client::jsonrpc::{Flaw, Malformed};
use mcproof_client::{
    Bound, CallFailure, Closed, ConnectFailure, Exit, Fault, FaultKind, HttpHead, ListFailure, Session, SseFailure, StartFailure, Tap,
    Target, TaskFailure, Unanswered,
};
use mcproof_record::{Diagnostic, Direction, Evidence, ExchangeId, FrameBody, FrameId, Raw, Transcript};

/// Frames and stderr lines that a diagnosis shows.
const FRAMES: usize = 8;
const STDERR: usize = 12;

/// As the system numbers it (`EACCES`).
const PERMISSION_DENIED: i32 = 13;

/// Whose words a next step has to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A suite: its keys.
    Suite,
    /// A test library that drives sessions: the members of its requests.
    Driver,
    /// A command line: its flags.
    CommandLine,
    /// A monitor: the keys of a target in its configuration. Whoever reads its pages has no command line.
    Monitor,
}

impl Asker {
    pub fn says(self, suite: &str, driver: &str, command_line: &str) -> Option<String> {
        Some(match self {
            // Servers are written alike in both.
            Self::Suite | Self::Monitor => suite.to_owned(),
            Self::Driver => driver.to_owned(),
            Self::CommandLine => command_line.to_owned(),
        })
    }

    fn credentials(self) -> Option<String> {
        self.says(
            "send credentials: `auth: { bearer: \"${env.TOKEN}\" }`, or `auth: { client_id: …, client_secret: \"${env.SECRET}\" }`",
            "send credentials: `headers: { \"Authorization\": \"Bearer …\" }` in `target`, and the token in `secrets`",
            "send a token with --bearer env:NAME, get one for a machine with --auth client-credentials, or sign in on a terminal",
        )
    }

    /// What to do with a server that was started over stdio, and serves HTTP.
    fn serves_http(self, url: &str) -> Option<String> {
        let it = format!("it says that it serves {url}: ");
        self.says(
            &(it.clone() + "test it with `http: { command: …, url: … }` in place of `stdio`, or start it without HTTP"),
            &(it.clone() + "reach it with `url` in `target`, or start it without HTTP"),
            &(it + "name the URL before the `--`, or start it without HTTP"),
        )
    }

    /// How to set a variable of the server.
    fn variable(self, name: &str) -> Option<String> {
        self.says(
            &format!("set `{name}` in `env` of the server"),
            &format!("set `{name}` in `env` of `target`"),
            &format!("set it: -e {name}=…"),
        )
    }

    /// How to let more pass.
    fn bound(self, bound: Bound) -> Option<String> {
        let (key, flag) = match bound {
            Bound::Line => ("line", "--max-line"),
            Bound::Body => ("body", "--max-body"),
            Bound::Event => ("event", "--max-event"),
            Bound::Head => ("head", "--max-head"),
            Bound::Depth => ("depth", "--max-depth"),
            Bound::Values => ("values", "--max-values"),
        };
        self.says(
            &format!("raise `limits: {{ {key}: … }}` if the server may send so much"),
            &format!("start `mcproof drive` with a larger {flag} if the server may send so much"),
            &format!("raise {flag} if the server may send so much"),
        )
    }
}

/// The one time limit that a target has.
const LONGER: &str = "give the target a longer `timeout` in the configuration if the server needs so long";

/// What is known besides the failure itself.
pub struct Scene {
    pub transcript: Transcript,
    pub faults: Vec<Fault>,
    /// How the server's process ended, if we started it and it has.
    pub exit: Option<Exit>,
    pub asker: Asker,
}

impl Scene {
    /// Waits shortly for the last words of a server that is dying.
    pub async fn of(session: &Session, tap: &Tap, asker: Asker) -> Self {
        session.settle().await;
        Self { transcript: tap.transcript(), faults: session.faults(), exit: session.exit(), asker }
    }
}

/// Why no session could be opened.
pub fn of_connect_failure(failure: &ConnectFailure, target: &Target, transcript: &Transcript, asker: Asker) -> Diagnostic {
    use ConnectFailure as F;
    let by_hand = || target.command().map(|command| format!("run `{}` by hand to see what it prints", shell_line(command)));
    let own = |text: &str| Some(text.to_owned());
    let flags = |flags: &str, members: &str| asker.says(if asker == Asker::Monitor { members } else { flags }, members, flags);
    let spared = |flag: &str| match was_asked(transcript, "server/discover") && was_asked(transcript, "initialize") {
        true => format!("; {flag} leaves out the question for the modern era, in case that is what it does not bear"),
        false => String::new(),
    };
    let slow_start = || {
        if asker == Asker::Monitor {
            return own(LONGER);
        }
        asker.says(
            &format!("raise `timeouts.connect` if the server starts slowly{}", spared("`era: legacy`")),
            &format!("raise `timeouts.connect_ms` if the server starts slowly{}", spared("`\"era\": \"legacy\"`")),
            &format!("watch the wire with -v, or raise --connect-timeout if the server starts slowly{}", spared("--era legacy")),
        )
    };
    let (code, hint) = match failure {
        F::Start(StartFailure::NotFound { program }) if program.contains(' ') => {
            ("command-not-found", own("the whole command is one word: leave out the quotes around it"))
        }
        F::Start(StartFailure::NotFound { program }) if program.starts_with('~') => {
            ("command-not-found", own("no shell reads the command, so `~` is no folder: write the whole path"))
        }
        F::Start(StartFailure::NotFound { program }) => (
            "command-not-found",
            Some(format!("check the spelling of `{program}`, and that it is installed and on the PATH of this shell")),
        ),
        F::Start(StartFailure::NoFolder(_)) => (
            "no-such-folder",
            asker.says("correct `cwd`; it is relative to the file that names it", "correct `cwd` in `target`", "correct --cwd"),
        ),
        F::Start(StartFailure::Other { program, number: Some(PERMISSION_DENIED), .. }) => (
            "server-not-started",
            Some(format!("name what runs it, such as `node {program}` or `python {program}`, or make it executable: chmod +x {program}")),
        ),
        F::Start(_) => ("server-not-started", by_hand()),
        F::Exited { .. } => {
            let turns = if asker == Asker::Suite { "; one that cannot run twice at the same time needs --jobs 1" } else { "" };
            let hint = missing_piece(transcript, |name| asker.variable(name)).or_else(by_hand);
            ("server-exited", hint.map(|hint| hint + turns))
        }
        F::AddressTaken { .. } => {
            ("address-taken", own("end the process that listens there, or let mcproof choose a free port with `${port}`"))
        }
        F::NotListening { elsewhere, .. } if !elsewhere.is_empty() => {
            ("listens-elsewhere", own("pass `${port}` to the server and use it in `url`, or correct `url`"))
        }
        F::NotListening { .. } => ("server-not-listening", slow_start()),
        F::NotLocated { .. } => ("port-not-announced", own("check `port_from` against the lines that the server prints")),
        F::Address(_) => ("bad-url", None),
        F::Unauthorized { .. } => ("unauthorized", asker.credentials()),
        F::Unanswered { failure, method, faults } => {
            let scene = Scene { transcript: transcript.clone(), faults: faults.clone(), exit: None, asker };
            let mut diagnostic = of_call_failure(failure, method, &scene);
            match failure {
                CallFailure::TimedOut { .. } if faults.is_empty() => {
                    let elsewhere = served_url(transcript).filter(|_| matches!(target, Target::Stdio(_)));
                    diagnostic.hint = elsewhere.and_then(|url| asker.serves_http(&url)).or_else(slow_start);
                }
                CallFailure::Unanswered(Unanswered::Unreachable(broken)) if target.is_over_tls() && broken.bound.is_none() => {
                    diagnostic.hint = asker.says(
                        "check the URL; `tls: { ca: … }` names an authority to trust, `cert` the certificate to show, `proxy` the way out",
                        "check the URL; `mcproof drive` takes --cacert for an authority to trust, --cert for the certificate to show, --proxy for the way out",
                        "check the URL; --cacert names an authority to trust, --cert the certificate to show, --proxy the way out",
                    );
                }
                _ => {}
            }
            return diagnostic;
        }
        F::Refused { .. } => (
            "handshake-refused",
            flags("try another era or revision: --era, --protocol-version", "try another `era` or `protocol_version`"),
        ),
        F::BadResult { .. } => ("handshake-invalid", None),
        F::OtherVersion { found, .. } => (
            "version-mismatch",
            flags(
                &format!("ask for that revision: --protocol-version {found}"),
                &format!("ask for that revision: `\"protocol_version\": \"{found}\"`"),
            ),
        ),
        F::UnknownVersion { .. } | F::NoCommonVersion { .. } => (
            "version-mismatch",
            flags(
                "ask for a revision that the server speaks, with --protocol-version",
                "ask for a revision that the server speaks, with `protocol_version`",
            ),
        ),
        F::Sse(SseFailure::Unauthorized { .. }) => ("unauthorized", asker.credentials()),
        F::Sse(SseFailure::Unreachable(broken) | SseFailure::Ended(Some(broken))) if broken.bound.is_some() => {
            broken.bound.map_or(("no-event-stream", None), |bound| (code_of_bound(bound), asker.bound(bound)))
        }
        F::Sse(SseFailure::Flawed(kind)) => ("no-event-stream", kind_hint(kind).map(str::to_owned)),
        F::SseTimedOut { faults, .. } if !faults.is_empty() => {
            ("no-event-stream", faults.first().and_then(|fault| kind_hint(&fault.kind)).map(str::to_owned))
        }
        F::Sse(_) | F::SseTimedOut { .. } => ("no-event-stream", own("check that the URL is the one of the event stream, mostly `/sse`")),
        F::NoModernSse => {
            ("version-mismatch", flags("use the `http` transport, or drop `--era modern`", "use the `http` transport, or another `era`"))
        }
    };
    finish(Diagnostic::error(code, failure.to_string()), hint, transcript)
}

/// Why a request got no answer.
pub fn of_call_failure(failure: &CallFailure, method: &str, scene: &Scene) -> Diagnostic {
    let mut message = failure.to_string();
    if let Some(bound) = bound_of(failure) {
        return finish(Diagnostic::error(code_of_bound(bound), message), scene.asker.bound(bound), &scene.transcript);
    }
    let (code, hint) = match (failure, scene.exit.as_ref()) {
        (CallFailure::NotAnAnswer(_), _) => {
            ("not-a-message", scene.faults.last().and_then(|fault| fault_hint(fault, &scene.transcript, scene.asker)))
        }
        (CallFailure::Lost(kind), _) => (code_of_kind(kind), kind_hint(kind).map(str::to_owned)),
        // A process that ends after its deadline ended too late to be the cause.
        (CallFailure::TimedOut { .. }, _) => match scene.faults.first() {
            Some(fault) => {
                message += &format!("; meanwhile {}", describe_fault(fault, &scene.transcript));
                ("no-answer", fault_hint(fault, &scene.transcript, scene.asker))
            }
            None if scene.asker == Asker::Monitor => ("no-answer", Some(LONGER.to_owned())),
            None => {
                let hint = scene.asker.says(
                    "raise `timeouts.request`, or `timeout` of the step, if the server needs longer",
                    "raise `timeouts.request_ms`, or `timeout_ms` of the request, if the server needs longer",
                    "raise --timeout if the server needs longer, or watch the wire with -v",
                );
                ("no-answer", hint)
            }
        },
        (CallFailure::Closed(Closed::Exited(exit)), _) | (_, Some(exit)) => {
            message = format!("{exit}, before answering `{method}`");
            ("server-exited", missing_piece(&scene.transcript, |name| scene.asker.variable(name)))
        }
        (CallFailure::Unauthorized { .. }, None) => ("unauthorized", scene.asker.credentials()),
        (CallFailure::Cancelled { .. }, None) => ("cancelled", None),
        (CallFailure::Closed(_), None) => ("connection-closed", None),
        (CallFailure::Unanswered(Unanswered::Unreachable(_)), None) => {
            ("server-unreachable", Some("check that the server runs, and its URL".into()))
        }
        (CallFailure::Unanswered(Unanswered::Response { head, excerpt, .. }), None) => {
            let fault = scene.faults.last().filter(|fault| belongs_to(fault, head.exchange, &scene.transcript));
            if let Some(fault) = fault {
                message += &format!("; {}", describe_fault(fault, &scene.transcript));
            }
            let hint =
                fault.and_then(|fault| fault_hint(fault, &scene.transcript, scene.asker)).or_else(|| http_hint(head, excerpt, scene.asker));
            ("no-answer-in-response", hint)
        }
    };
    finish(Diagnostic::error(code, message), hint, &scene.transcript)
}

/// Why a list could not be had.
pub fn of_list_failure(failure: &ListFailure, method: &str, scene: &Scene) -> Diagnostic {
    let code = match failure {
        ListFailure::Call(failure) => return of_call_failure(failure, method, scene),
        ListFailure::Rpc { .. } => "rpc-error",
        ListFailure::NoArray { .. } => "invalid-result",
        ListFailure::RepeatedCursor { .. } | ListFailure::TooManyPages { .. } => "endless-pages",
    };
    finish(Diagnostic::error(code, failure.to_string()), None, &scene.transcript)
}

/// Why a call did not become a task, or its task came to no end.
pub fn of_task_failure(failure: &TaskFailure, method: &str, scene: &Scene) -> Diagnostic {
    use TaskFailure as F;
    let own = |text: &str| Some(text.to_owned());
    let (code, hint) = match failure {
        F::Call(failure) => return of_call_failure(failure, method, scene),
        F::List(failure) => return of_list_failure(failure, "tools/list", scene),
        F::NotInThisRevision { .. } | F::NotDeclared { .. } | F::NotForThisTool { .. } => {
            ("tasks-not-offered", own("leave out `task`, or let the server offer tasks in this revision"))
        }
        F::Rpc { .. } => ("rpc-error", None),
        F::NotATask { .. } => ("not-a-task", None),
        F::NoInput { .. } => ("no-policy", own("say under `answers` how to respond")),
        F::TimedOut { .. } => ("no-answer", own("raise `timeouts.request`, or `timeout` of the step, if the task needs longer")),
    };
    finish(Diagnostic::error(code, failure.to_string()), hint, &scene.transcript)
}

/// The bound that a request broke on, if it did.
fn bound_of(failure: &CallFailure) -> Option<Bound> {
    match failure {
        CallFailure::Closed(Closed::TooLong { .. }) => Some(Bound::Line),
        CallFailure::Closed(Closed::StreamBroken(broken))
        | CallFailure::Unanswered(Unanswered::Unreachable(broken) | Unanswered::Response { broken: Some(broken), .. }) => broken.bound,
        CallFailure::NotAnAnswer(malformed) => bound_of_flaw(&malformed.flaw),
        _ => None,
    }
}

fn bound_of_flaw(flaw: &Flaw) -> Option<Bound> {
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

/// Whether a diagnosis of a failed request names what the server sent wrongly already.
pub fn names_fault(diagnostic: &Diagnostic) -> bool {
    let codes = [
        "no-answer",
        "no-answer-in-response",
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

/// Something that the server sent and no conforming server sends.
pub fn of_fault(fault: &Fault, transcript: &Transcript, asker: Asker) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(code_of_kind(&fault.kind), describe_fault(fault, transcript));
    diagnostic.hint = fault_hint(fault, transcript, asker);
    diagnostic.evidence(transcript.around(Some(fault.frame), FRAMES, 0))
}

fn code_of_kind(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Malformed(malformed) => bound_of_flaw(&malformed.flaw).map_or("not-a-message", code_of_bound),
        FaultKind::UnknownId(_) => "unknown-id",
        FaultKind::TextForNumber(_) => "id-of-another-type",
        FaultKind::NotWaitedFor(_) => "answered-twice",
        FaultKind::NoId(_) => "answer-without-id",
        FaultKind::OtherEvent(_) => "sse-event-name",
        FaultKind::UnfinishedEvent => "sse-event-unfinished",
        FaultKind::EventWithoutData(_) => "event-without-data",
        FaultKind::AnswerOffStream => "answer-off-stream",
        FaultKind::OtherMediaType(_) => "other-media-type",
        FaultKind::UnknownRevision(_) => "unknown-revision",
        FaultKind::UnfinishedLine => "line-unfinished",
        FaultKind::NotificationRefused { .. } => "notification-refused",
        FaultKind::TooManyRequests { .. } => "too-many-requests",
    }
}

/// The frames up to `end`, or the last ones, and the last lines of stderr.
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
        FaultKind::Malformed(malformed) => match line {
            Some(line) => format!("the server wrote a line on stdout that is no message ({malformed}): {}", excerpt(&line)),
            None => format!("the server sent something that is no message: {malformed}"),
        },
        kind => format!("the server sent {kind}"),
    }
}

fn fault_hint(fault: &Fault, transcript: &Transcript, asker: Asker) -> Option<String> {
    let FaultKind::Malformed(Malformed { flaw, .. }) = &fault.kind else { return kind_hint(&fault.kind).map(str::to_owned) };
    let line = line_of(fault, transcript);
    if let (Flaw::NotJson(_), Some(remedy)) = (flaw, http_form(fault, transcript)) {
        return Some(remedy.to_owned());
    }
    Some(match (flaw, line) {
        (Flaw::NotUtf8(_), _) => "write UTF-8: JSON has no other encoding".into(),
        (Flaw::ByteOrderMark, _) => "write without a byte order mark".into(),
        (Flaw::TooManyValues(_), _) => return asker.bound(Bound::Values),
        (Flaw::TooDeep(_), _) => return asker.bound(Bound::Depth),
        (Flaw::NotAMessage(_) | Flaw::NotAnObject(_), _) => return None,
        (Flaw::NotJson(_), Some(line)) if is_piece_of_json(&line) => {
            "write each message on one line: JSON that is pretty-printed breaks into many".into()
        }
        (Flaw::NotJson(_), Some(_)) => "stdout belongs to the protocol: one message a line, and logs to stderr".into(),
        (Flaw::NotJson(_), None) => return None,
    })
}

/// What to do about it, where no more than its kind has to be known for that.
fn kind_hint(kind: &FaultKind) -> Option<&'static str> {
    Some(match kind {
        FaultKind::Malformed(_) | FaultKind::NotWaitedFor(_) => return None,
        FaultKind::UnknownId(_) | FaultKind::TextForNumber(_) | FaultKind::NoId(_) => {
            "give each answer the `id` of its request, with its type: 1 is not \"1\""
        }
        FaultKind::OtherEvent(_) => "send messages as events without a name, or with `event: message`",
        FaultKind::UnfinishedEvent => "end each event with a blank line, that is with two line feeds after its `data:` line, and flush it",
        FaultKind::EventWithoutData(line) if line.trim_start().starts_with(['{', '[']) => {
            "write `data: ` before the message, or answer with plain JSON as `Content-Type: application/json`"
        }
        FaultKind::EventWithoutData(_) => {
            "begin the line with `data: `, in lower case: an event stream knows the fields data, event, id and retry"
        }
        FaultKind::UnknownRevision(_) => "answer `initialize` with a revision that the client may know, best the one that it offers",
        FaultKind::OtherMediaType(_) => "announce it as `Content-Type: application/json`",
        FaultKind::AnswerOffStream => "answer the POST with 202 and no body, and send the message on the event stream",
        FaultKind::UnfinishedLine => "end each message with a line feed, and flush it",
        FaultKind::NotificationRefused { .. } => "answer a notification with 202 and no body",
        FaultKind::TooManyRequests { .. } => "take the answers to earlier requests before asking for more",
    })
}

/// What to do about content of an HTTP response that is in another form than its head announces.
fn http_form(fault: &Fault, transcript: &Transcript) -> Option<&'static str> {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame)?;
    match &frame.body {
        FrameBody::HttpBody { bytes, .. } if is_event_stream(&bytes.to_text()) => {
            Some("the body is an event stream: announce it as `Content-Type: text/event-stream`")
        }
        FrameBody::SseEvent { bytes, .. } if bytes.to_text().lines().any(|line| !line.is_empty() && !is_field(line)) => {
            Some("begin each line of a message with `data: `, or write it as JSON on one line")
        }
        _ => None,
    }
}

fn is_field(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    ["", "data", "event", "id", "retry"].contains(&name)
}

/// Whether a body that is announced as something else begins as an event stream does.
fn is_event_stream(body: &str) -> bool {
    let first = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.contains(':') && is_field(first)
}

/// Whether a line looks like one of many that JSON was broken into, and not like `[info] started`.
fn is_piece_of_json(line: &str) -> bool {
    let line = line.trim();
    match line.strip_prefix('[') {
        Some(rest) => rest.trim_start().is_empty() || rest.trim_start().starts_with(['{', '[', '"']),
        None => line.starts_with(['{', '"', '}', ']']),
    }
}

/// Whether a fault stands in a response of that exchange.
fn belongs_to(fault: &Fault, exchange: ExchangeId, transcript: &Transcript) -> bool {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame);
    frame.is_some_and(|frame| match &frame.body {
        FrameBody::HttpBody { exchange: found, .. } | FrameBody::SseEvent { exchange: found, .. } => *found == exchange,
        _ => false,
    })
}

/// The text of a stdio line that is a fault; `None` for what came over HTTP.
fn line_of(fault: &Fault, transcript: &Transcript) -> Option<String> {
    let frame = transcript.frames.iter().find(|frame| frame.id == fault.frame)?;
    match &frame.body {
        FrameBody::Line { bytes, .. } => Some(bytes.to_text().into_owned()),
        _ => None,
    }
}

fn excerpt(line: &str) -> String {
    const WIDTH: usize = 80;
    format!("`{}`", shortened(line, WIDTH))
}

/// What the last words of a server say is missing, as the usual runtimes put it. `variable` says how to set one.
pub fn missing_piece(transcript: &Transcript, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let lines = transcript.tail(0, 40).stderr;
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
                true => format!("`{module}` is not there: check the path, and build it if it has to be built"),
                false => format!("install or build what provides `{module}` before the server is started"),
            });
        }
        if let Some(file) = after(line, "can't open file") {
            return Some(format!("`{file}` is not there: check the path"));
        }
        if line.contains("EADDRINUSE") || line.contains("ddress already in use") {
            return Some("its port is taken: pass `${port}` to the server, so that mcproof chooses a free one".into());
        }
        variable(missing_variable(line)?)
    })
}

fn was_asked(transcript: &Transcript, method: &str) -> bool {
    let asks = |raw: &Raw| raw.to_text().contains(&format!("\"method\":\"{method}\""));
    transcript.frames.iter().any(|frame| match &frame.body {
        FrameBody::Line { bytes, .. } => frame.direction == Direction::ToServer && asks(bytes),
        FrameBody::HttpRequest { body, .. } => asks(body),
        _ => false,
    })
}

/// The local URL that the last words of a server speak of.
fn served_url(transcript: &Transcript) -> Option<String> {
    transcript.tail(0, 40).stderr.iter().find_map(|line| {
        let word = line.split_whitespace().find(|word| word.starts_with("http://"))?;
        let host = word.strip_prefix("http://")?.split([':', '/']).next()?;
        ["127.0.0.1", "localhost", "0.0.0.0"].contains(&host).then(|| word.trim_end_matches(['.', ',', ')']).to_owned())
    })
}

/// The environment variable that a line asks for.
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
    // Codes of errors are written like variables.
    let is_code = |word: &&str| word.starts_with("ERR_") || word.ends_with("NOT_FOUND");
    let complains = COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    let mut words = line.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.find(|word| is_name(word) && !is_code(word)).filter(|_| complains)
}

fn http_hint(head: &HttpHead, excerpt: &str, asker: Asker) -> Option<String> {
    let kind = head.header("content-type").unwrap_or_default();
    Some(match head.status {
        301 | 302 | 307 | 308 => "the server redirects: use the URL that it names".into(),
        404 => "check the path of the URL; many servers listen at /mcp".into(),
        405 => {
            return asker.says(
                "check the path of the URL; a server of HTTP+SSE is reached with `sse:` in place of `http:`",
                "check the path of the URL; a server of HTTP+SSE is reached with `\"transport\": \"sse\"`",
                "check the path of the URL; a server of HTTP+SSE is reached with --transport sse",
            );
        }
        501 => "check the URL: what listens there takes no POST".into(),
        401 => return asker.credentials(),
        406 => "the server refuses our Accept header, which names application/json and text/event-stream".into(),
        200 if !kind.starts_with("application/json") && !kind.starts_with("text/event-stream") => match excerpt {
            text if is_event_stream(text) => "the body is an event stream: announce it as `Content-Type: text/event-stream`".into(),
            text if text.trim_start().starts_with('{') => "the body is JSON: announce it as `Content-Type: application/json`".into(),
            _ => "answer with `Content-Type: application/json` or `text/event-stream`".into(),
        },
        _ => return None,
    })
}

/// A command as a shell would take it.
pub fn shell_line(command: &[String]) -> String {
    shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_told_from_pieces_of_json() {
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
    fn a_variable_that_is_asked_for_is_found() {
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
}
