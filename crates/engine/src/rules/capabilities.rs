//! What a server declares, and what it does.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
