//! See `rallypoint_fuzz::responder`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::responder::run(data));
