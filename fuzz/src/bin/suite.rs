//! The `suite` target for libFuzzer. Started by `cargo xtask fuzz suite`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::suite::check(bytes));
