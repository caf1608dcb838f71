//! The laws that a server can break, one declaration each, and their judges: pure functions from conversations to a
//! judgment. Knows no I/O and no clock, so that a saved check can be judged again.
//!
//! A judge reads a [`ConversationView`], which is a transcript with an index. What was tried in it is told by its probes; a judge
//! that finds no probe of its own says that the law was not tested.

mod alike;
mod answers;
mod broken_tools;
mod catalogue;
mod causes;
mod examples;
mod judging;
mod lost_requests;
mod net;
mod page;
mod rule_definition;
mod selection;
mod served;
mod slow;
mod traffic;
mod unanswered;

pub(crate) mod apps;
mod asking_users;
mod authorization;
mod calls;
mod capabilities;
mod connections;
mod cors;
mod disclosure;
mod discovery;
mod events;
mod fields;
mod fixtures;
mod flaws;
mod follows;
mod heads;
pub mod hosts;
mod http;
mod http_messages;
mod identifiers;
mod jsonrpc;
mod lifecycle;
mod lists;
mod lost_sessions;
mod media;
mod members;
mod modern;
mod modern_headers;
mod modern_results;
mod poisoning;
mod process;
mod progress;
mod prompts;
mod replicas;
mod request_forms;
pub mod requirements;
mod resources;
pub(crate) mod robustness;
mod sampling;
mod schema;
mod scopes;
mod sdk;
mod security;
mod sessions;
mod sse_posts;
mod sse_sessions;
mod state;
mod stdio;
mod subscriptions;
mod tasks;
pub(crate) mod texts;
mod tool_schema;
mod tools;
mod trace_context;
mod traversal;
mod utilities;

pub use catalogue::{all, find};
pub use examples::Examples;
pub use judging::{Strictness, judge, judge_one};
#[cfg(test)]
pub(crate) use mcproof_analysis::example;
pub(crate) use mcproof_analysis::{Attempt, AttemptOutcome, ConversationView, HttpExchange, WireMessage};
pub use net::report;
pub use rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Revisions, Rule, Violation, revisions};
pub use sdk::may_be_of_an_sdk;
pub use selection::{UnknownRule, of_endings, of_hosts, of_traffic, select};
pub use state::{RepeatedTools, repeated_tools};
pub use traffic::{Tester, TrafficScope, errors_of_traffic};
