//! Progress and cancellation.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
