//! See `rallypoint_fuzz::registry`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::registry::run(data));
