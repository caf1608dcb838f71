//! Servers to test against: the demo servers, which do everything right, one that asks back and gives tasks, those that want
//! authorization, hostile ones, and a zoo of those that break one law each.
//! Knows MCP servers and nothing of the code that tests them.

pub mod demo;
pub mod hostile;
pub mod oauth;
pub mod patient;
pub mod workshop;
pub mod zoo;

mod raw_http;
mod reach;

pub use reach::free_port;
