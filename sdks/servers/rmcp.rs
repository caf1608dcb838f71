//! The smallest correct server with the crate rmcp. With a port, it serves Streamable HTTP there.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
#[allow(unused_imports)] // The macros of versions before 2 take names from here.
use rmcp::{RoleServer, model::*, service::RequestContext};
use rmcp::{ServerHandler, ServiceExt, prompt, prompt_handler, prompt_router, schemars, tool, tool_handler, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to give back
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

#[derive(Clone)]
struct Smallest;

#[tool_router]
impl Smallest {
    #[tool(description = "Gives back the message it was called with.", annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(Echo { message }): Parameters<Echo>) -> String {
        message
    }
}

#[prompt_router]
impl Smallest {
    #[prompt(description = "Asks for a greeting.")]
    async fn greet(&self, Parameters(Greet { name }): Parameters<Greet>) -> Vec<PromptMessage> {
        // As JSON: the types have other names in each major version.
        let message = serde_json::json!({ "role": "user", "content": { "type": "text", "text": format!("Greet {name}.") } });
        vec![serde_json::from_value(message).expect("it is a message")]
    }
}

#[tool_handler(router = Self::tool_router())]
#[prompt_handler(router = Self::prompt_router())]
impl ServerHandler for Smallest {
    fn get_info(&self) -> ServerInfo {
        let mut info = ServerInfo::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
        info.server_info.name = "smallest".into();
        info.server_info.version = "1.0.0".into();
        info
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(port) = std::env::args().nth(1) else {
        Smallest.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service = StreamableHttpService::new(|| Ok(Smallest), LocalSessionManager::default().into(), Default::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
