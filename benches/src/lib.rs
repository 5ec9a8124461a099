//! What the benchmark suites share.
//!
//! A suite is a program in `src/bin/`, named like the suite, that prints its section of `docs/benchmarks.md` as Markdown to
//! its standard output and anything else to its standard error. `cargo xtask bench SUITE` builds and runs it.
//!
//! * [`Micro`] is the whole program of a suite that times functions: nanoseconds, bytes per second, instructions.
//! * [`instructions_per_operation`] counts those of one operation of a suite that is a program of its own.
//! * [`Table`], [`ratio`], [`rate`], [`nanoseconds`] write the tables of the others.
//! * [`Promises`] is the table that a section begins with, [`Failure`] why there is none.
//! * [`cores`], [`pin_this_thread`], [`pinned`], [`cpu_time`] keep a server and its load on different cores, and tell what it cost.
//! * [`Awake`] keeps cores from halting while a latency is measured.
//! * [`registration`], [`address`] are those of any number of game servers; [`Random`] chooses among them.
//! * [`machine`] says what it was measured on.
#![forbid(unsafe_code)]

mod awake;
mod failure;
mod instructions;
mod micro;
mod process;
mod promises;
mod servers;
mod table;

pub use awake::Awake;
pub use failure::Failure;
pub use instructions::per_operation as instructions_per_operation;
pub use micro::{Goal, Micro, Op};
pub use process::{cores, cpu_time, machine, pin_this_thread, pinned};
pub use promises::Promises;
pub use servers::{REGISTRATION_SIZE, Random, address, registration};
pub use table::{Table, nanoseconds, rate, ratio};
