//! Lists and honest servers while junk arrives.

use crate::{
    contender::Contender,
    lists,
    refresh::register,
    sender::Sender,
    stats::{median, quantile},
};
use rallypoint_bench::{
    Awake, Failure, Promises, REGISTRATION_SIZE, Random, Table, address, nanoseconds, rate, registration,
};
use rallypoint_wire::lobby::blocks;
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

const JUNK_PER_SECOND: u32 = 50_000;
const LISTS_PER_SECOND: u32 = 200;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 5;
/// In each round, of the servers that are there: so many have something new, and so many come.
const CHANGED: u32 = 200;
const NEW: u32 = 200;

/// How fast lists are, and what becomes of honest servers.
pub fn beside_junk(core: usize, promises: &mut Promises) -> Result<String, Failure> {
    // Loopback has no privileges here, like the rest of the world.
    let lobby = Contender::lobby(core, &["limits.exempt=off", "lobby.lease=1h"])?;
    register(&lobby, lists::SERVERS)?;
    let mut honest = Honest { players: vec![0; lists::SERVERS as usize], sent: 0 };
    let mut table = Table::new(&[
        "server",
        "junk",
        "list p50",
        "list p99",
        "slowest",
        "lists",
        "honest",
        "got through",
        "lost in the socket",
        "CPU",
    ]);
    let (mut p99s, mut missing) = ([Vec::new(), Vec::new()], 0);
    let _awake = Awake::keep(core)?;
    // The first is without junk, for comparison.
    for round in 0..=ROUNDS {
        let junk_per_second = if round == 0 { 0 } else { JUNK_PER_SECOND };
        // The least that could do the same: it counts what arrives, and has the list of the moment as a constant.
        let reply = lists::download(lobby.addr)?;
        let (counter, constant) = (Contender::bare_udp(core)?, Contender::bare_tcp(core, &reply)?);
        let targets = [
            Target { name: "rallypoint serve", datagrams: &lobby, lists: &lobby },
            Target { name: "bare loops", datagrams: &counter, lists: &constant },
        ];
        for (target, p99s) in targets.iter().zip(&mut p99s) {
            let is_ours = target.lists.addr == lobby.addr;
            let (drops, cpu, already) = (target.datagrams.queue()?.drops, target.cpu()?, honest.sent);
            let outcome = run(target, reply.len(), junk_per_second, is_ours.then_some(&mut honest))?;
            let (drops, used) = (target.datagrams.queue()?.drops - drops, target.cpu()? - cpu);
            let (sent, lost) = match is_ours {
                true => (honest.sent - already, honest.missing(&lists::download(lobby.addr)?)),
                false => (0, 0),
            };
            let p99 = quantile(&outcome.latencies, 0.99);
            if junk_per_second > 0 {
                missing += lost;
                p99s.push(p99);
            }
            let of_ours = |number: u64| if is_ours { number.to_string() } else { "–".into() };
            table.row([
                target.name.into(),
                rate(outcome.junk, "/s"),
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
    let [p99, bare] = p99s.map(|p99s| median(&p99s));
    promises.add(
        "list p99 while 50,000 junk datagrams per second arrive",
        format!("{}; bare loops {}", nanoseconds(p99), nanoseconds(bare)),
        "at most 5 ms",
        p99 <= 5e6,
    );
    promises.add("honest registrations lost meanwhile", missing.to_string(), "at most 0", missing == 0);
    Ok(format!(
        "### Junk\n\n{table}\n\
         Rounds of {ROUND:?}. Junk comes from four million addresses: noise, registrations that are cut, registrations of \
         another protocol. Limits are in force for loopback, too. Meanwhile {LISTS_PER_SECOND} lists per second are asked for \
         (from connect to the end of the reply), {CHANGED} listed servers report a change and {NEW} new ones register; they \
         got through if the list says so at the end of the round. The bare loops have the same core and the same junk in \
         turn: one counts datagrams, the other writes the list of the moment as a constant. What they need is the machine's. \
         {}\n",
        Awake::NOTE
    ))
}

/// What gets the junk, and what is asked for lists meanwhile.
struct Target<'a> {
    name: &'static str,
    datagrams: &'a Contender,
    lists: &'a Contender,
}

impl Target<'_> {
    /// The processor time used so far.
    fn cpu(&self) -> Result<Duration, Failure> {
        let datagrams = self.datagrams.cpu()?;
        Ok(if self.is_one() { datagrams } else { datagrams + self.lists.cpu()? })
    }

    /// Whether one process does both.
    fn is_one(&self) -> bool {
        self.datagrams.addr == self.lists.addr
    }
}

/// The servers that ought to be in the list, and what they said last.
struct Honest {
    players: Vec<u16>,
    sent: u64,
}

impl Honest {
    /// How many servers are not in the list as they should be.
    fn missing(&self, list: &[u8]) -> u64 {
        let listed = blocks(list).filter_map(Result::ok);
        let listed: HashMap<_, _> = listed.filter_map(|block| Some((block.v4?.ip, block.occupancy.players))).collect();
        let is_missing = |(server, players): &(u32, &u16)| listed.get(&address(*server)) != Some(players);
        (0..).zip(&self.players).filter(is_missing).count() as u64
    }

    /// What the next of them sends.
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
    junk: f64,
}

fn run(
    target: &Target<'_>,
    at_least: usize,
    junk_per_second: u32,
    honest: Option<&mut Honest>,
) -> Result<Outcome, Failure> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let junk = scope.spawn(|| send_junk(target.datagrams.addr, junk_per_second, &is_over));
        let lists = scope.spawn(|| ask_for_lists(target.lists.addr, at_least, &is_over));
        let sent = match honest {
            Some(honest) => send_honest(target.datagrams.addr, honest),
            None => {
                thread::sleep(ROUND);
                Ok(())
            }
        };
        is_over.store(true, Relaxed);
        let (junk, lists) = (junk.join().expect("no panic")?, lists.join().expect("no panic")?);
        sent?;
        // What was changed last is to be published.
        thread::sleep(Duration::from_millis(500));
        Ok(Outcome { latencies: lists, junk })
    })
}

/// Says how many per second it really was.
fn send_junk(to: SocketAddr, per_second: u32, is_over: &AtomicBool) -> Result<f64, Failure> {
    let (mut sender, mut random, start) = (Sender::new(to)?, Random::new(7), Instant::now());
    let mut noise = [0; 300];
    while !is_over.load(Relaxed) {
        let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as u64;
        while sender.sent < due {
            let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + random.below(1 << 22));
            let mut honest_looking = registration(random.below(u32::MAX), 0);
            let bytes = match random.below(3) {
                0 => {
                    noise.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&random.next().to_le_bytes()));
                    &noise[..random.below(300) as usize]
                }
                1 => &honest_looking[..random.below(REGISTRATION_SIZE as u32 - 1) as usize],
                _ => {
                    honest_looking[3] ^= 1;
                    &honest_looking[..]
                }
            };
            sender.push(from, bytes)?;
        }
        thread::sleep(Duration::from_micros(500));
    }
    Ok(sender.sent as f64 / start.elapsed().as_secs_f64())
}

/// Says how long each took, in nanoseconds, from connecting to the end of the reply.
fn ask_for_lists(from: SocketAddr, at_least: usize, is_over: &AtomicBool) -> Result<Vec<f64>, Failure> {
    let mut client = lists::Client::new(&lists::request(), at_least);
    let (mut random, mut latencies) = (Random::new(9), Vec::new());
    let pause = Duration::from_secs(1) / LISTS_PER_SECOND;
    while !is_over.load(Relaxed) {
        thread::sleep(pause);
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 0).to_bits() + random.below(1 << 16));
        let start = Instant::now();
        let result = client.exchange(address, from);
        // A list that does not come is one that takes for ever.
        latencies.push(result.map_or(f64::INFINITY, |()| start.elapsed().as_nanos() as f64));
    }
    Ok(latencies)
}

/// Spreads the honest datagrams over the round.
fn send_honest(to: SocketAddr, honest: &mut Honest) -> Result<(), Failure> {
    let (mut sender, mut random) = (Sender::new(to)?, Random::new(11));
    for step in 0..CHANGED + NEW {
        let server = honest.next(step, &mut random);
        sender.push(address(server), &registration(server, honest.players[server as usize]))?;
        sender.flush()?;
        thread::sleep(ROUND / (CHANGED + NEW));
    }
    Ok(())
}
