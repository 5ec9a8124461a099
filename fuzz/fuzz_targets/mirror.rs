//! See `rallypoint_fuzz::mirror`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::mirror::run(data));
