//! The flags for reading copies of a list while its lobby does not answer.

use crate::{host::data_file, known_keys::KnownKeys, stdio::print_stderr, units::duration_within};
use rallypoint_query::{
    HttpUrl, ProbeError,
    mirror::{CopyError, KeyPins, MirrorConfig, MirrorError, MirroredList, PinnedKey, PublicKey},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Where copies of lists are.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Mirrors")]
pub struct MirrorArgs {
    /// Where to read the list while the lobby does not answer: the URL of a copy that the lobby exports; can be repeated
    ///
    /// The copies of several mirrors are tried in this order. A copy counts only if the lobby has signed it.
    #[arg(long = "mirror", value_name = "URL", env = "RALLYPOINT_MIRROR", value_delimiter = ',')]
    urls: Vec<HttpUrl>,

    /// The lobby's key for copies (minisign, 56 characters)
    ///
    /// Without it, the key that the lobby or else the mirror states at the first contact is remembered in
    /// $XDG_DATA_HOME/rallypoint/known_lobbies (~/.local/share/...), and every other key is refused.
    #[arg(long = "mirror-key", value_name = "KEY", requires = "urls")]
    key: Option<PublicKey>,

    // Not a doc comment, because of the brackets.
    #[arg(long = "mirror-max-age", value_name = "TIME", requires = "urls", value_parser = age)]
    #[arg(help = "Maximum age of a copy: 1h, 7d [default: what the lobby recommends in the copy, usually 24h]")]
    max_age: Option<Duration>,
}

/// Keys of lobbies in a file.
#[derive(Debug)]
struct KnownLobbies {
    known: Mutex<KnownKeys<PinnedKey>>,
    /// Whether warnings are printed: not while the screen is in use.
    prints: bool,
}

/// The file with the keys of lobbies.
const FILE: &str = "known_lobbies";

impl MirrorArgs {
    /// The mirrors; `None` if there are none. `prints`: whether warnings go to standard error.
    pub fn config(&self, prints: bool) -> Option<MirrorConfig> {
        let pins = || KnownLobbies { known: Mutex::new(KnownKeys::load(data_file(FILE))), prints };
        (!self.urls.is_empty()).then(|| MirrorConfig {
            urls: self.urls.clone(),
            key: self.key,
            max_age: self.max_age,
            pins: Arc::new(pins()),
        })
    }
}

impl KnownLobbies {
    fn known(&self) -> MutexGuard<'_, KnownKeys<PinnedKey>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyPins for KnownLobbies {
    fn pinned(&self, lobby: &str) -> Option<PinnedKey> {
        self.known().get(lobby)
    }

    fn pin(&self, lobby: &str, key: PinnedKey) {
        if let Err(warning) = self.known().remember(lobby, key)
            && self.prints
        {
            print_stderr(warning);
        }
    }
}

/// The copy that is shown, in one sentence.
pub fn describe_copy(list: &MirroredList) -> String {
    format!("{} {}; showing its list of {} ago, from {}", list.lobby, describe_cause(&list.cause), list.age(), list.url)
}

/// Why a lobby's own list is not shown, as the predicate of a sentence about the lobby.
pub fn describe_cause(cause: &ProbeError) -> &'static str {
    match cause {
        ProbeError::NotFound | ProbeError::NoAddress(_) => "cannot be found",
        ProbeError::TimedOut(_) | ProbeError::Refused | ProbeError::NoRoute(_) => "does not answer",
        _ => "gives no list",
    }
}

/// Warnings and notes about the copy that is shown.
pub fn warnings(list: &MirroredList) -> Vec<String> {
    let older = list.older_by().map(|by| format!("warning: this copy is {by} older than one that was seen before"));
    let key = list.new_key.map(|key| {
        let lobby = &list.lobby;
        format!(
            "note: the key {key} is remembered as the key of {lobby}; compare it with the one that its operator publishes"
        )
    });
    older.into_iter().chain(key).collect()
}

/// Why the copy of a mirror is not used, and what to do about it.
pub fn describe_refusal(error: &MirrorError) -> String {
    let hint = match error {
        MirrorError::KeyChanged { .. } => "; if it has, give the new key once with --mirror-key",
        MirrorError::Copy(CopyError::TooOld { .. }) => "; --mirror-max-age allows more",
        _ => "",
    };
    format!("the copy is not used: {error}{hint}")
}

/// Describes why the copy of a mirror is not used, with the mirror's address.
pub fn describe_failure(url: &HttpUrl, error: &MirrorError) -> String {
    format!("{url}: {}", describe_refusal(error))
}

/// All lines about the copy that is shown, for standard error.
pub fn lines(list: &MirroredList) -> Vec<String> {
    std::iter::once(describe_copy(list)).chain(warnings(list)).collect()
}

/// Parses an age: `90s`, `12h`, `7d`.
fn age(text: &str) -> Result<Duration, &'static str> {
    let range = Duration::from_secs(1)..=Duration::from_secs(3_650 * 86_400);
    duration_within(text, range).ok_or("expected a time from 1s to 3650d, such as 1h or 7d")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_with_a_unit() {
        assert_eq!(age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(age("90m"), Ok(Duration::from_secs(5_400)));
        for wrong in ["", "7", "0d", "0s", "-1h", "1e9d", "4000d", "99999999999999999999d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
