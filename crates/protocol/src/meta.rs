//! Keys of `_meta` in requests (2026-07-28, basic, `_meta`).

/// From which severity on messages of the log are wanted (server/utilities/logging).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// What the client of this request can do (basic, `_meta`).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
