//! Chooses the data directory.

use crate::{config::Settings, error::CommandError, user_dirs};
use std::{collections::BTreeMap, path::PathBuf};

/// The configured directory, or the default of systemd or of the user.
pub fn choose(settings: &Settings, variables: &BTreeMap<String, String>) -> Result<PathBuf, CommandError> {
    choose_from(settings, variables, user_dirs::state())
}

fn choose_from(
    settings: &Settings,
    variables: &BTreeMap<String, String>,
    user: Option<PathBuf>,
) -> Result<PathBuf, CommandError> {
    // systemd separates several with colons; the first is the one that the unit names first.
    let systemd = variables.get("STATE_DIRECTORY").filter(|dirs| !dirs.is_empty());
    let systemd = || systemd.and_then(|dirs| dirs.split(':').next()).map(PathBuf::from);
    settings.data_dir.clone().or_else(systemd).or(user).ok_or_else(|| {
        CommandError::Usage("there is no home directory for the list of servers: set one with --data-dir".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(data_dir: Option<&str>, state_directory: Option<&str>, user: Option<&str>) -> Option<String> {
        let settings = Settings { data_dir: data_dir.map(PathBuf::from), ..Settings::default() };
        let variables = state_directory.map(|value| ("STATE_DIRECTORY".into(), value.into())).into_iter().collect();
        choose_from(&settings, &variables, user.map(PathBuf::from)).ok().map(|path| path.display().to_string())
    }

    #[test]
    fn the_setting_comes_before_systemd_before_the_users_directory() {
        let systemd = Some("/var/lib/rallypoint:/var/lib/other");
        assert_eq!(chosen(Some("here"), systemd, Some("user")).as_deref(), Some("here"));
        assert_eq!(chosen(None, systemd, Some("user")).as_deref(), Some("/var/lib/rallypoint"));
        assert_eq!(chosen(None, Some(""), Some("user")).as_deref(), Some("user"));
        assert_eq!(chosen(None, None, None), None);
    }
}
