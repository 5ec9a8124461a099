//! Whether a copy is accepted.

use crate::{
    FILE, FORMAT,
    minisign::{PublicKey, SignatureError, SignedFile},
};
use rallypoint_wire::{lobby::ListId, text};
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// How far in the future a copy can be: clocks differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(600);

/// The list of a lobby as it was, with a valid signature. `S` is a server as the API of a lobby shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyCopy<S> {
    /// When it was made, in seconds since 1970.
    pub made_at: u64,
    /// The names that the operator has given to lists, safe to display.
    pub names: HashMap<ListId, Arc<str>>,
    /// The servers of all lists.
    pub servers: Vec<S>,
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

/// Why a copy is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The signature is not one of the expected key.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It is correctly signed, but it is no list.
    #[error("it is signed, but it is not the list of a lobby")]
    NotAList,
    /// It is made for later versions of this program.
    #[error("it has format {0}, which this version does not know: update this program")]
    NewerFormat(u32),
    /// It is the copy of another lobby.
    #[error("it is a copy of {0}")]
    OtherLobby(String),
    /// It is too old.
    #[error("it is {} old, and copies are used for at most {}", age_in_words(*.age), age_in_words(*.max))]
    TooOld {
        /// Its age.
        age: Duration,
        /// The maximum age.
        max: Duration,
    },
    /// It was made in the future.
    #[error("it was made {} in the future: is this machine's clock right?", age_in_words(*.0))]
    FromTheFuture(Duration),
}

/// The signed document. Only the fields that are used are kept.
#[derive(Deserialize)]
struct CopyDocument<S> {
    format: u32,
    /// The names of the lobby; empty if the operator has not configured any.
    hosts: Vec<String>,
    /// Recommended maximum age, in seconds.
    max_age: u64,
    #[serde(default)]
    lists: Vec<ListDocument>,
    servers: Vec<S>,
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

impl<S: DeserializeOwned> LobbyCopy<S> {
    /// Verifies and reads a file that begins with its signature. Nothing of it is interpreted before the signature is verified.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn open(bytes: &[u8], rules: &CopyRules<'_>) -> Result<Self, CopyError> {
        let signed = SignedFile::parse(bytes)?;
        let comment = signed.verify(rules.key)?;
        // The same key also signs the page and the raw lists.
        if comment.file != FILE {
            return Err(CopyError::NotAList);
        }
        let made_at = comment.timestamp;
        let ahead = Duration::from_secs(made_at.saturating_sub(rules.now));
        if ahead > CLOCK_TOLERANCE {
            return Err(CopyError::FromTheFuture(ahead));
        }
        let document: CopyDocument<S> = serde_json::from_slice(signed.message).map_err(|_| {
            let any: Option<AnyDocument> = serde_json::from_slice(signed.message).ok();
            any.filter(|any| any.format > FORMAT).map_or(CopyError::NotAList, |any| CopyError::NewerFormat(any.format))
        })?;
        if document.format != FORMAT {
            return Err(CopyError::NewerFormat(document.format));
        }
        if !document.hosts.is_empty() && !document.hosts.iter().any(|host| host.eq_ignore_ascii_case(rules.lobby)) {
            let hosts: Vec<_> = document.hosts.iter().take(3).map(|host| text::sanitize(host).into_owned()).collect();
            return Err(CopyError::OtherLobby(hosts.join(", ")));
        }
        let age = Duration::from_secs(rules.now.saturating_sub(made_at));
        let max = rules.max_age.unwrap_or(Duration::from_secs(document.max_age));
        if age > max {
            return Err(CopyError::TooOld { age, max });
        }
        let name = |list: ListDocument| {
            let name = list.name.filter(|name| !name.is_empty())?;
            Some((list.id.parse().ok()?, text::sanitize(&name).into()))
        };
        let names = document.lists.into_iter().filter_map(name).collect();
        Ok(Self { made_at, names, servers: document.servers })
    }
}

/// A duration in words: "3 minutes".
#[must_use]
pub fn age_in_words(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
