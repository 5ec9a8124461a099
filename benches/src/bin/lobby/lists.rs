//! List replies per second, compared with a server that writes a constant and with nginx.

use crate::{
    program::{Program, wait_until},
    refresh::{LONG_LEASE, register, thousands},
    stats::{median, medians},
    sys,
};
use rallypoint_bench::{Failure, Goals, Random, Table, nanoseconds, rate, ratio};
use rallypoint_wire::lobby::{ListId, ListRequest};
use socket2::{Domain, Socket, Type};
use std::{
    io::{Read, Write},
    mem::MaybeUninit,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

pub const SERVERS: u32 = 1_000;
/// Number of concurrent connections.
const CLIENTS: u64 = 16;
/// Duration of the measurement of one program in each round.
const SLICE: Duration = Duration::from_millis(300);
const ROUNDS: usize = 31;
/// Numbers of servers besides [`SERVERS`], and their rounds.
const OTHER_SIZES: [u32; 2] = [100, 10_000];
const OTHER_ROUNDS: usize = 15;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Compares the lobby with a server that writes the same bytes from memory, and with nginx and the same bytes in a file.
pub fn against_constant(core: usize, goals: &mut Goals) -> Result<String, Failure> {
    let lobby = Program::lobby(core, &[LONG_LEASE])?;
    register(&lobby, SERVERS)?;
    let reply = download(lobby.addr)?;
    let minimal = Program::minimal_tcp(core, &reply)?;
    let nginx = Program::nginx(core, &reply)?;
    let has_nginx = nginx.is_some();
    let http = b"GET /reply HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut loads = vec![
        Load { name: "rallypoint serve", program: &lobby, request: request(), at_least: reply.len() },
        Load { name: "minimal TCP server", program: &minimal, request: request(), at_least: reply.len() },
    ];
    if let Some(nginx) = &nginx {
        loads.push(Load { name: "nginx", program: nginx, request: http.into(), at_least: reply.len() });
    }

    loads.iter().try_for_each(|load| load.measure().map(drop))?;
    let mut rounds: Vec<Vec<[f64; 2]>> = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(loads.iter().map(Load::measure).collect::<Result<_, _>>()?);
    }
    let column = |at: usize| -> Vec<Vec<f64>> {
        rounds.iter().map(|round| round.iter().map(|numbers| numbers[at]).collect()).collect()
    };
    let rates = column(0);
    let costs = column(1);
    let share = |rows: &[Vec<f64>], to: usize| median(&rows.iter().map(|row| row[0] / row[to]).collect::<Vec<_>>());
    // The worse of the two: if the clients are the bottleneck, wall time favours the slower server.
    let mut goal = |name: &str, to: usize, least: f64| {
        let by_clock = share(&rates, to);
        let by_cpu = 1.0 / share(&costs, to);
        goals.add(
            name,
            format!("{:.0} % by wall time, {:.0} % by CPU time", 100.0 * by_clock, 100.0 * by_cpu),
            format!("at least {:.0} %", 100.0 * least),
            by_clock.min(by_cpu) >= least,
        );
    };
    goal("list replies per second with 1,000 servers, relative to a minimal TCP server", 1, 0.8);
    let mut by_clock = vec![(SERVERS, share(&rates, 1), 1.0 / share(&costs, 1))];
    if has_nginx {
        goal("the same, relative to nginx with a static file", 2, 1.0);
    }
    let mut table = Table::new(&["server", "replies", "bytes", "lobby to this", "CPU each", "lobby to this", "busy"]);
    let rate_medians = medians(&rates);
    let cost_medians = medians(&costs);
    for (at, load) in loads.iter().enumerate() {
        table.row([
            load.name.into(),
            rate(rate_medians[at], "/s"),
            rate(rate_medians[at] * reply.len() as f64, "B/s"),
            ratio(share(&rates, at), 1.0),
            nanoseconds(cost_medians[at]),
            ratio(share(&costs, at), 1.0),
            format!("{:.0} %", rate_medians[at] * cost_medians[at] / 1e7),
        ]);
    }
    drop((lobby, minimal, nginx));
    for servers in OTHER_SIZES {
        by_clock.push(against_minimal(core, servers)?);
    }
    by_clock.sort_by_key(|(servers, ..)| *servers);
    for (servers, clock, cpu) in by_clock {
        goals.add(
            &format!(
                "list replies per second with {} servers, by wall time, relative to a minimal TCP server",
                thousands(servers)
            ),
            format!("{:.0} % ({:.0} % by CPU time)", 100.0 * clock, 100.0 * cpu),
            "at least 90 %",
            clock >= 0.9,
        );
    }
    let note = if has_nginx { "" } else { " nginx is not installed here." };
    Ok(format!(
        "### List replies\n\n{table}\n\
         {} bytes ({SERVERS} servers) per reply and one connection per request, {CLIENTS} of them at a time. The servers \
         alternate on one core for {SLICE:?} each in {ROUNDS} rounds; medians, and for ratios the median of the ratios of each \
         round. CPU: CPU time of the server's process, including the kernel. The minimal server makes four system calls per \
         connection: accept, read, write, close. nginx: one process, sendfile, tcp_nopush, open_file_cache, no log.{note}\n",
        reply.len()
    ))
}

/// Compares the lobby with the minimal server for another number of servers: by wall time and by CPU time.
fn against_minimal(core: usize, servers: u32) -> Result<(u32, f64, f64), Failure> {
    let lobby = Program::lobby(core, &[LONG_LEASE])?;
    register(&lobby, servers)?;
    let reply = download(lobby.addr)?;
    let minimal = Program::minimal_tcp(core, &reply)?;
    let loads = [("rallypoint serve", &lobby), ("minimal TCP server", &minimal)].map(|(name, program)| Load {
        name,
        program,
        request: request(),
        at_least: reply.len(),
    });
    loads.iter().try_for_each(|load| load.measure().map(drop))?;
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..OTHER_ROUNDS {
        let [lobby, minimal] = [loads[0].measure()?, loads[1].measure()?];
        ratios[0].push(lobby[0] / minimal[0]);
        ratios[1].push(minimal[1] / lobby[1]);
    }
    Ok((servers, median(&ratios[0]), median(&ratios[1])))
}

/// The request of a client.
pub fn request() -> Vec<u8> {
    let mut request = Vec::new();
    ListRequest { list_id: ListId::GANG_GARRISON_2 }.emit(&mut request);
    request
}

/// Downloads the complete reply.
pub fn download(from: SocketAddr) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(from)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&request())?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

/// Waits until the list has this number of servers.
pub fn wait_for_count(lobby: SocketAddr, servers: u32) -> Result<(), Failure> {
    wait_until("all servers are listed", || {
        let mut stream = TcpStream::connect(lobby)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(&request())?;
        let mut count = [0; 4];
        stream.read_exact(&mut count)?;
        Ok(u32::from_be_bytes(count) == servers)
    })
}

/// A minimal client, because it has to be faster than the server.
pub struct Client {
    request: Vec<u8>,
    /// Minimum size of the reply in bytes.
    at_least: usize,
    discard: Vec<MaybeUninit<u8>>,
}

impl Client {
    pub fn new(request: &[u8], at_least: usize) -> Self {
        /// Minimum size of the buffer in bytes.
        const MIN_BUFFER: usize = 1 << 20;
        let size = MIN_BUFFER.max(at_least + at_least / 8);
        Self { request: request.into(), at_least, discard: vec![MaybeUninit::uninit(); size] }
    }

    /// One exchange from a given address: connects, sends the request, and receives the reply without copying it.
    pub fn exchange(&mut self, from: Ipv4Addr, with: SocketAddr) -> Result<(), Failure> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        sys::choose_port_late(&socket)?;
        // More than the reply: the thread sleeps until the end, and the window holds the complete reply.
        sys::wake_at(&socket, self.discard.len())?;
        socket.bind(&SocketAddr::from((from, 0)).into())?;
        socket.connect(&with.into())?;
        (&socket).write_all(&self.request)?;
        let mut total = 0;
        loop {
            // For TCP, MSG_TRUNC discards the bytes.
            match socket.recv_with_flags(&mut self.discard, libc::MSG_TRUNC)? {
                0 if total >= self.at_least => return Ok(()),
                0 => return Err(Failure(format!("{total} bytes from {with} instead of {}", self.at_least))),
                taken => total += taken,
            }
        }
    }
}

/// The load on one program.
struct Load<'a> {
    name: &'static str,
    program: &'a Program,
    request: Vec<u8>,
    /// Minimum size of the reply in bytes.
    at_least: usize,
}

impl Load<'_> {
    /// Replies per second, and nanoseconds of CPU time per reply.
    fn measure(&self) -> Result<[f64; 2], Failure> {
        let cpu = self.program.cpu()?;
        let start = Instant::now();
        let is_over = AtomicBool::new(false);
        let counts: Vec<Result<u64, Failure>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn({
                        let is_over = &is_over;
                        move || self.client(client, is_over)
                    })
                })
                .collect();
            thread::sleep(SLICE);
            is_over.store(true, Relaxed);
            let join = |client: thread::ScopedJoinHandle<'_, _>| client.join().expect("a client does not panic");
            clients.into_iter().map(join).collect()
        });
        let took = start.elapsed().as_secs_f64();
        let replies = counts.into_iter().sum::<Result<u64, Failure>>()? as f64;
        let used = self.program.cpu()? - cpu;
        Ok([replies / took, used.as_nanos() as f64 / replies])
    }

    fn client(&self, number: u64, is_over: &AtomicBool) -> Result<u64, Failure> {
        let mut client = Client::new(&self.request, self.at_least);
        let mut random = Random::new(number);
        let mut replies = 0;
        let mut failures = 0;
        while !is_over.load(Relaxed) {
            let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + random.below(1 << 22));
            match client.exchange(from, self.program.addr) {
                Ok(()) => replies += 1,
                // Other programs may temporarily exhaust system-wide limits on connections.
                Err(_) if failures <= replies / 100 => failures += 1,
                Err(failure) => return Err(failure),
            }
        }
        Ok(replies)
    }
}
