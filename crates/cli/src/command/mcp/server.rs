//! The MCP server: its methods, and the end of a call. Knows the protocol, not the tools.

use super::journal::Journal;
use super::limits::Limits;
use super::tool_output::{self, ToolOutput};
use super::tools::{self, ToolCall};
use mcproof_client::Guardian;
use mcproof_demo::patient::Phase;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString as _, CustomRequest, CustomResult, ErrorCode, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::path::PathBuf;

const INSTRUCTIONS: &str = "\
Tests MCP servers over the real wire. Say which one with `command` (starts it) or `server` (URL, or name in .mcp.json).
Go on in this order: list (does it start?), call (does a tool work?), check (what breaks clients?), test (its suites, *.mcproof.yaml).
Answers end with the number of the operation: transcript shows its wire, explain says what a rule asks for.";

pub(super) struct Server {
    binary: PathBuf,
    /// How far the connection is.
    phase: Phase,
    guardian: Guardian,
    journal: Journal,
    tools: Vec<Tool>,
    limits: Limits,
}

impl Server {
    /// `binary` is this program.
    pub(super) fn new(binary: PathBuf, phase: Phase, limits: Limits) -> Self {
        Self { binary, phase, guardian: Guardian::of_whole_process(), journal: Journal::default(), tools: tools::all(), limits }
    }

    async fn answer(&self, asked: ToolCall, context: &RequestContext<RoleServer>) -> ToolOutput {
        let job = match asked {
            ToolCall::Transcript(page) => return tool_output::of_page(page, &self.journal),
            ToolCall::Explain(rule) => return tool_output::of_rules(rule.as_deref()),
            ToolCall::Run(job) => job,
        };
        // Whichever comes first, dropping the run kills it.
        let ran = tokio::select! {
            ran = job.run(&self.binary, &self.guardian) => ran,
            () = context.ct.cancelled() => return ToolOutput::error("canceled"),
            () = self.phase.closed() => return ToolOutput::error("client disconnected"),
        };
        match ran {
            Ok(ran) => tool_output::of_job(&job, ran, &self.journal),
            Err(why) => ToolOutput::error(why),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let identity = Implementation::new("mcproof", env!("CARGO_PKG_VERSION")).with_title("mcproof");
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(identity).with_instructions(format!("{INSTRUCTIONS}{}", self.limits.told()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // All tools are one page, so that no cursor was ever handed out.
        match request.and_then(|request| request.cursor) {
            None => Ok(ListToolsResult::with_all_items(self.tools.clone())),
            Some(cursor) => Err(ErrorData::invalid_params(format!("Unknown cursor: {cursor}"), None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None);
        let tool = self.tools.iter().find(|tool| tool.name == request.name).ok_or_else(unknown)?;
        let answer = match tools::read(tool, request.arguments.unwrap_or_default(), &self.limits) {
            Ok(asked) => self.answer(asked, &context).await,
            Err(mistakes) => ToolOutput::error(mistakes),
        };
        Ok(CallToolResult::from(answer).into())
    }

    // What is not declared is not served.

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn complete(&self, _request: CompleteRequestParams, _context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// A request lands here if rmcp does not know its method, or knows it and cannot read its parameters.
    async fn on_custom_request(&self, request: CustomRequest, _context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        Err(if method == CallToolRequestMethod::VALUE {
            ErrorData::invalid_params(format!("Invalid parameters for {method}"), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {method}"), None)
        })
    }
}
