//! See `rallypoint_fuzz::transmit`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::transmit::run(data));
