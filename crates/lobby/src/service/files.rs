//! Who may have how many descriptors: when they are used up, nobody can be served and nothing can be saved.

use crate::{ListLimits, list::MOST_COPIES};
use rallypoint_lobby_proto::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// If the system does not say how many there are.
const USUAL: u64 = 1_024;

/// Descriptors for copies of lists, sockets, files and the rest of the program.
const REST: usize = MOST_COPIES + 128;

/// How many descriptors there are, for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// For list connections.
    pub lists: usize,
    /// For checks under way.
    pub checks: usize,
    /// For other parts of the program.
    pub others: usize,
}

impl Files {
    /// Lets this process have as many as the system permits, and shares them out.
    pub fn claim(limits: &ListLimits, registry: &Config, others: usize) -> Self {
        let files = raise_open_files().unwrap_or(USUAL);
        let shared = Self::share(usize::try_from(files).unwrap_or(usize::MAX), limits, registry, others);
        if shared.lists < limits.connections {
            tracing::warn!(
                files,
                connections = shared.lists,
                "the system's limit of open files lowers that of list connections"
            );
        }
        shared
    }

    /// Other parts may have an eighth of all. Of the rest, checks may have a quarter if lists want all, and what lists do not
    /// want.
    fn share(files: usize, limits: &ListLimits, registry: &Config, others: usize) -> Self {
        let others = others.min(files / 8);
        let free = files - REST.min(files / 4) - others;
        let checks = (free / 4).max(free.saturating_sub(limits.connections)).max(1);
        let lists = free - checks.min(registry.checks.in_flight).min(free);
        Self { lists: limits.connections.min(lists).max(1), checks, others }
    }

    /// The same limits, within what there is.
    pub fn limits(&self, limits: &ListLimits) -> ListLimits {
        ListLimits { connections: limits.connections.min(self.lists), ..limits.clone() }
    }

    /// The same configuration, within what there is.
    pub fn config(&self, mut config: Config) -> Config {
        config.checks.in_flight = config.checks.in_flight.min(self.checks);
        config
    }
}

/// Raises the soft limit of open files to the hard limit. Returns the limit in force; `None` means unlimited.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_checks_have_room_beside_each_other() {
        let (limits, registry) = (ListLimits::default(), Config::default());
        for files in [0, 1, 4, 64, 256, 1_024, 4_096, 20_000, 1 << 20] {
            for others in [0, 1, 4_096] {
                let shared = Files::share(files, &limits, &registry, others);
                let checks = shared.config(registry.clone()).checks.in_flight;
                assert!(shared.lists >= 1 && checks >= 1 && shared.others <= others);
                assert!(files < 8 || shared.lists + checks + shared.others < files, "{files}: {shared:?}");
            }
        }
        let share = |files, others| Files::share(files, &limits, &registry, others);
        assert_eq!(share(1_024, 0), Files { lists: 624, checks: 208, others: 0 });
        assert_eq!(share(1_024, 4_096), Files { lists: 528, checks: 176, others: 128 });
        assert_eq!(share(20_000, 0), Files { lists: 16_384, checks: 4_952, others: 0 });
    }
}
