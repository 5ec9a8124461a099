//! Registers a test entry from this machine for a few seconds, to find out whether the lobby accepts it.

use crate::error::CommandError;
use rallypoint_announce::{AnnounceConfig, AnnounceTask};
use rallypoint_query::{FetchedServer, LobbyAddress, ScanConfig, Target, fetch_list, resolve};
use rallypoint_udp::entropy;
use rallypoint_wire::lobby::{ListId, Transport};
use std::{net::SocketAddr, num::NonZeroU16, time::Duration};

/// Delays before the checks of the list. A lobby takes up to 5 seconds to check whether it can reach a TCP server.
const DELAYS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(2), Duration::from_secs(4)];

/// Registers a test entry and removes it again. Returns the addresses under which it was listed; none if it was not.
pub async fn register(
    lobby: &LobbyAddress,
    transport: Transport,
    port: NonZeroU16,
    scan: &ScanConfig,
) -> Result<Vec<SocketAddr>, CommandError> {
    let addrs = resolve(&lobby.host, lobby.port(), scan.only_family()).await;
    let addrs = addrs.map_err(|error| CommandError::failed(format!("the lobby {lobby}: {error}")))?;
    // A random name, so that the entry is not taken for another.
    let name = format!(
        "test of rallypoint doctor {:08x}",
        u32::from_be_bytes(entropy::bytes().map_err(CommandError::failed)?)
    );
    let mut config = AnnounceConfig::new(&name, port);
    config.transport = transport;
    config.list_id = lobby.id.unwrap_or(ListId::GANG_GARRISON_2);
    config.lobbies = addrs.into_iter().map(Into::into).collect();
    let mut task = AnnounceTask::start(config).await?;
    let find = find_entry(lobby, &name, scan);
    tokio::pin!(find);
    let found = loop {
        tokio::select! {
            // One address may fail and another work; the list shows whether one did.
            _ = task.next_event() => {}
            found = &mut find => break found,
        }
    };
    task.stop(std::future::pending()).await;
    Ok(found)
}

async fn find_entry(lobby: &LobbyAddress, name: &str, scan: &ScanConfig) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for delay in DELAYS {
        tokio::time::sleep(delay).await;
        let source = Target::Lobby(lobby.clone());
        let take = |listed: FetchedServer| {
            if listed.info.name.as_deref() == Some(name) {
                found.extend(listed.endpoints);
            }
        };
        if fetch_list(&source, scan, take).await.is_ok() && !found.is_empty() {
            break;
        }
    }
    found
}
