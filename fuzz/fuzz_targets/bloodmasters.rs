//! See `rallypoint_fuzz::bloodmasters`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::bloodmasters::run(data));
