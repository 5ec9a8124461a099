//! `cargo xtask bench lobby`: the real `rallypoint serve` beside the least that could do the same.
//!
//! The server has one core and the load another. What they are compared with are verbs of this program (and nginx).

mod contender;
mod junk;
mod lists;
mod refresh;
mod sender;
mod stats;
mod sys;

use contender::{BARE_TCP, BARE_UDP};
use rallypoint_bench::{Failure, Promises, cores, machine, pin_this_thread};
use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [BARE_UDP] => contender::bare_udp().map_err(Failure::from),
        [BARE_TCP, file] => contender::bare_tcp(file).map_err(Failure::from),
        [] => measure(&PARTS.map(|(name, _)| name)),
        names if names.iter().all(|name| PARTS.iter().any(|(part, _)| part == name)) => measure(names),
        _ => Err(Failure(format!("no arguments, or some of {}", PARTS.map(|(name, _)| name).join(", ")))),
    };
    Failure::exit(result)
}

/// Measures on a core, notes how it did, and writes it down.
type Part = fn(usize, &mut Promises) -> Result<String, Failure>;

const PARTS: [(&str, Part); 4] = [
    ("refresh", refresh::against_bare_loop),
    ("lists", lists::against_constant),
    ("sizes", refresh::by_size),
    ("junk", junk::beside_junk),
];

fn measure(names: &[&str]) -> Result<(), Failure> {
    let [server, load, ..] = cores()[..] else {
        return Err(Failure("a server and its load need a core each, and there is only one".into()));
    };
    pin_this_thread(load)?;
    let (mut promises, mut sections) = (Promises::new(), String::new());
    for (name, part) in PARTS.iter().filter(|(name, _)| names.contains(name)) {
        eprintln!("{name}");
        sections += "\n";
        sections += &part(server, &mut promises)?;
    }
    println!(
        "{}\nOn {}. The server has core {server}, the load core {load}; over loopback.\n{sections}",
        promises,
        machine()
    );
    Ok(())
}
