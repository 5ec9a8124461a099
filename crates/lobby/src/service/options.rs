//! Options of a lobby at its start.

use crate::{DoorAddrs, ListLimits, NodeIdentity, TableScope, default_memory_cap};
use rallypoint_lobby_proto::Config;
use std::{path::PathBuf, time::Duration};

/// Options of a [`LobbyService`](crate::LobbyService). The default is a lobby on all addresses of both families that stores
/// nothing on disk and does not probe servers.
#[derive(Clone, Debug, PartialEq)]
pub struct LobbyOptions {
    /// Addresses of each door; at least one of the lobby's own. Port 0 stands for any free port (the same for UDP and TCP).
    /// Default: [`DoorAddrs::documented`].
    pub doors: DoorAddrs,
    /// Whether it is an error if an IPv6 address cannot be used because the machine has no IPv6. Default: no, such addresses are
    /// skipped with a warning. (For addresses that the operator has chosen, it should be.)
    pub require_ipv6: bool,
    /// Configuration of the registry. It can be changed later. By default its memory cap is that of [`default_memory_cap`].
    pub registry: Config,
    /// Directory in which the list, and the bans and notes that the operator adds at run time, are stored for the next start.
    /// Default: `None`, nothing is stored.
    pub data_dir: Option<PathBuf>,
    /// Minimum interval between two saves of a list that changes; large lists are saved less often. Default: 2 s.
    pub save_every: Duration,
    /// Limits of the list service.
    pub list: ListLimits,
    /// Maximum number of sockets for probes: verification, watched servers and Bloodmasters announcements. At most 512; fewer
    /// if the system's limit of open files is low. Default: 0, no server is probed.
    pub probe_sockets: usize,
    /// The servers that [`servers`](crate::LobbyService::servers) contains. Default: all.
    pub table_scope: TableScope,
    /// Number of file descriptors that other parts of the program want. Together with probes they get at most an eighth of all
    /// descriptors of the process. Default: 0.
    pub other_descriptors: usize,
    /// Makes the lobby a node of a cluster. Default: `None`.
    pub cluster: Option<NodeIdentity>,
    /// Size of the system's receive buffer for each UDP socket, in bytes. The system may grant less. Default: 8 MiB.
    pub receive_buffer: usize,
}

impl Default for LobbyOptions {
    fn default() -> Self {
        let mut registry = Config::default();
        registry.caps.memory = default_memory_cap();
        Self {
            doors: DoorAddrs::documented(),
            require_ipv6: false,
            registry,
            data_dir: None,
            save_every: Duration::from_secs(2),
            list: ListLimits::default(),
            probe_sockets: 0,
            table_scope: TableScope::default(),
            other_descriptors: 0,
            cluster: None,
            receive_buffer: 8 << 20,
        }
    }
}
