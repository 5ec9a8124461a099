//! See `rallypoint_fuzz::doors`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::doors::run(data));
