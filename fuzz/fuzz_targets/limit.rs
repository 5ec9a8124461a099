//! See `rallypoint_fuzz::limit`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::limit::run(data));
