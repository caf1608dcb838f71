//! The `config` target for libFuzzer. Started by `cargo xtask fuzz config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::config::check(bytes));
