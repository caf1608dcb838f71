//! What a driver asks a server. Knows methods; how long to wait and whom to ask is given.

use super::sessions::{Seat, milliseconds};
use super::targets::duration;
use super::trouble::Trouble;
use super::{Context, Drive};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{CallFailure, Deadline, Era, HttpHead, ListFailure, Reply, Session, Terms, WaitFor};
use mcproof_engine::diagnosis::{self, Asker, Scene};
use mcproof_engine::judge::Payload;
use mcproof_record::drive::{
    Answer, Asked, CallAnswer, CallParams, CompleteParams, Http, ListParams, ListResult, Listing, Nothing, NotifyParams, PingParams,
    PromptParams, RawAnswer, RawParams, ReadParams, RequestParams, WaitParams, Waited,
};
use mcproof_record::{Diagnostic, FrameId};
use serde_json::{Map, Value, json};

impl Drive {
    pub(super) async fn request(&self, params: RequestParams, context: &Context) -> Result<Answer, Trouble> {
        let asked = params.asked();
        self.ask(asked, context, &params.method, params.params).await
    }

    pub(super) async fn read(&self, params: ReadParams, context: &Context) -> Result<Answer, Trouble> {
        let asked = params.asked();
        self.ask(asked, context, "resources/read", object(json!({ "uri": params.uri }))).await
    }

    pub(super) async fn prompt(&self, params: PromptParams, context: &Context) -> Result<Answer, Trouble> {
        let asked = params.asked();
        let mut sent = Map::from_iter([("name".to_owned(), params.name.into())]);
        sent.extend(params.arguments.map(|arguments| ("arguments".to_owned(), Value::Object(arguments))));
        self.ask(asked, context, "prompts/get", Some(sent)).await
    }

    pub(super) async fn complete(&self, params: CompleteParams, context: &Context) -> Result<Answer, Trouble> {
        let asked = params.asked();
        let argument = json!({ "name": params.argument.name, "value": params.argument.value });
        let mut sent = Map::from_iter([("ref".to_owned(), params.r#ref), ("argument".to_owned(), argument)]);
        sent.extend(params.context.map(|context| ("context".to_owned(), Value::Object(context))));
        self.ask(asked, context, "completion/complete", Some(sent)).await
    }

    /// 2026-07-28 has no `ping` any more.
    pub(super) async fn ping(&self, params: PingParams, context: &Context) -> Result<Answer, Trouble> {
        let asked = params.asked();
        let seat = self.seat(&asked.session)?;
        let era = self.with(&seat, async |session| Ok(session.handshake().era)).await?;
        let method = if era == Era::Modern { "server/discover" } else { "ping" };
        self.ask(asked, context, method, None).await
    }

    pub(super) async fn call(&self, params: CallParams, context: &Context) -> Result<CallAnswer, Trouble> {
        let asked = params.asked();
        let seat = self.seat(&asked.session)?;
        let mut sent = Map::from_iter([("name".to_owned(), Value::from(params.tool.as_str()))]);
        sent.insert("arguments".to_owned(), Value::Object(params.arguments.unwrap_or_default()));
        let (reply, result) = self.reply(&seat, asked, context, "tools/call", Some(sent)).await?;
        let Payload { value: payload, text, .. } = Payload::from_call_result(&result);
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        if is_error && params.raise_errors {
            let message = format!("the tool `{}` failed: {}", params.tool, text.as_deref().unwrap_or("it says nothing"));
            let diagnostic = Diagnostic::error("unexpected-outcome", message);
            let evidence = diagnosis::evidence(&seat.tap.transcript(), Some(reply.frame));
            return Err(Trouble::failed_tool(diagnostic.evidence(evidence), result));
        }
        let (elapsed_ms, frame, http) = (milliseconds(reply.elapsed), reply.frame, reply.http.as_deref().map(http));
        Ok(CallAnswer { result, payload, text, is_error, elapsed_ms, frame, http })
    }

    async fn ask(&self, asked: Asked, context: &Context, method: &str, params: Option<Map<String, Value>>) -> Result<Answer, Trouble> {
        let seat = self.seat(&asked.session)?;
        let (reply, result) = self.reply(&seat, asked, context, method, params).await?;
        let (elapsed_ms, frame, http) = (milliseconds(reply.elapsed), reply.frame, reply.http.as_deref().map(http));
        Ok(Answer { result, elapsed_ms, frame, http })
    }

    async fn reply(
        &self,
        seat: &Seat,
        asked: Asked,
        context: &Context,
        method: &str,
        params: Option<Map<String, Value>>,
    ) -> Result<(Reply, Value), Trouble> {
        let idle = duration("timeout_ms", asked.timeout_ms, seat.timeout)?;
        let maximum = asked.max_ms.map(|maximum| duration("max_ms", Some(maximum), idle)).transpose()?;
        let mut params = params;
        if let Some(meta) = asked.meta {
            member(params.get_or_insert_default(), "_meta").extend(meta);
        }
        // Unique among the requests of the driver, as their ids are.
        let token = asked.progress.then(|| format!("drive-{}", context.id));
        if let Some(token) = &token {
            member(params.get_or_insert_default(), "_meta").insert("progressToken".into(), token.as_str().into());
            seat.expect_progress(token, &context.id);
        }
        let terms = Terms { deadline: Deadline { idle, maximum }, cancellation: Some(context.cancellation.clone()) };
        let outcome = self
            .with(seat, async |session| match session.request_rounds(method, params, terms).await {
                Ok(reply) => Ok(reply),
                Err(failure @ CallFailure::Cancelled { .. }) => Err(Trouble::cancelled(&failure.to_string())),
                Err(failure) => Err(Box::pin(unanswered(&failure, method, session, seat)).await),
            })
            .await;
        if let Some(token) = &token {
            seat.forget_progress(token);
        }
        let mut reply = outcome?;
        match std::mem::replace(&mut reply.answer, Ok(Value::Null)) {
            Ok(result) => Ok((reply, result)),
            Err(error) => Err(refused(&error, method, reply.frame, seat)),
        }
    }

    pub(super) async fn list(&self, params: ListParams, context: &Context) -> Result<ListResult, Trouble> {
        let asked = params.asked();
        let seat = self.seat(&asked.session)?;
        let deadline = duration("timeout_ms", asked.timeout_ms, seat.timeout)?;
        let (method, key) = match params.what {
            Listing::Tools => ("tools/list", "tools"),
            Listing::Resources => ("resources/list", "resources"),
            Listing::Templates => ("resources/templates/list", "resourceTemplates"),
            Listing::Prompts => ("prompts/list", "prompts"),
        };
        let lists = self.with(&seat, async |session| match session.list(method, key, deadline).await {
            Ok(listed) => Ok(listed),
            Err(ListFailure::Rpc { error, frame, .. }) => Err(refused(&error, method, frame, &seat)),
            Err(failure) => {
                let scene = Scene::of(session, &seat.tap, Asker::Driver).await;
                Err(Trouble::unanswered(diagnosis::of_list_failure(&failure, method, &scene)))
            }
        });
        let listed = context.unless_cancelled(lists).await?;
        Ok(ListResult { items: listed.items, pages: listed.pages, elapsed_ms: milliseconds(listed.elapsed) })
    }

    pub(super) async fn notify(&self, params: NotifyParams) -> Result<Nothing, Trouble> {
        let seat = self.seat(&params.session)?;
        self.with(&seat, async |session| {
            session.notify(&params.method, params.params, seat.timeout).await;
            Ok(Nothing {})
        })
        .await
    }

    pub(super) async fn wait(&self, params: WaitParams, context: &Context) -> Result<Waited, Trouble> {
        let seat = self.seat(&params.session)?;
        let deadline = duration("timeout_ms", params.timeout_ms, seat.timeout)?;
        let waits = self.with(&seat, async |session| {
            session.wait_for_notification(&params.method, deadline).await.map_err(|failure| {
                let evidence = diagnosis::evidence(&seat.tap.transcript(), None);
                Trouble::unanswered(Diagnostic::error("no-notification", failure.to_string()).evidence(evidence))
            })
        });
        let came = context.unless_cancelled(waits).await?;
        Ok(Waited { method: came.method, params: came.params, frame: came.frame })
    }

    pub(super) async fn raw(&self, params: RawParams, context: &Context) -> Result<RawAnswer, Trouble> {
        let seat = self.seat(&params.session)?;
        let deadline = duration("timeout_ms", params.timeout_ms, seat.timeout)?;
        let sends = self.with(&seat, async |session| {
            let sent = match (params.message, params.bytes) {
                (Some(message), None) if params.wait != Some(false) => session.send_message(&message, deadline).await,
                (Some(message), None) => {
                    let line = format!("{}\n", Value::Object(message)).into_bytes();
                    session.send_bytes(line, WaitFor::Nothing, deadline).await
                }
                (None, Some(bytes)) => {
                    let wait = if params.wait == Some(true) { WaitFor::Answer } else { WaitFor::Nothing };
                    session.send_bytes(bytes.as_bytes().to_vec(), wait, deadline).await
                }
                _ => return Err(Trouble::bad("bad-params", "either `message` or `bytes` has to be there")),
            };
            match sent {
                Ok(reply) => Ok(reply),
                Err(failure) => Err(unanswered(&failure, "what was sent", session, &seat).await),
            }
        });
        let Some(reply) = context.unless_cancelled(sends).await? else {
            return Ok(RawAnswer { result: None, error: None, elapsed_ms: None, frame: None, http: None });
        };
        let (elapsed_ms, frame, http) = (Some(milliseconds(reply.elapsed)), Some(reply.frame), reply.http.as_deref().map(http));
        let (result, error) = match reply.answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error.to_value())),
        };
        Ok(RawAnswer { result, error, elapsed_ms, frame, http })
    }
}

async fn unanswered(failure: &CallFailure, method: &str, session: &Session, seat: &Seat) -> Trouble {
    let scene = Scene::of(session, &seat.tap, Asker::Driver).await;
    Trouble::unanswered(diagnosis::of_call_failure(failure, method, &scene))
}

fn refused(error: &RpcError, method: &str, frame: FrameId, seat: &Seat) -> Trouble {
    let message = format!("server refused `{method}`: {error}");
    let evidence = diagnosis::evidence(&seat.tap.transcript(), Some(frame));
    Trouble::refused(Diagnostic::error("rpc-error", message).evidence(evidence), error)
}

fn http(head: &HttpHead) -> Http {
    Http { status: head.status, headers: head.headers.clone() }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

/// The object of this name in params, made if it is not there.
fn member<'a>(params: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let place = params.entry(name).or_insert_with(|| json!({}));
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut().expect("it was made one")
}
