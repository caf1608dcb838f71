//! The monitor: probes servers on a timer, decides what each result means, tells people, and shows it. A monitor is a probe
//! that comes again; what a probe is, only the engine knows.

pub mod config;
pub mod histogram;
pub mod incident;
pub mod maintenance;
pub mod moment;
pub mod prober;
pub mod schedule;
pub mod state;
pub mod store;
pub mod worker;
