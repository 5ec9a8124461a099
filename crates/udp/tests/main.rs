//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod batched_io;
mod bound_addresses;
mod common;
mod delivery_errors;
mod event_loop;
mod missing_facilities;
mod receive_times;
mod refused_datagrams;
mod segmentation_offload;
