//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod accessibility;
mod admin;
mod api_server_list;
mod behind_reverse_proxies;
mod common;
mod exposition;
mod front_page_budget;
mod health;
mod history_ranges;
mod hostile_clients;
mod invalid_requests;
mod l17_bloodmasters_master_list;
mod legacy_status_page;
mod live_connection_behind_a_proxy;
mod live_events;
mod metrics;
mod networks_share_the_web_server;
mod openapi_conformance;
mod pages_at_every_width;
mod pages_in_a_browser;
mod pages_without_javascript;
mod server_page;
mod site_settings;
mod verification;
mod watched_servers;
mod why_page;
