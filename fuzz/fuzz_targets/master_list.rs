//! See `rallypoint_fuzz::master_list`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rallypoint_fuzz::master_list::run(data));
