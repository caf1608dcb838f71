//! What a server has to survive.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
