//! See `rallypoint_fuzz::channel_peers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::channel_peers::run(data));
