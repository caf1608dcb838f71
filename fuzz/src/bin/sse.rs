//! The `sse` target for libFuzzer. Started by `cargo xtask fuzz sse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::sse::check(bytes));
