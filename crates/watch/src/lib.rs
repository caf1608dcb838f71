//! The monitor: probes servers on a timer, decides what each result means, tells people, and shows it. A monitor is a probe
//! that comes again; what a probe is, only the engine knows.

pub mod api_target;
pub mod channel;
pub mod chores;
pub mod clock;
pub mod config;
pub mod heartbeat;
pub mod incident;
pub mod latency;
pub mod maintenance;
pub mod metrics;
pub mod moment;
pub mod monitor;
mod news;
pub mod notifier;
pub mod otlp;
pub mod prober;
pub mod push;
pub mod role;
pub mod schedule;
pub mod seal;
pub mod standby;
pub mod state;
pub mod store;
pub mod subscribers;
pub mod web;
pub mod worker;
