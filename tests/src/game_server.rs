//! A game server's side: registering and going away.

use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A server of some game: what it says about itself, and from where it says so.
#[derive(Clone, Debug)]
pub struct GameServer {
    id: ServerId,
    lobby: LobbyId,
    from: IpAddr,
    transport: Transport,
    port: u16,
    occupancy: Occupancy,
    keys: Vec<(String, Vec<u8>)>,
}

impl GameServer {
    /// A UDP server of Gang Garrison 2 on this machine, port 8190, with an ID of its own.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            id: new_id(),
            lobby: LobbyId::GANG_GARRISON_2,
            from: Ipv4Addr::LOCALHOST.into(),
            transport: Transport::Udp,
            port: 8_190,
            occupancy: Occupancy { slots: 24, players: 7, ..Occupancy::default() },
            keys: vec![("name".into(), name.into())],
        }
    }

    /// So many of them, each at an address of its own, all in different networks (/24) as far as they go.
    pub fn many(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map(|number| {
            let [_, .., high, low] = (number as u32).to_be_bytes();
            let from = Ipv4Addr::new(127, 16 + (number >> 16) as u8, low, 1 + high);
            Self::named(&format!("server {number:05}")).from(&from.to_string())
        })
    }

    /// The address it registers from.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn from(self, ip: &str) -> Self {
        Self { from: ip.parse().expect("an address"), ..self }
    }

    /// The port it is played at.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// It is played by TCP at this port.
    #[must_use]
    pub fn tcp(self, port: u16) -> Self {
        Self { port, transport: Transport::Tcp, ..self }
    }

    /// It belongs to another lobby.
    #[must_use]
    pub fn of_lobby(self, lobby: LobbyId) -> Self {
        Self { lobby, ..self }
    }

    /// It says this, too; a key that is there gets this value.
    #[must_use]
    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.into(), value.as_ref().to_vec()));
        self
    }

    /// The same server under another name.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        self.keys[0].1 = name.into();
        self
    }

    /// The same place after a restart: a new ID.
    #[must_use]
    pub fn restarted(self) -> Self {
        Self { id: new_id(), ..self }
    }

    /// Its secret is this.
    #[must_use]
    pub fn with_id(self, id: [u8; 16]) -> Self {
        Self { id: ServerId::from_bytes(id), ..self }
    }

    /// Where its datagrams come from.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        self.from
    }

    /// Its registration.
    ///
    /// # Panics
    /// If it says what cannot be said.
    #[must_use]
    pub fn registration(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        for (key, value) in &self.keys {
            table.push(key.as_bytes(), value).expect("keys that fit");
        }
        let (port, mut datagram) = (self.port.try_into().expect("a port"), Vec::new());
        Registration::new(self.id, self.lobby, self.transport, port, self.occupancy, table.as_table())
            .expect("a registration")
            .emit(&mut datagram);
        datagram
    }

    /// Its unregistration.
    #[must_use]
    pub fn unregistration(&self) -> Vec<u8> {
        let mut datagram = Vec::new();
        Unregister { server_id: self.id }.emit(&mut datagram);
        datagram
    }
}

/// Sends a datagram, from a new port each time as several real servers do.
///
/// # Panics
/// If this machine does not have that address.
pub(crate) fn send(from: IpAddr, to: SocketAddr, datagram: &[u8]) {
    let socket = UdpSocket::bind((from, 0)).expect("an address of this machine");
    socket.send_to(datagram, to).expect("the datagram can be sent");
}

fn new_id() -> ServerId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Odd factors make the numbers look like IDs and keep them apart.
    let number = u128::from(NEXT.fetch_add(1, Relaxed));
    ServerId::from_bytes(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes())
}
