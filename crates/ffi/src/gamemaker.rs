//! The interface for GameMaker and engines like it, whose extensions know only `double` and `char*`.
//!
//! A thin layer: handles and results are those of the other functions, as doubles. What a call returns as a text, and the event
//! that was taken last, belong to the calling thread until its next call. Objects belong to the thread that opened them, as
//! far as [`rpgm_handle_io`] is concerned. GML code that uses it is in docs/c.md.

mod scan;
mod session;
mod state;

pub use scan::*;
pub use session::*;
pub use state::{rpgm_close, rpgm_error, rpgm_handle_io, rpgm_next_event};
