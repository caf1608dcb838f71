//! Names of methods and notifications, in all revisions and in the extension for tasks.

pub const INITIALIZE: &str = "initialize";
pub const SERVER_DISCOVER: &str = "server/discover";
pub const PING: &str = "ping";
pub const TOOLS_LIST: &str = "tools/list";
pub const TOOLS_CALL: &str = "tools/call";
pub const RESOURCES_LIST: &str = "resources/list";
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
pub const RESOURCES_READ: &str = "resources/read";
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
pub const PROMPTS_LIST: &str = "prompts/list";
pub const PROMPTS_GET: &str = "prompts/get";
pub const COMPLETION_COMPLETE: &str = "completion/complete";
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
pub const TASKS_GET: &str = "tasks/get";
pub const TASKS_LIST: &str = "tasks/list";
pub const TASKS_RESULT: &str = "tasks/result";
pub const TASKS_UPDATE: &str = "tasks/update";
pub const TASKS_CANCEL: &str = "tasks/cancel";

// Requests of servers.
pub const ROOTS_LIST: &str = "roots/list";
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
pub const ELICITATION_CREATE: &str = "elicitation/create";

/// Whether a message changes nothing by being sent twice (RFC 9110, 9.2.2): it asks, or says what holds already.
pub fn may_be_repeated(method: &str) -> bool {
    matches!(
        method,
        INITIALIZE
            | SERVER_DISCOVER
            | PING
            | TOOLS_LIST
            | RESOURCES_LIST
            | RESOURCES_TEMPLATES_LIST
            | RESOURCES_READ
            | PROMPTS_LIST
            | PROMPTS_GET
            | COMPLETION_COMPLETE
            | LOGGING_SET_LEVEL
            | SUBSCRIPTIONS_LISTEN
            | TASKS_GET
            | TASKS_LIST
            | notifications::INITIALIZED
    )
}

/// The names of notifications.
pub mod notifications {
    pub const INITIALIZED: &str = "notifications/initialized";
    pub const CANCELLED: &str = "notifications/cancelled";
    pub const PROGRESS: &str = "notifications/progress";
    pub const MESSAGE: &str = "notifications/message";
    pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
    pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
    pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
    pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
    pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
    pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
    pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    pub const TASKS: &str = "notifications/tasks";
    pub const TASKS_STATUS: &str = "notifications/tasks/status";

    /// All of them.
    pub const ALL: [&str; 13] = [
        INITIALIZED,
        CANCELLED,
        PROGRESS,
        MESSAGE,
        TOOLS_LIST_CHANGED,
        RESOURCES_LIST_CHANGED,
        RESOURCES_UPDATED,
        PROMPTS_LIST_CHANGED,
        ROOTS_LIST_CHANGED,
        ELICITATION_COMPLETE,
        SUBSCRIPTIONS_ACKNOWLEDGED,
        TASKS,
        TASKS_STATUS,
    ];
}
