//! Error codes of JSON-RPC 2.0 (section 5.1) and of MCP.

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// A header differs from the body that it mirrors.
pub const HEADER_MISMATCH: i64 = -32020;
/// The revision of a request is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The client did not declare a capability that a request of the server needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// A resource does not exist; up to 2025-11-25.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
