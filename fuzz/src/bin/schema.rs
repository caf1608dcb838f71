//! The `schema` target for libFuzzer. Started by `cargo xtask fuzz schema`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcproof_fuzz::schema::check(bytes));
