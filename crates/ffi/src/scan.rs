//! Lists and queries.

use crate::{
    arguments::{self, SizedConfig, items, milliseconds_or},
    failure::{Failure, guard},
    handle_table::{HandleTable, Kind},
    output,
    scan_record::{self, rp_scan_record},
};
use rallypoint_query::{Family, ScanConfig, ScanEvent, Scanner, Target, proto::Detail};
use std::{ffi::c_char, time::Duration};
use tokio::{runtime::Runtime, task::yield_now, time::timeout};

/// Handle of a scan.
pub type rp_scan = u64;

/// Default level of detail: that of `RP_DETAIL_INFO`.
pub const RP_DETAIL_DEFAULT: u32 = 0;
/// Lists are read, and no server is queried.
pub const RP_DETAIL_LIST: u32 = 1;
/// Servers are asked for any reply: whether they are there.
pub const RP_DETAIL_PRESENCE: u32 = 2;
/// Servers are asked for their description.
pub const RP_DETAIL_INFO: u32 = 3;
/// Servers are asked for their description and their players.
pub const RP_DETAIL_PLAYERS: u32 = 4;

/// Settings of a scan. Set `size` to the size of the structure; a field that is zero has its default value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_scan_config {
    /// Size of this structure in bytes.
    pub size: u32,
    /// One of `RP_DETAIL_*`.
    pub detail: u32,
    /// Time limit for a server, and for each pause while a list arrives, in milliseconds: 1 to 3,600,000; default 4,000.
    pub timeout_ms: u32,
    /// Maximum number of datagrams sent per second: 1 to 10,000,000; default 2,000.
    pub packets_per_second: u32,
    /// 4 or 6 restricts the scan to IPv4 or IPv6; default both.
    pub ip_version: u32,
    /// Whether to connect to listed TCP servers to measure their round-trip time. They see a player that leaves at once.
    pub connect_tcp: u32,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers.
unsafe impl SizedConfig for rp_scan_config {
    const MIN_SIZE: usize = size_of::<Self>();
}

struct Scan {
    scanner: Scanner,
    /// Runs only within calls. `None` while the object is dropped.
    runtime: Option<Runtime>,
    pending: Option<ScanEvent>,
}

static SCANS: HandleTable<Scan> = HandleTable::new(Kind::Scan);

/// Starts to read lists and to query servers. `targets` are separated by white space or commas: "lobby://lobby.example.org/gg2"
/// is a list, "play.example.org:6969" or "session://[2001:db8::1]" a server. `config` may be null. The handle is written to
/// `scan`. Any thread.
///
/// # Safety
/// Texts are zero-terminated; pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_scan_start(
    targets: *const c_char,
    config: *const rp_scan_config,
    scan: *mut rp_scan,
) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller. The result is checked before there is a handle that could not be returned.
        let (targets, config) = unsafe {
            output::write(scan, 0)?;
            let config =
                if config.is_null() { ScanConfig::default() } else { scan_config(&arguments::config(config)?)? };
            (arguments::text(targets, "targets")?, config)
        };
        let parse = |item: &str| item.parse().map_err(|error| Failure::argument(format!("{item:?}: {error}")));
        let targets: Vec<Target> = items(targets).map(parse).collect::<Result<_, _>>()?;
        if targets.is_empty() {
            return Err(Failure::argument("there are no targets"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let scanner = {
            let _context = runtime.enter();
            let mut scanner = Scanner::new(config, targets)?;
            scanner.begin_pass();
            scanner
        };
        let handle = SCANS.insert(Scan { scanner, runtime: Some(runtime), pending: None })?;
        // SAFETY: as above.
        unsafe { output::write(scan, handle) }?;
        Ok(0)
    })
}

fn scan_config(config: &rp_scan_config) -> Result<ScanConfig, Failure> {
    let default = ScanConfig::default();
    Ok(ScanConfig {
        detail: match config.detail {
            RP_DETAIL_LIST => None,
            RP_DETAIL_PRESENCE => Some(Detail::Presence),
            RP_DETAIL_DEFAULT | RP_DETAIL_INFO => Some(Detail::Info),
            RP_DETAIL_PLAYERS => Some(Detail::Players),
            other => return Err(Failure::argument(format!("detail is {other}: use RP_DETAIL_*"))),
        },
        timeout: milliseconds_or(config.timeout_ms, default.timeout),
        packets_per_second: match config.packets_per_second {
            0 => default.packets_per_second,
            rate => rate,
        },
        family: match config.ip_version {
            0 => None,
            4 => Some(Family::V4),
            6 => Some(Family::V6),
            other => return Err(Failure::argument(format!("ip_version is {other}: use 4, 6 or 0"))),
        },
        connect_tcp: config.connect_tcp != 0,
        ..default
    })
}

/// Takes the next thing that the scan found, and waits for it up to this many milliseconds; with 0 it does not block. Returns 1
/// if there is one, 0 if there is none yet; after the last one, each call returns 1 with `RP_SCAN_FINISHED`. Texts are placed in
/// `buffer`, where the record points to them: 4,096 bytes are enough for nearly every server. `RP_ERROR_BUFFER_TOO_SMALL`: the
/// record is kept for the next call. Any thread, one at a time.
///
/// # Safety
/// `record` is null or points to as many bytes as its field `size` says, `buffer` is null or points to `capacity` writable
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_scan_next(
    scan: rp_scan,
    record: *mut rp_scan_record,
    buffer: *mut c_char,
    capacity: usize,
    timeout_ms: u32,
) -> i32 {
    guard(|| {
        SCANS.with(scan, |Scan { scanner, runtime, pending }| {
            if pending.is_none() {
                let Some(runtime) = runtime else { return Ok(0) };
                match runtime.block_on(next(scanner, Duration::from_millis(timeout_ms.into()))) {
                    Some(event) => *pending = event,
                    None => return Ok(0),
                }
            }
            // SAFETY: as promised by the caller.
            unsafe { scan_record::write(pending.as_ref(), record, buffer, capacity) }?;
            *pending = None;
            Ok(1)
        })
    })
}

/// The next event, or the end of the scan; `None` if there is neither within this time.
async fn next(scanner: &mut Scanner, wait: Duration) -> Option<Option<ScanEvent>> {
    if !wait.is_zero() {
        return timeout(wait, scanner.next()).await.ok();
    }
    // The runtime's sockets and tasks make progress whenever this task yields. A list arrives over several such turns.
    const TURNS: usize = 4;
    tokio::select! {
        biased;
        event = scanner.next() => Some(event),
        () = async {
            for _ in 0..TURNS {
                yield_now().await;
            }
        } => None,
    }
}

/// Ends the scan and frees it. The handle is not valid any more. Any thread; if another one is using the scan, it is freed when
/// that call ends.
#[unsafe(no_mangle)]
pub extern "C" fn rp_scan_close(scan: rp_scan) -> i32 {
    guard(|| SCANS.remove(scan).map(|_| 0))
}

impl Drop for Scan {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A lookup of a name cannot be interrupted, and must not hold up the caller.
            runtime.shutdown_background();
        }
    }
}
