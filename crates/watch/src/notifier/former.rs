//! Channels that are in the configuration no longer, for as long as the process runs: what was opened there is ended there, with the key
//! that led to it. Knows no messages.

use crate::config::{ChannelSpec, Config};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share what they know.
#[derive(Clone, Debug, Default)]
pub(super) struct FormerChannels(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// As it was the last time.
    config: Option<Arc<Config>>,
    /// By where they led.
    gone: BTreeMap<String, ChannelSpec>,
}

impl FormerChannels {
    /// The configuration as it is now.
    pub(super) fn follow(&self, config: &Arc<Config>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = known.config.replace(Arc::clone(config)).filter(|before| !Arc::ptr_eq(before, config)) else { return };
        let present: BTreeSet<String> = config.channels.values().map(ChannelSpec::destination).collect();
        let gone = before.channels.values().filter(|spec| spec.keeps_alerts_for_ever());
        let gone = gone.map(|spec| (spec.destination(), spec.clone())).filter(|(destination, _)| !present.contains(destination));
        known.gone.extend(gone);
    }

    /// The one that led to this place, if it is known and in the configuration no longer.
    pub(super) fn leading_to(&self, destination: &str, config: &Config) -> Option<ChannelSpec> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spec = known.gone.get(destination)?;
        config.channels.values().all(|present| present.destination() != destination).then(|| spec.clone())
    }
}
