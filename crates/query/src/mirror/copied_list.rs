//! The servers of a copy.

use crate::{
    FetchedServer, ProbeError,
    list::{Count, web::ServerDocument},
    list_names,
    mirror::MirrorError,
};
use rallypoint_mirror::{CopyRules, LobbyCopy};

/// The servers of a copy that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedList {
    /// When it was made, in seconds since 1970.
    pub made_at: u64,
    /// The servers of all lists.
    pub servers: Vec<FetchedServer>,
    /// Number of entries without a valid address.
    pub malformed: usize,
}

impl CopiedList {
    /// Verifies and reads a file that begins with its signature.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn open(bytes: &[u8], rules: &CopyRules<'_>) -> Result<Self, MirrorError> {
        let copy = LobbyCopy::open(bytes, rules)?;
        let made_at = copy.made_at;
        let (servers, malformed) = servers(copy)?;
        Ok(Self { made_at, servers, malformed })
    }
}

/// The servers with a valid address, and the number of others.
fn servers(copy: LobbyCopy<ServerDocument>) -> Result<(Vec<FetchedServer>, usize), ProbeError> {
    let mut count = Count::default();
    let mut servers = Vec::with_capacity(copy.servers.len());
    for server in copy.servers {
        match server.into_server() {
            Some(mut server) => {
                count.add_server()?;
                let list = server.list.filter(|list| !list_names::is_known(*list));
                server.list_name = list.and_then(|list| copy.names.get(&list).cloned());
                servers.push(server);
            }
            None => count.add_malformed()?,
        }
    }
    Ok((servers, count.malformed))
}
