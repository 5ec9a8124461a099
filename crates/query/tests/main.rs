//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod http_responses_are_bounded;
mod https_verifies_certificates;
mod mirror_copies_are_checked;
mod mirrors_replace_a_silent_lobby;
mod protocols_over_connections_are_probed;
mod scanner_scans_lists_and_servers;
mod tcp_servers_are_connected_to;
mod ten_thousand_servers;
