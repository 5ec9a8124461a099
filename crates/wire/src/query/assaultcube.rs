//! The queries of AssaultCube: see [`cube2`](super::cube2), whose variant they are.

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "assaultcube";

/// Name of the query protocol for people.
pub const TITLE: &str = "AssaultCube";

/// Default UDP port for queries: the one after that of the game.
pub const PORT: u16 = 28_764;
