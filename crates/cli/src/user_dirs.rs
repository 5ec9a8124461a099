//! The user's directories: those of XDG on Unix, and the known folders on Windows.

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};
use std::path::PathBuf;

const NAME: &str = "rallypoint";

/// Configuration files: `~/.config/rallypoint`. `None` without a home directory.
pub fn config() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.config_dir().join(NAME))
}

/// The directory for data of the user: `~/.local/share/rallypoint`. `None` without a home directory.
pub fn data() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.data_dir().join(NAME))
}

/// The directory for state of a service on this machine: `~/.local/state/rallypoint`. `None` without a home directory.
pub fn state() -> Option<PathBuf> {
    let user = choose_base_strategy().ok()?;
    // Windows has one directory for everything that stays on this machine.
    Some(user.state_dir().unwrap_or_else(|| user.cache_dir()).join(NAME))
}

/// Configuration files of the machine: `/etc/rallypoint`.
pub fn system_config() -> Option<PathBuf> {
    let root = if cfg!(windows) { PathBuf::from(std::env::var_os("ProgramData")?) } else { PathBuf::from("/etc") };
    Some(root.join(NAME))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn directories_follow_xdg() {
        // The test does not set variables, which all threads share, so the user may have set them.
        let expected = |variable: &str, default: &str| {
            let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            set.or_else(|| Some(std::env::home_dir()?.join(default))).map(|path| path.join(NAME))
        };
        assert_eq!(config(), expected("XDG_CONFIG_HOME", ".config"));
        assert_eq!(data(), expected("XDG_DATA_HOME", ".local/share"));
        assert_eq!(state(), expected("XDG_STATE_HOME", ".local/state"));
    }
}
