//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod announcer;
mod dependencies;
mod example_registers;
