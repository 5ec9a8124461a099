//! Starts to write copies for mirrors.

use crate::{config::Settings, error::CommandError};
use rallypoint_lobby::LobbyService;
use rallypoint_mirror::ExportKey;
use rallypoint_web::{ExportOptions, ExportService, ExportSettings, ListNames};
use std::path::Path;
use tracing::info;

/// Starts to write copies, if `export.directory` is set.
pub fn start(
    settings: &Settings,
    service: &LobbyService,
    data_dir: &Path,
) -> Result<Option<ExportService>, CommandError> {
    let Some(directory) = settings.export.directory.clone() else { return Ok(None) };
    let key_file = settings.export.key_file.clone().unwrap_or_else(|| data_dir.join(ExportKey::FILE));
    let key = ExportKey::load_or_create(&key_file).map_err(|error| {
        let file = key_file.display();
        CommandError::failed(format_args!("cannot use the key for copies of the list in {file}: {error}"))
    })?;
    info!(directory = %directory.display(), key = %key.public(), "writing copies of the list for mirrors");
    let interval = settings.export.interval;
    let options = ExportOptions { directory, interval, key, settings: export_settings(settings) };
    ExportService::start(options, service.clone())
        .map(Some)
        .map_err(|error| CommandError::failed(format_args!("{error}; set another one with --export")))
}

/// The description of the lobby in its copies.
pub fn export_settings(settings: &Settings) -> ExportSettings {
    let export = &settings.export;
    ExportSettings {
        hosts: export.hosts.clone(),
        max_age: export.max_age,
        page_url: export.page_url.as_ref().map(ToString::to_string),
        mirrors: export.mirrors.iter().map(ToString::to_string).collect(),
        title: settings.web.settings.site.title.clone(),
        names: ListNames(settings.names.clone()),
    }
}
