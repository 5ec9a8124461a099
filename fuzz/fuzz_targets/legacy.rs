//! See `rallypoint_fuzz::legacy`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::legacy::run(data));
