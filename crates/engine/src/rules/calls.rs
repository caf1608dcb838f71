//! Calling tools: arguments that are wrong, results that are.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
