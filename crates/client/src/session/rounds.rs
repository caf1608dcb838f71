//! Multi round-trip requests: a modern server requests input in its result, and the request goes out again with it.
//! Source: 2026-07-28, basic/patterns/mrtr.

use super::{CallFailure, Reply, Session, WaitOptions};
use crate::answers::Answers;
use mcproof_protocol::Era;
use mcproof_record::{Json, JsonObject};
use serde_json::{Map, Value};

/// More rounds than any sane dialogue: a bound against a server that requests ever.
const MAX_ROUNDS: usize = 16;

const INPUT_REQUIRED: &str = "input_required";

impl Session {
    /// Like [`Session::request`], but gives the input that the server requests, as the session's answers say, until the
    /// result is complete. A result that requests something without a policy is given back as it is. The deadline counts
    /// for each round.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn request_rounds(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        terms: impl Into<WaitOptions>,
    ) -> Result<Reply, CallFailure> {
        self.pass_rounds(method, params.map(Json::from), terms.into()).await.map(Reply::read)
    }

    /// Like [`Session::request_rounds`], for whoever only passes on what is asked and answered.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn pass_rounds(&self, method: &str, params: Option<JsonObject>, terms: WaitOptions) -> Result<Reply<Json>, CallFailure> {
        if self.handshake.era == Era::Legacy {
            return self.request_once(method, params, terms).await;
        }
        Box::pin(self.modern_rounds(method, params.unwrap_or_default().into_inner(), terms)).await
    }

    /// What a retry carries besides the original parameters to give the input that a result requires, as the session's answers say;
    /// `None` if the result requires none, or something without a policy.
    pub async fn input_for(&self, result: &Value) -> Option<Map<String, Value>> {
        input(&self.policies.get(), result).await
    }

    async fn modern_rounds(&self, method: &str, original: Map<String, Value>, terms: WaitOptions) -> Result<Reply<Json>, CallFailure> {
        let mut reply = self.request_once(method, Some(original.clone().into()), terms.clone()).await?;
        for _ in 1..MAX_ROUNDS {
            let Ok(result) = &reply.answer else { break };
            if matches!(result, Json::Unread(text) if !text.get().contains(INPUT_REQUIRED)) {
                break;
            }
            let Some(input) = input(&self.policies.get(), &result.read()).await else { break };
            let params: Map<String, Value> = original.clone().into_iter().chain(input).collect();
            reply = self.request_once(method, Some(params.into()), terms.clone()).await?;
        }
        Ok(reply)
    }
}

/// What the retry carries besides the original parameters; `None` if there is nothing to retry with.
async fn input(answers: &Answers, result: &Value) -> Option<Map<String, Value>> {
    if result.get("resultType")?.as_str()? != INPUT_REQUIRED {
        return None;
    }
    let mut input = Map::new();
    if let Some(requests) = result.get("inputRequests").and_then(Value::as_object) {
        let mut responses = Map::new();
        for (key, request) in requests {
            let params = request.get("params").unwrap_or(&Value::Null);
            responses.insert(key.clone(), answers.give(request.get("method")?.as_str()?, params).await.ok()?);
        }
        input.insert("inputResponses".into(), Value::Object(responses));
    }
    // Echoed byte for byte, and only if it was there.
    input.extend(result.get("requestState").map(|state| ("requestState".to_owned(), state.clone())));
    (!input.is_empty()).then_some(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Elicitation;
    use serde_json::json;

    #[tokio::test]
    async fn a_retry_carries_the_answers_and_the_state() {
        let answers = Answers { elicitation: Some(Elicitation::Decline), ..Answers::default() };
        let check = async |result: Value, expected: Value| {
            assert_eq!(input(&answers, &result).await.map_or(Value::Null, Value::Object), expected, "{result}");
        };
        let ask = json!({ "a": { "method": "elicitation/create", "params": { "mode": "form" } } });
        check(json!({ "resultType": "complete" }), Value::Null).await;
        check(json!({}), Value::Null).await;
        check(json!({ "resultType": "input_required" }), Value::Null).await;
        check(json!({ "resultType": "input_required", "requestState": "ä\n" }), json!({ "requestState": "ä\n" })).await;
        check(
            json!({ "resultType": "input_required", "inputRequests": ask, "requestState": "s" }),
            json!({ "inputResponses": { "a": { "action": "decline" } }, "requestState": "s" }),
        )
        .await;
        check(
            json!({ "resultType": "input_required", "inputRequests": ask }),
            json!({ "inputResponses": { "a": { "action": "decline" } } }),
        )
        .await;
        // No policy for sampling: the result stays as it is.
        let sampling = json!({ "b": { "method": "sampling/createMessage", "params": {} } });
        check(json!({ "resultType": "input_required", "inputRequests": sampling, "requestState": "s" }), Value::Null).await;
    }
}
