//! See `rallypoint_fuzz::session`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::session::run(data));
