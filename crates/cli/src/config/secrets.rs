//! Secrets: the admin token, and the secret and store of a cluster. They are read, but never printed.

use super::kind::{Invalid, Kind, optional, secret};
use crate::error::describe_io;
use rallypoint_cluster::{ClusterSecret, NAME_FORM, StoreUrl, StoreUrlError, is_valid_name};
use rallypoint_web::AdminToken;
use std::{fmt::Display, fs, path::Path};

/// The admin token.
pub fn admin_token() -> Kind<Option<AdminToken>> {
    secret("a token of at least 16 characters, from `rallypoint admin token`", AdminToken::new)
}

/// The secret of a cluster.
pub fn cluster_secret() -> Kind<Option<ClusterSecret>> {
    let expects = "16 to 1024 characters, the same at all nodes, for example from `openssl rand -hex 32`";
    secret(expects, ClusterSecret::new)
}

/// The address of the store of a cluster. User and password are not printed.
pub fn store_url() -> Kind<Option<StoreUrl>> {
    let expects = "an address such as \"redis://host:6379\", \"rediss://user:password@host:6380\", \
                   \"redis://host:7000,host:7001\" for a Redis Cluster, or \"redis+sentinel://host:26379/service\"";
    let read = |text: &str| {
        text.parse().map_err(|error| match error {
            StoreUrlError::Scheme => Invalid::Unexpected,
            part => Invalid::Because(part.to_string()),
        })
    };
    optional(expects, read, StoreUrl::to_string).unrepeated()
}

/// The name of a cluster, or of a node, which can be empty.
pub fn cluster_name(is_optional: bool) -> Kind<String> {
    let read = move |text: &str| match is_valid_name(text) || text.is_empty() && is_optional {
        true => Ok(text.to_owned()),
        false => Err(Invalid::Unexpected),
    };
    Kind::text(NAME_FORM, read, String::clone).unrepeated()
}

/// The admin token in a file, and a warning if other users can read that file.
pub fn read_token(file: &Path) -> Result<(AdminToken, Option<String>), String> {
    read_secret_file(file, "admin token", |text| AdminToken::new(text.trim()))
}

/// The secret of the cluster in a file, and a warning if other users can read that file.
pub fn read_cluster_secret(file: &Path) -> Result<(ClusterSecret, Option<String>), String> {
    read_secret_file(file, "cluster's secret", ClusterSecret::new)
}

fn read_secret_file<T, E: Display>(
    file: &Path,
    what: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<(T, Option<String>), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read the {what}: {}", describe_io(&error)))?;
    let secret = parse(&text).map_err(|error| error.to_string())?;
    // A group may exist for the lobby alone, as with credentials of systemd.
    let is_open = fs::metadata(file).is_ok_and(|file| rallypoint_files::is_open_to_others(&file));
    let note = is_open.then(|| {
        let file = file.display();
        format!("other users of this machine can read the {what} in {file}: run chmod 600 {file}")
    });
    Ok((secret, note))
}
