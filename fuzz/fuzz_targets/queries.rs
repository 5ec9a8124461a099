//! See `rallypoint_fuzz::queries`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::queries::run(data));
