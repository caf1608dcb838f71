//! Pages, order, repetitions.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
