//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod another_program_reads;
mod common;
mod damaged_file;
mod events;
mod full_disk;
mod locked_file;
mod retention;
mod roll_ups_match_a_naive_model;
mod trends_of_all_servers;
mod warm_up;
mod wrong_clock;
