//! See `rallypoint_fuzz::list_reply`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::list_reply::run(data));
