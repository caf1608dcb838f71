//! The `contract` target for libFuzzer. Started by `cargo xtask fuzz contract`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::contract::check(bytes));
