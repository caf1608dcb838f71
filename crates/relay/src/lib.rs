//! Stands between a client and a server (`proxy`), or in place of a server (`mock`).
//! Knows no suites, no terminals and no reports.

pub mod mock;
pub mod proxy;
