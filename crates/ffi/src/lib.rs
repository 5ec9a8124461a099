//! `librallypoint`: the session client and server, the announcer, lists and queries, for C and everything that can call C.
//!
//! ```c
//! #include <rallypoint.h>
//!
//! rp_server_config config = {.size = sizeof config, .game = "tag"};
//! rp_server server;
//! if (rp_server_bind(&config, &server) < 0) {
//!     char text[200];
//!     rp_last_error(text, sizeof text);
//!     puts(text);
//! }
//! ```
//!
//! `include/rallypoint.h` is generated from this crate and documents every function; docs/c.md is the guide. The rules that
//! hold for all functions:
//!
//! * **Errors.** A negative result is one of the `RP_ERROR_*` codes; [`rp_last_error`] has the sentence.
//! * **Handles** are numbers, not addresses. A handle that is closed, of another kind or made up is an error, not a crash.
//! * **Memory.** The caller owns every buffer. Nothing that a function is given is used after it returns.
//! * **Threads.** Every function may be called from any thread. An object is used by one call at a time: a call that finds its
//!   object in use by another thread returns `RP_ERROR_BUSY`.
//! * **Panics** end at this interface, as `RP_ERROR_PANIC`.
//!
//! ```text
//! client, server, announcer, scan     the functions, by object
//! handle_table                        handles to objects, with generations
//! arguments, output                   every access to memory of the caller
//! failure                             error codes, the last error of a thread, panics
//! gamemaker                           the same for engines that know only `double` and `char*`
//! ```

// The comments are those of the C header, where an IPv6 address in brackets is not a link.
#![allow(rustdoc::broken_intra_doc_links)]
#![allow(non_camel_case_types, reason = "types have the names that they have in C")]

mod announcer;
mod arguments;
mod channels;
mod client;
mod event;
mod failure;
mod gamemaker;
mod handle_table;
mod key;
mod output;
mod player_table;
mod scan;
mod scan_record;
#[cfg(any(test, feature = "script"))]
#[doc(hidden)]
pub mod script;
mod server;
mod server_info;
mod stats;
mod version;

pub use announcer::*;
pub use channels::{
    RP_CHANNEL_EXPIRING, RP_CHANNEL_RELIABLE_ORDERED, RP_CHANNEL_RELIABLE_UNORDERED, RP_CHANNEL_SEQUENCED,
    RP_MAX_CHANNELS, RP_MAX_TOKEN, rp_channel, rp_token_issue, rp_token_key,
};
pub use client::*;
pub use event::*;
pub use failure::{
    RP_ERROR_BUFFER_TOO_SMALL, RP_ERROR_BUSY, RP_ERROR_INVALID_ARGUMENT, RP_ERROR_INVALID_HANDLE,
    RP_ERROR_INVALID_TEXT, RP_ERROR_LIMIT, RP_ERROR_NOT_CONNECTED, RP_ERROR_NOT_FOUND, RP_ERROR_NULL_POINTER,
    RP_ERROR_PANIC, RP_ERROR_SYSTEM, RP_ERROR_TOO_LARGE, RP_ERROR_UNKNOWN_PLAYER, RP_ERROR_WOULD_BLOCK, RP_OK,
    rp_error_text, rp_last_error,
};
pub use gamemaker::*;
pub use key::*;
pub use scan::*;
pub use scan_record::*;
pub use server::*;
pub use server_info::rp_server_info;
pub use stats::*;
pub use version::*;
