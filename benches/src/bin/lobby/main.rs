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
use rallypoint_bench::{Table, cores, machine, pin_this_thread};
use std::{env, fmt, io, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [BARE_UDP] => contender::bare_udp().map_err(Failure::from),
        [BARE_TCP, file] => contender::bare_tcp(file).map_err(Failure::from),
        [] => measure(&PARTS.map(|(name, _)| name)),
        names if names.iter().all(|name| PARTS.iter().any(|(part, _)| part == name)) => measure(names),
        _ => Err(Failure(format!("no arguments, or some of {}", PARTS.map(|(name, _)| name).join(", ")))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Measures on a core, notes how it did, and writes it down.
type Part = fn(usize, &mut Figures) -> Result<String, Failure>;

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
    let (mut figures, mut sections) = (Figures::default(), String::new());
    for (name, part) in PARTS.iter().filter(|(name, _)| names.contains(name)) {
        eprintln!("{name}");
        sections += "\n";
        sections += &part(server, &mut figures)?;
    }
    println!(
        "{}\nOn {}. The server has core {server}, the load core {load}; over loopback.\n{sections}",
        figures.table(),
        machine()
    );
    Ok(())
}

/// Every number that something was promised about.
#[derive(Default)]
struct Figures(Vec<[String; 4]>);

impl Figures {
    fn add(&mut self, name: &str, measured: String, goal: Goal) {
        let kept = if goal.is_kept { "kept" } else { "**missed**" };
        self.0.push([name.into(), measured, goal.text, kept.into()]);
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["promise", "measured", "goal", ""]);
        for row in &self.0 {
            table.row(row.clone());
        }
        table
    }
}

/// What was promised.
struct Goal {
    is_kept: bool,
    text: String,
}

impl Goal {
    fn at_least(measured: f64, least: f64, text: &str) -> Self {
        Self { is_kept: measured >= least, text: format!("at least {text}") }
    }

    fn at_most(measured: f64, most: f64, text: &str) -> Self {
        Self { is_kept: measured <= most, text: format!("at most {text}") }
    }
}

/// Why nothing could be measured.
#[derive(Debug)]
pub struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
