//! The scripts that the store executes. Each has its keys as arguments, and takes the time from the store.

use std::sync::Arc;

const COMMON: &str = include_str!("../scripts/common.lua");

/// A script of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Open,
    Tick,
    Put,
    Remove,
    Ban,
    Fetch,
    Scan,
    Discard,
    Bans,
    Claim,
    Send,
    NewestMessage,
}

/// All scripts with their hashes, by which they are called.
#[derive(Clone, Debug)]
pub(super) struct Scripts(Arc<[(String, String)]>);

impl Scripts {
    pub fn new() -> Self {
        let with_common = |code: &str| format!("{COMMON}\n{code}");
        let codes = [
            with_common(include_str!("../scripts/open.lua")),
            with_common(include_str!("../scripts/tick.lua")),
            with_common(include_str!("../scripts/put.lua")),
            with_common(include_str!("../scripts/remove.lua")),
            with_common(include_str!("../scripts/ban.lua")),
            with_common(include_str!("../scripts/fetch.lua")),
            with_common(include_str!("../scripts/scan.lua")),
            with_common(include_str!("../scripts/discard.lua")),
            with_common(include_str!("../scripts/bans.lua")),
            include_str!("../scripts/claim.lua").to_owned(),
            with_common(include_str!("../scripts/send.lua")),
            with_common(include_str!("../scripts/newest_message.lua")),
        ];
        let hashed = |code: String| (redis::Script::new(&code).get_hash().to_owned(), code);
        Self(codes.into_iter().map(hashed).collect())
    }

    pub fn hash(&self, script: Script) -> &str {
        &self.0[script as usize].0
    }

    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, code)| &**code)
    }
}
