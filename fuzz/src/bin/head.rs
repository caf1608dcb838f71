//! The `head` target for libFuzzer. Started by `cargo xtask fuzz head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::head::check(bytes));
