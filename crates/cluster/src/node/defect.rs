//! Defects of the store's content, which nodes find and repair.

use super::ClusterNode;

/// A defect of the store's content. The nodes repair it: they read everything, and write what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreDefect {
    /// The store was emptied, or another program has changed its metadata.
    Emptied,
    /// Changes that were applied here are gone: a failover lost them, or the store was restored from a backup.
    LostChanges,
    /// Servers are gone without a record, or were overwritten.
    LostServers,
    /// Records of the log are gone before this node has read them.
    LostRecords,
}

impl StoreDefect {
    /// A short name, for programs that read the log.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Emptied => "emptied",
            Self::LostChanges => "lost_changes",
            Self::LostServers => "lost_servers",
            Self::LostRecords => "lost_records",
        }
    }

    /// The defect and its repair: one sentence for the operator.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Emptied => {
                "the cluster's store has lost its content, or another program has changed its metadata: the nodes write their \
                 servers and bans again"
            }
            Self::LostChanges => {
                "the cluster's store has lost changes, as in a failover, or was restored from a backup: this node reads \
                 everything again, and writes what is missing"
            }
            Self::LostServers => {
                "servers in the cluster's store were deleted or overwritten by another program: this node reads everything again, \
                 and writes what is missing"
            }
            Self::LostRecords => {
                "records in the log of the cluster's store are gone before this node has read them: it reads everything again"
            }
        }
    }
}

impl ClusterNode {
    /// The defect of the store's content that was found since the last call: the latest of several.
    pub fn take_defect(&mut self) -> Option<StoreDefect> {
        self.defect.take()
    }

    pub(super) fn note_defect(&mut self, defect: StoreDefect) {
        self.stats.defects = self.stats.defects.saturating_add(1);
        self.defect = Some(defect);
    }
}
