//! What a list of tools says about each of them.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
