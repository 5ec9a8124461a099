//! Everything that can be said about a lobby before it starts.

use crate::ListLimits;
use rallypoint_lobby_proto::{BanList, Config};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// What a [`LobbyService`](crate::LobbyService) is told. The default is a lobby on all addresses of both families that keeps
/// nothing on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct LobbyOptions {
    /// Where the lobby listens, UDP and TCP. Port 0 is any free port (the same for both). Both families, 29944.
    pub listen: Vec<SocketAddr>,
    /// Where the legacy lobby listens (L16), UDP and TCP. Both families, 29942; empty: nowhere.
    pub legacy: Vec<SocketAddr>,
    /// Whether an IPv6 address counts as an error on a machine that has no IPv6. No: it is left out with a warning. (For
    /// addresses that a person has asked for: yes.)
    pub require_ipv6: bool,
    /// What the registry is told. It can be changed later.
    pub registry: Config,
    /// Bans beside those of the configuration; see [`set_more_bans`](crate::LobbyService::set_more_bans). None.
    pub more_bans: BanList,
    /// Where the list is kept over restarts. `None`: nowhere.
    pub data_dir: Option<PathBuf>,
    /// How often the list is saved, if it has changed; large lists less often. 2 s.
    pub save_every: Duration,
    /// How much the list service takes on.
    pub list: ListLimits,
    /// How many descriptors other parts of the program want: they get an eighth of all that there are at most. 0.
    pub other_files: usize,
    /// How many bytes the system should keep for each UDP socket. It may give less. 8 MiB.
    pub receive_buffer: usize,
}

impl Default for LobbyOptions {
    fn default() -> Self {
        let both = |port| vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
        Self {
            listen: both(rallypoint_wire::lobby::PORT),
            legacy: both(rallypoint_wire::legacy::PORT),
            require_ipv6: false,
            registry: Config::default(),
            more_bans: BanList::default(),
            data_dir: None,
            save_every: Duration::from_secs(2),
            list: ListLimits::default(),
            other_files: 0,
            receive_buffer: 8 << 20,
        }
    }
}
