//! Origins, hosts, secrets, authorization.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
