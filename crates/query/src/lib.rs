//! Querying game servers over sockets.
#![forbid(unsafe_code)]

mod single;

pub use rallypoint_query_proto as proto;
pub use single::{SingleProbe, SingleProbeConfig};
