//! `cargo xtask bench lobby`: the real `rallypoint serve` compared with minimal programs for the same task.
//!
//! The server has one core and the load another. The minimal programs are hidden commands of this one; nginx is compared, too.

mod invalid;
mod lists;
mod program;
mod refresh;
mod sender;
mod stats;
mod sys;

use program::{MINIMAL_TCP, MINIMAL_UDP};
use rallypoint_bench::{Failure, Goals, cores, machine, pin_this_thread};
use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [MINIMAL_UDP] => program::minimal_udp().map_err(Failure::from),
        [MINIMAL_TCP, file] => program::minimal_tcp(file).map_err(Failure::from),
        [] => measure(&PARTS.map(|(name, _)| name)),
        names if names.iter().all(|name| PARTS.iter().any(|(part, _)| part == name)) => measure(names),
        _ => Err(Failure(format!("expected no arguments, or some of {}", PARTS.map(|(name, _)| name).join(", ")))),
    };
    Failure::exit(result)
}

/// Measures with the server on a given core, adds the goals, and returns the text of the section.
type Part = fn(usize, &mut Goals) -> Result<String, Failure>;

const PARTS: [(&str, Part); 4] = [
    ("refresh", refresh::against_minimal_loop),
    ("lists", lists::against_constant),
    ("sizes", refresh::by_size),
    ("invalid", invalid::beside_invalid),
];

fn measure(names: &[&str]) -> Result<(), Failure> {
    let [server, load, ..] = cores()[..] else {
        return Err(Failure("a server and its load need a core each, and there is only one".into()));
    };
    pin_this_thread(load)?;
    let mut goals = Goals::new();
    let mut sections = String::new();
    for (name, part) in PARTS.iter().filter(|(name, _)| names.contains(name)) {
        eprintln!("{name}");
        sections += "\n";
        sections += &part(server, &mut goals)?;
    }
    println!(
        "{}\nOn {}. The server has core {server}, the load core {load}; over loopback.\n{sections}",
        goals,
        machine()
    );
    Ok(())
}
