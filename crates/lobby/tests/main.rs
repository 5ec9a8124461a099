//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod announce_thread;
mod bans_decided_without_contact;
mod common;
mod l12_descriptor_shortage;
mod l12_reachability;
mod l13_masked_logs;
mod l14_descriptor_shortage;
mod l14_idle_connections;
mod l14_invalid_requests;
mod l14_partial_requests;
mod l14_popular_lists;
mod l14_slow_readers;
mod l16_legacy_lobby;
mod l17_announced_servers;
mod l9_both_families_in_one_entry;
mod registrations;
mod restarts;
mod runtime_bans;
mod session_key;
mod shutdown;
mod start_errors;
mod verification;
mod watched_servers;
