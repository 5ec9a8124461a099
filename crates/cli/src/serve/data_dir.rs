//! Chooses the data directory.

use crate::{config::Settings, error::CommandError};
use std::{collections::BTreeMap, path::PathBuf};

/// The configured directory, or the default of systemd, XDG or the home directory.
pub fn choose(settings: &Settings, variables: &BTreeMap<String, String>) -> Result<PathBuf, CommandError> {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    // systemd separates several with colons; the first is the one that the unit names first.
    let systemd = || variable("STATE_DIRECTORY").and_then(|dirs| dirs.split(':').next()).map(PathBuf::from);
    let xdg = || variable("XDG_STATE_HOME").map(|home| PathBuf::from(home).join("rallypoint"));
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state/rallypoint"));
    settings.data_dir.clone().or_else(systemd).or_else(xdg).or_else(home).ok_or_else(|| {
        CommandError::Usage("there is no home directory for the list of servers: set one with --data-dir".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(data_dir: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let settings = Settings { data_dir: data_dir.map(PathBuf::from), ..Settings::default() };
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        choose(&settings, &variables).ok().map(|path| path.display().to_string())
    }

    #[test]
    fn the_setting_comes_before_systemd_before_xdg_before_the_home_directory() {
        let home = ("HOME", "/users/ann");
        let xdg = ("XDG_STATE_HOME", "/state");
        let systemd = ("STATE_DIRECTORY", "/var/lib/rallypoint:/var/lib/other");
        assert_eq!(chosen(Some("here"), &[home, xdg, systemd]).as_deref(), Some("here"));
        assert_eq!(chosen(None, &[home, xdg, systemd]).as_deref(), Some("/var/lib/rallypoint"));
        assert_eq!(chosen(None, &[home, xdg]).as_deref(), Some("/state/rallypoint"));
        assert_eq!(
            chosen(None, &[home, ("XDG_STATE_HOME", "")]).as_deref(),
            Some("/users/ann/.local/state/rallypoint")
        );
        assert_eq!(chosen(None, &[]), None);
    }
}
