//! Connecting to servers that only speak TCP, as a measure of their latency.

use crate::{ProbeError, ScanConfig, connect_tcp};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// The result of connecting to a server: the address that accepted, and how long that took.
#[derive(Debug)]
pub(super) struct Connected {
    pub key: u64,
    pub result: Result<(SocketAddr, Duration), ProbeError>,
}

/// Connects to all addresses of a server at once; returns the first that accepts, and how long that took.
pub(super) async fn measure_connect(
    addrs: Vec<SocketAddr>,
    config: &ScanConfig,
) -> Result<(SocketAddr, Duration), ProbeError> {
    let mut attempts = JoinSet::new();
    for addr in addrs {
        let config = config.clone();
        attempts.spawn(async move {
            let start = Instant::now();
            connect_tcp(&[addr], &config).await.map(|_| (addr, start.elapsed()))
        });
    }
    let mut worst = None;
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => worst = worst.or(Some(error)),
            // The task panicked or was cancelled: neither happens.
            Err(_) => {}
        }
    }
    Err(worst.unwrap_or(ProbeError::NotFound))
}
