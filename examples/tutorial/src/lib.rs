//! The chapter "Writing a game": its programs are the tests of this crate's documentation.
#![doc = include_str!("../../../docs/writing-a-game.md")]
