//! What a node reports about itself.

use serde::{Deserialize, Serialize};

/// Maximum length of a name or version that is displayed.
const MAX_TEXT: usize = 64;

/// What a node reports about itself in the store, in JSON. Fields that are missing or unknown are ignored, so that nodes of
/// neighbouring versions understand each other.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeReport {
    pub name: String,
    pub version: String,
    pub seq: u64,
    pub listed: u64,
    pub behind: u64,
    pub round_trip_us: u64,
}

impl NodeReport {
    pub fn emit(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a report. Whatever the store has, the result can be displayed.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut report: Self = serde_json::from_slice(bytes).unwrap_or_default();
        for text in [&mut report.name, &mut report.version] {
            *text = rallypoint_wire::text::sanitize(text).chars().take(MAX_TEXT).collect();
        }
        report
    }
}
