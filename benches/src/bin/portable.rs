//! The messages of `cargo xtask bench session` per CPU second, as a program of its own: that suite starts a build of it with the
//! sockets of other platforms. Arguments: the size of a message, `packed` or `single`, `encrypted` or `plain`, and the number of
//! messages. Prints the messages per CPU second of the sender and of the receiver.
#![forbid(unsafe_code)]

use rallypoint_bench::loopback::{Cost, rallypoint};
use rallypoint_session::Encryption;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, packing, encryption, count] = &arguments[..] else { return usage() };
    let (Ok(size), Ok(count)) = (size.parse(), count.parse()) else { return usage() };
    let encryption = if encryption == "encrypted" { Encryption::Encrypted } else { Encryption::Plain };
    let Cost { sender, receiver } = rallypoint(encryption, size, packing == "packed", count);
    println!("{sender} {receiver}");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("expected SIZE packed|single encrypted|plain COUNT");
    ExitCode::from(2)
}
