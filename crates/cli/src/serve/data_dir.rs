//! Where the list is kept over a restart.

use crate::{config::Settings, error::CommandError};
use std::{collections::BTreeMap, path::PathBuf};

/// The folder that was asked for, or where the system keeps such things.
pub fn choose(settings: &Settings, variables: &BTreeMap<String, String>) -> Result<PathBuf, CommandError> {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    // systemd may give several, with colons between them; the first is the one that the unit names first.
    let systemd = || variable("STATE_DIRECTORY").and_then(|dirs| dirs.split(':').next()).map(PathBuf::from);
    let xdg = || variable("XDG_STATE_HOME").map(|home| PathBuf::from(home).join("rallypoint"));
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state/rallypoint"));
    settings.data_dir.clone().or_else(systemd).or_else(xdg).or_else(home).ok_or_else(|| {
        CommandError::Usage(
            "there is no home folder to keep the list of servers in: choose a place with --data-dir".into(),
        )
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
    fn the_person_then_systemd_then_the_home_folder_decides() {
        let home = ("HOME", "/users/ann");
        let (xdg, systemd) = (("XDG_STATE_HOME", "/state"), ("STATE_DIRECTORY", "/var/lib/rallypoint:/var/lib/other"));
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
