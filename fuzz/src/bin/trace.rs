//! The `trace` target for libFuzzer. Started by `cargo xtask fuzz trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::trace::check(bytes));
