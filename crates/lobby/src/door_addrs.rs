//! Addresses by door.

use rallypoint_lobby_proto::doors::{DOORS, Door, DoorSockets, LOBBY};
use std::{
    net::SocketAddr,
    ops::{Index, IndexMut},
};

/// The addresses of each door; a door without addresses is closed.
///
/// ```
/// use rallypoint_lobby::DoorAddrs;
/// use rallypoint_lobby_proto::doors::{LEGACY, LOBBY};
///
/// let mut doors = DoorAddrs::lobby(vec!["127.0.0.1:29944".parse()?]);
/// assert_eq!((doors[&LOBBY].len(), doors[&LEGACY].len()), (1, 0));
/// doors[&LEGACY].push("127.0.0.1:29942".parse()?);
/// assert_eq!(doors.iter().map(|(door, addr)| format!("{} {addr}", door.name)).collect::<Vec<_>>(), [
///     "lobby 127.0.0.1:29944",
///     "legacy 127.0.0.1:29942",
/// ]);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorAddrs([Vec<SocketAddr>; DOORS.len()]);

impl DoorAddrs {
    /// The lobby protocol at these addresses; all other doors are closed.
    #[must_use]
    pub fn lobby(addrs: Vec<SocketAddr>) -> Self {
        let mut doors = Self::default();
        doors[&LOBBY] = addrs;
        doors
    }

    /// The doors that are open by default, on all addresses of both families at their documented ports.
    #[must_use]
    pub fn documented() -> Self {
        let mut doors = Self::default();
        for door in DOORS.into_iter().filter(|door| door.is_default) {
            doors[door] = door.sockets.as_ref().map(DoorSockets::documented_addrs).unwrap_or_default();
        }
        doors
    }

    /// All addresses, in the order of the doors.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Door, SocketAddr)> {
        DOORS.into_iter().zip(&self.0).flat_map(|(door, addrs)| addrs.iter().map(move |addr| (door, *addr)))
    }
}

fn index(door: &Door) -> usize {
    DOORS.iter().position(|other| other.name == door.name).expect("every door is in the table")
}

impl Index<&Door> for DoorAddrs {
    type Output = Vec<SocketAddr>;

    fn index(&self, door: &Door) -> &Self::Output {
        &self.0[index(door)]
    }
}

impl IndexMut<&Door> for DoorAddrs {
    fn index_mut(&mut self, door: &Door) -> &mut Self::Output {
        &mut self.0[index(door)]
    }
}
