//! Reading a mirror when a lobby does not answer.

use super::{CopiedList, MirrorError};
use crate::{
    FetchedServer, HttpUrl, ListSummary, ProbeError, ScanConfig, Target,
    http::MAX_LIST,
    list::web::{Fetched, HTTP_PORT, LISTS, get_at_most, lists_url},
    list_names,
};
use rallypoint_mirror::{
    CopyError, CopyRules, KEY_FILE, KeyPins, PinnedKey, SIGNED_FILE, age_in_words,
    minisign::{PublicKey, SignatureError},
};
use rallypoint_wire::lobby::{self, ListId};
use serde::Deserialize;
use std::{
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{task::spawn_blocking, time::timeout};

/// Time limit for a whole download, as a multiple of the time limit of one wait: a mirror that sends a byte now and then does not
/// keep a client for ever.
const DOWNLOAD_WAITS: u32 = 15;

/// Time limit for asking a lobby that answers for its key.
const LEARN_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of a file with a public key, and of the answer of an API, in bytes.
const MAX_SMALL: usize = 1 << 20;

/// How much older than the newest copy that was seen a copy can be without a warning: the caches of a content delivery network
/// are not equally fresh.
const CACHE_TOLERANCE: u64 = 600;

/// Where copies of lists are, and which are accepted.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// The mirrors, in the order of trying: directories, or the files themselves (`*.signed`).
    pub urls: Vec<HttpUrl>,
    /// The key of all copies. Without it, the key of a lobby is what [`pins`](Self::pins) remember, or at the first contact what
    /// the lobby or else the mirror says.
    pub key: Option<PublicKey>,
    /// The maximum age of a copy; `None` for what the lobby recommends in the copy.
    pub max_age: Option<Duration>,
    /// Remembers the keys.
    pub pins: Arc<dyn KeyPins>,
}

/// The result of trying a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorEvent {
    /// The copy of a mirror is not used.
    Failed {
        /// The mirror.
        url: HttpUrl,
        /// Why not.
        error: MirrorError,
    },
    /// The servers of a copy follow.
    Used(MirroredList),
}

/// A copy that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredList {
    /// The lobby whose copy it is.
    pub lobby: String,
    /// The mirror.
    pub url: HttpUrl,
    /// The age of the copy.
    pub age: Duration,
    /// Why the lobby's own list could not be read.
    pub cause: ProbeError,
    /// By how much an earlier copy was newer than this one, if that is more than caches explain.
    pub older_by: Option<Duration>,
    /// The key, if it came from the mirror and is trusted from now on.
    pub new_key: Option<PublicKey>,
}

impl MirroredList {
    /// The age in words: "3 minutes".
    #[must_use]
    pub fn age(&self) -> String {
        age_in_words(self.age)
    }

    /// [`older_by`](Self::older_by) in words.
    #[must_use]
    pub fn older_by(&self) -> Option<String> {
        self.older_by.map(age_in_words)
    }
}

/// A copy, and where it came from.
struct FetchedCopy {
    copy: CopiedList,
    summary: ListSummary,
    list: MirroredList,
    pin: PinnedKey,
}

/// The answer of a lobby's API. Only the field that is used is kept.
#[derive(Deserialize)]
struct ListsDocument {
    export_key: Option<String>,
}

impl MirrorConfig {
    /// Reads the first copy that is accepted, because the lobby's list cannot be read. A copy that is older than one that was
    /// seen before is used only if no other mirror has a newer one.
    ///
    /// # Errors
    /// The error of the lobby itself, if no copy is accepted.
    pub(crate) async fn fall_back(
        &self,
        target: &Target,
        config: &ScanConfig,
        cause: ProbeError,
        mut on_event: impl FnMut(MirrorEvent),
        on_server: impl FnMut(FetchedServer),
    ) -> Result<ListSummary, ProbeError> {
        let Some(lobby) = lobby_name(target) else { return Err(cause) };
        let mut best: Option<FetchedCopy> = None;
        for url in &self.urls {
            let limit = config.timeout.saturating_mul(DOWNLOAD_WAITS);
            let fetched = timeout(limit, self.fetch(url, &lobby, config, &cause)).await;
            match fetched.unwrap_or(Err(MirrorError::Fetch(ProbeError::TimedOut(limit)))) {
                Err(error) => on_event(MirrorEvent::Failed { url: url.clone(), error }),
                Ok(fetched) => {
                    let is_current = fetched.list.older_by.is_none();
                    if best.as_ref().is_none_or(|best| fetched.copy.made_at > best.copy.made_at) {
                        best = Some(fetched);
                    }
                    if is_current {
                        break;
                    }
                }
            }
        }
        let Some(FetchedCopy { copy, mut summary, list, pin }) = best else { return Err(cause) };
        self.pins.pin(&lobby, pin);
        on_event(MirrorEvent::Used(list));
        let wanted = wanted_list(target);
        let servers = copy.servers.into_iter().filter(|server| wanted.is_none() || server.list == wanted);
        summary.servers = servers.map(on_server).count();
        Ok(summary)
    }

    /// Remembers the key that a lobby states itself, while it answers: that takes precedence over a mirror's statement.
    pub(crate) async fn learn_key(&self, target: &Target, config: &ScanConfig) {
        let Some((lobby, url)) = lobby_name(target).zip(api_url(target)) else { return };
        if self.key.is_some() || self.pins.pinned(&lobby).is_some() {
            return;
        }
        let Ok(Ok(fetched)) = timeout(LEARN_TIMEOUT, get_at_most(&url, config, MAX_SMALL)).await else { return };
        let document = fetched.response.into_body().ok().and_then(|body| serde_json::from_slice(&body).ok());
        let Some(ListsDocument { export_key: Some(key) }) = document else { return };
        if let Ok(key) = key.parse() {
            self.pins.pin(&lobby, PinnedKey { key, newest: 0 });
        }
    }

    async fn fetch(
        &self,
        url: &HttpUrl,
        lobby: &str,
        config: &ScanConfig,
        cause: &ProbeError,
    ) -> Result<FetchedCopy, MirrorError> {
        let pinned = self.pins.pinned(lobby).filter(|pinned| self.key.is_none_or(|key| key == pinned.key));
        let known = self.key.or(pinned.map(|pinned| pinned.key));
        let key = match known {
            Some(key) => key,
            None => fetch_key(url, config).await?,
        };
        let Fetched { response, from, connect_time } = get_at_most(&beside(url, SIGNED_FILE), config, MAX_LIST).await?;
        let body = response.into_body()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let max_age = self.max_age;
        let name = lobby.to_owned();
        // Hashing and parsing a hundred megabytes takes a while.
        let open = move || CopiedList::open(&body, &CopyRules { key: &key, lobby: &name, max_age, now });
        let opened = spawn_blocking(open).await.unwrap_or(Err(CopyError::NotAList.into()));
        let copy = opened.map_err(|error| match error {
            MirrorError::Copy(CopyError::Signature(SignatureError::OtherKey { found, expected }))
                if pinned.is_some() =>
            {
                MirrorError::KeyChanged { found, pinned: expected }
            }
            error => error,
        })?;
        let newest = pinned.map_or(0, |pinned| pinned.newest);
        let older_by = newest.saturating_sub(copy.made_at);
        let list = MirroredList {
            lobby: lobby.to_owned(),
            url: url.clone(),
            age: Duration::from_secs(now.saturating_sub(copy.made_at)),
            cause: cause.clone(),
            older_by: (older_by > CACHE_TOLERANCE).then(|| Duration::from_secs(older_by)),
            new_key: known.is_none().then_some(key),
        };
        let summary = ListSummary {
            from,
            connect_time,
            servers: copy.servers.len(),
            malformed: copy.malformed,
            has_players: false,
        };
        let pin = PinnedKey { key, newest: newest.max(copy.made_at) };
        Ok(FetchedCopy { copy, summary, list, pin })
    }
}

/// Reads the key of a mirror.
async fn fetch_key(url: &HttpUrl, config: &ScanConfig) -> Result<PublicKey, MirrorError> {
    let no_key = |why: String| MirrorError::NoKey(why);
    let fetched = get_at_most(&beside(url, KEY_FILE), config, MAX_SMALL).await?;
    let body = fetched.response.into_body().map_err(|error| no_key(error.to_string()))?;
    let text = std::str::from_utf8(&body).map_err(|_| no_key("it is not text".into()))?;
    PublicKey::from_file(text).map_err(|error| no_key(error.to_string()))
}

/// A file of a mirror, which is given by its directory or by its signed file.
fn beside(mirror: &HttpUrl, file: &str) -> HttpUrl {
    let path = mirror.path.split('?').next().unwrap_or_default();
    if path.ends_with(".signed") && file == SIGNED_FILE {
        return mirror.clone();
    }
    let directory = match path.ends_with(".signed") {
        true => &path[..path.rfind('/').unwrap_or(0)],
        false => path.trim_end_matches('/'),
    };
    HttpUrl { path: format!("{directory}/{file}"), ..mirror.clone() }
}

/// The name by which the key of a lobby is remembered: its host, with its port if it is not a default one. `None` for targets that
/// have no copies.
fn lobby_name(target: &Target) -> Option<String> {
    const PAGES: [NonZeroU16; 3] = [NonZeroU16::new(80).unwrap(), NonZeroU16::new(443).unwrap(), HTTP_PORT];
    let name = match target {
        Target::Lobby(lobby) if lobby.port() == lobby::PORT => lobby.host.to_string(),
        Target::Lobby(lobby) => format!("{}:{}", lobby.host, lobby.port()),
        Target::WebList(url) if PAGES.contains(&url.port) => url.host.to_string(),
        Target::WebList(url) => format!("{}:{}", url.host, url.port),
        Target::LegacyLobby(..) | Target::Server(_) => return None,
    };
    Some(name.to_lowercase())
}

/// The only list that is wanted, if it is one.
fn wanted_list(target: &Target) -> Option<ListId> {
    match target {
        Target::Lobby(lobby) => lobby.id,
        Target::WebList(url) => {
            let (path, query) = url.path.split_once('?').unwrap_or((&url.path, ""));
            let page = path.split_once("/lists/").and_then(|(_, list)| list.split('/').next());
            let parameter = || query.split('&').find_map(|parameter| parameter.strip_prefix("list="));
            list_names::find(page.or_else(parameter)?).ok()
        }
        Target::LegacyLobby(..) | Target::Server(_) => None,
    }
}

/// Where the API of a lobby is. A lobby at a port of its own may have its API anywhere, and another lobby may have the default
/// one.
fn api_url(target: &Target) -> Option<HttpUrl> {
    match target {
        Target::Lobby(lobby) if lobby.port() == lobby::PORT => Some(lists_url(&lobby.host)),
        Target::WebList(url) => {
            let path = url.path.split('?').next().unwrap_or_default();
            let directory = &path[..path.rfind('/').unwrap_or(0)];
            Some(HttpUrl { path: format!("{directory}{LISTS}"), ..url.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> HttpUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_mirror_is_a_directory_or_a_signed_file() {
        for (mirror, signed, key) in [
            ("https://m.example", "https://m.example/servers.signed", "https://m.example/rallypoint.pub"),
            ("https://m.example/a/", "https://m.example/a/servers.signed", "https://m.example/a/rallypoint.pub"),
            ("https://m.example/a", "https://m.example/a/servers.signed", "https://m.example/a/rallypoint.pub"),
            ("https://m.example/a/x.signed", "https://m.example/a/x.signed", "https://m.example/a/rallypoint.pub"),
        ] {
            assert_eq!(beside(&url(mirror), SIGNED_FILE), url(signed));
            assert_eq!(beside(&url(mirror), KEY_FILE), url(key));
        }
    }

    #[test]
    fn a_lobby_has_one_name_however_it_is_written() {
        let name = |text: &str| lobby_name(&text.parse().unwrap());
        for text in [
            "lobby://Lobby.Example.org",
            "lobby://lobby.example.org:29944/gg2",
            "https://lobby.example.org/",
            "http://lobby.example.org:29950/?list=gg2",
        ] {
            assert_eq!(name(text).as_deref(), Some("lobby.example.org"), "{text}");
        }
        assert_eq!(name("lobby://[2001:db8::1]:7").as_deref(), Some("[2001:db8::1]:7"));
        assert_eq!(name("lobby.example.org"), None, "a server");
    }

    #[test]
    fn only_the_wanted_list_is_taken() {
        let wanted = |text: &str| wanted_list(&text.parse().unwrap());
        assert_eq!(wanted("lobby://a/gg2"), Some(ListId::GANG_GARRISON_2));
        assert_eq!(wanted("https://a/?page=2&list=gg2"), Some(ListId::GANG_GARRISON_2));
        assert_eq!(wanted("https://a/lists/gg2"), Some(ListId::GANG_GARRISON_2));
        assert_eq!((wanted("lobby://a"), wanted("https://a/")), (None, None));
    }

    #[test]
    fn the_key_is_asked_for_where_the_page_is() {
        let api = |text: &str| api_url(&text.parse().unwrap()).map(|url| url.to_string());
        assert_eq!(api("lobby://a").as_deref(), Some("http://a:29950/api/v1/lists"));
        assert_eq!(api("lobby://a:7"), None);
        assert_eq!(api("https://a/games/?list=gg2").as_deref(), Some("https://a/games/api/v1/lists"));
    }
}
