//! See `rallypoint_fuzz::lobby`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::lobby::run(data));
