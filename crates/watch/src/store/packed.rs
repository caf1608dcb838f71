//! JSON in few bytes: contracts, differences, evidence.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read as _, Write as _};

/// What one value may take once it is unpacked.
const MOST_BYTES: u64 = 64 << 20;

pub(crate) fn pack(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("what is kept has text keys only");
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&json).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

/// Nothing if it is damaged.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut json = Vec::new();
    DeflateDecoder::new(bytes).take(MOST_BYTES).read_to_end(&mut json).ok()?;
    serde_json::from_slice(&json).ok()
}
