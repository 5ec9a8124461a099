//! Refreshes per second and core, compared with a loop that only counts the same datagrams; and with few and many servers.

use crate::{
    lists,
    program::Program,
    sender::Sender,
    stats::{median, medians},
};
use rallypoint_bench::{
    Failure, Goals, REGISTRATION_SIZE, Random, Table, address, nanoseconds, rate, ratio, registration,
};
use std::time::{Duration, Instant};

/// Number of datagrams that certainly fit into the lobby's receive buffer.
const BURST: u64 = 8_192;
/// Number of bursts for each program per round, and number of rounds.
const BURSTS: u32 = 8;
const ROUNDS: usize = 15;
/// Duration of the flood without pauses, and number of its repetitions.
const FLOOD: Duration = Duration::from_secs(1);
const FLOODS: usize = 3;

/// Leases that do not expire during the measurement.
pub const LONG_LEASE: &str = "lobby.lease=1h";

/// No budgets, which a changed registration is charged to: a thousand servers do not change thousands of times per second.
const NO_BUDGETS: &str = "limits.exempt=[\"127.0.0.0/8\"]";

/// The memory cap that a million servers need: the default, of at most 2 GiB, is slightly too low for these.
const MEMORY_FOR_ALL: &str = "caps.memory=4294967296";

/// Compares the lobby with the minimal loop, both with the datagrams of a thousand servers.
pub fn against_minimal_loop(core: usize, goals: &mut Goals) -> Result<String, Failure> {
    const SERVERS: u32 = 1_000;
    let lobby = Program::lobby(core, &[LONG_LEASE, NO_BUDGETS])?;
    let minimal = Program::minimal_udp(core)?;
    register(&lobby, SERVERS)?;
    let mut loads = [Load::new(&lobby, SERVERS)?, Load::new(&minimal, SERVERS)?];

    let rounds = rounds(&mut loads)?;
    let of_round: Vec<f64> = rounds.iter().map(|costs| costs[1] / costs[0]).collect();
    let share = median(&of_round);
    goals.add(
        "refreshes per second and core, relative to a minimal recvmmsg loop",
        format!("{:.0} %", 100.0 * share),
        "at least 50 %",
        share >= 0.5,
    );
    let costs = medians(&rounds);
    loads.iter_mut().for_each(|load| load.has_changes = true);
    let changes = self::rounds(&mut loads)?;
    loads.iter_mut().for_each(|load| load.has_changes = false);
    let changed = median(&changes.iter().map(|costs| costs[1] / costs[0]).collect::<Vec<_>>());
    goals.add(
        "registrations with another player count per second and core, relative to the minimal loop",
        format!("{:.0} % ({} each)", 100.0 * changed, nanoseconds(medians(&changes)[0])),
        "at least 40 %",
        changed >= 0.4,
    );
    let mut table = Table::new(&[
        "datagrams",
        "CPU each",
        "per second and core",
        "of the minimal loop",
        "flood: sent",
        "received",
        "lost",
        "CPU each",
    ]);
    let mut floods = [Vec::new(), Vec::new()];
    for _ in 0..FLOODS {
        for (load, floods) in loads.iter_mut().zip(&mut floods) {
            floods.push(load.flood()?);
        }
    }
    let under_flood =
        median(&floods[0].iter().zip(&floods[1]).map(|(lobby, minimal)| minimal[3] / lobby[3]).collect::<Vec<_>>());
    goals.add(
        "refreshes per second and core under a continuous flood, relative to the minimal loop",
        format!("{:.0} %", 100.0 * under_flood),
        "at least 75 %",
        under_flood >= 0.75,
    );
    for ((name, cost), floods) in ["rallypoint serve", "minimal recvmmsg loop"].iter().zip(&costs).zip(&floods) {
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
         receives, so a rate by wall time would measure the sender. The figure is therefore the CPU time of the receiving \
         process, including the kernel. So that it does not wake up for every datagram, it is stopped while {BURST} of them \
         are put into its receive buffer, and then receives them all (median of {ROUNDS} rounds of {BURSTS} such bursts for \
         each program in alternation). Flood: for {FLOOD:?} as fast as the other core can send, median of {FLOODS}; there \
         both receivers often find only a few datagrams at a time.\n"
    ))
}

/// CPU time per refresh and memory per server, with few, many and very many servers.
pub fn by_size(core: usize, goals: &mut Goals) -> Result<String, Failure> {
    const SIZES: [u32; 3] = [1_000, 100_000, 1_000_000];
    let lobbies = SIZES.map(|_| Program::lobby(core, &[LONG_LEASE, MEMORY_FOR_ALL]));
    let [a, b, c] = lobbies;
    let lobbies = [a?, b?, c?];
    let mut memory = Vec::new();
    for (lobby, servers) in lobbies.iter().zip(SIZES) {
        lobby.idle()?;
        let empty = lobby.resident()?;
        register(lobby, servers)?;
        // The list is saved meanwhile.
        lobby.idle()?;
        let used = lobby.resident()?.saturating_sub(empty) as f64 / f64::from(servers);
        memory.push((lobby.resident()?, used, used - REGISTRATION_SIZE as f64));
    }
    let [a, b, c] = &lobbies;
    let mut loads = [Load::new(a, SIZES[0])?, Load::new(b, SIZES[1])?, Load::new(c, SIZES[2])?];
    let rounds = rounds(&mut loads)?;
    let costs = medians(&rounds);
    let mut table =
        Table::new(&["servers", "CPU per refresh", "to the first", "memory", "per server", "beyond its datagram"]);
    for ((servers, cost), (total, used, beyond)) in SIZES.iter().zip(&costs).zip(&memory) {
        let is_large = *servers > SIZES[0];
        let per_server = |bytes: f64| if is_large { format!("{bytes:.0} B") } else { "–".into() };
        table.row([
            thousands(*servers),
            nanoseconds(*cost),
            ratio(*cost, costs[0]),
            rate(*total as f64, "B"),
            per_server(*used),
            per_server(*beyond),
        ]);
    }
    let worst = |at: usize| median(&rounds.iter().map(|costs| costs[at] / costs[0]).collect::<Vec<_>>());
    let middle = worst(1);
    let large = worst(2);
    let spread = middle.max(large).max(1.0) / middle.min(large).min(1.0);
    goals.add(
        "CPU per refresh with 1,000, 100,000 and 1,000,000 servers: highest relative to lowest",
        format!("+{:.0} %", 100.0 * (spread - 1.0)),
        "at most +20 %",
        spread <= 1.2,
    );
    let beyond = memory[1..].iter().map(|(_, _, beyond)| *beyond).fold(0.0, f64::max);
    goals.add("memory per server beyond its datagram", format!("{beyond:.0} B"), "at most 1,200 B", beyond <= 1_200.0);
    Ok(format!(
        "### Few and many servers\n\n{table}\n\
         Refreshes in random order, measured as above, the three lobbies in alternation. Memory: resident, when all servers are \
         listed and the list is saved; per server without the memory of the empty lobby, and in the last column also without \
         the {REGISTRATION_SIZE} bytes that the server sent.\n"
    ))
}

/// Registers servers with a lobby, as fast as it processes them. All are listed when this returns.
pub fn register(lobby: &Program, servers: u32) -> Result<(), Failure> {
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

/// Nanoseconds of CPU time per datagram, by round and program.
fn rounds(loads: &mut [Load<'_>]) -> Result<Vec<Vec<f64>>, Failure> {
    // A warm-up that is not measured.
    loads.iter_mut().try_for_each(|load| load.bursts().map(drop))?;
    (0..ROUNDS).map(|_| loads.iter_mut().map(Load::bursts).collect()).collect()
}

/// The load on one program.
struct Load<'a> {
    program: &'a Program,
    sender: Sender,
    servers: u32,
    random: Random,
    /// Whether the player count is another one each time.
    has_changes: bool,
}

impl<'a> Load<'a> {
    fn new(program: &'a Program, servers: u32) -> Result<Self, Failure> {
        Ok(Self { program, sender: Sender::new(program.addr)?, servers, random: Random::new(1), has_changes: false })
    }

    fn send(&mut self, datagrams: u64) -> Result<(), Failure> {
        for _ in 0..datagrams {
            let server = self.random.below(self.servers);
            let players = if self.has_changes { self.random.below(1 << 16) as u16 } else { 0 };
            self.sender.push(address(server), &registration(server, players))?;
        }
        Ok(self.sender.flush()?)
    }

    /// Nanoseconds of CPU time per queued datagram.
    fn bursts(&mut self) -> Result<f64, Failure> {
        let mut used = Duration::ZERO;
        let drops = self.program.queue()?.drops;
        for _ in 0..BURSTS {
            self.program.halt()?;
            self.send(BURST)?;
            let before = self.program.cpu()?;
            self.program.resume()?;
            self.program.drained()?;
            self.program.halt()?;
            used += self.program.cpu()? - before;
            self.program.resume()?;
        }
        if self.program.queue()?.drops > drops {
            return Err(Failure("the receive buffer is too small: run as root, or raise net.core.rmem_max".into()));
        }
        Ok(used.as_nanos() as f64 / (u64::from(BURSTS) * BURST) as f64)
    }

    /// Datagrams per second sent and received, the share that was lost, and nanoseconds of CPU time per datagram, when
    /// datagrams are sent as fast as possible.
    fn flood(&mut self) -> Result<Vec<f64>, Failure> {
        let sent = self.sender.sent;
        let drops = self.program.queue()?.drops;
        let cpu = self.program.cpu()?;
        let start = Instant::now();
        while start.elapsed() < FLOOD {
            self.send(1_024)?;
        }
        let took = start.elapsed().as_secs_f64();
        self.program.drained()?;
        let sent = (self.sender.sent - sent) as f64;
        let lost = (self.program.queue()?.drops - drops) as f64;
        let used = (self.program.cpu()? - cpu).as_nanos() as f64;
        Ok(vec![sent / took, (sent - lost) / took, lost / sent, used / (sent - lost)])
    }
}

pub fn thousands(number: u32) -> String {
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
