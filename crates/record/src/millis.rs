//! Durations as milliseconds with microsecond digits: legible, and short.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value.as_secs_f64() * 1e6).round() / 1e3)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(serde::de::Error::custom)
}
