//! The `template` target for libFuzzer. Started by `cargo xtask fuzz template`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::template::check(bytes));
