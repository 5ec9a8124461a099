//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod bloodmasters_roundtrip;
mod legacy_roundtrip;
mod lobby_no_allocation;
mod lobby_roundtrip;
mod lobby_rulings;
mod master_list_roundtrip;
mod session_no_allocation;
mod session_numbers;
mod session_truncation;
