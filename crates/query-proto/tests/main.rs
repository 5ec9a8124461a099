//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod a2s_over_a_lossy_network;
mod bloodmasters_captures;
mod common;
mod documentation_names_every_protocol;
mod lists_map_to_server_info;
mod malformed_replies_are_reported;
mod only_the_probed_address_counts;
mod pacing_is_even;
mod refused_servers_end_early;
mod replies_are_matched_to_their_server;
mod responder_does_not_allocate;
mod s11_replies_stay_within_their_budget;
mod s9_s10_partial_replies_name_what_is_missing;
mod server_info_survives_the_round_trip;
mod several_probes_of_one_address;
mod silent_servers_time_out;
mod ten_thousand_servers;
mod thirty_percent_loss_misses_no_server;
mod timers_match_a_naive_model;
