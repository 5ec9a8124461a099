//! The log's lines about contact with the store.

use super::problem::REFUSED;
use crate::{ClusterNode, ContactEvent, ContactMonitor};
use std::time::Duration;

/// Logs a loss of contact, or its return.
pub fn write(event: &ContactEvent, node: &ClusterNode, contact: &ContactMonitor, outage_limit: Duration) {
    match event {
        ContactEvent::Joined => tracing::info!(servers_in_store = node.stats().servers, "joined the cluster"),
        // Not the number of servers: an empty store is being filled again.
        ContactEvent::Regained => tracing::info!("in contact with the cluster's store again"),
        ContactEvent::Lost(error) => {
            let consequence = if contact.has_joined() {
                format!("Servers of other nodes stay listed for {}", duration_text(outage_limit))
            } else {
                "Only servers that register at this node are listed".into()
            };
            tracing::warn!(reason = error.kind.code(), "no contact with the cluster's store: {error}. {consequence}");
        }
        ContactEvent::OtherReason(error) => {
            tracing::warn!(reason = error.kind.code(), "the cluster's store still cannot be used: {error}");
        }
        ContactEvent::Refused(detail) => {
            let reason = REFUSED.code;
            tracing::error!(
                reason,
                "this node does not take part in the cluster any more, until the store accepts it: {detail}"
            );
        }
    }
}

/// `90 seconds` or `5 minutes`.
fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_limits_are_in_seconds() {
        for (seconds, expected) in [(10, "10 seconds"), (119, "119 seconds"), (120, "2 minutes"), (300, "5 minutes")] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), expected);
        }
    }
}
