//! The tests of this crate, one file per behaviour. One program, because linking a program per file takes minutes.

mod c_programs;
mod header;
mod python_package;
mod support;
