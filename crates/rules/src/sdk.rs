//! Known defects of published SDK versions, and the findings that they explain.

mod known;
mod version;

pub(crate) use known::explain;
