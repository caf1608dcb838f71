//! What every demo answers, method by method, whatever the transport.
//! Knows the protocol: which method is served at all, and which error a wrong request gets.

#![expect(deprecated, reason = "a demo speaks every revision, deprecated parts included")]

use std::sync::{Arc, Mutex};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, ConstString, CustomRequest, CustomResult, ErrorCode, GetPromptRequestMethod, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
        ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestMethod, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};

use super::{
    DemoName, DemoOptions, analysis,
    session::{Notes, Session, is_modern},
    shop::{self, Counting, Shop},
    tool::ToolResult,
    tracker::{self, Tracker},
};
use crate::patient::Phase;

/// One demo and what it remembers for as long as the process lives. Each connection gets a handler of its own.
#[derive(Clone)]
pub(crate) struct Demo {
    subject: Arc<Subject>,
    notes: Arc<Mutex<Notes>>,
}

enum Subject {
    Tracker(Tracker),
    Shop(Shop),
    Analysis(Part, std::time::Duration),
}

/// Which servers of the analysis trio this one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    DataSource,
    MlAnalysis,
    Report,
}

impl Part {
    fn holds(self, part: Self) -> bool {
        self == Self::All || self == part
    }
}

impl Demo {
    pub(crate) fn new(options: &DemoOptions) -> Self {
        let subject = match options.name {
            DemoName::Tracker => Subject::Tracker(Tracker::new()),
            DemoName::Shop => {
                let counting = if options.miscount { Counting::OneTooMany } else { Counting::Right };
                Subject::Shop(Shop::new(counting, options.slow))
            }
            DemoName::Analysis => Subject::Analysis(Part::All, options.slow),
            DemoName::DataSource => Subject::Analysis(Part::DataSource, options.slow),
            DemoName::MlAnalysis => Subject::Analysis(Part::MlAnalysis, options.slow),
            DemoName::Report => Subject::Analysis(Part::Report, options.slow),
        };
        Self { subject: Arc::new(subject), notes: Arc::default() }
    }

    /// A handler for one more connection.
    pub(crate) fn connect(&self) -> Handler {
        Handler { subject: self.subject.clone(), session: Session::new(self.notes.clone()) }
    }
}

/// One connection to a demo.
pub(crate) struct Handler {
    subject: Arc<Subject>,
    session: Session,
}

impl Handler {
    /// How far the connection is.
    pub(crate) fn phase(&self) -> &Phase {
        self.session.phase()
    }

    /// The tracker, whose methods the other demos do not have.
    fn tracker<M: ConstString>(&self) -> Result<&Tracker, ErrorData> {
        match &*self.subject {
            Subject::Tracker(tracker) => Ok(tracker),
            _ => Err(ErrorData::method_not_found::<M>()),
        }
    }

    fn tools(&self) -> Vec<Tool> {
        match &*self.subject {
            Subject::Tracker(_) => tracker::tools(),
            Subject::Shop(_) => shop::tools(),
            Subject::Analysis(own, _) => {
                let tools = [
                    (Part::DataSource, analysis::data_source_tool()),
                    (Part::MlAnalysis, analysis::ml_analysis_tool()),
                    (Part::Report, analysis::report_tool()),
                ];
                tools.into_iter().filter(|(part, _)| own.holds(*part)).map(|(_, tool)| tool).collect()
            }
        }
    }

    async fn call(&self, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Option<ToolResult> {
        let name: &str = &request.name;
        let arguments = request.arguments.unwrap_or_default();
        match (&*self.subject, name) {
            (Subject::Tracker(tracker), _) => tracker.call(name, arguments, &self.session, context).await,
            (Subject::Shop(shop), _) => shop.call(name, arguments, &self.session, context).await,
            (Subject::Analysis(own, _), "fetch_dataset") if own.holds(Part::DataSource) => Some(analysis::fetch_dataset(name, arguments)),
            (Subject::Analysis(own, slow), "run_analysis") if own.holds(Part::MlAnalysis) => {
                Some(analysis::run_analysis(name, arguments, *slow, &self.session, context).await)
            }
            (Subject::Analysis(own, _), "generate_report") if own.holds(Part::Report) => Some(analysis::generate_report(name, arguments)),
            (Subject::Analysis(..), _) => None,
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let (name, title, instructions, capabilities) = match &*self.subject {
            Subject::Tracker(_) => (
                "tracker",
                "Issue tracker",
                "Create and read issues. The resource tracker://projects lists the projects.",
                ServerCapabilities::builder()
                    .enable_tools()
                    .enable_resources()
                    .enable_resources_subscribe()
                    .enable_prompts()
                    .enable_completions()
                    .enable_logging()
                    .build(),
            ),
            Subject::Shop(_) => (
                "shop",
                "Shop",
                "Check the inventory of PROD-123, order it, then pay for the order.",
                ServerCapabilities::builder().enable_tools().build(),
            ),
            Subject::Analysis(part, _) => {
                let (name, title, instructions) = match part {
                    Part::All => ("analysis", "Analysis", "Fetch a data set, run an analysis over its location, then report the result."),
                    Part::DataSource => ("data-source", "Data source", "Give the location of a data set to the server ml-analysis."),
                    Part::MlAnalysis => ("ml-analysis", "Analysis", "Give the result of an analysis to the server report."),
                    Part::Report => ("report", "Report", "Words what the server ml-analysis found."),
                };
                (name, title, instructions, ServerCapabilities::builder().enable_tools().build())
            }
        };
        let identity = Implementation::new(format!("mcproof-demo-{name}"), env!("CARGO_PKG_VERSION")).with_title(title);
        ServerConfig::new(capabilities).with_server_info(identity).with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        known_level(&context)?;
        only_page(request)?;
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        known_level(&context)?;
        let unknown = ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None);
        let result = self.call(request, &context).await.ok_or(unknown)?;
        Ok(result.unwrap_or_else(CallToolResult::from).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        known_level(&context)?;
        self.tracker::<ListResourcesRequestMethod>()?;
        only_page(request)?;
        Ok(ListResourcesResult::with_all_items(tracker::resources()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        known_level(&context)?;
        self.tracker::<ListResourceTemplatesRequestMethod>()?;
        only_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(tracker::resource_templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        known_level(&context)?;
        let tracker = self.tracker::<ReadResourceRequestMethod>()?;
        Ok(tracker.read_resource(&request.uri)?.into())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let tracker = self.tracker::<SubscribeRequestMethod>()?;
        tracker.subscribe(request.uri, &self.session, context.peer)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tracker::<UnsubscribeRequestMethod>()?.unsubscribe(&request.uri, &self.session);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        match &*self.subject {
            Subject::Tracker(_) => Some(requested.clone()),
            _ => None,
        }
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        match &*self.subject {
            Subject::Tracker(tracker) => tracker.listen(&subscription, self.session.phase()).await,
            _ => subscription.cancelled().await,
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        known_level(&context)?;
        self.tracker::<ListPromptsRequestMethod>()?;
        only_page(request)?;
        Ok(ListPromptsResult::with_all_items(tracker::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        known_level(&context)?;
        Ok(self.tracker::<GetPromptRequestMethod>()?.get_prompt(&request)?.into())
    }

    async fn complete(&self, request: CompleteRequestParams, _context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        self.tracker::<CompleteRequestMethod>()?.complete(&request)
    }

    async fn set_level(&self, request: SetLevelRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tracker::<SetLevelRequestMethod>()?;
        // Since 2026-07-28 each request names its level in `_meta`, and the method is gone.
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.session.set_level(request.level);
        Ok(())
    }

    /// A request lands here if rmcp does not know its method, or knows it and cannot read its parameters.
    async fn on_custom_request(&self, request: CustomRequest, _context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let tracker = matches!(&*self.subject, Subject::Tracker(_));
        let served = match request.method.as_str() {
            CallToolRequestMethod::VALUE => true,
            ReadResourceRequestMethod::VALUE
            | SubscribeRequestMethod::VALUE
            | UnsubscribeRequestMethod::VALUE
            | GetPromptRequestMethod::VALUE
            | CompleteRequestMethod::VALUE
            | SetLevelRequestMethod::VALUE => tracker,
            _ => false,
        };
        Err(if served {
            ErrorData::invalid_params(format!("The parameters of {} cannot be read", request.method), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {}", request.method), None)
        })
    }
}

/// Refuses a cursor: every list of a demo is one page, so that no cursor was ever handed out.
fn only_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(cursor) => Err(ErrorData::invalid_params(format!("Unknown cursor: {cursor}"), None)),
    }
}

/// Refuses a level of log messages that there is not: rmcp passes over one that it cannot read.
fn known_level(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    match context.meta.get(LOG_LEVEL) {
        Some(level) if context.meta.log_level().is_none() => Err(ErrorData::invalid_params(format!("Unknown log level: {level}"), None)),
        _ => Ok(()),
    }
}

/// Where a request since 2026-07-28 names the least level of the log messages that it wants.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
