//! Statistics of a connection.

use crate::{failure::Failure, output};
use rallypoint_session::ConnectionStats;
use std::time::Duration;

/// Current round-trip time, loss and throughput of a connection, and its counters. Set `size` to the size of the structure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct rp_stats {
    /// Size of this structure in bytes.
    pub size: u32,
    /// Maximum length of a message in bytes.
    pub max_message: u32,
    /// Round-trip time in microseconds, the median of the last ones; 0 if it is unknown.
    pub rtt_us: u64,
    /// Share of recent datagrams with messages that were lost, copies and resends included, from 0 to 1.
    pub loss: f64,
    /// Estimated capacity of the path in bytes per second.
    pub rate: u64,
    /// Number of messages that are not acknowledged, unsent ones included.
    pub unacked: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes of all datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of all datagrams received.
    pub bytes_received: u64,
    /// Messages sent again because they were lost, or appeared to be.
    pub resends: u64,
}

impl rp_stats {
    pub(crate) fn new(stats: &ConnectionStats, max_message: usize) -> Self {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            size: size_of::<Self>() as u32,
            max_message: u32::try_from(max_message).unwrap_or(u32::MAX),
            rtt_us: stats.rtt.map_or(0, microseconds),
            loss: stats.loss,
            rate: stats.rate,
            unacked: stats.unacked as u64,
            messages_sent: stats.messages_sent,
            messages_received: stats.messages_received,
            bytes_sent: stats.bytes_sent,
            bytes_received: stats.bytes_received,
            resends: stats.resends,
        }
    }

    /// Writes these statistics into the structure of the caller.
    ///
    /// # Safety
    /// `out` is null or points to as many bytes as its field `size` says.
    pub(crate) unsafe fn write(self, out: *mut Self) -> Result<i32, Failure> {
        // SAFETY: as promised by the caller; the structure has no padding.
        unsafe { output::write_sized(out, &self, Self::MIN_SIZE) }?;
        Ok(0)
    }

    /// Size of the first published version.
    pub(crate) const MIN_SIZE: usize = 80;
}
