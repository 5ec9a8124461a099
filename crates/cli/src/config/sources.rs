//! Where settings come from. The later one wins: the defaults, the file, the environment, the flags.

use super::{
    bans,
    kind::{Value, found},
    knobs::{KNOBS, Knob},
    mistake::{Document, Mistakes, syntax},
    nearest,
    secret::read_token,
    settings::Settings,
    variables,
};
use jiff::Timestamp;
use rallypoint_lobby_proto::Ban;
use std::{
    collections::BTreeMap,
    env, io,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Everything that can say something. It is kept, so that a reload asks the same ones again.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// The environment.
    pub variables: BTreeMap<String, String>,
    /// Variables whose value is no text.
    pub unreadable: Vec<String>,
    /// The flags, in their order.
    pub flags: Vec<Override>,
}

/// A flag that changes one setting.
#[derive(Clone, Debug)]
pub struct Override {
    /// What the person wrote, for messages.
    pub label: String,
    /// The setting.
    pub path: String,
    /// Its value.
    pub value: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
    /// What is not wrong, but should be known.
    pub notes: Vec<String>,
}

impl Sources {
    /// The environment of this process, and no flags yet.
    pub fn new(file: Option<PathBuf>) -> Self {
        let mut sources = Self { file, ..Self::default() };
        for (name, value) in env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(sources.variables.insert(name, value)),
                (Ok(name), Err(_)) => sources.unreadable.push(name),
                (Err(_), _) => {}
            }
        }
        sources
    }

    /// Asks all of them.
    pub fn load(&self) -> Result<Loaded, Mistakes> {
        let (mut settings, mut mistakes) = (Settings::default(), Mistakes::default());
        let file = self.find_file();
        if let Some(file) = &file {
            read_file(file, "", &mut settings, &mut mistakes);
        }
        self.read_variables(&mut settings, &mut mistakes);
        for flag in &self.flags {
            match Knob::find(&flag.path) {
                Some(knob) => set(knob, &flag.value, &flag.label, &mut settings, &mut mistakes),
                None => mistakes.push(&flag.label, unknown_path(&flag.path)),
            }
        }
        // What stands in a file is meant from where that file is.
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        if let Some(ban_file) = settings.ban_file.take().map(|ban_file| folder.join(ban_file)) {
            let mut more = Settings::default();
            read_file(&ban_file, "ban", &mut more, &mut mistakes);
            settings.more_bans = more.bans;
            settings.ban_file = Some(ban_file);
        }
        let mut notes = Vec::new();
        if let Some(token_file) = settings.admin_token_file.take().map(|token_file| folder.join(token_file)) {
            match read_token(&token_file) {
                _ if settings.web.settings.admin_token.is_some() => {
                    mistakes.push("web.admin_token_file", "there is a web.admin_token already: one of them is enough");
                }
                Ok((token, note)) => {
                    settings.web.settings.admin_token = Some(token);
                    notes.extend(note);
                }
                Err(wrong) => mistakes.push(token_file.display().to_string(), wrong),
            }
            settings.admin_token_file = Some(token_file);
        }
        for wrong in clashes(&settings) {
            mistakes.push("lobby.listen and legacy.listen", wrong);
        }
        mistakes.into_result()?;
        notes.extend(variables::unknown(&self.variables).into_iter().chain(ended(&settings)));
        Ok(Loaded { settings, file, notes })
    }

    /// The file: the one that was named, or the first that exists of the usual places.
    fn find_file(&self) -> Option<PathBuf> {
        let variable = |name: &str| self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        let places = || home().into_iter().chain([PathBuf::from("/etc")]);
        let usual = || places().map(|place| place.join("rallypoint/rallypoint.toml")).find(|file| file.is_file());
        self.file.clone().or_else(|| variable("RALLYPOINT_CONFIG")).or_else(usual)
    }

    fn read_variables(&self, settings: &mut Settings, mistakes: &mut Mistakes) {
        for knob in KNOBS.iter() {
            let name = knob.variable();
            if let Some(value) = self.variables.get(&name) {
                set(knob, value, &name, settings, mistakes);
            } else if self.unreadable.contains(&name) {
                mistakes.push(&name, "it is not UTF-8 text");
            }
        }
    }
}

/// A value from a variable or a flag. It is TOML if that makes sense, and else the text itself: nobody wants to write
/// quotes within quotes.
fn set(knob: &Knob, value: &str, place: &str, settings: &mut Settings, mistakes: &mut Mistakes) {
    let text = Spanned::new(0..value.len(), DeValue::String(value.into()));
    let result = match DeValue::parse(value) {
        Ok(toml) => knob.set(settings, &toml).or_else(|wrong| knob.set(settings, &text).map_err(|_| wrong)),
        Err(_) => knob.set(settings, &text),
    };
    for wrong in result.err().into_iter().flatten() {
        mistakes.push(place, wrong.message);
    }
}

/// Addresses that cannot be listened on, because two listeners want the same port.
fn clashes(settings: &Settings) -> Vec<String> {
    let all: Vec<_> = settings.lobby_listen.iter().chain(&settings.legacy_listen).chain(&settings.web.listen).collect();
    let clash = |a: &SocketAddr, b: &SocketAddr| {
        let same = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
        a.port() != 0 && a.port() == b.port() && a.is_ipv4() == b.is_ipv4() && same
    };
    let pairs = all.iter().enumerate().flat_map(|(n, a)| all[n + 1..].iter().map(move |b| (*a, *b)));
    pairs
        .filter(|(a, b)| clash(a, b))
        .map(|(a, b)| match a == b {
            true => format!("{a} is there twice: each needs a port of its own"),
            false => format!("{a} and {b} are the same port: each needs one of its own"),
        })
        .collect()
}

/// Bans that do nothing any more.
fn ended(settings: &Settings) -> Vec<String> {
    let now = Timestamp::now();
    let note = |ban: &Ban| {
        let until = bans::end(ban).filter(|until| *until <= now)?;
        Some(format!("the ban of {} ended at {until}, so it has no effect", bans::subject(ban)))
    };
    settings.all_bans().filter_map(note).collect()
}

/// Reads a file into the settings; only what is below `only`, if that is not empty.
fn read_file(file: &Path, only: &str, settings: &mut Settings, mistakes: &mut Mistakes) {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::NotFound => "there is no such file".into(),
                io::ErrorKind::PermissionDenied => "this user may not read it".into(),
                io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
                io::ErrorKind::IsADirectory => "it is a folder, not a file".into(),
                _ => error.to_string(),
            };
            return mistakes.push(name, why);
        }
    };
    let document = Document { name: &name, text: &text };
    let mut found = Vec::new();
    match DeTable::parse(&text) {
        Ok(table) => Walk { only, settings, found: &mut found }.section("", table.get_ref()),
        Err(_) => found = syntax(&text),
    }
    // The tables of a file are not in the order of their lines.
    found.sort_by_key(|(at, _)| at.start);
    found.iter().for_each(|(at, message)| mistakes.push(document.place(at), message));
}

/// Goes through a file, key by key.
struct Walk<'a> {
    only: &'a str,
    settings: &'a mut Settings,
    /// What is wrong, and where.
    found: &'a mut Vec<(Range<usize>, String)>,
}

impl Walk<'_> {
    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path =
                if section.is_empty() { key.get_ref().to_string() } else { format!("{section}.{}", key.get_ref()) };
            if !self.only.is_empty() && path != self.only {
                let message = format!("only [[{}]] can stand here, not \"{path}\"", self.only);
                self.found.push((key.span(), message));
            } else if let Some(knob) = Knob::find(&path) {
                self.set(knob, value);
            } else if !Knob::is_section(&path) {
                self.found.push((key.span(), unknown_key(section, key.get_ref())));
            } else if let DeValue::Table(table) = value.get_ref() {
                self.section(&path, table);
            } else {
                let message = format!("expected the section [{path}], {}", found(value.get_ref()));
                self.found.push((value.span(), message));
            }
        }
    }

    fn set(&mut self, knob: &Knob, value: &Value<'_>) {
        for wrong in knob.set(self.settings, value).err().into_iter().flatten() {
            self.found.push((wrong.at.unwrap_or(value.span()), format!("{}: {}", knob.path, wrong.message)));
        }
    }
}

fn unknown_path(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) if Knob::is_section(section) => unknown_key(section, key),
        _ => {
            let meant = path.strip_prefix("http.").map_or_else(|| path.to_owned(), |key| format!("web.{key}"));
            format!("there is no setting \"{path}\"{}", nearest(&meant, KNOBS.iter().map(|knob| knob.path)))
        }
    }
}

fn unknown_key(section: &str, key: &str) -> String {
    let below = |path: &'static str| match section {
        "" => Some(path),
        _ => path.strip_prefix(section)?.strip_prefix('.'),
    };
    let mut siblings: Vec<_> = KNOBS.iter().filter_map(|knob| below(knob.path)?.split('.').next()).collect();
    siblings.dedup();
    let place = if section.is_empty() { String::new() } else { format!(" in [{section}]") };
    // The right key in the wrong section.
    let elsewhere = KNOBS.iter().filter_map(|knob| knob.path.rsplit_once('.')).find(|(_, name)| *name == key);
    let hint = match elsewhere {
        Some((home, _)) => format!("; did you mean the one in [{home}]?"),
        // As its flag is called.
        None if section.is_empty() && key == "http" => "; did you mean \"web\"?".into(),
        None => nearest(key, siblings),
    };
    format!("unknown key \"{key}\"{place}{hint}")
}
