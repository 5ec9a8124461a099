//! See `rallypoint_fuzz::prober`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::prober::run(data));
