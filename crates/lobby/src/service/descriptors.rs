//! Sharing out the process's file descriptors: when they are used up, no client can be served and nothing can be saved.

use super::LobbyOptions;
use crate::{ListLimits, list::MAX_REPLY_FILES, probe::ProbePool};
use rallypoint_lobby_proto::Config;

/// Assumed limit if the system does not report one.
const FALLBACK: u64 = 1_024;

/// Descriptors for files of popular lists, listening sockets, files and the rest of the program.
const RESERVED: usize = MAX_REPLY_FILES + 128;

/// Number of file descriptors by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// List connections.
    pub lists: usize,
    /// Reachability checks under way.
    pub checks: usize,
    /// Probes under way.
    pub probe_sockets: usize,
    /// Other parts of the program.
    pub others: usize,
}

/// Number of file descriptors that each part requests.
struct DescriptorDemand {
    reserved: usize,
    connections: usize,
    checks: usize,
    probe_sockets: usize,
    others: usize,
}

impl Descriptors {
    /// Raises the limit of this process as far as the system permits, and shares the descriptors out.
    pub fn claim(options: &LobbyOptions) -> Self {
        let limit = raise_limit().unwrap_or(FALLBACK);
        let demand = DescriptorDemand {
            reserved: RESERVED,
            connections: options.list.connections,
            checks: options.registry.checks.in_flight,
            probe_sockets: options.probe_sockets.min(ProbePool::MAX_SOCKETS),
            others: options.other_descriptors,
        };
        let shared = Self::share(usize::try_from(limit).unwrap_or(usize::MAX), &demand);
        if shared.lists < demand.connections {
            tracing::warn!(
                limit,
                connections = shared.lists,
                "the system's limit of open files lowers the limit of list connections"
            );
        }
        shared
    }

    /// Probes and other parts get at most an eighth of all; probes get a quarter of that, or what the other parts do not request.
    /// Of the rest, checks get a quarter if lists request everything, and otherwise what lists do not request.
    fn share(limit: usize, demand: &DescriptorDemand) -> Self {
        let shared = (demand.probe_sockets + demand.others).min(limit / 8);
        let probe_sockets = demand.probe_sockets.min(shared.saturating_sub(demand.others).max(shared / 4));
        let others = demand.others.min(shared - probe_sockets);
        let free = limit - demand.reserved.min(limit / 4) - shared;
        let checks = (free / 4).max(free.saturating_sub(demand.connections)).max(1);
        let lists = free - checks.min(demand.checks).min(free);
        Self { lists: demand.connections.min(lists).max(1), checks, probe_sockets, others }
    }

    /// List limits lowered to the available descriptors.
    pub fn limit_list(&self, limits: &ListLimits) -> ListLimits {
        ListLimits { connections: limits.connections.min(self.lists), ..limits.clone() }
    }

    /// A registry configuration lowered to the available descriptors.
    pub fn limit_config(&self, mut config: Config) -> Config {
        config.checks.in_flight = config.checks.in_flight.min(self.checks);
        config
    }
}

/// Raises the soft limit of open files to the hard limit. Returns the limit in force; `None` means unlimited.
#[cfg(unix)]
fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    }
}

/// The number of sockets of a process is not limited.
#[cfg(not(unix))]
fn raise_limit() -> Option<u64> {
    Some(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(limit: usize, probe_sockets: usize, others: usize) -> Descriptors {
        let connections = ListLimits::default().connections;
        let checks = Config::default().checks.in_flight;
        // Not every system has files of popular lists, so this is not the constant.
        let demand = DescriptorDemand { reserved: 192, connections, checks, probe_sockets, others };
        Descriptors::share(limit, &demand)
    }

    #[test]
    fn lists_checks_probes_and_others_fit_beside_each_other() {
        for limit in [0, 1, 4, 64, 256, 1_024, 4_096, 20_000, 1 << 20] {
            for (probes, others) in [(0, 0), (0, 1), (0, 4_096), (512, 0), (512, 4_096)] {
                let shared = share(limit, probes, others);
                let checks = shared.limit_config(Config::default()).checks.in_flight;
                assert!(shared.lists >= 1 && checks >= 1 && shared.others <= others && shared.probe_sockets <= probes);
                let sum = shared.lists + checks + shared.others + shared.probe_sockets;
                assert!(limit < 8 || sum < limit, "{limit}: {shared:?}");
            }
        }
        let descriptors = |lists, checks, probe_sockets, others| Descriptors { lists, checks, probe_sockets, others };
        assert_eq!(share(1_024, 0, 0), descriptors(624, 208, 0, 0));
        assert_eq!(share(1_024, 0, 4_096), descriptors(528, 176, 0, 128));
        assert_eq!(share(1_024, 512, 4_096), descriptors(528, 176, 32, 96));
        assert_eq!(share(1_024, 512, 0), descriptors(528, 176, 128, 0));
        assert_eq!(share(20_000, 0, 0), descriptors(16_384, 4_952, 0, 0));
        assert_eq!(share(1 << 20, 512, 4_096).probe_sockets, 512);
        assert_eq!(share(1 << 20, 512, 4_096).others, 4_096);
    }
}
