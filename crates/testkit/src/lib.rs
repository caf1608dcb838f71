//! Servers to test against: the demo servers, which do everything right, those that want authorization, and hostile ones.
//! Knows MCP servers and nothing of the code that tests them.

pub mod demo;
pub mod hostile;
pub mod oauth;
