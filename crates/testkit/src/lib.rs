//! Servers to test against: one that sends requests to the client and creates tasks, servers with authorization, hostile servers,
//! and a zoo of servers that each break one requirement.
//! Knows MCP servers and nothing of the code that tests them.

pub mod hostile;
pub mod oauth;
pub mod workshop;
pub mod zoo;

mod raw_http;
mod server_transport;

pub use server_transport::free_port;
