//! `cargo xtask bench cluster`: several nodes of `rallypoint serve` with one redis-server.
//!
//! All programs share the cores of this machine, so the figures are a lower bound of what separate machines do.

use rallypoint_bench::{Failure, Goals, Table, address, cpu_time, machine, registration};
use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    ops::Range,
    process::{Child, Command, ExitCode, Stdio},
    slice, thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Numbers of servers for which the load of the store is measured.
const SIZES: [u32; 2] = [10_000, 100_000];

/// Servers register every 30 seconds.
const REFRESH: Duration = Duration::from_secs(30);

/// How long the load of the store is measured.
const STEADY: Duration = Duration::from_secs(20);

/// Changes per second while propagation is measured, and number of samples.
const CHANGES: u32 = 2_000;
const SAMPLES: u32 = 200;

/// Registrations per second while servers are added: the limits of the lobby are off.
const LOADING_RATE: u32 = 10_000;

const SECRET: &str = "the secret of the benchmark's cluster";

/// First number of the servers by which propagation is measured.
const PROBES: u32 = 5_000_000;

fn main() -> ExitCode {
    Failure::exit(measure())
}

fn measure() -> Result<(), Failure> {
    let mut goals = Goals::new();
    compare_with_a_lobby_alone(&mut goals)?;
    let (table, joins) = measure_store_load(&mut goals)?;
    let script = measure_propagation(&mut goals)?;
    println!(
        "{goals}\nOn {}; three nodes, the store and the load share its cores, over loopback.\n\n{joins}\n\
         A change takes {:.0} µs of the store's one thread, which would be busy with {:.0} changes per second.\n\n\
         The load of the store by servers that refresh every 30 seconds, each at one of three nodes:\n\n{table}",
        machine(),
        microseconds(script),
        1.0 / script.as_secs_f64()
    );
    Ok(())
}

/// Measures refreshes and lists of a node and of a lobby without a cluster.
fn compare_with_a_lobby_alone(goals: &mut Goals) -> Result<(), Failure> {
    let alone = cpu_costs(None)?;
    let store = Store::start()?;
    let clustered = cpu_costs(Some(&store))?;
    for (what, alone, clustered) in
        [("refreshes", alone.refresh, clustered.refresh), ("lists of 20,000 servers", alone.list, clustered.list)]
    {
        let ratio = alone.as_secs_f64() / clustered.as_secs_f64();
        let text =
            format!("{:.0} % ({:.1} µs, alone {:.1} µs)", 100.0 * ratio, microseconds(clustered), microseconds(alone));
        let name = format!("speed of {what} in a cluster, relative to a lobby alone");
        goals.add(&name, text, "at least 90 %", ratio >= 0.9);
    }
    Ok(())
}

/// Measures the load of the store by servers that refresh. Returns a table, and a sentence about a node that joins.
fn measure_store_load(goals: &mut Goals) -> Result<(Table, String), Failure> {
    let mut table = Table::new(&[
        "servers",
        "commands/s of the nodes",
        "with those that scripts execute",
        "kB/s to the store",
        "kB/s from the store",
        "memory of the store",
    ]);
    let mut joins = String::new();
    for size in SIZES {
        eprintln!("{size} servers");
        let store = Store::start()?;
        let nodes = [Node::start(Some(&store))?, Node::start(Some(&store))?, Node::start(Some(&store))?];
        load(&nodes, size)?;
        wait_until("all nodes have all servers", || Ok(nodes.iter().all(|node| node.count() == size)))?;
        if size == SIZES[1] {
            let start = Instant::now();
            let joining = Node::start(Some(&store))?;
            wait_until("the joining node has all servers", || Ok(joining.count() == size))?;
            let time = start.elapsed();
            joins = format!("A node that joins has {size} servers {:.1} s after its start.\n", time.as_secs_f64());
            goals.add("100,000 servers load into a joining node", seconds(time), "within 5 s", time.as_secs() < 5);
        }
        let before = store.stats()?;
        let start = Instant::now();
        let rate = size / REFRESH.as_secs() as u32;
        while start.elapsed() < STEADY {
            let second = start.elapsed().as_secs() as u32 % 30;
            send(&nodes, second * rate..(second + 1) * rate, rate.max(1))?;
        }
        let after = store.stats()?;
        let time = start.elapsed().as_secs_f64();
        let per_second = |index: usize| (after[index] - before[index]) as f64 / time;
        if size == SIZES[1] {
            let commands = per_second(0);
            let text = format!("{commands:.1} ({:.1} with those that scripts execute)", per_second(1));
            goals.add("commands per second at the store, 100,000 servers", text, "about ten", commands < 15.0);
        }
        table.row([
            size.to_string(),
            format!("{:.1}", per_second(0)),
            format!("{:.1}", per_second(1)),
            format!("{:.1}", per_second(2) / 1e3),
            format!("{:.1}", per_second(3) / 1e3),
            format!("{:.1} MB", store.memory()? as f64 / 1e6),
        ]);
    }
    Ok((table, joins))
}

/// Measures the time that changes take to reach the other nodes. Returns the time that a change takes at the store.
fn measure_propagation(goals: &mut Goals) -> Result<Duration, Failure> {
    eprintln!("propagation");
    let store = Store::start()?;
    let nodes = [Node::start(Some(&store))?, Node::start(Some(&store))?, Node::start(Some(&store))?];
    let mut times = propagation(&nodes)?;
    let script = store.script_time()?;
    times.sort_unstable();
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100];
    let name = format!("propagation with {CHANGES} changes per second");
    let median = percentile(50);
    goals.add(&format!("{name}, median"), seconds(median), "under 50 ms", median < Duration::from_millis(50));
    let high = percentile(99);
    goals.add(&format!("{name}, 99th percentile"), seconds(high), "under 500 ms", high < Duration::from_millis(500));
    Ok(script)
}

/// CPU time of a node with 20,000 servers.
struct CpuCosts {
    /// Per refresh.
    refresh: Duration,
    /// Per list reply.
    list: Duration,
}

fn cpu_costs(store: Option<&Store>) -> Result<CpuCosts, Failure> {
    const SERVERS: u32 = 20_000;
    const ROUNDS: u32 = 15;
    const LISTS: u32 = 300;
    let node = Node::start(store)?;
    load(slice::from_ref(&node), SERVERS)?;
    // The first writes to the store and the list are over.
    thread::sleep(Duration::from_secs(3));
    let before = cpu_time(node.child.id())?;
    for _ in 0..ROUNDS {
        send(slice::from_ref(&node), 0..SERVERS, 60_000)?;
    }
    thread::sleep(Duration::from_millis(300));
    let refreshed = cpu_time(node.child.id())?;
    for _ in 0..LISTS {
        let size = io::copy(&mut request_list(node.addr, &game())?, &mut io::sink())?;
        if size < u64::from(SERVERS) * 100 {
            return Err(Failure(format!("a list of {SERVERS} servers has {size} bytes")));
        }
    }
    let listed = cpu_time(node.child.id())?;
    Ok(CpuCosts { refresh: (refreshed - before) / (SERVERS * ROUNDS), list: (listed - refreshed) / LISTS })
}

/// How long it takes until a registration at the first node is in the list of the last, while others change.
fn propagation(nodes: &[Node; 3]) -> Result<Vec<Duration>, Failure> {
    const SERVERS: u32 = 10_000;
    load(&nodes[..1], SERVERS)?;
    wait_until("all nodes have all servers", || Ok(nodes.iter().all(|node| node.count() == SERVERS)))?;
    let mut times = Vec::new();
    let mut changed = 0;
    let mut round = 1;
    let load_start = Instant::now();
    for sample in 0..SAMPLES {
        // One network may open only some lobbies.
        let probe = PROBES + 256 * sample;
        let lobby = u128::from(probe).to_be_bytes();
        let mut datagram = registration(probe, 0);
        datagram[32..48].copy_from_slice(&lobby);
        let start = Instant::now();
        send_one(&nodes[0], probe, &datagram)?;
        loop {
            if list_count(nodes[2].addr, &lobby)? == 1 {
                times.push(start.elapsed());
                break;
            }
            if start.elapsed() > Duration::from_secs(10) {
                return Err(Failure("a registration did not reach another node".into()));
            }
            // The load continues meanwhile.
            let due = (load_start.elapsed().as_secs_f64() * f64::from(CHANGES)) as u32;
            let end = due.min(changed + 200);
            for number in changed..end {
                if number % SERVERS == 0 {
                    round += 1;
                }
                let server = number % SERVERS;
                send_one(&nodes[0], server, &registration(server, round))?;
            }
            changed = end;
            thread::sleep(Duration::from_micros(500));
        }
    }
    Ok(times)
}

/// A lobby, in a cluster or alone.
struct Node {
    child: Child,
    addr: SocketAddr,
    _dir: TempDir,
}

impl Node {
    fn start(store: Option<&Store>) -> Result<Self, Failure> {
        let dir = TempDir::new()?;
        // Built into the same directory as this program.
        let mut command = Command::new(env::current_exe()?.with_file_name("rallypoint"));
        command
            .args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--data-dir"])
            .arg(dir.path());
        for setting in ["limits.exempt=127.0.0.0/8", "history.enabled=false", "log.level=error"] {
            command.args(["--set", setting]);
        }
        if let Some(store) = store {
            command.args(["--cluster", &format!("redis://127.0.0.1:{}", store.port)]);
            command.env("RALLYPOINT_CLUSTER_SECRET", SECRET);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let addr = line.split_whitespace().last().and_then(|addr| addr.parse().ok());
        let addr = addr.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        let node = Self { child, addr, _dir: dir };
        if addr.port() == 0 { Err(Failure("rallypoint serve did not start".into())) } else { Ok(node) }
    }

    /// Number of listed servers of the game.
    fn count(&self) -> u32 {
        list_count(self.addr, &game()).unwrap_or(0)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lobby of all servers but the probes.
fn game() -> [u8; 16] {
    registration(0, 0)[32..48].try_into().unwrap_or_default()
}

/// Requests a list, which can then be read.
fn request_list(addr: SocketAddr, lobby: &[u8; 16]) -> Result<TcpStream, Failure> {
    const LIST: u128 = 0x297d_0df4_430c_bf61_640a_6408_97ea_ef57;
    let mut stream = TcpStream::connect(addr)?;
    stream.write_all(&[LIST.to_be_bytes(), *lobby].concat())?;
    Ok(stream)
}

/// The first four bytes of a list: the number of servers.
fn list_count(addr: SocketAddr, lobby: &[u8; 16]) -> Result<u32, Failure> {
    let mut stream = request_list(addr, lobby)?;
    let mut count = [0; 4];
    stream.read_exact(&mut count)?;
    Ok(u32::from_be_bytes(count))
}

/// Sends a datagram of a simulated server, from its own address.
fn send_one(node: &Node, server: u32, datagram: &[u8]) -> Result<(), Failure> {
    UdpSocket::bind((address(server), 0))?.send_to(datagram, node.addr)?;
    Ok(())
}

/// Registers servers, each at one of the nodes, until all are listed: some datagrams may be lost on a busy machine.
fn load(nodes: &[Node], servers: u32) -> Result<(), Failure> {
    let node = &nodes[0];
    for _ in 0..10 {
        send(nodes, 0..servers, LOADING_RATE)?;
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_secs(2) {
            if node.count() == servers {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    Err(Failure(format!("the node lists {} of {servers} servers", node.count())))
}

/// Registers servers at this rate per second, each at one of the nodes.
fn send(nodes: &[Node], servers: Range<u32>, rate: u32) -> Result<(), Failure> {
    let start = Instant::now();
    for (sent, server) in (0u32..).zip(servers) {
        send_one(&nodes[server as usize % nodes.len()], server, &registration(server, 0))?;
        let due = Duration::from_secs_f64(f64::from(sent) / f64::from(rate));
        if let Some(early) = due.checked_sub(start.elapsed()).filter(|early| *early > Duration::from_millis(1)) {
            thread::sleep(early);
        }
    }
    Ok(())
}

/// A redis-server.
struct Store {
    child: Child,
    port: u16,
    _dir: TempDir,
}

impl Store {
    fn start() -> Result<Self, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let dir = TempDir::new()?;
        let mut command = Command::new("redis-server");
        // It would load data from the working directory.
        command.current_dir(dir.path());
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| Failure(format!("redis-server does not start: {error}")))?;
        let store = Self { child, port, _dir: dir };
        wait_until("redis-server listens", || Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
        Ok(store)
    }

    /// Commands that the nodes sent, all commands that were processed, bytes received and bytes sent.
    fn stats(&self) -> Result<[u64; 4], Failure> {
        let info = self.info()?;
        // While nothing changes, these come from nodes only.
        let sent = ["evalsha", "eval", "xread", "zadd"].map(|name| calls(&info, name)).iter().sum();
        let names = ["total_commands_processed", "total_net_input_bytes", "total_net_output_bytes"];
        let [commands, received, replied] = names.map(|name| field(&info, name));
        Ok([sent, commands, received, replied])
    }

    /// Average time of a script, most of which are changes.
    fn script_time(&self) -> Result<Duration, Failure> {
        let info = self.info()?;
        let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
        let average = line.and_then(|line| line.split("usec_per_call=").nth(1)?.split(',').next()?.parse().ok());
        average
            .map(|average: f64| Duration::from_secs_f64(average / 1e6))
            .ok_or(Failure("no scripts were executed".into()))
    }

    fn memory(&self) -> Result<u64, Failure> {
        Ok(field(&self.info()?, "used_memory"))
    }

    fn info(&self) -> Result<String, Failure> {
        let output = Command::new("redis-cli").args(["-p", &self.port.to_string(), "INFO", "all"]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn field(info: &str, name: &str) -> u64 {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// How often a command was called.
fn calls(info: &str, command: &str) -> u64 {
    let line = format!("cmdstat_{command}:calls=");
    let value = info.lines().find_map(|text| text.strip_prefix(&*line)?.split(',').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let start = Instant::now();
    while !condition()? {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(Failure(format!("timed out waiting until {what}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A time for a table.
fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
