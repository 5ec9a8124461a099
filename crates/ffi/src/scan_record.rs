//! Results of a scan as C structures.

use crate::{
    failure::{Failure, RP_ERROR_NULL_POINTER},
    output::{self, TextWriter},
};
use rallypoint_query::{ScanEvent, ScannedServer};
use std::{ffi::c_char, fmt::Display, ptr::null, time::Duration};

/// The scan is finished: nothing further follows.
pub const RP_SCAN_FINISHED: u32 = 0;
/// A list contains this server.
pub const RP_SCAN_LISTED: u32 = 1;
/// A server answered.
pub const RP_SCAN_ANSWERED: u32 = 2;
/// A server did not answer: `error` says why.
pub const RP_SCAN_FAILED: u32 = 3;
/// The list of the target with this index is complete; all of its servers were reported before.
pub const RP_SCAN_LIST_COMPLETE: u32 = 4;
/// The list of the target with this index could not be read: `error` says why.
pub const RP_SCAN_LIST_FAILED: u32 = 5;

/// Something that a scan found. Set `size` to the size of the structure. Numbers that are unknown are -1. Texts are in the
/// caller's buffer, zero-terminated, never null, and empty if they are unknown; they have no control characters.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_scan_record {
    /// Size of this structure in bytes.
    pub size: u32,
    /// One of `RP_SCAN_*`.
    pub kind: u32,
    /// Index of the target, in the order in which they were given.
    pub target: u32,
    /// Number of players.
    pub players: i32,
    /// Maximum number of players.
    pub max_players: i32,
    /// Number of bots.
    pub bots: i32,
    /// Whether a password is required: 1, 0, or -1.
    pub password: i32,
    /// Round-trip time in microseconds, if the server answered.
    pub ping_us: i32,
    /// Address and port.
    pub address: *const c_char,
    /// Name of the server.
    pub name: *const c_char,
    /// Name of the game.
    pub game: *const c_char,
    /// Game mode.
    pub mode: *const c_char,
    /// Current map.
    pub map: *const c_char,
    /// Version of the game.
    pub version: *const c_char,
    /// Names of the players, separated by line feeds.
    pub player_names: *const c_char,
    /// Why there is no answer, as a sentence.
    pub error: *const c_char,
}

impl rp_scan_record {
    pub(crate) const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        kind: RP_SCAN_FINISHED,
        target: 0,
        players: -1,
        max_players: -1,
        bots: -1,
        password: -1,
        ping_us: -1,
        address: null(),
        name: null(),
        game: null(),
        mode: null(),
        map: null(),
        version: null(),
        player_names: null(),
        error: null(),
    };
}

/// Texts of a record, in the order of its fields.
#[derive(Default)]
struct Texts<'a> {
    address: String,
    name: &'a str,
    game: &'a str,
    mode: &'a str,
    map: &'a str,
    version: &'a str,
    player_names: String,
    error: String,
}

/// Writes an event into the caller's record and buffer. `None` is the end of the scan.
///
/// # Safety
/// `out` is null or points to as many bytes as its field `size` says, `buffer` is null or points to `capacity` writable bytes.
pub(crate) unsafe fn write(
    event: Option<&ScanEvent>,
    out: *mut rp_scan_record,
    buffer: *mut c_char,
    capacity: usize,
) -> Result<(), Failure> {
    let (mut record, texts) = match event {
        None => (rp_scan_record::EMPTY, Texts::default()),
        Some(ScanEvent::Listed { server, .. }) => describe(RP_SCAN_LISTED, server),
        Some(ScanEvent::Answered(server)) => describe(RP_SCAN_ANSWERED, server),
        Some(ScanEvent::Failed(server)) => describe(RP_SCAN_FAILED, server),
        Some(ScanEvent::ListComplete(target, summary)) => {
            let record =
                rp_scan_record { kind: RP_SCAN_LIST_COMPLETE, target: index(*target), ..rp_scan_record::EMPTY };
            (record, Texts { address: summary.from.to_string(), ..Texts::default() })
        }
        Some(ScanEvent::ListFailed(target, error)) => {
            let record = rp_scan_record { kind: RP_SCAN_LIST_FAILED, target: index(*target), ..rp_scan_record::EMPTY };
            (record, Texts { error: error.to_string(), ..Texts::default() })
        }
        // Mirrors are not part of this interface; the variant exists only if some crate enables HTTP.
        #[allow(unreachable_patterns)]
        Some(_) => (rp_scan_record::EMPTY, Texts::default()),
    };
    if buffer.is_null() {
        return Err(Failure::new(RP_ERROR_NULL_POINTER, "the buffer for texts is null"));
    }
    // SAFETY: as promised by the caller.
    let mut writer = unsafe { TextWriter::new(buffer, capacity) };
    record.address = writer.push(&texts.address);
    record.name = writer.push(texts.name);
    record.game = writer.push(texts.game);
    record.mode = writer.push(texts.mode);
    record.map = writer.push(texts.map);
    record.version = writer.push(texts.version);
    record.player_names = writer.push(&texts.player_names);
    record.error = writer.push(&texts.error);
    writer.finish()?;
    // SAFETY: as promised by the caller; the structure has no padding.
    unsafe { output::write_sized(out, &record, size_of::<rp_scan_record>()) }
}

fn describe(kind: u32, server: &ScannedServer) -> (rp_scan_record, Texts<'_>) {
    let info = &server.info;
    let number = |value: Option<u16>| value.map_or(-1, i32::from);
    let ping = server.reply.as_ref().map(|reply| reply.round_trip.time);
    let record = rp_scan_record {
        kind,
        target: index(server.target_index),
        players: number(info.players),
        max_players: number(info.max_players),
        bots: number(info.bots),
        password: info.password.map_or(-1, i32::from),
        ping_us: ping.map_or(-1, microseconds),
        ..rp_scan_record::EMPTY
    };
    let players = info.player_list.as_deref().unwrap_or_default();
    let names: Vec<_> = players.iter().map(|player| &*player.name).collect();
    let texts = Texts {
        address: text(server.address.as_ref()),
        name: server.name(),
        game: server.game().unwrap_or_default(),
        mode: info.mode.as_deref().unwrap_or_default(),
        map: info.map.as_deref().unwrap_or_default(),
        version: info.version.as_deref().unwrap_or_default(),
        player_names: names.join("\n"),
        error: text(server.error.as_ref()),
    };
    (record, texts)
}

fn text(value: Option<&impl Display>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn index(target: usize) -> u32 {
    u32::try_from(target).unwrap_or(u32::MAX)
}

fn microseconds(time: Duration) -> i32 {
    i32::try_from(time.as_micros()).unwrap_or(i32::MAX)
}
