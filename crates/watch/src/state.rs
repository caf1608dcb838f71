//! What is known of a target, and what one more result changes about it. Pure: reads no clock, and does no I/O.

mod observation;
mod words;

pub use observation::{Observation, ProcessFacts, Verdict};
pub use words::{Availability, Surface};
