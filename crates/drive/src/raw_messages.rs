//! Driver methods that are more than one request: complete lists, notifications, and raw messages.

use crate::error::DriveError;
use crate::server_request::{http, refused, unanswered};
use crate::sessions::milliseconds;
use crate::targets::duration;
use crate::{Context, Drive};
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_client::{ListFailure, WaitFor};
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;
use mcproof_record::drive::{ListParams, ListResult, Listing, Nothing, NotifyParams, RawAnswer, RawParams, WaitParams, Waited};
use serde_json::Value;
use std::collections::HashSet;

impl Drive {
    pub(crate) async fn list(&self, mut params: ListParams, context: &Context) -> Result<ListResult, DriveError> {
        let asked = params.asked();
        let seat = self.seat(&asked.session)?;
        let deadline = duration("timeout_ms", asked.timeout_ms, seat.timeout)?;
        let (method, key, name) = match params.what {
            Listing::Tools => (methods::TOOLS_LIST, "tools", "name"),
            Listing::Resources => (methods::RESOURCES_LIST, "resources", "uri"),
            Listing::Templates => (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "uriTemplate"),
            Listing::Prompts => (methods::PROMPTS_LIST, "prompts", "name"),
        };
        let lists = self.with(&seat, async |session| match session.list(method, key, deadline).await {
            Ok(listed) => Ok(listed),
            Err(ListFailure::Rpc { error, frame, .. }) => Err(refused(&error, method, frame, &seat)),
            Err(failure) => {
                let scene = Scene::of(session, &seat.tap, Audience::Driver).await;
                Err(DriveError::unanswered(diagnosis::of_list_failure(&failure, method, &scene)))
            }
        });
        let listed = context.unless_canceled(lists).await?;
        if let Some(twice) = listed_twice(&listed.items, name) {
            let evidence = diagnosis::evidence(&seat.tap.transcript(), None);
            let found = Diagnostic::error("duplicate-name", format!("{method} lists `{twice}` twice")).evidence(evidence);
            seat.wire_faults.notice("list-has-no-duplicates", found.map_text(|text| seat.tap.redacted(text)));
        }
        Ok(ListResult {
            items: listed.items.into_iter().map(|item| seat.redaction.value(item)).collect(),
            pages: listed.pages,
            elapsed_ms: milliseconds(listed.elapsed),
        })
    }

    pub(crate) async fn notify(&self, params: NotifyParams) -> Result<Nothing, DriveError> {
        let seat = self.seat(&params.session)?;
        self.with(&seat, async |session| {
            session.notify(&params.method, params.params, seat.timeout).await;
            Ok(Nothing {})
        })
        .await
    }

    pub(crate) async fn wait(&self, params: WaitParams, context: &Context) -> Result<Waited, DriveError> {
        let seat = self.seat(&params.session)?;
        let deadline = duration("timeout_ms", params.timeout_ms, seat.timeout)?;
        let waits = self.with(&seat, async |session| {
            session.wait_for_notification(&params.method, deadline).await.map_err(|failure| {
                let evidence = diagnosis::evidence(&seat.tap.transcript(), None);
                DriveError::unanswered(Diagnostic::error("no-notification", failure.to_string()).evidence(evidence))
            })
        });
        let came = context.unless_canceled(waits).await?;
        Ok(Waited { method: came.method, params: came.params.map(|params| seat.redaction.value(params)), frame: came.frame })
    }

    pub(crate) async fn raw(&self, params: RawParams, context: &Context) -> Result<RawAnswer, DriveError> {
        let seat = self.seat(&params.session)?;
        let deadline = duration("timeout_ms", params.timeout_ms, seat.timeout)?;
        let sends = self.with(&seat, async |session| {
            seat.wire_faults.sends_raw();
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
                _ => return Err(DriveError::bad("bad-params", "`message` or `bytes` is required, but not both")),
            };
            // Another test may have judged meanwhile; the response is to what was sent as it stands.
            seat.wire_faults.sends_raw();
            match sent {
                Ok(reply) => Ok(reply),
                Err(failure) => Err(unanswered(&failure, "what was sent", session, &seat).await),
            }
        });
        let Some(reply) = context.unless_canceled(sends).await? else {
            return Ok(RawAnswer { result: None, error: None, elapsed_ms: None, frame: None, http: None });
        };
        let (elapsed_ms, frame, http) =
            (Some(milliseconds(reply.elapsed)), Some(reply.frame), reply.http.as_deref().map(|head| seat.redaction.http(http(head))));
        let (result, error) = match reply.answer {
            Ok(result) => (Some(seat.redaction.value(result)), None),
            Err(error) => (None, Some(seat.redaction.value(error.to_value()))),
        };
        Ok(RawAnswer { result, error, elapsed_ms, frame, http })
    }
}

/// The first name that an item of a list shares with another one.
fn listed_twice<'a>(items: &'a [Value], name: &str) -> Option<&'a str> {
    let mut seen = HashSet::new();
    items.iter().filter_map(|item| item.get(name)?.as_str()).find(|found| !seen.insert(*found))
}
