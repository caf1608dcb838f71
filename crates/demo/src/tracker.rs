//! The issue tracker: tools, a resource, a resource template, a prompt and its completion.
//! Knows issues, not the transport.

#![expect(deprecated, reason = "a demo speaks every revision, deprecated parts included")]

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{
        CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResult, LoggingLevel,
        LoggingMessageNotificationParam, Prompt, PromptArgument, PromptMessage, ReadResourceResult, Reference, Resource, ResourceContents,
        ResourceTemplate, ResourceUpdatedNotificationParam, Role, Tool,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    session::Session,
    tool::{Arguments, Declaration, Effect, ToolError, ToolResult, input, output, read, text},
};
use crate::patient::Phase;

const PROJECTS: &str = "tracker://projects";
const ISSUE_TEMPLATE: &str = "tracker://issues/{id}";
const ISSUE_PREFIX: &str = "tracker://issues/";
const TRIAGE: &str = "triage";
const JSON: &str = "application/json";

/// How many updates a slow listener may fall behind before it misses some.
const UPDATE_BACKLOG: usize = 64;

/// How long one subscriber may take to accept an update.
const PATIENCE: Duration = Duration::from_millis(200);

/// One tracker per process: every session sees the same issues.
pub(crate) struct Tracker {
    issues: Mutex<Vec<Issue>>,
    /// Who asked with `resources/subscribe`.
    subscriptions: Mutex<Vec<Subscription>>,
    /// The URI of each resource that changed, for those who `subscriptions/listen`.
    updates: broadcast::Sender<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Issue {
    id: String,
    project: String,
    title: String,
    body: String,
    status: &'static str,
}

struct Subscription {
    session: u64,
    uri: String,
    peer: Peer<RoleServer>,
}

impl Tracker {
    pub(crate) fn new() -> Self {
        let issues = [
            ("test-project", "The login button does nothing", "It does nothing in Firefox either."),
            ("test-project", "Add a dark mode", ""),
            ("website", "The imprint is out of date", "We moved."),
        ];
        let issues = issues.into_iter().zip(1..).map(|((project, title, body), number)| Issue {
            id: format!("ISSUE-{number}"),
            project: project.to_owned(),
            title: title.to_owned(),
            body: body.to_owned(),
            status: "open",
        });
        Self { issues: Mutex::new(issues.collect()), subscriptions: Mutex::default(), updates: broadcast::Sender::new(UPDATE_BACKLOG) }
    }

    /// Calls the tool `name`; `None` if the tracker has no such tool.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Arguments,
        session: &Session,
        context: &RequestContext<RoleServer>,
    ) -> Option<ToolResult> {
        Some(match name {
            "echo" => read(name, arguments).map(|Echo { message }| text(message)),
            "create_issue" => match read(name, arguments) {
                Ok(arguments) => Ok(self.create_issue(arguments, session, context).await),
                Err(error) => Err(error),
            },
            "get_issue" => read(name, arguments).and_then(|GetIssue { id }| match self.find(&id) {
                Some(issue) => Ok(CallToolResult::structured(json!(issue))),
                None => Err(ToolError(format!("Issue not found: {id}"))),
            }),
            "list_issues" => read(name, arguments).map(|arguments| self.list_issues(&arguments)),
            _ => return None,
        })
    }

    async fn create_issue(&self, arguments: CreateIssue, session: &Session, context: &RequestContext<RoleServer>) -> CallToolResult {
        let issue = {
            let mut issues = self.issues();
            let issue = Issue {
                id: format!("ISSUE-{}", issues.len() + 1),
                project: arguments.project,
                title: arguments.title,
                body: arguments.body.unwrap_or_default(),
                status: "open",
            };
            issues.push(issue.clone());
            issue
        };
        if session.wants(LoggingLevel::Info, context) {
            let data = json!({ "message": "issue created", "id": issue.id });
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, data).with_logger("tracker");
            // A peer that has gone is noticed when the answer is sent.
            let _gone = context.peer.notify_logging_message(message).await;
        }
        self.announce(PROJECTS).await;
        CallToolResult::structured(json!(issue))
    }

    /// Answers with a bare array, which is why it declares no output schema: structured content was an object
    /// in every revision before 2026-07-28.
    fn list_issues(&self, arguments: &ListIssues) -> CallToolResult {
        let limit = arguments.limit.unwrap_or(usize::MAX);
        let issues = self.issues();
        let chosen: Vec<&Issue> = issues.iter().filter(|issue| issue.project == arguments.project).take(limit).collect();
        text(json!(chosen).to_string())
    }

    /// Reads one resource.
    pub(crate) fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let value = self.resource(uri).ok_or_else(|| unknown_resource(uri))?;
        let contents = ResourceContents::text(value.to_string(), uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// Answers `prompts/get`.
    pub(crate) fn get_prompt(&self, request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
        if request.name != TRIAGE {
            return Err(ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None));
        }
        let id = request.arguments.as_ref().and_then(|arguments| arguments.get("issue")).and_then(Value::as_str);
        let Some(id) = id else {
            return Err(ErrorData::invalid_params("The prompt `triage` needs the argument `issue`", None));
        };
        let Some(issue) = self.find(id) else {
            return Err(ErrorData::invalid_params(format!("Issue not found: {id}"), None));
        };
        let question = format!(
            "How urgent is {} in {}, and who should look at it first?\n\n{}\n\n{}",
            issue.id, issue.project, issue.title, issue.body
        );
        let message = PromptMessage::new_text(Role::User, question.trim_end());
        Ok(GetPromptResult::new(vec![message]).with_description("Triage one issue"))
    }

    /// Completes the id of an issue, in the prompt and in the resource template.
    pub(crate) fn complete(&self, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let argument = &request.argument;
        let known = match &request.r#ref {
            Reference::Prompt(prompt) if prompt.name == TRIAGE => "issue",
            Reference::Resource(template) if template.uri == ISSUE_TEMPLATE => "id",
            _ => return Err(ErrorData::invalid_params("Unknown prompt or resource template", None)),
        };
        if argument.name != known {
            return Err(ErrorData::invalid_params(format!("Unknown argument: {}", argument.name), None));
        }
        let ids: Vec<String> =
            self.issues().iter().filter(|issue| issue.id.starts_with(&argument.value)).map(|issue| issue.id.clone()).collect();
        let total = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let values: Vec<String> = ids.into_iter().take(CompletionInfo::MAX_VALUES).collect();
        let has_more = usize::try_from(total).is_ok_and(|total| total > values.len());
        let mut completion = CompletionInfo::new(values).expect("no more values than the protocol allows");
        completion.total = Some(total);
        completion.has_more = Some(has_more);
        Ok(CompleteResult::new(completion))
    }

    /// Answers `resources/subscribe`. Subscribing twice is one subscription.
    pub(crate) fn subscribe(&self, uri: String, session: &Session, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        if self.resource(&uri).is_none() {
            return Err(unknown_resource(&uri));
        }
        let mut subscriptions = self.subscriptions();
        subscriptions.retain(|known| known.session != session.number || known.uri != uri);
        subscriptions.push(Subscription { session: session.number, uri, peer });
        Ok(())
    }

    /// Answers `resources/unsubscribe`.
    pub(crate) fn unsubscribe(&self, uri: &str, session: &Session) {
        self.subscriptions().retain(|known| known.session != session.number || known.uri != uri);
    }

    /// Serves one `subscriptions/listen` until its caller ends it.
    pub(crate) async fn listen(&self, subscription: &SubscriptionContext, phase: &Phase) {
        let mut updates = self.updates.subscribe();
        let wanted = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
        loop {
            let uri = tokio::select! {
                () = subscription.cancelled() => return,
                () = phase.closing() => return,
                update = updates.recv() => match update {
                    Ok(uri) => uri,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                },
            };
            if wanted.contains(&uri) && subscription.sink().notify_resource_updated(uri).await.is_err() {
                return;
            }
        }
    }

    async fn announce(&self, uri: &str) {
        // No receiver means that nobody listens, which is no error.
        let _nobody = self.updates.send(uri.to_owned());
        let peers: Vec<Peer<RoleServer>> = {
            let mut subscriptions = self.subscriptions();
            subscriptions.retain(|known| !known.peer.is_transport_closed());
            subscriptions.iter().filter(|known| known.uri == uri).map(|known| known.peer.clone()).collect()
        };
        for peer in peers {
            let update = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri));
            // A peer that reads nothing must not hold up the others; one that has gone is forgotten next time.
            let _unread = tokio::time::timeout(PATIENCE, update).await;
        }
    }

    fn resource(&self, uri: &str) -> Option<Value> {
        if uri == PROJECTS {
            return Some(self.projects());
        }
        self.find(uri.strip_prefix(ISSUE_PREFIX)?).map(|issue| json!(issue))
    }

    fn projects(&self) -> Value {
        let mut projects: Vec<(String, u64)> = Vec::new();
        for issue in self.issues().iter() {
            match projects.iter_mut().find(|(name, _)| *name == issue.project) {
                Some((_, count)) => *count += 1,
                None => projects.push((issue.project.clone(), 1)),
            }
        }
        projects.into_iter().map(|(name, issues)| json!({ "name": name, "issues": issues })).collect()
    }

    fn find(&self, id: &str) -> Option<Issue> {
        self.issues().iter().find(|issue| issue.id == id).cloned()
    }

    fn issues(&self) -> MutexGuard<'_, Vec<Issue>> {
        self.issues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("Resource not found: {uri}"), Some(json!({ "uri": uri })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateIssue {
    project: String,
    title: String,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetIssue {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListIssues {
    project: String,
    limit: Option<usize>,
}

/// What the tracker declares.
pub(crate) fn tools() -> Vec<Tool> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let issue = || {
        output(
            json!({
                "id": { "type": "string", "pattern": "^ISSUE-[0-9]+$" },
                "project": { "type": "string" },
                "title": { "type": "string" },
                "body": { "type": "string" },
                "status": { "type": "string", "enum": ["open"] },
            }),
            &["id", "project", "title", "body", "status"],
        )
    };
    [
        Declaration {
            name: "echo",
            title: "Echo",
            description: "Answers with the message that it was given.",
            effect: Effect::Reads,
            input: input(json!({ "message": text("What to answer") }), &["message"]),
            output: None,
        },
        Declaration {
            name: "create_issue",
            title: "Create issue",
            description: "Opens an issue in a project. A new project begins with its first issue.",
            effect: Effect::Adds,
            input: input(
                json!({
                    "project": text("The project, such as test-project"),
                    "title": text("The issue in one line"),
                    "body": text("The issue in full"),
                }),
                &["project", "title"],
            ),
            output: Some(issue()),
        },
        Declaration {
            name: "get_issue",
            title: "Get issue",
            description: "Returns one issue by its id.",
            effect: Effect::Reads,
            input: input(json!({ "id": text("The issue, such as ISSUE-1") }), &["id"]),
            output: Some(issue()),
        },
        Declaration {
            name: "list_issues",
            title: "List issues",
            description: "Lists the issues of a project as a JSON array, oldest first. An unknown project has none.",
            effect: Effect::Reads,
            input: input(
                json!({
                    "project": text("The project, such as test-project"),
                    "limit": { "type": "integer", "minimum": 0, "description": "At most so many; all if absent" },
                }),
                &["project"],
            ),
            output: None,
        },
    ]
    .map(Tool::from)
    .into()
}

pub(crate) fn resources() -> Vec<Resource> {
    vec![
        Resource::new(PROJECTS, "projects")
            .with_title("Projects")
            .with_description("Every project, and how many issues it has")
            .with_mime_type(JSON),
    ]
}

pub(crate) fn resource_templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new(ISSUE_TEMPLATE, "issue").with_title("Issue").with_description("One issue by its id").with_mime_type(JSON)]
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let issue =
        PromptArgument::new("issue").with_title("Issue").with_description("The id of the issue, such as ISSUE-1").with_required(true);
    vec![
        Prompt::new(TRIAGE, Some("Asks how urgent an issue is and who should look at it"), Some(vec![issue])).with_title("Triage an issue"),
    ]
}
