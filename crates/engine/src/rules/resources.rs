//! Resources, prompts and completion.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
