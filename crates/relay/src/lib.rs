//! Stands between a client and a server (`proxy`), or in place of a server (`mock`).
//! Knows no suites, no terminals and no reports.

pub mod mock;
mod modern_request;
pub mod proxy;
