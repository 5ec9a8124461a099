//! Loads settings from their sources, in increasing precedence: defaults, file, environment, flags.

use super::{
    records::{ban_end, ban_subject},
    secrets::{read_cluster_secret, read_token},
    setting::Setting,
    settings::Settings,
    table::SETTINGS,
    unknown_variables,
};
use crate::{
    error::describe_io,
    toml_file::{ConfigErrors, Document, FoundErrors, Value, found, nearest, read_file},
    user_dirs,
};
use jiff::Timestamp;
use rallypoint_lobby_proto::Ban;
use rallypoint_web::SiteFileError;
use std::{
    collections::BTreeMap,
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};

/// The sources of settings. They are kept so that a reload reads the same ones again.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// The directories in which a file is looked for if none is given.
    pub directories: Vec<PathBuf>,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// Names of variables whose value is not UTF-8.
    pub unreadable: Vec<String>,
    /// The flags, in the order of the command line.
    pub flags: Vec<Override>,
}

/// A flag that sets one setting.
#[derive(Clone, Debug)]
pub struct Override {
    /// The flag as written, for error messages.
    pub label: String,
    /// Path of the setting, such as `lobby.lease`.
    pub path: String,
    /// The value as text.
    pub value: String,
}

/// A configuration without errors.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub settings: Settings,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Warnings.
    pub warnings: Vec<String>,
    origins: Origins,
}

impl Sources {
    /// The environment of this process, and no flags yet.
    pub fn new(file: Option<PathBuf>) -> Self {
        let directories = user_dirs::config().into_iter().chain(user_dirs::system_config()).collect();
        let mut sources = Self { file, directories, ..Self::default() };
        for (name, value) in env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(sources.variables.insert(name, value)),
                (Ok(name), Err(_)) => sources.unreadable.push(name),
                (Err(_), _) => {}
            }
        }
        sources
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// All errors of all sources.
    pub fn load(&self) -> Result<LoadedConfig, ConfigErrors> {
        let file = self.find_file();
        let ReadSettings { mut settings, origins, mut errors } = self.read(file.as_deref());
        // Relative paths start at the directory of the configuration file.
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        for path in settings.relative_paths().into_iter().flatten() {
            *path = folder.join(&*path);
        }
        if let Some(ban_file) = settings.ban_file.clone() {
            let mut more = Settings::default();
            errors.extend(read_settings_file(&ban_file, "ban", &mut more, &mut Origins::default()));
            settings.more_bans = more.bans;
        }
        let mut warnings = Vec::new();
        let mut add_secret = SecretFiles { errors: &mut errors, warnings: &mut warnings };
        add_secret.read(
            "web.admin_token",
            &settings.admin_token_file,
            &mut settings.web.settings.admin_token,
            read_token,
        );
        let cluster = &mut settings.cluster;
        add_secret.read("cluster.secret", &cluster.secret_file, &mut cluster.secret, read_cluster_secret);
        report_overlaps(&settings, &origins, &mut errors);
        errors.into_result()?;
        warnings.extend(unknown_variables::unknown(&self.variables).into_iter().chain(expired_bans(&settings)));
        Ok(LoadedConfig { settings, file, warnings, origins })
    }

    /// The settings as far as they can be read: for commands that only want to know where a lobby on this machine listens,
    /// and that may not be allowed to read everything.
    pub fn readable_settings(&self) -> Settings {
        self.read(self.find_file().as_deref()).settings
    }

    fn read(&self, file: Option<&Path>) -> ReadSettings {
        let mut read = ReadSettings::default();
        if let Some(file) = file {
            read.errors = read_settings_file(file, "", &mut read.settings, &mut read.origins);
        }
        for setting in SETTINGS.iter() {
            let name = setting.variable();
            if let Some(value) = self.variables.get(&name) {
                read.set(setting, value, &name);
            } else if self.unreadable.contains(&name) {
                read.errors.push(&name, "not UTF-8 text");
            }
        }
        for flag in &self.flags {
            match Setting::find(&flag.path) {
                Some(setting) => read.set(setting, &flag.value, &flag.label),
                None => read.errors.push(&flag.label, unknown_path(&flag.path)),
            }
        }
        read
    }

    /// The file of `--config` or `RALLYPOINT_CONFIG`, or the first default path that exists.
    fn find_file(&self) -> Option<PathBuf> {
        let variable = |name: &str| self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || {
            let mut files = self.directories.iter().map(|directory| directory.join("rallypoint.toml"));
            files.find(|file| file.is_file())
        };
        self.file.clone().or_else(|| variable("RALLYPOINT_CONFIG")).or_else(default)
    }
}

/// The settings that were read from the file, the variables and the flags.
#[derive(Default)]
struct ReadSettings {
    settings: Settings,
    origins: Origins,
    errors: ConfigErrors,
}

impl ReadSettings {
    /// Sets the value of a variable or a flag.
    fn set(&mut self, setting: &'static Setting, value: &str, location: &str) {
        for error in setting.set_text(&mut self.settings, value).err().into_iter().flatten() {
            self.errors.push(location, error.message);
        }
        self.origins.0.insert(setting.path, location.to_owned());
    }
}

/// Where each setting that is not a default was made: file and line, variable, or flag.
#[derive(Clone, Debug, Default)]
struct Origins(BTreeMap<&'static str, String>);

/// Reads the files of secrets.
struct SecretFiles<'a> {
    errors: &'a mut ConfigErrors,
    warnings: &'a mut Vec<String>,
}

/// Reads a secret from a file, with a warning if others can read it too.
type ReadSecret<T> = fn(&Path) -> Result<(T, Option<String>), String>;

impl SecretFiles<'_> {
    /// Reads a secret that can be set directly or by a file, but not by both.
    fn read<T>(&mut self, setting: &str, file: &Option<PathBuf>, secret: &mut Option<T>, read: ReadSecret<T>) {
        let Some(file) = file else { return };
        match read(file) {
            _ if secret.is_some() => {
                self.errors
                    .push(format_args!("{setting}_file"), format_args!("{setting} is set as well; remove one of them"));
            }
            Ok((read, warning)) => {
                *secret = Some(read);
                self.warnings.extend(warning);
            }
            Err(error) => self.errors.push(file.display(), error),
        }
    }
}

impl LoadedConfig {
    /// Checks that the files for the pages can be read. A lobby starts without them, because the list is more important.
    ///
    /// # Errors
    /// All files that cannot be read.
    pub fn check_files(&self) -> Result<(), ConfigErrors> {
        let mut errors = ConfigErrors::default();
        for SiteFileError { setting, path, reason } in self.settings.web.settings.site.check_files() {
            let reason = reason.downcast_ref().map_or_else(|| reason.to_string(), describe_io);
            let message = format!("{setting}: {}: {reason}", path.display());
            errors.push(self.origins.0.get(setting).map_or("", String::as_str), message);
        }
        errors.into_result()
    }
}

/// Reports addresses that two listeners would share, at the place where the later one was set.
fn report_overlaps(settings: &Settings, origins: &Origins, errors: &mut ConfigErrors) {
    let doors = settings.doors.iter().filter_map(|(door, addr)| Some((door.sockets.as_ref()?.setting, addr)));
    let all: Vec<_> = doors.chain(settings.web.listen.iter().map(|addr| ("web.listen", *addr))).collect();
    let overlap = |a: SocketAddr, b: SocketAddr| {
        let has_same_ip = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
        a.port() != 0 && a.port() == b.port() && a.is_ipv4() == b.is_ipv4() && has_same_ip
    };
    for (index, (a_name, a)) in all.iter().copied().enumerate() {
        for (b_name, b) in all[index + 1..].iter().copied().filter(|(_, b)| overlap(a, *b)) {
            let origin = |name| origins.0.get(name).map(String::as_str);
            let names = if a_name == b_name { a_name.to_owned() } else { format!("{a_name} and {b_name}") };
            let places: Vec<_> = match a_name == b_name {
                true => origin(a_name).into_iter().collect(),
                false => [a_name, b_name].into_iter().filter_map(origin).collect(),
            };
            let message = match a == b {
                true => format!("{names}: {a} is used twice; choose different ports"),
                false => format!("{names}: {a} and {b} overlap; choose different ports"),
            };
            // The defaults do not overlap, so at least one of the two was set somewhere.
            errors.push(places.join(" and "), message);
        }
    }
}

/// Warnings about bans that have expired.
fn expired_bans(settings: &Settings) -> Vec<String> {
    let now = Timestamp::now();
    let note = |ban: &Ban| {
        let until = ban_end(ban).filter(|until| *until <= now)?;
        Some(format!("the ban of {} expired at {until} and has no effect", ban_subject(ban)))
    };
    settings.all_bans().filter_map(note).collect()
}

/// Reads a file into the settings. If `only` is not empty, that is the only key the file may contain.
fn read_settings_file(file: &Path, only: &str, settings: &mut Settings, origins: &mut Origins) -> ConfigErrors {
    read_file(file, |document, table, found| {
        FileReader { only, document, settings, origins, found }.section("", table);
    })
}

/// Reads a file key by key.
struct FileReader<'a> {
    only: &'a str,
    document: Document<'a>,
    settings: &'a mut Settings,
    origins: &'a mut Origins,
    found: &'a FoundErrors,
}

impl FileReader<'_> {
    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path =
                if section.is_empty() { key.get_ref().to_string() } else { format!("{section}.{}", key.get_ref()) };
            if !self.only.is_empty() && path != self.only {
                let message = format!("expected only [[{}]] in this file, not \"{path}\"", self.only);
                self.found.push(key.span(), message);
            } else if let Some(setting) = Setting::find(&path) {
                self.set(setting, value);
            } else if !Setting::is_section(&path) {
                self.found.push(key.span(), unknown_key(section, key.get_ref()));
            } else if let DeValue::Table(table) = value.get_ref() {
                self.section(&path, table);
            } else {
                let message = format!("expected the table [{path}], {}", found(value.get_ref()));
                self.found.push(value.span(), message);
            }
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &Value<'_>) {
        self.origins.0.insert(setting.path, self.document.location(&value.span()));
        for error in setting.set(self.settings, value).err().into_iter().flatten() {
            let message = format!("{}: {}", setting.path, error.message);
            self.found.push(error.at.unwrap_or(value.span()), message);
        }
    }
}

fn unknown_path(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) if Setting::is_section(section) => unknown_key(section, key),
        _ => {
            let meant = path.strip_prefix("http.").map_or_else(|| path.to_owned(), |key| format!("web.{key}"));
            format!("unknown setting \"{path}\"{}", nearest(&meant, SETTINGS.iter().map(|setting| setting.path)))
        }
    }
}

fn unknown_key(section: &str, key: &str) -> String {
    let below = |path: &'static str| match section {
        "" => Some(path),
        _ => path.strip_prefix(section)?.strip_prefix('.'),
    };
    let mut siblings: Vec<_> = SETTINGS.iter().filter_map(|setting| below(setting.path)?.split('.').next()).collect();
    siblings.dedup();
    let place = if section.is_empty() { String::new() } else { format!(" in [{section}]") };
    // The right key in the wrong table.
    let elsewhere = SETTINGS.iter().filter_map(|setting| setting.path.rsplit_once('.')).find(|(_, name)| *name == key);
    let hint = match elsewhere {
        Some((home, _)) => format!("; did you mean {key} in [{home}]?"),
        // The name of the corresponding flag.
        None if section.is_empty() && key == "http" => "; did you mean \"web\"?".into(),
        None => nearest(key, siblings),
    };
    format!("unknown key \"{key}\"{place}{hint}")
}
