//! Settings of a cluster: the address of the store, names, and the secret, which is read but never printed.

use super::setting_type::{SettingType, Value, ValueError, quoted};
use rallypoint_cluster::{ClusterSecret, NAME_FORM, StoreUrl, StoreUrlError, is_valid_name};
use std::{fs, path::Path};

/// The address of the store. User and password are not printed.
pub struct StoreUrlType;

impl SettingType for StoreUrlType {
    type Of = Option<StoreUrl>;

    fn expects(&self) -> String {
        "an address such as \"redis://host:6379\", \"rediss://user:password@host:6380\", \"redis://host:7000,host:7001\" \
         for a Redis Cluster, or \"redis+sentinel://host:26379/service\""
            .into()
    }

    fn set(&self, target: &mut Option<StoreUrl>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        // The message does not repeat the value, which can contain a password.
        let unexpected = || ValueError::new(format!("expected {}", self.expects()));
        let text = value.get_ref().as_str().ok_or_else(unexpected)?;
        let wrong_part = |error: StoreUrlError| match error {
            StoreUrlError::Scheme => unexpected(),
            part => ValueError::new(part.to_string()),
        };
        *target = if text.is_empty() { None } else { Some(text.parse().map_err(wrong_part)?) };
        Ok(())
    }

    fn show(&self, value: &Option<StoreUrl>) -> String {
        quoted(value.as_ref().map(ToString::to_string).unwrap_or_default())
    }
}

/// The secret of a cluster.
pub struct SecretType;

impl SettingType for SecretType {
    type Of = Option<ClusterSecret>;

    fn expects(&self) -> String {
        "16 to 1024 characters, the same at all nodes, for example from `openssl rand -hex 32`".into()
    }

    fn set(&self, target: &mut Option<ClusterSecret>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let unexpected = || ValueError::new(format!("expected {}", self.expects()));
        let text = value.get_ref().as_str().ok_or_else(unexpected)?;
        *target = if text.is_empty() { None } else { Some(ClusterSecret::new(text).map_err(|_| unexpected())?) };
        Ok(())
    }

    fn show(&self, value: &Option<ClusterSecret>) -> String {
        if value.is_some() { "\"(hidden)\"".into() } else { "\"\"".into() }
    }
}

/// A name of a cluster or node.
pub struct NameType {
    /// Whether it can be empty.
    pub is_optional: bool,
}

impl SettingType for NameType {
    type Of = String;

    fn expects(&self) -> String {
        NAME_FORM.into()
    }

    fn set(&self, target: &mut String, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let unexpected = || ValueError::new(format!("expected {}", self.expects()));
        let text = value.get_ref().as_str().ok_or_else(unexpected)?;
        if !(is_valid_name(text) || text.is_empty() && self.is_optional) {
            return Err(unexpected().into());
        }
        *target = text.to_owned();
        Ok(())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// The secret in a file, and a warning if other users can read that file.
pub fn read_secret(file: &Path) -> Result<(ClusterSecret, Option<String>), String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("cannot read the cluster's secret: {}", crate::error::describe_io(&error)))?;
    let secret = ClusterSecret::new(&text).map_err(|error| error.to_string())?;
    let is_open = fs::metadata(file).is_ok_and(|file| rallypoint_files::is_open_to_others(&file));
    let note = is_open.then(|| {
        let file = file.display();
        format!("other users of this machine can read the cluster's secret in {file}: run chmod 600 {file}")
    });
    Ok((secret, note))
}
