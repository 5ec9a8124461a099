//! Whether a copy is accepted.

use super::{FILE, FORMAT, MirrorError};
use crate::{
    FetchedServer,
    list::{Count, web::ServerDocument},
    list_names,
};
use rallypoint_minisign::{PublicKey, SignedFile};
use rallypoint_wire::{lobby::ListId, text};
use serde::Deserialize;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// How far in the future a copy can be: clocks differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(600);

/// The list of a lobby as it was, with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyCopy {
    /// When it was made, in seconds since 1970.
    pub made_at: u64,
    /// The servers of all lists.
    pub servers: Vec<FetchedServer>,
    /// Number of entries without a valid address.
    pub malformed: usize,
}

/// Requirements that a copy has to meet.
#[derive(Clone, Copy, Debug)]
pub struct CopyRules<'a> {
    /// The key of the lobby.
    pub key: &'a PublicKey,
    /// The name of the lobby: its host, with its port if it is not the default one.
    pub lobby: &'a str,
    /// The maximum age; `None` for what the lobby recommends in the copy.
    pub max_age: Option<Duration>,
    /// The time now, in seconds since 1970.
    pub now: u64,
}

/// The signed document. Only the fields that are used are kept.
#[derive(Deserialize)]
struct CopyDocument {
    format: u32,
    /// The names of the lobby; empty if the operator has not configured any.
    hosts: Vec<String>,
    /// Recommended maximum age, in seconds.
    max_age: u64,
    #[serde(default)]
    lists: Vec<ListDocument>,
    servers: Vec<ServerDocument>,
}

/// A list of the lobby.
#[derive(Deserialize)]
struct ListDocument {
    id: String,
    name: Option<String>,
}

/// The part of the document that every version has.
#[derive(Deserialize)]
struct AnyDocument {
    format: u32,
}

impl LobbyCopy {
    /// Verifies and reads a file that begins with its signature. Nothing of it is interpreted before the signature is verified.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn open(bytes: &[u8], rules: &CopyRules<'_>) -> Result<Self, MirrorError> {
        let signed = SignedFile::parse(bytes)?;
        let comment = signed.verify(rules.key)?;
        // The same key also signs the page and the raw lists.
        if comment.file != FILE {
            return Err(MirrorError::NotAList);
        }
        let made_at = comment.timestamp;
        let ahead = Duration::from_secs(made_at.saturating_sub(rules.now));
        if ahead > CLOCK_TOLERANCE {
            return Err(MirrorError::FromTheFuture(ahead));
        }
        let document: CopyDocument = serde_json::from_slice(signed.message).map_err(|_| {
            let any: Option<AnyDocument> = serde_json::from_slice(signed.message).ok();
            any.filter(|any| any.format > FORMAT)
                .map_or(MirrorError::NotAList, |any| MirrorError::NewerFormat(any.format))
        })?;
        if document.format != FORMAT {
            return Err(MirrorError::NewerFormat(document.format));
        }
        if !document.hosts.is_empty() && !document.hosts.iter().any(|host| host.eq_ignore_ascii_case(rules.lobby)) {
            let hosts: Vec<_> = document.hosts.iter().take(3).map(|host| text::sanitize(host).into_owned()).collect();
            return Err(MirrorError::OtherLobby(hosts.join(", ")));
        }
        let age = Duration::from_secs(rules.now.saturating_sub(made_at));
        let max = rules.max_age.unwrap_or(Duration::from_secs(document.max_age));
        if age > max {
            return Err(MirrorError::TooOld { age, max });
        }
        let name = |list: ListDocument| {
            let name = list.name.filter(|name| !name.is_empty())?;
            Some((list.id.parse().ok()?, text::sanitize(&name).into()))
        };
        let names: HashMap<ListId, Arc<str>> = document.lists.into_iter().filter_map(name).collect();
        let mut count = Count::default();
        let mut servers = Vec::with_capacity(document.servers.len());
        for server in document.servers {
            match server.into_server() {
                Some(mut server) => {
                    count.add_server()?;
                    let list = server.list.filter(|list| !list_names::is_known(*list));
                    server.list_name = list.and_then(|list| names.get(&list).cloned());
                    servers.push(server);
                }
                None => count.add_malformed()?,
            }
        }
        Ok(Self { made_at, servers, malformed: count.malformed })
    }
}
