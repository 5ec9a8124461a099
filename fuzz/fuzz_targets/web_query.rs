//! See `rallypoint_fuzz::web_query`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::web_query::run(data));
