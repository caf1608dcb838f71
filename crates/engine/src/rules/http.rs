//! Status codes, media types and methods.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
