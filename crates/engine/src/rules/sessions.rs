//! Sessions over Streamable HTTP.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
