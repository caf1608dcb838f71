//! Texts that are meant for the model and not for the user.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
