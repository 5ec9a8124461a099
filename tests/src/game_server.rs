//! A game server's client: registers and unregisters.

use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A game server: the contents of its registration, and the address it registers from.
#[derive(Clone, Debug)]
pub struct GameServer {
    id: ServerId,
    lobby: ListId,
    from: IpAddr,
    transport: Transport,
    port: u16,
    occupancy: Occupancy,
    keys: Vec<(String, Vec<u8>)>,
}

impl GameServer {
    /// A UDP server of Gang Garrison 2 at 127.0.0.1:8190 with a new ID.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            id: new_id(),
            lobby: ListId::GANG_GARRISON_2,
            from: Ipv4Addr::LOCALHOST.into(),
            transport: Transport::Udp,
            port: 8_190,
            occupancy: Occupancy { slots: 24, players: 7, ..Occupancy::default() },
            keys: vec![("name".into(), name.into())],
        }
    }

    /// `count` servers, each at its own address; the first 65,536 are all in different /24 networks.
    pub fn many(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map(|number| {
            let [_, .., high, low] = (number as u32).to_be_bytes();
            let from = Ipv4Addr::new(127, 16 + (number >> 16) as u8, low, 1 + high);
            Self::named(&format!("server {number:05}")).from_ip(&from.to_string())
        })
    }

    /// Sets the address it registers from.
    ///
    /// # Panics
    /// If the text is not an IP address.
    #[must_use]
    pub fn from_ip(self, ip: &str) -> Self {
        Self { from: ip.parse().expect("an IP address"), ..self }
    }

    /// Sets the port that players connect to.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Makes it a TCP server at this port.
    #[must_use]
    pub fn tcp(self, port: u16) -> Self {
        Self { port, transport: Transport::Tcp, ..self }
    }

    /// Moves it to another lobby.
    #[must_use]
    pub fn in_lobby(self, lobby: ListId) -> Self {
        Self { lobby, ..self }
    }

    /// Sets slots, players and bots.
    #[must_use]
    pub fn occupancy(self, occupancy: Occupancy) -> Self {
        Self { occupancy, ..self }
    }

    /// Sets a key; an existing value is replaced.
    #[must_use]
    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.into(), value.as_ref().to_vec()));
        self
    }

    /// Changes its name.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        self.keys[0].1 = name.into();
        self
    }

    /// Gives it a new ID, as a restart does.
    #[must_use]
    pub fn restarted(self) -> Self {
        Self { id: new_id(), ..self }
    }

    /// Sets its ID, which is its secret.
    #[must_use]
    pub fn with_id(self, id: [u8; 16]) -> Self {
        Self { id: ServerId::from_bytes(id), ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.keys[0].1).into_owned()
    }

    /// The address it registers from.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        self.from
    }

    /// Its registration datagram.
    ///
    /// # Panics
    /// If the keys do not fit.
    #[must_use]
    pub fn registration(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        for (key, value) in &self.keys {
            table.push(key.as_bytes(), value).expect("keys that fit");
        }
        let port = self.port.try_into().expect("a port that is not 0");
        let mut datagram = Vec::new();
        Registration::new(self.id, self.lobby, self.transport, port, self.occupancy, table.as_table())
            .expect("a valid registration")
            .emit(&mut datagram);
        datagram
    }

    /// Its unregistration datagram.
    #[must_use]
    pub fn unregistration(&self) -> Vec<u8> {
        let mut datagram = Vec::new();
        Unregister { server_id: self.id }.emit(&mut datagram);
        datagram
    }
}

/// Sends a datagram from a new port each time, as several real servers do.
///
/// # Panics
/// If `from` is not an address of this machine.
pub(crate) fn send(from: IpAddr, to: SocketAddr, datagram: &[u8]) {
    let socket = UdpSocket::bind((from, 0)).expect("an address of this machine");
    socket.send_to(datagram, to).expect("the datagram can be sent");
}

fn new_id() -> ServerId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // An odd factor spreads the numbers over all bits and keeps them distinct.
    let number = u128::from(NEXT.fetch_add(1, Relaxed));
    ServerId::from_bytes(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes())
}
