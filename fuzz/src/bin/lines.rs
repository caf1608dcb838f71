//! The `lines` target for libFuzzer. Started by `cargo xtask fuzz lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::lines::check(bytes));
