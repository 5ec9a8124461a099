//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod becoming_known;
mod check_does_not_allocate;
mod clock_jumps_are_harmless;
mod common;
mod config_errors;
mod constant_cost;
mod floods_do_not_evict_heavy_sources;
mod floods_spare_known_sources;
mod honest_servers_are_never_refused;
mod hosting_provider_in_one_network;
mod l9_mapped_ipv4_is_ipv4;
mod matches_a_naive_model;
mod memory_is_bounded;
mod network_budgets;
mod refused_datagrams_are_not_charged;
mod reload_keeps_state;
mod reserved_shares;
mod s11_reply_budgets;
mod special_purpose_addresses;
