//! The platform layer: system calls that the standard library and socket2 do not have. All unsafe code of the workspace is
//! below this module.
//!
//! The rest of the crate uses only the names exported here, so that another platform needs another submodule and nothing
//! else.

mod linux;

pub use linux::*;
