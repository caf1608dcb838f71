//! Servers to test against: the demo servers, which do everything right, and those that want authorization.
//! Knows MCP servers and nothing of the code that tests them.

pub mod demo;
pub mod oauth;
