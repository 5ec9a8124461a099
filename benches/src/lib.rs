//! Shared code of the benchmark suites.
//!
//! A suite is a program in `src/bin/`, named like the suite, that prints its section of `docs/benchmarks.md` as Markdown to
//! its standard output and anything else to its standard error. `cargo xtask bench SUITE` builds and runs it.
//!
//! * [`Micro`] is the complete program of a suite that times functions: nanoseconds, bytes per second, instructions.
//! * [`instructions_per_operation`] counts the instructions of one operation of any other suite, [`instructions_within`] those
//!   of one function in it, [`instructions_of`] those of another program.
//! * [`Table`], [`ratio`], [`rate`], [`nanoseconds`] format the tables of the other suites.
//! * [`Goals`] is the table that a section begins with, [`Failure`] the reason why a suite could not measure.
//! * [`cores`], [`pin_this_thread`], [`pinned`], [`cpu_time`] keep a server and its load on different cores, and measure its
//!   CPU time.
//! * [`BusyCores`] keeps cores from halting while a latency is measured.
//! * [`loopback`] measures what a message of a session costs; [`portable`] finds the programs that were built with the sockets of
//!   other platforms.
//! * [`registration`], [`address`] belong to any number of simulated game servers; [`Random`] selects among them.
//! * [`machine`] describes the machine.
#![forbid(unsafe_code)]

mod busy_cores;
mod failure;
mod game_servers;
mod goals;
mod instructions;
pub mod loopback;
mod micro;
mod portable;
mod process;
mod table;

pub use busy_cores::BusyCores;
pub use failure::Failure;
pub use game_servers::{REGISTRATION_SIZE, Random, address, registration};
pub use goals::Goals;
pub use instructions::{
    per_operation as instructions_per_operation, per_operation_of as instructions_of,
    per_operation_within as instructions_within,
};
pub use micro::{Goal, Micro, Op};
pub use portable::portable;
pub use process::{cores, cpu_time, machine, pin_this_thread, pinned};
pub use table::{Table, nanoseconds, rate, ratio};
