//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod bans_wait_for_the_store;
mod claimed_checks;
mod clock_of_the_store;
mod damaged_servers;
mod forged_takeover;
mod hostile_store;
mod incomplete_metadata;
mod many_leases;
mod mass_expiry;
mod messages_are_dropped;
mod nodes_converge;
mod outages;
mod registrations_reach_all_nodes;
mod reordered_replies;
mod replies_after_later_states;
mod restored_store;
mod scan_in_parts;
mod scripts_match_the_model;
mod store_errors;
mod store_without_memory;
mod support;
mod trimmed_log;
mod unconfirmed_writes;
mod values_of_other_programs;
