//! The cost of a message on real sockets: messages per second of CPU time, for the sender and for the receiver.

use crate::{
    exchange,
    library::{Library, Side, ms, numbered},
    quinn::Quinn,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session::{
    ClientConfig, ClientEvent, ClientOptions, Encryption, EndpointConfig, NewPlayer, PlayerId, PolledClient,
    PolledServer, SendError, ServerEvent, ServerOptions,
};
use rallypoint_udp::{RecvBatch, SendBatch};
use rustix::time::{ClockId, clock_gettime};
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};

/// Messages per second of CPU time, including the kernel.
#[derive(Clone, Copy)]
pub struct Cost {
    pub sender: f64,
    pub receiver: f64,
}

/// Number of messages that the program sends per turn, if they are accepted: 800 kB, or 256 kB of packed messages.
fn turn_messages(packed: bool) -> u32 {
    if packed { 8_192 } else { 2_048 }
}

/// CPU time of each side. Both sides alternate on one thread, so that neither waits for the other.
#[derive(Default)]
struct Meter([Duration; 2]);

impl Meter {
    fn of<T>(&mut self, side: usize, work: impl FnOnce() -> T) -> T {
        let before = cpu();
        let done = work();
        self.0[side] += cpu() - before;
        done
    }

    fn cost(&self, messages: u32) -> Cost {
        let [sender, receiver] = self.0.map(|time| f64::from(messages) / time.as_secs_f64());
        Cost { sender, receiver }
    }
}

/// Measures `count` messages, after half as many, in which buffers grow and slow start ends. `run` is passed the number of
/// messages that have arrived at its end.
fn measure(count: u32, mut run: impl FnMut(&mut Meter, u32)) -> Cost {
    run(&mut Meter::default(), count / 2);
    let mut meter = Meter::default();
    run(&mut meter, count / 2 + count);
    meter.cost(count)
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Rallypoint, through the sockets that games use; `packed`: through the stream layer, with many messages per datagram.
pub fn rallypoint(encryption: Encryption, size: usize, packed: bool, count: u32) -> Cost {
    let stream = packed.then_some(1_000);
    let mut options = ServerOptions::from(EndpointConfig::for_game("bench"));
    options.listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    options.stream = stream;
    let mut server = PolledServer::bind(options).expect("a free port");
    let address = server.local_addrs().next().expect("an address");
    let config = ClientConfig { encryption, ..ClientConfig::new("bench", "bench") };
    let mut options = ClientOptions::from(config);
    options.stream = stream;
    options.receive_buffer = 4 << 20;
    let mut client = PolledClient::connect(address, options).expect("a socket");
    let mut buffer = Vec::new();
    let player = join(&mut server, &mut client, &mut buffer);
    let (mut sent, mut received) = (0, 0);
    let message = numbered(7, size);
    let turn = turn_messages(packed);
    measure(count, |meter, until| {
        while received < until {
            meter.of(0, || {
                server.poll();
                while let Some(event) = server.next_event(&mut buffer) {
                    assert!(!matches!(event, ServerEvent::Disconnected(..)), "{event:?}");
                }
                let most = until.min(sent + turn);
                while sent < most {
                    match server.send(player, &message) {
                        Ok(()) => sent += 1,
                        Err(SendError::WouldBlock) => break,
                        Err(error) => panic!("{error}"),
                    }
                }
                server.flush();
            });
            meter.of(1, || {
                client.poll();
                while let Some(event) = client.next_event(&mut buffer) {
                    match event {
                        ClientEvent::Message => received += 1,
                        ClientEvent::Disconnected(reason) => panic!("{reason}"),
                        _ => {}
                    }
                }
                client.flush();
            });
        }
    })
}

/// The cipher alone, on messages of 400 bytes.
pub fn cipher(count: u32) -> Cost {
    let mut meter = Meter::default();
    meter.of(0, || exchange::seal(count.into()));
    meter.of(1, || exchange::open(count.into()));
    meter.cost(count)
}

/// The share of one core that a server needs for `players` players, who send and receive 60 messages of 100 bytes per second
/// each.
pub fn crowd(players: usize) -> f64 {
    let frame = Duration::from_nanos(1_000_000_000 / 60);
    let mut options = ServerOptions::from(EndpointConfig {
        max_players: players,
        max_per_address: players,
        ..EndpointConfig::for_game("bench")
    });
    options.listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    let mut server = PolledServer::bind(options).expect("a free port");
    let address = server.local_addrs().next().expect("an address");
    let mut buffer = Vec::new();
    let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("bench", "bench") };
    let mut connect = |_| {
        let mut client = PolledClient::connect(address, config.clone()).expect("a socket");
        (join(&mut server, &mut client, &mut buffer), client)
    };
    let (ids, mut clients): (Vec<PlayerId>, Vec<PolledClient>) = (0..players).map(&mut connect).unzip();
    let (mut meter, mut received, message) = (Meter::default(), 0, numbered(7, 100));
    let (start, frames) = (Instant::now(), 180);
    for number in 1..=frames {
        for client in &mut clients {
            client.poll();
            while client.next_event(&mut buffer).is_some() {}
            client.send(&message).expect("space for a game's message");
            client.flush();
        }
        meter.of(0, || {
            server.poll();
            while let Some(event) = server.next_event(&mut buffer) {
                received += u32::from(matches!(event, ServerEvent::Message(_)));
            }
            for player in &ids {
                server.send(*player, &message).expect("space for a game's message");
            }
            server.flush();
        });
        std::thread::sleep((frame * number).saturating_sub(start.elapsed()));
    }
    assert!(received as usize > players * (frames as usize - 30), "{received} messages arrived");
    meter.0[0].as_secs_f64() / (frame * frames).as_secs_f64()
}

fn join(server: &mut PolledServer, client: &mut PolledClient, buffer: &mut Vec<u8>) -> PlayerId {
    let start = Instant::now();
    loop {
        client.poll();
        while client.next_event(buffer).is_some() {}
        server.poll();
        while let Some(event) = server.next_event(buffer) {
            if let ServerEvent::Connected(NewPlayer { player, .. }) = event {
                return player;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(5), "no login over loopback");
    }
}

/// Another library, with one system call per datagram, like its own transport. Its clock advances by a frame in every step, so
/// that it never waits.
pub fn other<C: Library>(size: usize, frame: Duration, count: u32) -> Cost {
    let sockets = [0; 2].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("a socket that does not wait"));
    let mut now = Instant::now();
    let (mut server, mut client) = C::pair(now, sockets[0].local_addr().expect("an address"), size);
    let (mut buffer, mut sent) = (Vec::new(), 0);
    while !server.is_connected() || !client.is_connected() {
        now += ms(17);
        step(&mut client, &sockets[1], now, &mut buffer);
        step(&mut server, &sockets[0], now, &mut buffer);
    }
    measure(count, |meter, until| {
        while client.received().len() < until as usize {
            now += frame;
            meter.of(0, || {
                // As many as it accepts in a step, but few enough that they do not merely fill its queue.
                let most = (sent + 256).min(client.received().len() as u32 + 2_048).min(until);
                while sent < most && server.send(now, &numbered(sent, size)) {
                    sent += 1;
                }
                step(&mut server, &sockets[0], now, &mut buffer);
            });
            meter.of(1, || step(&mut client, &sockets[1], now, &mut buffer));
        }
    })
}

/// quinn, with many datagrams per system call (GSO, GRO), as its own transport sends and receives them. Its clock advances by a
/// millisecond in every step, so that it never waits.
///
/// `packed`: the program collects messages and writes them to the stream together; otherwise it writes each of them.
pub fn quinn(size: usize, packed: bool, count: u32) -> Cost {
    let bind = || rallypoint_udp::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), 4 << 20).expect("a free port");
    let sockets = [bind(), bind()].map(Arc::new);
    for socket in &sockets {
        // Where the kernel does not support it, datagrams arrive one by one.
        let _ = socket.enable_gro();
    }
    let mut now = Instant::now();
    let (mut server, mut client) = Quinn::pair(now, sockets[0].local_addr(), size);
    let mut batches = [(); 2].map(|()| (RecvBatch::with_gro(), SendBatch::default()));
    let mut turn = |index: usize, side: &mut <Quinn as Library>::Server, now: Instant| {
        let (received, sent) = &mut batches[index];
        while received.recv(&sockets[index]).is_ok() && !received.is_empty() {
            received.iter().for_each(|datagram| side.receive(now, datagram.from, datagram.bytes));
        }
        side.handle_timeout(now);
        loop {
            sent.fill(128, |out| side.poll_transmit(now, out));
            if sent.is_empty() || sent.flush(&sockets[index..=index]).is_some() {
                break;
            }
        }
    };
    while !server.is_connected() || !client.is_connected() {
        now += ms(17);
        turn(1, &mut client, now);
        turn(0, &mut server, now);
    }
    let (mut sent, mut message) = (0_u32, numbered(0, size));
    measure(count, |meter, until| {
        while client.received().len() < until as usize {
            now += ms(1);
            meter.of(0, || {
                let most = until.min(sent + turn_messages(packed));
                while sent < most {
                    message[..4].copy_from_slice(&sent.to_le_bytes());
                    let is_accepted = if packed { server.queue(&message) } else { server.send(now, &message) };
                    if !is_accepted {
                        break;
                    }
                    sent += 1;
                }
                turn(0, &mut server, now);
            });
            meter.of(1, || turn(1, &mut client, now));
        }
    })
}

fn step(side: &mut impl Side, socket: &UdpSocket, now: Instant, buffer: &mut Vec<u8>) {
    let mut datagram = [0; 4_096];
    while let Ok((len, from)) = socket.recv_from(&mut datagram) {
        side.handle_datagram(now, from, &datagram[..len]);
    }
    side.handle_timeout(now);
    side.end_frame(now);
    buffer.clear();
    while let Some(Transmit { to, len, .. }) = side.poll_transmit(now, buffer) {
        let to: SocketAddr = to;
        // A full buffer drops it, as a network would.
        let _ = socket.send_to(&buffer[..len], to);
        buffer.clear();
    }
}
