//! What a browser needs to be told before it talks to a server.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
