//! Lists and valid registrations while invalid datagrams arrive.

use crate::{
    lists,
    program::Program,
    refresh::register,
    sender::Sender,
    stats::{median, quantile},
};
use rallypoint_bench::{
    BusyCores, Failure, Goals, REGISTRATION_SIZE, Random, Table, address, nanoseconds, rate, registration,
};
use rallypoint_wire::lobby::blocks;
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

const INVALID_PER_SECOND: u32 = 50_000;
const LISTS_PER_SECOND: u32 = 200;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 5;
/// In each round: number of listed servers that report a change, and number of new servers.
const CHANGED: u32 = 200;
const NEW: u32 = 200;

/// Measures list latency and lost registrations while invalid datagrams arrive.
pub fn beside_invalid(core: usize, goals: &mut Goals) -> Result<String, Failure> {
    // Rate limits apply to loopback, too.
    let lobby = Program::lobby(core, &["limits.exempt=off", "lobby.lease=1h"])?;
    register(&lobby, lists::SERVERS)?;
    let mut expected = Expected { players: vec![0; lists::SERVERS as usize], sent: 0 };
    let mut table = Table::new(&[
        "server",
        "invalid",
        "list p50",
        "list p99",
        "slowest",
        "lists",
        "registrations",
        "listed",
        "lost in the socket",
        "CPU",
    ]);
    let mut p99s = [Vec::new(), Vec::new()];
    let mut missing = 0;
    let _busy = BusyCores::start(core)?;
    // The first round has no invalid datagrams, for comparison.
    for round in 0..=ROUNDS {
        let invalid_per_second = if round == 0 { 0 } else { INVALID_PER_SECOND };
        // Minimal programs: one counts datagrams, the other writes the current list as a constant.
        let reply = lists::download(lobby.addr)?;
        let counter = Program::minimal_udp(core)?;
        let constant = Program::minimal_tcp(core, &reply)?;
        let targets = [
            Target { name: "rallypoint serve", datagrams: &lobby, lists: &lobby },
            Target { name: "minimal loops", datagrams: &counter, lists: &constant },
        ];
        for (target, p99s) in targets.iter().zip(&mut p99s) {
            let is_ours = target.lists.addr == lobby.addr;
            let drops = target.datagrams.queue()?.drops;
            let cpu = target.cpu()?;
            let already = expected.sent;
            let outcome = run(target, reply.len(), invalid_per_second, is_ours.then_some(&mut expected))?;
            let drops = target.datagrams.queue()?.drops - drops;
            let used = target.cpu()? - cpu;
            let (sent, lost) = match is_ours {
                true => (expected.sent - already, expected.missing(&lists::download(lobby.addr)?)),
                false => (0, 0),
            };
            let p99 = quantile(&outcome.latencies, 0.99);
            if invalid_per_second > 0 {
                missing += lost;
                p99s.push(p99);
            }
            let of_ours = |number: u64| if is_ours { number.to_string() } else { "–".into() };
            table.row([
                target.name.into(),
                rate(outcome.invalid, "/s"),
                nanoseconds(quantile(&outcome.latencies, 0.5)),
                nanoseconds(p99),
                nanoseconds(quantile(&outcome.latencies, 1.0)),
                outcome.latencies.len().to_string(),
                of_ours(sent),
                of_ours(sent - lost.min(sent)),
                drops.to_string(),
                format!("{:.0} %", 100.0 * used.as_secs_f64() / ROUND.as_secs_f64()),
            ]);
        }
    }
    let [p99, minimal] = p99s.map(|p99s| median(&p99s));
    goals.add(
        "list p99 while 50,000 invalid datagrams per second arrive",
        format!("{}; minimal loops {}", nanoseconds(p99), nanoseconds(minimal)),
        "at most 5 ms",
        p99 <= 5e6,
    );
    goals.add("valid registrations lost meanwhile", missing.to_string(), "at most 0", missing == 0);
    Ok(format!(
        "### Invalid datagrams\n\n{table}\n\
         Rounds of {ROUND:?}. Invalid datagrams come from four million addresses: random bytes, truncated registrations, and \
         registrations of another protocol. Rate limits apply to loopback, too. Meanwhile {LISTS_PER_SECOND} lists per second \
         are requested (timed from connect to the end of the reply), {CHANGED} listed servers report a change and {NEW} new \
         servers register; a registration counts as listed if the list shows it at the end of the round. The minimal loops \
         have the same core and receive the same datagrams in alternation: one counts datagrams, the other writes the current \
         list as a constant. Their figures show the limits of the machine. {}\n",
        BusyCores::NOTE
    ))
}

/// The programs that receive the datagrams and serve the lists.
struct Target<'a> {
    name: &'static str,
    datagrams: &'a Program,
    lists: &'a Program,
}

impl Target<'_> {
    /// CPU time used so far.
    fn cpu(&self) -> Result<Duration, Failure> {
        let datagrams = self.datagrams.cpu()?;
        Ok(if self.is_single() { datagrams } else { datagrams + self.lists.cpu()? })
    }

    /// Whether one process does both.
    fn is_single(&self) -> bool {
        self.datagrams.addr == self.lists.addr
    }
}

/// The servers that should be listed, with their last reported number of players.
struct Expected {
    players: Vec<u16>,
    sent: u64,
}

impl Expected {
    /// Number of servers that are not listed with their last report.
    fn missing(&self, list: &[u8]) -> u64 {
        let listed = blocks(list).filter_map(Result::ok);
        let listed: HashMap<_, _> = listed.filter_map(|block| Some((block.v4?.ip, block.occupancy.players))).collect();
        let is_missing = |(server, players): &(u32, &u16)| listed.get(&address(*server)) != Some(players);
        (0..).zip(&self.players).filter(is_missing).count() as u64
    }

    /// Selects the next server to send: alternately a new and a listed one.
    fn next(&mut self, step: u32, random: &mut Random) -> u32 {
        self.sent += 1;
        if step.is_multiple_of(2) {
            self.players.push(1);
            return self.players.len() as u32 - 1;
        }
        let server = random.below(lists::SERVERS);
        self.players[server as usize] += 1;
        server
    }
}

struct Outcome {
    /// In nanoseconds.
    latencies: Vec<f64>,
    /// Datagrams per second.
    invalid: f64,
}

fn run(
    target: &Target<'_>,
    at_least: usize,
    invalid_per_second: u32,
    expected: Option<&mut Expected>,
) -> Result<Outcome, Failure> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let invalid = scope.spawn(|| send_invalid(target.datagrams.addr, invalid_per_second, &is_over));
        let lists = scope.spawn(|| request_lists(target.lists.addr, at_least, &is_over));
        let sent = match expected {
            Some(expected) => send_valid(target.datagrams.addr, expected),
            None => {
                thread::sleep(ROUND);
                Ok(())
            }
        };
        is_over.store(true, Relaxed);
        let invalid = invalid.join().expect("no panic")?;
        let lists = lists.join().expect("no panic")?;
        sent?;
        // Time for the last change to be published.
        thread::sleep(Duration::from_millis(500));
        Ok(Outcome { latencies: lists, invalid })
    })
}

/// Returns the actual number of datagrams per second.
fn send_invalid(to: SocketAddr, per_second: u32, is_over: &AtomicBool) -> Result<f64, Failure> {
    let mut sender = Sender::new(to)?;
    let mut random = Random::new(7);
    let start = Instant::now();
    let mut noise = [0; 300];
    while !is_over.load(Relaxed) {
        let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as u64;
        while sender.sent < due {
            let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + random.below(1 << 22));
            let mut registration_like = registration(random.below(u32::MAX), 0);
            let bytes = match random.below(3) {
                0 => {
                    noise.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&random.next().to_le_bytes()));
                    &noise[..random.below(300) as usize]
                }
                1 => &registration_like[..random.below(REGISTRATION_SIZE as u32 - 1) as usize],
                _ => {
                    registration_like[3] ^= 1;
                    &registration_like[..]
                }
            };
            sender.push(from, bytes)?;
        }
        thread::sleep(Duration::from_micros(500));
    }
    Ok(sender.sent as f64 / start.elapsed().as_secs_f64())
}

/// Returns the duration of each request in nanoseconds, from connecting to the end of the reply.
fn request_lists(from: SocketAddr, at_least: usize, is_over: &AtomicBool) -> Result<Vec<f64>, Failure> {
    let mut client = lists::Client::new(&lists::request(), at_least);
    let mut random = Random::new(9);
    let mut latencies = Vec::new();
    let pause = Duration::from_secs(1) / LISTS_PER_SECOND;
    while !is_over.load(Relaxed) {
        thread::sleep(pause);
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 0).to_bits() + random.below(1 << 16));
        let start = Instant::now();
        let result = client.exchange(address, from);
        // A failed request counts as infinitely slow.
        latencies.push(result.map_or(f64::INFINITY, |()| start.elapsed().as_nanos() as f64));
    }
    Ok(latencies)
}

/// Spreads the valid registrations over the round.
fn send_valid(to: SocketAddr, expected: &mut Expected) -> Result<(), Failure> {
    let mut sender = Sender::new(to)?;
    let mut random = Random::new(11);
    for step in 0..CHANGED + NEW {
        let server = expected.next(step, &mut random);
        sender.push(address(server), &registration(server, expected.players[server as usize]))?;
        sender.flush()?;
        thread::sleep(ROUND / (CHANGED + NEW));
    }
    Ok(())
}
