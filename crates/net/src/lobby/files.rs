//! Who may have how many descriptors: when they are used up, nobody can be served and nothing can be saved.

use crate::{ListLimits, list::MOST_COPIES, sys};
use rallypoint_lobby::Config;

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
}

impl Files {
    /// Lets this process have as many as the system permits, and shares them out.
    pub fn claim(limits: &ListLimits, registry: &Config) -> Self {
        let files = sys::raise_open_files().unwrap_or(USUAL);
        let shared = Self::share(usize::try_from(files).unwrap_or(usize::MAX), limits, registry);
        if shared.lists < limits.connections {
            tracing::warn!(
                files,
                connections = shared.lists,
                "the system's limit of open files lowers that of list connections"
            );
        }
        shared
    }

    /// Checks may have a quarter if lists want the rest, and what lists do not want.
    fn share(files: usize, limits: &ListLimits, registry: &Config) -> Self {
        let free = files - REST.min(files / 4);
        let checks = (free / 4).max(free.saturating_sub(limits.connections)).max(1);
        let lists = free - checks.min(registry.checks.in_flight).min(free);
        Self { lists: limits.connections.min(lists).max(1), checks }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_checks_have_room_beside_each_other() {
        let (limits, registry) = (ListLimits::default(), Config::default());
        for files in [0, 1, 4, 64, 256, 1_024, 4_096, 20_000, 1 << 20] {
            let shared = Files::share(files, &limits, &registry);
            let checks = shared.config(registry.clone()).checks.in_flight;
            assert!(shared.lists >= 1 && checks >= 1);
            assert!(files < 8 || shared.lists + checks < files, "{files}: {shared:?}");
        }
        assert_eq!(Files::share(1_024, &limits, &registry), Files { lists: 624, checks: 208 });
        assert_eq!(Files::share(20_000, &limits, &registry), Files { lists: 16_384, checks: 4_952 });
    }
}
