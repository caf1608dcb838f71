//! Known defects of published SDK versions, and the findings that they explain.

mod known;
mod version;

pub(crate) use known::explain;
pub use known::may_be_of_an_sdk;
