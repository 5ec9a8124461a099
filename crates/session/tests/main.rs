//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod async_api;
mod channels_async;
mod channels_polled;
mod common;
mod dots_screen;
mod examples;
mod link_conditions;
mod local_clients;
mod no_allocation;
mod player_data;
mod polled_api;
mod query_replies;
mod reply_source_address;
mod streams;
mod unread_messages;
