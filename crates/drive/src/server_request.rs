//! A driver request that sends one request to a server and returns its response. If the server is in the same process, the request is sent
//! at once, and often the response arrives without waiting.

use crate::error::DriveError;
use crate::sessions::{SessionSlot, milliseconds};
use crate::targets::duration;
use crate::{Context, Done, Drive, Job, envelope};
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{CallFailure, Deadline, HttpHead, Reply, Sent, Session, WaitOptions};
use mcproof_protocol::{Era, methods};
use mcproof_record::drive::{
    Answer, Asked, CallAnswer, CallParams, CompleteParams, Http, PingParams, PromptParams, ReadParams, RequestParams,
};
use mcproof_record::{Diagnostic, FrameId, Json, JsonObject};
use mcproof_suite::judge::Payload;
use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::rc::Rc;

pub(crate) struct ServerRequest {
    asked: Asked,
    method: Cow<'static, str>,
    params: Option<JsonObject>,
    tells: ResponseForm,
}

/// The form of the response to the driver.
enum ResponseForm {
    Result,
    /// What the tool gave, apart from how it is wrapped.
    Payload {
        tool: String,
        raises_errors: bool,
    },
}

/// A request to a session, without its params.
pub(crate) struct PendingRequest {
    seat: Rc<SessionSlot>,
    method: Cow<'static, str>,
    deadline: Deadline,
    /// The progress token.
    token: Option<String>,
    tells: ResponseForm,
}

/// How far its request has come.
pub(crate) enum SendState {
    Params(Option<JsonObject>),
    Sent(Sent),
}

/// A request that was sent and is not awaited yet.
pub(crate) struct SentRequest {
    id: Value,
    asking: Box<PendingRequest>,
    sent: Sent,
}

/// The params of `tools/call`.
#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    arguments: JsonObject,
}

impl ServerRequest {
    fn new(asked: Asked, method: impl Into<Cow<'static, str>>, params: Option<JsonObject>) -> Self {
        Self { asked, method: method.into(), params, tells: ResponseForm::Result }
    }

    pub(crate) fn request(mut params: RequestParams) -> Self {
        Self::new(params.asked(), params.method, params.params)
    }

    pub(crate) fn call(mut params: CallParams) -> Result<Self, DriveError> {
        let asked = params.asked();
        let sent = Call { name: &params.tool, arguments: params.arguments.unwrap_or_default() };
        let sent = Json::Unread(to_raw_value(&sent).map_err(|error| DriveError::bad_params(&error))?);
        let tells = ResponseForm::Payload { tool: params.tool, raises_errors: params.raise_errors };
        Ok(Self { tells, ..Self::new(asked, methods::TOOLS_CALL, Some(sent)) })
    }

    pub(crate) fn read(mut params: ReadParams) -> Self {
        let asked = params.asked();
        let sent = Map::from_iter([("uri".to_owned(), Value::from(params.uri))]);
        Self::new(asked, methods::RESOURCES_READ, Some(sent.into()))
    }

    pub(crate) fn prompt(mut params: PromptParams) -> Self {
        let asked = params.asked();
        let mut sent = Map::from_iter([("name".to_owned(), Value::from(params.name))]);
        sent.extend(params.arguments.map(|arguments| ("arguments".to_owned(), Value::Object(arguments))));
        Self::new(asked, methods::PROMPTS_GET, Some(sent.into()))
    }

    pub(crate) fn complete(mut params: CompleteParams) -> Self {
        let asked = params.asked();
        let argument = json!({ "name": params.argument.name, "value": params.argument.value });
        let mut sent = Map::from_iter([("ref".to_owned(), params.r#ref), ("argument".to_owned(), argument)]);
        sent.extend(params.context.map(|context| ("context".to_owned(), Value::Object(context))));
        Self::new(asked, methods::COMPLETION_COMPLETE, Some(sent.into()))
    }
}

impl Drive {
    /// Sends the request and returns the response line.
    pub(crate) async fn ask(&self, question: ServerRequest, context: &Context) -> Done {
        let (asking, params) = self.prepare(question, &context.id)?;
        self.finish(asking, SendState::Params(params), context).await
    }

    /// 2026-07-28 has no `ping` any more.
    pub(crate) async fn ping(&self, mut params: PingParams, context: &Context) -> Done {
        let asked = params.asked();
        let seat = self.seat(&asked.session)?;
        let era = self.with(&seat, async |session| Ok(session.handshake().era)).await?;
        let method = if era == Era::Modern { methods::SERVER_DISCOVER } else { methods::PING };
        self.ask(ServerRequest::new(asked, method, None), context).await
    }

    /// Begins the request. If the session can send at once, it has been sent when this returns.
    pub(crate) fn begin_request(self: &Rc<Self>, id: Value, question: Result<ServerRequest, DriveError>) {
        let (asking, params) = match question.and_then(|question| self.prepare(question, &id)) {
            Ok(prepared) => prepared,
            Err(trouble) => return self.answer(&id, Err(trouble)),
        };
        let seat = Rc::clone(&asking.seat);
        if let Some(passing) = self.passing.as_ref().filter(|_| !self.has_begun.get())
            && let Some(session) = seat.open_session().filter(|session| session.sends_at_once())
        {
            let sent = session.send_at_once(&asking.method, params, asking.deadline);
            passing.borrow_mut().push(SentRequest { id, asking, sent });
            return;
        }
        self.begin(id, Job::ServerRequest(asking, SendState::Params(params)));
    }

    /// Responds to the sent requests whose responses have arrived.
    pub(crate) fn answer_passing(self: &Rc<Self>) {
        let Some(passing) = &self.passing else { return };
        let answered: Vec<SentRequest> = passing.borrow_mut().extract_if(.., |passing| passing.sent.is_over()).collect();
        for SentRequest { id, asking, sent } in answered {
            match sent.into_reply() {
                Ok(reply) => {
                    if let Some(session) = asking.seat.open_session() {
                        self.pass_on(&asking.seat, &session);
                    }
                    self.answer(&id, asking.tell(Ok(reply), &id));
                }
                // What has gone wrong is found out by whoever waits.
                Err(sent) => self.begin(id, Job::ServerRequest(asking, SendState::Sent(sent))),
            }
        }
    }

    /// From here on the questions in passing are waited for: they may be canceled, or too late.
    pub(crate) fn wait_for_passing(self: &Rc<Self>) {
        let Some(passing) = &self.passing else { return };
        for SentRequest { id, asking, sent } in passing.take() {
            self.begin(id, Job::ServerRequest(asking, SendState::Sent(sent)));
        }
    }

    /// Waits for the response, and returns its line.
    pub(crate) async fn finish(&self, asking: Box<PendingRequest>, sending: SendState, context: &Context) -> Done {
        let terms = WaitOptions { deadline: asking.deadline, cancellation: Some(context.cancellation.clone()) };
        let (method, seat) = (&*asking.method, &asking.seat);
        let waits = async |session: &Session| {
            let outcome = match sending {
                SendState::Params(params) => session.pass_rounds(method, params, terms).await,
                SendState::Sent(sent) => session.wait_for(sent, method, terms).await,
            };
            match outcome {
                Ok(reply) => Ok(reply),
                Err(failure @ CallFailure::Cancelled { .. }) => Err(DriveError::canceled(&failure.to_string())),
                Err(failure) => Err(Box::pin(unanswered(&failure, method, session, seat)).await),
            }
        };
        let outcome = self.with(seat, waits).await;
        asking.tell(outcome, &context.id)
    }

    fn prepare(&self, question: ServerRequest, id: &Value) -> Result<(Box<PendingRequest>, Option<JsonObject>), DriveError> {
        let ServerRequest { asked, method, mut params, tells } = question;
        let seat = self.seat(&asked.session)?;
        let idle = duration("timeout_ms", asked.timeout_ms, seat.timeout)?;
        let maximum = asked.max_ms.map(|maximum| duration("max_ms", Some(maximum), idle)).transpose()?;
        if let Some(meta) = asked.meta {
            member(params.get_or_insert_default().get_mut(), "_meta").extend(meta);
        }
        // Unique among the requests of the driver, as their ids are.
        let token = asked.progress.then(|| format!("drive-{id}"));
        if let Some(token) = &token {
            member(params.get_or_insert_default().get_mut(), "_meta").insert("progressToken".into(), token.as_str().into());
            seat.expect_progress(token, id);
        }
        Ok((Box::new(PendingRequest { seat, method, deadline: Deadline { idle, maximum }, token, tells }), params))
    }
}

impl PendingRequest {
    /// The line of a response.
    fn tell(self, outcome: Result<Reply<Json>, DriveError>, id: &Value) -> Done {
        let Self { seat, method, token, tells, .. } = self;
        if let Some(token) = &token {
            seat.forget_progress(token);
        }
        let Reply { answer, frame, elapsed, http: head, .. } = outcome?;
        let result = answer.map_err(|error| refused(&error, &method, frame, &seat))?;
        let result = seat.redaction.json(result);
        let (elapsed_ms, http) = (milliseconds(elapsed), head.as_deref().map(|head| seat.redaction.http(http(head))));
        let ResponseForm::Payload { tool, raises_errors } = tells else {
            return Ok(envelope::result(id, &Answer { result, elapsed_ms, frame, http }));
        };
        let read = result.read();
        let Payload { value: payload, text, .. } = Payload::from_call_result(&read);
        let is_error = read.get("isError") == Some(&Value::Bool(true));
        if is_error && raises_errors {
            let message = format!("tool `{tool}` failed: {}", text.as_deref().unwrap_or("no text"));
            let diagnostic = Diagnostic::error("unexpected-outcome", message);
            let evidence = diagnosis::evidence(&seat.tap.transcript(), Some(frame));
            return Err(DriveError::failed_tool(diagnostic.evidence(evidence), read.into_owned()));
        }
        Ok(envelope::result(id, &CallAnswer { result, payload, text, is_error, elapsed_ms, frame, http }))
    }
}

pub(crate) async fn unanswered(failure: &CallFailure, method: &str, session: &Session, seat: &SessionSlot) -> DriveError {
    let scene = Scene::of(session, &seat.tap, Audience::Driver).await;
    DriveError::unanswered(diagnosis::of_call_failure(failure, method, &scene))
}

pub(crate) fn refused(error: &RpcError, method: &str, frame: FrameId, seat: &SessionSlot) -> DriveError {
    let message = format!("server returned an error for `{method}`: {error}");
    let evidence = diagnosis::evidence(&seat.tap.transcript(), Some(frame));
    DriveError::refused(Diagnostic::error("rpc-error", message).evidence(evidence), seat.redaction.value(error.to_value()))
}

pub(crate) fn http(head: &HttpHead) -> Http {
    Http { status: head.status, headers: head.headers.clone() }
}

/// The object of this name in params, made if it is not there.
fn member<'a>(params: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let place = params.entry(name).or_insert_with(|| json!({}));
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut().expect("it was made one")
}
