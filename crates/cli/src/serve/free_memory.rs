//! Returning free memory to the system while a flood of changing registrations leaves gaps in the heap.

use rallypoint_lobby::LobbyService;
use std::time::{Duration, Instant};

/// Interval at which the memory of the process is examined: a flood needs several seconds to fill what the bound allows.
const INTERVAL: Duration = Duration::from_secs(1);

/// Minimum ratio of the pause between two passes to the duration of a pass, so that they take at most 5 % of the time.
const MIN_PAUSE_RATIO: u32 = 20;

/// Memory of the process besides what the cap is for, in bytes. With this and a quarter more than the cap it is far from the
/// bound, which is twice the cap and 100 MB.
const BASE: u64 = 60_000_000;

/// Returns free memory to the system whenever the process uses more than a lobby with its memory cap should.
pub async fn release(service: LobbyService) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        // A reload can change it.
        let cap = service.memory_cap() as u64;
        let max = cap.saturating_add(cap / 4).saturating_add(BASE);
        if rallypoint_udp::resident_memory().is_some_and(|used| used > max) {
            let began = Instant::now();
            // It fails when the runtime shuts down.
            let _ = tokio::task::spawn_blocking(rallypoint_udp::release_free_memory).await;
            tokio::time::sleep(began.elapsed() * MIN_PAUSE_RATIO).await;
        }
    }
}
