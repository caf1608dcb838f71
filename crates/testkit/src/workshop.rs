//! A server of the modern era whose tools create tasks, or request input before they return: rmcp's task manager, and rmcp's
//! support for input in several rounds. Knows nothing of the code that tests it.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock, CreateTaskResult, ErrorData, GetTaskParams,
    GetTaskResult, InputRequiredResult, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;

const POLL_MILLIS: u64 = 5;

/// A server whose tools create tasks, except `now`, which returns a result, and `greet` and `compose`, which request input of the
/// user and of the model.
#[derive(Clone, Default)]
pub struct Workshop {
    tasks: TaskManager,
}

/// Serves it over Streamable HTTP at `/mcp`, until the listener fails.
///
/// # Errors
/// As the listener.
pub async fn serve(workshop: Workshop, listener: TcpListener) -> io::Result<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(workshop.clone()), sessions, StreamableHttpServerConfig::default());
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await
}

impl ServerHandler for Workshop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        match name.as_str() {
            "now" => return Ok(said("at once").into()),
            "greet" => return with_input(&request, question(), |answer| format!("hello {}", who(answer))),
            "compose" => {
                let asked = json!({ "role": "user", "content": { "type": "text", "text": "a line" } });
                let question = json!({ "method": "sampling/createMessage", "params": { "messages": [asked], "maxTokens": 9 } });
                return with_input(&request, question, |answer| answer["content"]["text"].as_str().unwrap_or("nothing").to_owned());
            }
            _ => {}
        }
        let options = TaskOptions::new().with_poll_interval_ms(POLL_MILLIS);
        let task = self.tasks.spawn(options, move |context| {
            Box::pin(async move {
                match name.as_str() {
                    "ask" => {
                        let question = serde_json::from_value(question()).map_err(|error| TaskExit::Error(broken(&error)))?;
                        let answer = context.request_input("who", question).await?;
                        Ok(said(who(&json!(answer))))
                    }
                    "fail" => Err(TaskExit::Error(ErrorData::internal_error("broken", None))),
                    "endless" => {
                        context.cancelled().await;
                        Err(TaskExit::Cancelled)
                    }
                    _ => Ok(said("done")),
                }
            })
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(&self, request: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

/// Requests this input, unless the request already has it.
fn with_input(
    request: &CallToolRequestParams,
    question: Value,
    tell: impl FnOnce(&Value) -> String,
) -> Result<CallToolResponse, ErrorData> {
    const KEY: &str = "asked";
    if let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get(KEY)) {
        return Ok(said(&tell(&json!(answer))).into());
    }
    let requests = serde_json::from_value(json!({ KEY: question })).map_err(|error| broken(&error))?;
    Ok(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(requests)))
}

fn question() -> Value {
    let properties = json!({ "name": { "type": "string", "default": "Ada" } });
    json!({ "method": "elicitation/create", "params": {
        "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": properties } } })
}

fn who(answer: &Value) -> &str {
    answer["content"]["name"].as_str().unwrap_or("nobody")
}

fn said(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn broken(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
