//! The `jsonrpc` target for libFuzzer. Started by `cargo xtask fuzz jsonrpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::jsonrpc::check(bytes));
