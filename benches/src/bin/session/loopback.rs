//! The cost of a message on real sockets, for other libraries; Rallypoint's is measured by [`rallypoint_bench::loopback`].

use crate::{
    cipher,
    library::{Library, Side, ms, numbered},
    quinn::Quinn,
};
use rallypoint_bench::loopback::{Cost, Meter, join, measure, turn_messages};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session::{
    ClientConfig, Encryption, EndpointConfig, ONLY_CHANNEL, PlayerId, PolledClient, PolledServer, ServerEvent,
    ServerOptions,
};
use rallypoint_udp::{RecvBatch, SendBatch};
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};

/// The cipher alone, on messages of 400 bytes.
pub fn cipher(count: u32) -> Cost {
    let mut meter = Meter::default();
    meter.of(0, || cipher::seal(count.into()));
    meter.of(1, || cipher::open(count.into()));
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
    let address = server.local_addrs()[0];
    let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("bench", "bench") };
    let mut connect = |_| {
        let mut client = PolledClient::connect(address, config.clone()).expect("a socket");
        (join(&mut server, &mut client), client)
    };
    let (ids, mut clients): (Vec<PlayerId>, Vec<PolledClient>) = (0..players).map(&mut connect).unzip();
    let mut meter = Meter::default();
    let mut received = 0;
    let message = numbered(7, 100);
    let start = Instant::now();
    let frames = 180;
    for number in 1..=frames {
        for client in &mut clients {
            client.poll();
            while client.next_event().is_some() {}
            client.send(ONLY_CHANNEL, &message).expect("space for a game's message");
            client.flush();
        }
        meter.of(0, || {
            server.poll();
            while let Some(event) = server.next_event() {
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
    meter.time(0).as_secs_f64() / (frame * frames).as_secs_f64()
}

/// Another library, with one system call per datagram, like its own transport. Its clock advances by a frame in every step, so
/// that it never waits.
pub fn other<C: Library>(size: usize, frame: Duration, count: u32) -> Cost {
    let sockets = [0; 2].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("a socket that does not wait"));
    let mut now = Instant::now();
    let (mut server, mut client) = C::pair(now, sockets[0].local_addr().expect("an address"), size);
    let mut sent = 0;
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
    let mut sent = 0_u32;
    let mut message = numbered(0, size);
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
