//! Whether each message has the shape that its revision demands.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
