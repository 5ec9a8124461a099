//! Refreshes per second and core, beside a loop that only counts the same datagrams; and with few and many servers.

use crate::{
    contender::Contender,
    lists,
    sender::Sender,
    stats::{median, medians},
};
use rallypoint_bench::{
    Failure, Promises, REGISTRATION_SIZE, Random, Table, address, nanoseconds, rate, ratio, registration,
};
use std::time::{Duration, Instant};

/// As many datagrams as the receive buffer of the lobby holds for certain.
const BURST: u64 = 8_192;
/// Bursts for each contender in turn, and how many turns there are.
const BURSTS: u32 = 8;
const ROUNDS: usize = 15;
/// How long the flood without pauses lasts, and how often it is repeated.
const FLOOD: Duration = Duration::from_secs(1);
const FLOODS: usize = 3;

/// Leases do not end while we measure.
pub const LONG_LEASE: &str = "lobby.lease=1h";

/// The lobby against the bare loop, both with the datagrams of a thousand servers.
pub fn against_bare_loop(core: usize, promises: &mut Promises) -> Result<String, Failure> {
    const SERVERS: u32 = 1_000;
    let (lobby, bare) = (Contender::lobby(core, &[LONG_LEASE])?, Contender::bare_udp(core)?);
    register(&lobby, SERVERS)?;
    let mut loads = [Load::new(&lobby, SERVERS)?, Load::new(&bare, SERVERS)?];

    let rounds = rounds(&mut loads)?;
    let of_round: Vec<f64> = rounds.iter().map(|costs| costs[1] / costs[0]).collect();
    let share = median(&of_round);
    promises.add(
        "refreshes per second and core, of what a bare recvmmsg loop counts",
        format!("{:.0} %", 100.0 * share),
        "at least 50 %",
        share >= 0.5,
    );
    let costs = medians(&rounds);
    let mut table = Table::new(&[
        "datagrams",
        "CPU each",
        "per second and core",
        "of the bare loop",
        "flood: sent",
        "taken",
        "lost",
        "CPU each",
    ]);
    let mut floods = [Vec::new(), Vec::new()];
    for _ in 0..FLOODS {
        for (load, floods) in loads.iter_mut().zip(&mut floods) {
            floods.push(load.flood()?);
        }
    }
    for ((name, cost), floods) in ["rallypoint serve", "bare recvmmsg loop"].iter().zip(&costs).zip(&floods) {
        let [sent, taken, lost, each] = medians(floods)[..] else { unreachable!("four numbers each") };
        table.row([
            (*name).into(),
            nanoseconds(*cost),
            rate(1e9 / cost, ""),
            ratio(costs[1], *cost),
            rate(sent, "/s"),
            rate(taken, "/s"),
            format!("{:.2} %", 100.0 * lost),
            nanoseconds(each),
        ]);
    }
    Ok(format!(
        "### Refreshes\n\n{table}\n\
         Datagrams of {REGISTRATION_SIZE} bytes from {SERVERS} servers in random order. One core cannot send as fast as another one \
         receives, so a rate by the clock would measure the sender: what counts is the processor time of the receiving \
         process, kernel included. To keep it from waking up for every single datagram, it is halted while {BURST} \
         of them are put into its receive buffer, and then has to take them all (median of {ROUNDS} rounds of {BURSTS} \
         such bursts for each in turn). Flood: for {FLOOD:?} as fast as the other core can send, median of {FLOODS}; \
         there the receiver often finds few datagrams at a time, whoever it is.\n"
    ))
}

/// The cost of a refresh and of a server with few, many and very many of them.
pub fn by_size(core: usize, promises: &mut Promises) -> Result<String, Failure> {
    const SIZES: [u32; 3] = [1_000, 100_000, 1_000_000];
    let lobbies = SIZES.map(|_| Contender::lobby(core, &[LONG_LEASE]));
    let [a, b, c] = lobbies;
    let lobbies = [a?, b?, c?];
    let mut memory = Vec::new();
    for (lobby, servers) in lobbies.iter().zip(SIZES) {
        lobby.idle()?;
        let empty = lobby.resident()?;
        register(lobby, servers)?;
        // The list is saved.
        lobby.idle()?;
        let used = lobby.resident()?.saturating_sub(empty) as f64 / f64::from(servers);
        memory.push((lobby.resident()?, used, used - REGISTRATION_SIZE as f64));
    }
    let [a, b, c] = &lobbies;
    let mut loads = [Load::new(a, SIZES[0])?, Load::new(b, SIZES[1])?, Load::new(c, SIZES[2])?];
    let rounds = rounds(&mut loads)?;
    let costs = medians(&rounds);
    let mut table =
        Table::new(&["servers", "CPU per refresh", "of the first", "memory", "per server", "beyond its datagram"]);
    for ((servers, cost), (total, used, beyond)) in SIZES.iter().zip(&costs).zip(&memory) {
        let is_much = *servers > SIZES[0];
        let of_it = |bytes: f64| if is_much { format!("{bytes:.0} B") } else { "–".into() };
        table.row([
            thousands(*servers),
            nanoseconds(*cost),
            ratio(*cost, costs[0]),
            rate(*total as f64, "B"),
            of_it(*used),
            of_it(*beyond),
        ]);
    }
    let worst = |at: usize| median(&rounds.iter().map(|costs| costs[at] / costs[0]).collect::<Vec<_>>());
    let (middle, large) = (worst(1), worst(2));
    let spread = middle.max(large).max(1.0) / middle.min(large).min(1.0);
    promises.add(
        "CPU per refresh with 1,000, 100,000 and 1,000,000 servers: dearest to cheapest",
        format!("+{:.0} %", 100.0 * (spread - 1.0)),
        "at most +20 %",
        spread <= 1.2,
    );
    let beyond = memory[1..].iter().map(|(_, _, beyond)| *beyond).fold(0.0, f64::max);
    promises.add(
        "memory per server beyond its datagram",
        format!("{beyond:.0} B"),
        "at most 1,200 B",
        beyond <= 1_200.0,
    );
    Ok(format!(
        "### Few and many servers\n\n{table}\n\
         Refreshes in random order, measured as above, the three in turn. Memory: resident, when all servers are listed and \
         the list is saved; less what the empty lobby has, and per server also less the {REGISTRATION_SIZE} bytes it sent.\n"
    ))
}

/// Registers servers with a lobby, as fast as it takes them. All of them are listed when this returns.
pub fn register(lobby: &Contender, servers: u32) -> Result<(), Failure> {
    let mut sender = Sender::new(lobby.addr)?;
    for server in 0..servers {
        sender.push(address(server), &registration(server, 0))?;
        if u64::from(server) % BURST == BURST - 1 {
            lobby.drained()?;
        }
    }
    sender.flush()?;
    lobby.drained()?;
    lists::wait_for_count(lobby.addr, servers)
}

/// Nanoseconds of processor time per datagram: for each round, and in it for each contender.
fn rounds(loads: &mut [Load<'_>]) -> Result<Vec<Vec<f64>>, Failure> {
    // What happens for the first time is not measured.
    loads.iter_mut().try_for_each(|load| load.bursts().map(drop))?;
    (0..ROUNDS).map(|_| loads.iter_mut().map(Load::bursts).collect()).collect()
}

/// Refreshes for one contender.
struct Load<'a> {
    contender: &'a Contender,
    sender: Sender,
    servers: u32,
    random: Random,
}

impl<'a> Load<'a> {
    fn new(contender: &'a Contender, servers: u32) -> Result<Self, Failure> {
        Ok(Self { contender, sender: Sender::new(contender.addr)?, servers, random: Random::new(1) })
    }

    fn send(&mut self, datagrams: u64) -> Result<(), Failure> {
        for _ in 0..datagrams {
            let server = self.random.below(self.servers);
            self.sender.push(address(server), &registration(server, 0))?;
        }
        Ok(self.sender.flush()?)
    }

    /// Nanoseconds of processor time per datagram that was waiting.
    fn bursts(&mut self) -> Result<f64, Failure> {
        let (mut used, drops) = (Duration::ZERO, self.contender.queue()?.drops);
        for _ in 0..BURSTS {
            self.contender.halt()?;
            self.send(BURST)?;
            let before = self.contender.cpu()?;
            self.contender.resume()?;
            self.contender.drained()?;
            self.contender.halt()?;
            used += self.contender.cpu()? - before;
            self.contender.resume()?;
        }
        if self.contender.queue()?.drops > drops {
            return Err(Failure(
                "a receive buffer is too small: let this run as root, or raise net.core.rmem_max".into(),
            ));
        }
        Ok(used.as_nanos() as f64 / (u64::from(BURSTS) * BURST) as f64)
    }

    /// Datagrams per second that were sent and taken, the share that was lost, and nanoseconds of processor time per
    /// datagram, when they are sent as fast as possible.
    fn flood(&mut self) -> Result<Vec<f64>, Failure> {
        let (sent, drops, cpu) = (self.sender.sent, self.contender.queue()?.drops, self.contender.cpu()?);
        let start = Instant::now();
        while start.elapsed() < FLOOD {
            self.send(1_024)?;
        }
        let took = start.elapsed().as_secs_f64();
        self.contender.drained()?;
        let (sent, lost) = ((self.sender.sent - sent) as f64, (self.contender.queue()?.drops - drops) as f64);
        let used = (self.contender.cpu()? - cpu).as_nanos() as f64;
        Ok(vec![sent / took, (sent - lost) / took, lost / sent, used / (sent - lost)])
    }
}

fn thousands(number: u32) -> String {
    match number {
        1_000_000.. => format!("{},{:03},{:03}", number / 1_000_000, number / 1_000 % 1_000, number % 1_000),
        1_000.. => format!("{},{:03}", number / 1_000, number % 1_000),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(thousands(12_034), "12,034");
        assert_eq!(thousands(999), "999");
    }
}
