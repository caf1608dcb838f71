//! From a suite file to verdicts: parse, resolve, plan, run, judge. Never prints, never reads the environment itself.

pub mod check;
pub mod contract;
pub mod diagnosis;
#[doc(hidden)]
pub mod fuzzed;
mod json_schema;
pub mod judge;
pub mod oddities;
pub mod offer;
pub mod probe;
pub mod requirements;
pub mod rules;
pub mod run;
pub mod sdk;
pub mod starter;
pub mod suite;
mod wording;
