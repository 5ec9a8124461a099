//! See `rallypoint_fuzz::ffi`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::ffi::run(data));
