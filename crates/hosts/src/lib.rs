//! The configuration files of hosts that start MCP servers: where they are, and how their servers are put behind `mcproof proxy` and
//! taken out again. A file is changed at the places that matter and nowhere else: comments, order, indentation and line ends stay, so
//! that taking out gives back the bytes of before. Knows no terminal and no environment.

mod edit;
mod goose;
mod json;
mod known;
mod replace;

pub use edit::{Changed, Edit, HostFileError, ServerChange, edit};
pub use json::HOST_JSON;
pub use known::{Host, Places};
pub use replace::{backup_of, difference, read, replace};
