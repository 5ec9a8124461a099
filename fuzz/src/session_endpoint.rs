//! A session endpoint under scripts of datagrams, forged or not: its state stays bounded, an unverified address receives no
//! more than a login may cause, and the messages of a player are delivered once and in order.

use rallypoint_machine::Machine;
use rallypoint_session_proto::{Endpoint, EndpointConfig, ONLY_CHANNEL, PlayerId, ServerEvent};
use rallypoint_wire::session::{
    ClientData, Control, Grant, LoginSuccess, MessageNumber, NumberListBuf, Payload, ServerDatagram,
};
use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

const MEMORY: usize = 1 << 20;
const PLAYERS: usize = 3;
const ADDRESSES: u8 = 8;

/// The script's knowledge about an address.
#[derive(Default)]
struct Known {
    /// The last login success that was sent there, as bytes.
    success: Option<Vec<u8>>,
    /// Whether it has sent data that proves its address.
    proved: bool,
    received: usize,
    sent: usize,
}

/// Steps of four bytes: operation, advance of time, source, and an argument; some are followed by bytes.
pub fn run(data: &[u8]) {
    let config =
        EndpointConfig { max_players: PLAYERS, half_open: 16, memory: MEMORY, ..EndpointConfig::for_game("tag") };
    let mut endpoint = Endpoint::new(config, [7; 32]).expect("the configuration is in range");
    let mut now = Instant::now();
    let mut script = data;
    let mut known: [Known; ADDRESSES as usize] = Default::default();
    let mut delivered: HashMap<PlayerId, u32> = HashMap::new();
    let mut out = Vec::new();
    let mut players = Vec::new();
    while let Some((&[what, delay, who, more], rest)) = script.split_first_chunk() {
        script = rest;
        now += Duration::from_millis(u64::from(delay).pow(2) / 16);
        let who = who % ADDRESSES;
        let from = SocketAddr::from(([192, 0, 2, 1], 1000 + u16::from(who)));
        let this = &mut known[usize::from(who)];
        out.clear();
        match what % 12 {
            0 | 1 => login(more, &mut out),
            2..=5 => {
                let number = u32::from(more).wrapping_sub(u32::from(what / 12));
                this.proved |= data_of(this, number, &mut out);
            }
            6 | 7 => control(what, more, &mut out),
            8 => {
                let (bytes, rest) = script.split_at(usize::from(more).min(script.len()));
                out.extend_from_slice(bytes);
                script = rest;
                // It may be a proof, or a query, which has a budget of its own.
                this.proved = true;
            }
            9 => {
                for player in &players {
                    let _ = endpoint.send(now, *player, ONLY_CHANNEL, &[more; 60]);
                }
            }
            10 => {
                let gone = players.get(usize::from(more)).is_some_and(|player| endpoint.disconnect(now, *player, "go"));
                let _ = gone;
            }
            _ => endpoint.handle_timeout(now),
        }
        if !out.is_empty() {
            this.received += out.len();
            endpoint.handle_datagram(now, from, &out);
        }
        if more.is_multiple_of(2) {
            transmit(&mut endpoint, now, &mut known);
        }
        while let Some(event) = endpoint.poll_event() {
            if let ServerEvent::Message(player) = event {
                read(&mut endpoint, player, &mut delivered);
            }
        }
        players.clear();
        players.extend(endpoint.players());
        let stats = endpoint.stats();
        // Sessions that are being closed are not listed any more.
        assert!(stats.players <= PLAYERS && players.len() <= stats.players);
        assert!(stats.memory <= MEMORY + PLAYERS * 600, "{} bytes", stats.memory);
    }
}

fn read(endpoint: &mut Endpoint, player: PlayerId, delivered: &mut HashMap<PlayerId, u32>) {
    let next = delivered.entry(player).or_insert(1);
    while let Some((_, message)) = endpoint.recv(player) {
        // Messages that the script made up of raw bytes have no valid number.
        assert_eq!(message, next.to_le_bytes(), "in order, once");
        *next += 1;
    }
}

fn transmit(endpoint: &mut Endpoint, now: Instant, known: &mut [Known; ADDRESSES as usize]) {
    let mut out = Vec::new();
    for transmits in 0.. {
        let Some(transmit) = endpoint.poll_transmit(now, &mut out) else { break };
        assert!(transmits < 100_000, "it comes to an end");
        assert_eq!(transmit.len, out.len());
        let to = &mut known[usize::from(transmit.to.port() - 1000)];
        for datagram in transmit.datagrams(&out) {
            let parsed = ServerDatagram::parse(datagram).expect("sent datagrams can be parsed");
            if matches!(parsed, ServerDatagram::LoginSuccess(_)) {
                to.success = Some(datagram.to_vec());
            }
            to.sent += datagram.len();
            assert!(to.proved || to.sent <= 3 * to.received + 16, "{} for {}", to.sent, to.received);
        }
        out.clear();
    }
}

fn login(more: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[3, 0, b'a' + more % 26, 0]);
    out.extend_from_slice(b"tag");
}

/// A message in the session that was last granted; its bytes are its number, and the first one is empty.
fn data_of(known: &Known, number: u32, out: &mut Vec<u8>) -> bool {
    let Some(Ok(ServerDatagram::LoginSuccess(LoginSuccess { index, uid, grant: Grant::Plain(rand) }))) =
        known.success.as_deref().map(ServerDatagram::parse)
    else {
        return false;
    };
    let bytes = number.to_le_bytes();
    let payload = Payload::new(if number == 0 { &[][..] } else { &bytes }).expect("it is short");
    ClientData { number: MessageNumber::new(number), index, uid, rand, payload }.emit(out);
    true
}

fn control(what: u8, more: u8, out: &mut Vec<u8>) {
    let mut list = NumberListBuf::new();
    for number in 0..what / 12 {
        list.push(MessageNumber::new(u32::from(more) + u32::from(number)));
    }
    match more % 5 {
        0 | 1 => Control::Ack(list.as_list()).emit(out),
        2 => Control::Resend(list.as_list()).emit(out),
        3 => Control::Keepalive.emit(out),
        _ => out.extend_from_slice(&[0x8d, 0xef, 0x02, 0xd2, 0x00]),
    }
}
