//! The cost of a message on real sockets: messages per second of CPU time, for the sender and for the receiver.

use rallypoint_session::{
    Channel, ChannelMode, ChannelTable, ClientEvent, ClientOptions, Encryption, Layer, NewPlayer, ONLY_CHANNEL,
    PlayerId, PolledClient, PolledServer, SendError, ServerEvent, ServerOptions,
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    net::{Ipv4Addr, UdpSocket},
    time::{Duration, Instant},
};

/// Messages per second of CPU time, including the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of the side that sends them.
    pub sender: f64,
    /// Of the side that receives them.
    pub receiver: f64,
}

/// Number of messages that the program sends per turn, if they are accepted: 800 kB, or 256 kB of packed messages.
#[must_use]
pub fn turn_messages(packed: bool) -> u32 {
    if packed { 8_192 } else { 2_048 }
}

/// CPU time of each side. Both sides alternate on one thread, so that neither waits for the other.
#[derive(Debug, Default)]
pub struct Meter([Duration; 2]);

impl Meter {
    /// Does the work of a side: 0 sends, 1 receives.
    pub fn of<T>(&mut self, side: usize, work: impl FnOnce() -> T) -> T {
        let before = cpu();
        let done = work();
        self.0[side] += cpu() - before;
        done
    }

    /// The CPU time of a side.
    #[must_use]
    pub fn time(&self, side: usize) -> Duration {
        self.0[side]
    }

    /// The messages per second of both sides, if there were this many messages.
    #[must_use]
    pub fn cost(&self, messages: u32) -> Cost {
        let [sender, receiver] = self.0.map(|time| f64::from(messages) / time.as_secs_f64());
        Cost { sender, receiver }
    }
}

/// Measures `count` messages, after half as many, in which buffers grow and slow start ends. `run` is passed the number of
/// messages that have arrived at its end.
pub fn measure(count: u32, mut run: impl FnMut(&mut Meter, u32)) -> Cost {
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
///
/// # Panics
/// If the session cannot be opened, or ends.
#[must_use]
pub fn rallypoint(encryption: Encryption, size: usize, packed: bool, count: u32) -> Cost {
    let layer = if packed { Layer::Stream { max_message: 1_000, is_named: true } } else { Layer::Messages };
    session(layer, encryption, size, turn_messages(packed), count)
}

/// Messages on the first channel of sessions with this layer.
fn session(layer: Layer, encryption: Encryption, size: usize, turn: u32, count: u32) -> Cost {
    let mut options = ServerOptions::new("bench").listen((Ipv4Addr::LOCALHOST, 0).into());
    options.endpoint.layer = layer.clone();
    let mut server = PolledServer::bind(options).expect("a free port");
    let mut options = ClientOptions::new("bench", "bench").encryption(encryption);
    options.client.layer = layer;
    options.receive_buffer = 4 << 20;
    let mut client = PolledClient::connect(server.local_addrs()[0], options).expect("a socket");
    let player = join(&mut server, &mut client);
    let message = vec![7; size];
    exchange(
        count,
        turn,
        |most| {
            server.poll();
            while let Some(event) = server.next_event() {
                check_server(&event);
            }
            let sent = send_up_to(most, || server.send(player, ONLY_CHANNEL, &message));
            server.flush();
            sent
        },
        || {
            client.poll();
            let mut received = 0;
            while let Some(event) = client.next_event() {
                received += messages_in(&event);
            }
            client.flush();
            received
        },
    )
}

/// Both sides in turn: `send` sends at most the given number of messages and `receive` reads what has arrived. Both return how
/// many.
fn exchange(count: u32, turn: u32, mut send: impl FnMut(u32) -> u32, mut receive: impl FnMut() -> u32) -> Cost {
    let mut sent = 0;
    let mut received = 0;
    measure(count, |meter, until| {
        while received < until {
            sent += meter.of(0, || send(turn.min(until - sent)));
            received += meter.of(1, &mut receive);
        }
    })
}

fn check_server(event: &ServerEvent<'_>) {
    assert!(!matches!(event, ServerEvent::Disconnected(..)), "{event:?}");
}

fn send_up_to<T>(most: u32, mut send: impl FnMut() -> Result<T, SendError>) -> u32 {
    for sent in 0..most {
        match send() {
            Ok(_) => {}
            Err(SendError::WouldBlock) => return sent,
            Err(error) => panic!("{error}"),
        }
    }
    most
}

fn messages_in(event: &ClientEvent<'_>) -> u32 {
    match event {
        ClientEvent::Message { .. } => 1,
        ClientEvent::Disconnected(reason) => panic!("{reason}"),
        _ => 0,
    }
}

/// Messages of a reliable channel, through the same sockets.
///
/// # Panics
/// If the session cannot be opened, or ends.
#[must_use]
pub fn channel(encryption: Encryption, size: usize, count: u32) -> Cost {
    let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, size)]).expect("the table is valid");
    session(Layer::Channels(table), encryption, size, turn_messages(false), count)
}

/// Datagrams of this size and nothing else, with one system call each: what the system alone costs.
///
/// # Panics
/// If the sockets cannot be opened.
#[must_use]
pub fn system_calls(size: usize, count: u32) -> Cost {
    let [sender, receiver] = [0; 2].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    receiver.set_nonblocking(true).expect("a socket that does not wait");
    let to = receiver.local_addr().expect("an address");
    let message = vec![7; size];
    let mut buffer = vec![0; 2 * size];
    // As many per turn as a receive buffer of the default size holds.
    exchange(
        count,
        64,
        |most| {
            for _ in 0..most {
                sender.send_to(&message, to).expect("a datagram over loopback");
            }
            most
        },
        || (0..).take_while(|_| receiver.recv_from(&mut buffer).is_ok()).count() as u32,
    )
}

/// Logs the client in.
///
/// # Panics
/// If it takes five seconds.
pub fn join(server: &mut PolledServer, client: &mut PolledClient) -> PlayerId {
    let start = Instant::now();
    loop {
        client.poll();
        while client.next_event().is_some() {}
        server.poll();
        while let Some(event) = server.next_event() {
            if let ServerEvent::Connected(NewPlayer { player, .. }) = event {
                return player;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(5), "no login over loopback");
    }
}
