//! The announcer: keeps a game server registered with lobbies.

use crate::{
    arguments::{self, SizedConfig, items},
    failure::{Failure, guard},
    handle_table::{HandleTable, Kind},
    output,
};
use rallypoint_announce::{AnnounceConfig, Occupancy, PolledAnnouncer, ServerId, Transport};
use rallypoint_query::list_names;
use std::{
    ffi::c_char,
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// Handle of an announcer.
pub type rp_announcer = u64;

/// Players connect over UDP.
pub const RP_TRANSPORT_UDP: u32 = 0;
/// Players connect over TCP.
pub const RP_TRANSPORT_TCP: u32 = 1;

/// Length of a server's secret ID in bytes.
pub const RP_SERVER_ID_LENGTH: usize = 16;

/// A game server, and the lobbies to register it with. Set `size` to the size of the structure; a field that is zero has its
/// default value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_announcer_config {
    /// Size of this structure in bytes.
    pub size: u32,
    /// Port that players connect to: 1 to 65,535. Required.
    pub port: u32,
    /// One of `RP_TRANSPORT_*`.
    pub transport: u32,
    /// Number of slots, players and bots, at most 65,535 each.
    pub slots: u32,
    /// Number of players.
    pub players: u32,
    /// Number of bots.
    pub bots: u32,
    /// Whether a password is required.
    pub password: u32,
    /// Not used.
    pub reserved: u32,
    /// Name of the server in the list. Required.
    pub name: *const c_char,
    /// Lobbies, separated by commas: "lobby.example.org,[2001:db8::1]:29944". Required.
    pub lobbies: *const c_char,
    /// UUID or well-known name of the list in which the server appears; default "gg2".
    pub lobby_id: *const c_char,
    /// Secret ID by which lobbies recognise the server after a restart, `RP_SERVER_ID_LENGTH` bytes; default random.
    pub server_id: *const u8,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers and pointers that may be null.
unsafe impl SizedConfig for rp_announcer_config {
    const MIN_SIZE: usize = size_of::<Self>();
}

#[derive(Debug)]
struct Announcer {
    announcer: PolledAnnouncer,
    /// The text of an event that the caller has not taken.
    pending: Option<String>,
}

static ANNOUNCERS: HandleTable<Announcer> = HandleTable::new(Kind::Announcer);

/// Starts to register a server with its lobbies. Call `rp_announcer_poll` once per frame or at least every few seconds. The
/// handle is written to `announcer`. Does not block: names are resolved in the background. Any thread.
///
/// # Safety
/// Texts are zero-terminated; pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_announcer_start(config: *const rp_announcer_config, announcer: *mut rp_announcer) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller. The result is checked before there is a handle that could not be returned.
        let config = unsafe {
            output::write(announcer, 0)?;
            announce_config(&arguments::config(config)?)?
        };
        let object = Announcer { announcer: PolledAnnouncer::new(config)?, pending: None };
        let handle = ANNOUNCERS.insert(object)?;
        // SAFETY: as above.
        unsafe { output::write(announcer, handle) }?;
        Ok(0)
    })
}

unsafe fn announce_config(config: &rp_announcer_config) -> Result<AnnounceConfig, Failure> {
    // SAFETY: as promised by the caller of `rp_announcer_start`.
    let (name, lobbies, lobby_id, server_id) = unsafe {
        (
            arguments::text(config.name, "name")?,
            arguments::text(config.lobbies, "lobbies")?,
            arguments::optional_text(config.lobby_id)?,
            arguments::optional_array(config.server_id),
        )
    };
    let port = u16::try_from(config.port).ok().and_then(NonZeroU16::new);
    let port = port.ok_or_else(|| Failure::argument(format!("port is {}: use 1 to 65535", config.port)))?;
    let mut announce = AnnounceConfig::new(name, port);
    announce.transport = match config.transport {
        RP_TRANSPORT_UDP => Transport::Udp,
        RP_TRANSPORT_TCP => Transport::Tcp,
        other => return Err(Failure::argument(format!("transport is {other}: use RP_TRANSPORT_*"))),
    };
    if let Some(id) = lobby_id {
        announce.list_id = list_names::find(id).map_err(|error| Failure::argument(format!("lobby_id: {error}")))?;
    }
    for lobby in items(lobbies) {
        announce.lobbies.push(lobby.parse().map_err(|error| Failure::argument(format!("{lobby:?}: {error}")))?);
    }
    announce.occupancy = occupancy(config.slots, config.players, config.bots, config.password)?;
    announce.server_id = server_id.map(ServerId::from_bytes);
    Ok(announce)
}

fn occupancy(slots: u32, players: u32, bots: u32, password: u32) -> Result<Occupancy, Failure> {
    let number = |name: &str, value: u32| {
        u16::try_from(value).map_err(|_| Failure::argument(format!("{name} is {value}: use 0 to 65535")))
    };
    Ok(Occupancy {
        slots: number("slots", slots)?,
        players: number("players", players)?,
        bots: number("bots", bots)?,
        password: password != 0,
    })
}

/// Sends the registrations that are due. Returns the number of milliseconds until it has something to do again, at most 30,000.
/// Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_announcer_poll(announcer: rp_announcer) -> i32 {
    const LONGEST: Duration = Duration::from_secs(30);
    guard(|| {
        ANNOUNCERS.with(announcer, |object| {
            object.announcer.poll();
            let wait = object.announcer.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
            // Rounded up, so that a caller that waits this long does not find that it is too early.
            Ok(wait.unwrap_or(LONGEST).min(LONGEST).as_micros().div_ceil(1000).try_into().unwrap_or(0))
        })
    })
}

/// Copies the text of the next event, such as a lobby that cannot be found, as a zero-terminated text for a log. Returns 1 if
/// there is one, 0 if not. Reading events is optional. Any thread, one at a time.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_announcer_next_event(announcer: rp_announcer, buffer: *mut c_char, capacity: usize) -> i32 {
    guard(|| {
        ANNOUNCERS.with(announcer, |Announcer { announcer, pending }| {
            if pending.is_none() {
                *pending = announcer.next_event().map(|event| event.to_string());
            }
            let Some(text) = &*pending else { return Ok(0) };
            // SAFETY: as promised by the caller.
            unsafe { output::copy_text(text, buffer, capacity) }?;
            *pending = None;
            Ok(1)
        })
    })
}

/// Sets the current number of slots, players and bots, and whether a password is required. A change is sent with the next
/// `rp_announcer_poll`, at most once per second. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_announcer_set_occupancy(
    announcer: rp_announcer,
    slots: u32,
    players: u32,
    bots: u32,
    password: u32,
) -> i32 {
    guard(|| {
        let occupancy = occupancy(slots, players, bots, password)?;
        ANNOUNCERS.run(announcer, |object| object.announcer.set_occupancy(occupancy))
    })
}

/// Sets a key of the registration: "name", "map", "game", "x-...". The value is any bytes. If the registration would not be
/// valid with it, nothing changes. Any thread, one at a time.
///
/// # Safety
/// `key` is null or zero-terminated, `value` points to `length` readable bytes, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_announcer_set_key(
    announcer: rp_announcer,
    key: *const c_char,
    value: *const u8,
    length: usize,
) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let (key, value) = unsafe { (arguments::text(key, "the key")?, arguments::bytes(value, length)?) };
        ANNOUNCERS.with(announcer, |object| Ok(object.announcer.set_key(key, value).map(|()| 0)?))
    })
}

/// Number of registrations that have left this machine. Whether they arrive, only the list of the lobby shows. Any thread, one
/// at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_announcer_registrations_sent(announcer: rp_announcer) -> i32 {
    guard(|| {
        ANNOUNCERS.with(announcer, |object| Ok(object.announcer.registrations_sent().try_into().unwrap_or(i32::MAX)))
    })
}

/// Unregisters the server and frees the announcer. The handle is not valid any more. A program that ends without it stays
/// listed for up to 70 seconds. Any thread; if another one is using the announcer, both happen when that call ends.
#[unsafe(no_mangle)]
pub extern "C" fn rp_announcer_close(announcer: rp_announcer) -> i32 {
    guard(|| ANNOUNCERS.remove(announcer).map(|_| 0))
}

impl Drop for Announcer {
    fn drop(&mut self) {
        // After a panic in the announcer nothing is certain, and a second panic would end the process.
        if !std::thread::panicking() {
            self.announcer.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::CString, net::UdpSocket};

    #[test]
    fn an_announcer_that_is_closed_during_a_call_unregisters_when_the_call_ends() {
        let lobby = UdpSocket::bind("127.0.0.1:0").unwrap();
        let lobbies = CString::new(lobby.local_addr().unwrap().to_string()).unwrap();
        // SAFETY: the configuration is valid if all bytes are zero.
        let mut config: rp_announcer_config = unsafe { std::mem::zeroed() };
        config.size = size_of::<rp_announcer_config>() as u32;
        config.name = c"a game".as_ptr();
        config.lobbies = lobbies.as_ptr();
        config.port = 8190;
        let mut announcer = 0;
        // SAFETY: both point to what they should.
        assert_eq!(unsafe { rp_announcer_start(&config, &mut announcer) }, 0);
        let mut datagram = [0; 1500];
        // The name of the lobby is resolved by a thread.
        lobby.set_nonblocking(true).unwrap();
        while lobby.recv(&mut datagram).is_err() {
            assert!(rp_announcer_poll(announcer) >= 0);
            std::thread::yield_now();
        }
        let registration = datagram;
        let during = ANNOUNCERS.with(announcer, |_| Ok(rp_announcer_close(announcer)));
        assert_eq!(during.unwrap(), 0);
        assert!(rp_announcer_poll(announcer) < 0);
        let length = lobby.recv(&mut datagram).unwrap();
        assert_eq!(length, 32, "the request to remove a server, and its ID");
        assert_ne!(datagram[..16], registration[..16]);
        assert_eq!(datagram[16..32], registration[16..32]);
    }
}
