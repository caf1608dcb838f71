//! Server-sent events as bytes.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
