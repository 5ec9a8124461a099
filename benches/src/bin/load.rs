//! What a server of the session protocol costs, over real sockets on loopback: a full house of 255 players, and one player who
//! sends as fast as it can. Server and players have a thread each.
//!
//! `cargo run --release -p rallypoint-bench --bin load`

use rallypoint_bench::{Table, cores, machine, pin_this_thread};
use rallypoint_net::{ClientOptions, PolledClient, PolledServer, ServerEvent, ServerOptions, SessionEvent};
use rallypoint_session::{ClientConfig, Encryption, EndpointConfig};
use std::{
    error::Error,
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

const PLAYERS: usize = 255;
const FRAME: Duration = Duration::from_micros(16_667);
const SIZE: usize = 100;

/// How long a full house is looked at, and how many messages one player sends.
const LASTS: Duration = Duration::from_secs(10);
const MANY: u64 = 1_000_000;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    println!("## A server on sockets\n\n{}\n", machine());
    println!("{PLAYERS} players, 60 messages of {SIZE} bytes per second each way, 30,600 in all:\n");
    let mut table = Table::new(&["", "server's core", "players' core", "messages per second", "server, per message"]);
    for (name, encryption) in [("plain", Encryption::Plain), ("encrypted", Encryption::Encrypted)] {
        let full = full_house(&encryption)?;
        table.row(&[
            name.into(),
            format!("{:.0} %", 100.0 * full.server),
            format!("{:.0} %", 100.0 * full.players),
            format!("{:.0}", full.arrived),
            // On a busy machine frames are missed, and this is what can be compared.
            format!("{:.1} µs", 1e6 * full.server / full.arrived),
        ]);
    }
    println!("{table}");
    println!("\nOne player sends as fast as it can, in million messages per second of processor time:\n");
    let mut table = Table::new(&["", "sender", "receiver"]);
    for (name, encryption, size, stream) in [
        ("400 bytes, plain", Encryption::Plain, 400, None),
        ("400 bytes, encrypted", Encryption::Encrypted, 400, None),
        ("32 bytes in a stream, plain", Encryption::Plain, 32, Some(1_000)),
    ] {
        let (sender, receiver) = one_player(&encryption, size, stream)?;
        let rate = |time: Duration| format!("{:.2}", MANY as f64 / time.as_secs_f64() / 1e6);
        table.row(&[name.into(), rate(sender), rate(receiver)]);
    }
    println!("{table}");
    Ok(())
}

struct Full {
    /// The share of a core that the server and the players take.
    server: f64,
    players: f64,
    /// How many messages arrived per second, at either side.
    arrived: f64,
}

fn full_house(encryption: &Encryption) -> Result<Full> {
    let server = bind(None)?;
    let addr = server.local_addrs().next().ok_or("no address")?;
    let (is_over, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let serving = {
        let (is_over, heard) = (is_over.clone(), heard.clone());
        thread::spawn(move || serve(server, &is_over, &heard))
    };
    pin(1);
    let mut clients = (0..PLAYERS).map(|_| client(addr, encryption, None)).collect::<Result<Vec<_>>>()?;
    let mut message = Vec::new();
    while !clients.iter().all(PolledClient::is_connected) {
        clients.iter_mut().for_each(PolledClient::poll);
        thread::sleep(Duration::from_millis(1));
    }
    let (begin, own) = (Instant::now(), cpu_time());
    heard.store(0, Relaxed);
    let (mut received, mut next) = (0u64, begin);
    while begin.elapsed() < LASTS {
        for client in &mut clients {
            client.poll();
            while let Some(event) = client.next(&mut message) {
                received += u64::from(event == SessionEvent::Message);
            }
            client.send(&[7; SIZE])?;
            client.flush();
        }
        next += FRAME;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let (wall, own) = (begin.elapsed().as_secs_f64(), cpu_time() - own);
    is_over.store(true, Relaxed);
    let server = serving.join().map_err(|_| "the server failed")?;
    let share = |time: Duration| time.as_secs_f64() / wall;
    let arrived = (heard.load(Relaxed) + received) as f64 / wall;
    Ok(Full { server: share(server), players: share(own), arrived })
}

/// A game server with frames. The time it took on its core, from when all were there.
fn serve(mut server: PolledServer, is_over: &AtomicBool, heard: &AtomicU64) -> Duration {
    pin(0);
    let (mut message, mut next, mut begin) = (Vec::new(), Instant::now(), None);
    while !is_over.load(Relaxed) {
        server.poll();
        while let Some(event) = server.next(&mut message) {
            if let ServerEvent::Message(_) = event {
                heard.fetch_add(1, Relaxed);
            }
        }
        if server.endpoint_stats().players == PLAYERS {
            begin.get_or_insert_with(cpu_time);
            let players: Vec<_> = server.players().collect();
            for player in players {
                let _ = server.send(player, &[7; SIZE]);
            }
        }
        server.flush();
        next += FRAME;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    cpu_time() - begin.unwrap_or_default()
}

/// What sender and receiver take for so many messages.
fn one_player(encryption: &Encryption, size: usize, stream: Option<usize>) -> Result<(Duration, Duration)> {
    let mut server = bind(stream)?;
    let addr = server.local_addrs().next().ok_or("no address")?;
    let receiving = thread::spawn(move || {
        pin(0);
        let (mut message, mut heard) = (Vec::new(), 0);
        while heard < MANY {
            server.wait(Duration::from_millis(100));
            server.poll();
            while let Some(event) = server.next(&mut message) {
                heard += u64::from(matches!(event, ServerEvent::Message(_)));
            }
        }
        let time = cpu_time();
        // The last acks.
        (0..10).for_each(|_| {
            server.poll();
            thread::sleep(Duration::from_millis(5));
        });
        time
    });
    let sending = {
        let mut client = client(addr, encryption, stream)?;
        thread::spawn(move || {
            pin(1);
            let (mut message, mut sent) = (Vec::new(), 0);
            let bytes = vec![7; size];
            while sent < MANY {
                client.poll();
                while client.next(&mut message).is_some() {}
                while sent < MANY && client.send(&bytes).is_ok() {
                    sent += 1;
                }
                client.flush();
                client.wait(Duration::from_millis(1));
            }
            while client.stats().is_some_and(|stats| stats.unacked > 0) {
                client.poll();
                client.wait(Duration::from_millis(1));
            }
            cpu_time()
        })
    };
    let sender = sending.join().map_err(|_| "the sender failed")?;
    Ok((sender, receiving.join().map_err(|_| "the receiver failed")?))
}

fn bind(stream: Option<usize>) -> Result<PolledServer> {
    let config = EndpointConfig { max_players: PLAYERS, ..EndpointConfig::for_game("load") };
    let listen = vec!["127.0.0.1:0".parse()?];
    Ok(PolledServer::bind(ServerOptions { listen, stream, ..config.into() })?)
}

fn client(addr: SocketAddr, encryption: &Encryption, stream: Option<usize>) -> Result<PolledClient> {
    let config = ClientConfig { encryption: encryption.clone(), ..ClientConfig::new("player", "load") };
    Ok(PolledClient::connect(addr, ClientOptions { stream, ..config.into() })?)
}

/// Keeps this thread on one of the cores there are, if there are two.
fn pin(number: usize) {
    if let Some(core) = cores().get(number).filter(|_| cores().len() > 1) {
        // Without taskset the numbers are a little less steady.
        let _ = pin_this_thread(*core);
    }
}

/// What this thread has used of its core.
fn cpu_time() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
