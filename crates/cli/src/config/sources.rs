//! Loads settings from their sources, in increasing precedence: defaults, file, environment, flags.

use super::{
    bans,
    cluster::read_secret,
    config_error::{ConfigErrors, Document, syntax_errors},
    nearest,
    setting_table::{SETTINGS, Setting},
    setting_type::{Value, found},
    settings::Settings,
    token::read_token,
    unknown_variables,
};
use crate::{error::describe_io, user_dirs};
use jiff::Timestamp;
use rallypoint_lobby_proto::Ban;
use std::{
    collections::BTreeMap,
    env,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

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
        if let Some(ban_file) = settings.ban_file.take().map(|ban_file| folder.join(ban_file)) {
            let mut more = Settings::default();
            read_file(&ban_file, "ban", &mut more, &mut Origins::default(), &mut errors);
            settings.more_bans = more.bans;
            settings.ban_file = Some(ban_file);
        }
        let site = &mut settings.web.settings.site;
        for path in [&mut site.logo, &mut site.maps, &mut site.geoip].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        for path in [&mut settings.export.directory, &mut settings.export.key_file].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        let mut warnings = Vec::new();
        if let Some(token_file) = settings.admin_token_file.take().map(|token_file| folder.join(token_file)) {
            match read_token(&token_file) {
                _ if settings.web.settings.admin_token.is_some() => {
                    errors.push("web.admin_token_file", "web.admin_token is set as well; remove one of them");
                }
                Ok((token, warning)) => {
                    settings.web.settings.admin_token = Some(token);
                    warnings.extend(warning);
                }
                Err(error) => errors.push(token_file.display().to_string(), error),
            }
            settings.admin_token_file = Some(token_file);
        }
        if let Some(secret_file) = settings.cluster.secret_file.take().map(|secret_file| folder.join(secret_file)) {
            match read_secret(&secret_file) {
                _ if settings.cluster.secret.is_some() => {
                    errors.push("cluster.secret_file", "cluster.secret is set as well; remove one of them");
                }
                Ok((secret, warning)) => {
                    settings.cluster.secret = Some(secret);
                    warnings.extend(warning);
                }
                Err(error) => errors.push(secret_file.display().to_string(), error),
            }
            settings.cluster.secret_file = Some(secret_file);
        }
        report_overlaps(&settings, &origins, &mut errors);
        errors.into_result()?;
        warnings.extend(unknown_variables::unknown(&self.variables).into_iter().chain(expired_bans(&settings)));
        Ok(LoadedConfig { settings, file, warnings })
    }

    /// The settings as far as they can be read: for commands that only want to know where a lobby on this machine listens,
    /// and that may not be allowed to read everything.
    pub fn readable_settings(&self) -> Settings {
        self.read(self.find_file().as_deref()).settings
    }

    fn read(&self, file: Option<&Path>) -> ReadSettings {
        let mut read = ReadSettings::default();
        let ReadSettings { settings, origins, errors } = &mut read;
        if let Some(file) = file {
            read_file(file, "", settings, origins, errors);
        }
        for setting in SETTINGS.iter() {
            let name = setting.variable();
            if let Some(value) = self.variables.get(&name) {
                set(setting, value, &name, settings, errors);
                origins.0.insert(setting.path, name);
            } else if self.unreadable.contains(&name) {
                errors.push(&name, "not UTF-8 text");
            }
        }
        for flag in &self.flags {
            match Setting::find(&flag.path) {
                Some(setting) => {
                    set(setting, &flag.value, &flag.label, settings, errors);
                    origins.0.insert(setting.path, flag.label.clone());
                }
                None => errors.push(&flag.label, unknown_path(&flag.path)),
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

/// Where each setting that is not a default was made: file and line, variable, or flag.
#[derive(Default)]
struct Origins(BTreeMap<&'static str, String>);

/// Sets a value from a variable or a flag: TOML if it is valid as such, otherwise the text itself, so that a shell needs
/// no quotes within quotes.
fn set(setting: &Setting, value: &str, location: &str, settings: &mut Settings, errors: &mut ConfigErrors) {
    let text = Spanned::new(0..value.len(), DeValue::String(value.into()));
    let result = match DeValue::parse(value) {
        Ok(toml) => setting.set(settings, &toml).or_else(|error| setting.set(settings, &text).map_err(|_| error)),
        Err(_) => setting.set(settings, &text),
    };
    for error in result.err().into_iter().flatten() {
        errors.push(location, error.message);
    }
}

/// Reports addresses that two listeners would share, at the place where the later one was set.
fn report_overlaps(settings: &Settings, origins: &Origins, errors: &mut ConfigErrors) {
    let listeners = [
        ("lobby.listen", &settings.lobby_listen),
        ("legacy.listen", &settings.legacy_listen),
        ("web.listen", &settings.web.listen),
    ];
    let all: Vec<_> = listeners.iter().flat_map(|(name, addrs)| addrs.iter().map(move |addr| (*name, *addr))).collect();
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
        let until = bans::end(ban).filter(|until| *until <= now)?;
        Some(format!("the ban of {} expired at {until} and has no effect", bans::subject(ban)))
    };
    settings.all_bans().filter_map(note).collect()
}

/// Reads a file into the settings. If `only` is not empty, that is the only key the file may contain.
fn read_file(file: &Path, only: &str, settings: &mut Settings, origins: &mut Origins, errors: &mut ConfigErrors) {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            return errors.push(name, describe_io(&error));
        }
    };
    let document = Document { name: &name, text: &text };
    let mut found = Vec::new();
    match DeTable::parse(&text) {
        Ok(table) => {
            FileReader { only, document, settings, origins, found: &mut found }.section("", table.get_ref());
        }
        Err(_) => found = syntax_errors(&text),
    }
    // The tables of a file are not in the order of their lines.
    found.sort_by_key(|(at, _)| at.start);
    found.iter().for_each(|(at, message)| errors.push(document.location(at), message));
}

/// Reads a file key by key.
struct FileReader<'a> {
    only: &'a str,
    document: Document<'a>,
    settings: &'a mut Settings,
    origins: &'a mut Origins,
    /// Errors with their positions.
    found: &'a mut Vec<(Range<usize>, String)>,
}

impl FileReader<'_> {
    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path =
                if section.is_empty() { key.get_ref().to_string() } else { format!("{section}.{}", key.get_ref()) };
            if !self.only.is_empty() && path != self.only {
                let message = format!("expected only [[{}]] in this file, not \"{path}\"", self.only);
                self.found.push((key.span(), message));
            } else if let Some(setting) = Setting::find(&path) {
                self.set(setting, value);
            } else if !Setting::is_section(&path) {
                self.found.push((key.span(), unknown_key(section, key.get_ref())));
            } else if let DeValue::Table(table) = value.get_ref() {
                self.section(&path, table);
            } else {
                let message = format!("expected the table [{path}], {}", found(value.get_ref()));
                self.found.push((value.span(), message));
            }
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &Value<'_>) {
        self.origins.0.insert(setting.path, self.document.location(&value.span()));
        for error in setting.set(self.settings, value).err().into_iter().flatten() {
            self.found.push((error.at.unwrap_or(value.span()), format!("{}: {}", setting.path, error.message)));
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
