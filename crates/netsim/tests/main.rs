//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod accounting;
mod bottleneck;
mod common;
mod corruption;
mod cubic;
mod delay_and_reordering;
mod determinism;
mod injection_and_filters;
mod loss;
mod machine_misuse_is_reported;
mod many_nodes;
mod packet_log;
mod partitions;
mod rebinding;
mod restart;
mod virtual_time;
