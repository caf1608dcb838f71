//! The modern era: discovery, metadata of requests, headers that mirror them, subscriptions.

use super::law::Rule;

pub(super) const RULES: &[Rule] = &[];
