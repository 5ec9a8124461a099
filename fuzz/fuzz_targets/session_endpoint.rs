//! See `rallypoint_fuzz::session_endpoint`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::session_endpoint::run(data));
