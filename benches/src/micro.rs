//! Microbenchmarks: functions that take nanoseconds to milliseconds.

use crate::{
    instructions,
    process::{cores, machine, pin_this_thread},
    table::{Table, nanoseconds, rate},
};
use std::{
    env,
    hint::black_box,
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Duration of one sample: long compared to the resolution of the clock, and short compared to a time slice of the
/// scheduler, so that most samples are not preempted.
const SAMPLE: Duration = Duration::from_millis(1);
/// Number of samples, enough for a robust median...
const SAMPLES: usize = 301;
/// ...unless they take longer than this.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// Minimum number of samples for meaningful quartiles.
const MIN_SAMPLES: usize = 11;

/// A suite of operations, and the program that measures them.
///
/// ```no_run
/// use rallypoint_bench::{Goal, Micro};
///
/// fn main() -> std::process::ExitCode {
///     let text = "45555";
///     let mut suite = Micro::new();
///     suite.op("parse a port", text.len(), move || text.parse::<u16>()).goal(Goal::MaxNanoseconds(200.0));
///     suite.main()
/// }
/// ```
///
/// Without arguments it measures all operations and prints the table. With `--op NAME --iterations N` it only runs one
/// operation N times, for counting instructions and for profilers.
#[derive(Default)]
pub struct Micro<'a> {
    ops: Vec<Op<'a>>,
}

/// An operation of the suite.
pub struct Op<'a> {
    name: String,
    bytes: usize,
    goal: Option<Goal>,
    /// Runs the operation this many times.
    run: Box<dyn FnMut(u64) + 'a>,
}

/// The goal of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Takes at most this many nanoseconds.
    MaxNanoseconds(f64),
    /// Processes at least this many bytes per second.
    MinBytesPerSecond(f64),
}

impl<'a> Micro<'a> {
    /// A suite without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation that processes `bytes` bytes (0 if not applicable). Its result is not optimized away; its inputs
    /// should be wrapped in [`black_box`] by the operation itself.
    pub fn op<T>(&mut self, name: &str, bytes: usize, mut operation: impl FnMut() -> T + 'a) -> &mut Op<'a> {
        let run = Box::new(move |iterations| {
            for _ in 0..iterations {
                black_box(operation());
            }
        });
        self.ops.push(Op { name: name.into(), bytes, goal: None, run });
        self.ops.last_mut().expect("it was just pushed")
    }

    /// The suite as a program.
    #[must_use]
    pub fn main(&mut self) -> ExitCode {
        let arguments: Vec<String> = env::args().skip(1).collect();
        match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => print!("{}", self.section()),
            ["--op", name, "--iterations", count] => match (self.find(name), count.parse()) {
                (Some(op), Ok(count)) => (op.run)(count),
                _ => return usage(),
            },
            _ => return usage(),
        }
        ExitCode::SUCCESS
    }

    fn find(&mut self, name: &str) -> Option<&mut Op<'a>> {
        self.ops.iter_mut().find(|op| op.name == name)
    }

    /// Measures everything.
    fn section(&mut self) -> String {
        // Migrating between cores costs more than most operations. Without pinning, the median has to suffice.
        let _ = cores().first().map(|core| pin_this_thread(*core));
        let mut table =
            Table::new(&["operation", "bytes", "median", "spread", "per second", "throughput", "instructions", "goal"]);
        for op in &mut self.ops {
            eprintln!("{}", op.name);
            let time = op.time();
            let instructions = instructions::per_operation(&op.name, op.iterations_for_counting(time.median));
            table.row(op.row(&time, instructions));
        }
        format!(
            "{table}\nOn {}. Median of {SAMPLES} samples of {SAMPLE:?} each (fewer for slow operations); spread: half of the interquartile range. \
             Instructions: counted by callgrind, independent of other load on the machine.\n",
            machine()
        )
    }
}

impl Op<'_> {
    /// Sets the goal, which the table compares with the measurement.
    pub fn goal(&mut self, goal: Goal) -> &mut Self {
        self.goal = Some(goal);
        self
    }

    fn time(&mut self) -> Time {
        let iterations = self.calibrate();
        let start = Instant::now();
        let mut samples = Vec::with_capacity(SAMPLES);
        while samples.len() < MIN_SAMPLES || samples.len() < SAMPLES && start.elapsed() < TIME_LIMIT {
            samples.push(self.sample(iterations).as_secs_f64() * 1e9 / iterations as f64);
        }
        Time::of(&mut samples)
    }

    /// Determines the number of operations per sample. Also warms up caches and predictors.
    fn calibrate(&mut self) -> u64 {
        let mut iterations = 1;
        loop {
            let took = self.sample(iterations);
            if took >= SAMPLE / 2 {
                let exact = iterations as f64 * SAMPLE.as_secs_f64() / took.as_secs_f64();
                return (exact as u64).max(1);
            }
            iterations *= 2;
        }
    }

    fn sample(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        (self.run)(iterations);
        start.elapsed()
    }

    /// Number of operations under callgrind, which is about fifty times slower: few enough for a fraction of a second.
    fn iterations_for_counting(&self, nanoseconds: f64) -> u64 {
        ((5e6 / nanoseconds) as u64).clamp(2, 1000)
    }

    fn row(&self, time: &Time, instructions: io::Result<f64>) -> [String; 8] {
        let per_second = 1e9 / time.median;
        let throughput = per_second * self.bytes as f64;
        let goal = self.goal.map(|goal| {
            let (is_met, text) = match goal {
                Goal::MaxNanoseconds(most) => (time.median <= most, format!("at most {}", nanoseconds(most))),
                Goal::MinBytesPerSecond(least) => (throughput >= least, format!("at least {}", rate(least, "B/s"))),
            };
            format!("{text}: {}", if is_met { "met" } else { "**missed**" })
        });
        [
            self.name.clone(),
            if self.bytes > 0 { self.bytes.to_string() } else { "–".into() },
            nanoseconds(time.median),
            format!("± {:.1} %", time.spread * 100.0),
            rate(per_second, ""),
            if self.bytes > 0 { rate(throughput, "B/s") } else { "–".into() },
            instructions.map_or("n/a".into(), |count| format!("{count:.0}")),
            goal.unwrap_or_default(),
        ]
    }
}

/// A measured time in nanoseconds.
struct Time {
    median: f64,
    /// Half the distance between the quartiles, relative to the median.
    spread: f64,
}

impl Time {
    fn of(samples: &mut [f64]) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
        Self { median: at(0.5), spread: (at(0.75) - at(0.25)) / 2.0 / at(0.5) }
    }
}

fn usage() -> ExitCode {
    eprintln!("without arguments: measure everything; with --op NAME --iterations N: only run this operation N times");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_median_and_the_spread_ignore_outliers() {
        let mut samples = [101.0, 100.0, 99.0, 98.0, 1e9];
        let time = Time::of(&mut samples);
        assert_eq!(time.median, 100.0);
        assert!((time.spread - 0.01).abs() < 1e-9);
    }

    #[test]
    fn an_operation_runs_the_given_number_of_times() {
        let count = Cell::new(0);
        let mut suite = Micro::new();
        suite.op("count", 0, || count.set(count.get() + 1));
        (suite.find("count").unwrap().run)(7);
        assert_eq!(count.get(), 7);
        assert!(suite.find("other").is_none());
    }

    #[test]
    fn a_row_shows_whether_the_goal_was_met() {
        let mut suite = Micro::new();
        let time = Time { median: 100.0, spread: 0.0123 };
        let op = suite.op("parse", 50, || ());
        let row = op.goal(Goal::MaxNanoseconds(200.0)).row(&time, Ok(321.4));
        assert_eq!(row, ["parse", "50", "100 ns", "± 1.2 %", "10.0 M", "500 MB/s", "321", "at most 200 ns: met"]);
        let row = op.goal(Goal::MinBytesPerSecond(1e9)).row(&time, Err(io::ErrorKind::NotFound.into()));
        assert_eq!(row[6..], ["n/a", "at least 1.00 GB/s: **missed**"]);
    }
}
