//! See `rallypoint_fuzz::channels`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::channels::run(data));
