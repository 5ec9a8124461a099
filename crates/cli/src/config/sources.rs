//! Where settings come from. The later one wins: the defaults, the file, the environment, the flags.

use super::{
    kind::{Value, found},
    knobs::{KNOBS, Knob},
    mistake::{Document, Mistakes},
    nearest,
    settings::Settings,
};
use std::{
    collections::BTreeMap,
    env, io,
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
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { file, variables: env::vars_os().filter_map(text).collect(), flags: Vec::new() }
    }

    /// Asks all of them.
    pub fn load(&self) -> Result<Loaded, Mistakes> {
        let (mut settings, mut mistakes) = (Settings::default(), Mistakes::default());
        let file = self.find_file();
        if let Some(file) = &file {
            read_file(file, "", &mut settings, &mut mistakes);
        }
        let notes = self.read_variables(&mut settings, &mut mistakes);
        for flag in &self.flags {
            match Knob::find(&flag.path) {
                Some(knob) => set(knob, &flag.value, &flag.label, &mut settings, &mut mistakes),
                None => mistakes.push(&flag.label, unknown_path(&flag.path)),
            }
        }
        if let Some(ban_file) = settings.ban_file.take() {
            // What stands in a file is meant from where that file is.
            let ban_file = file.as_deref().and_then(Path::parent).map_or(ban_file.clone(), |dir| dir.join(&ban_file));
            let mut more = Settings::default();
            read_file(&ban_file, "ban", &mut more, &mut mistakes);
            settings.more_bans = more.bans;
            settings.ban_file = Some(ban_file);
        }
        mistakes.into_result()?;
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

    fn read_variables(&self, settings: &mut Settings, mistakes: &mut Mistakes) -> Vec<String> {
        for knob in KNOBS.iter() {
            let name = knob.variable();
            if let Some(value) = self.variables.get(&name) {
                set(knob, value, &name, settings, mistakes);
            }
        }
        // An unknown variable is not refused: container engines invent some from the names of services, such as
        // RALLYPOINT_LOBBY_PORT. But who mistyped one wants to know.
        let sections = KNOBS.iter().filter_map(|knob| knob.path.split_once('.')).map(|(section, _)| section);
        let sections: Vec<_> = sections.map(|name| format!("RALLYPOINT_{}_", name.to_uppercase())).collect();
        let is_ours = |name: &str| sections.iter().any(|section| name.starts_with(section));
        let unknown = |name: &&String| is_ours(name) && !KNOBS.iter().any(|knob| knob.variable() == **name);
        let variables: Vec<_> = KNOBS.iter().map(Knob::variable).collect();
        let hint = |name: &str| match nearest(name, variables.iter().map(String::as_str)) {
            hint if hint.contains("did you mean") => hint,
            _ => String::new(),
        };
        let note = |name: &String| format!("the variable {name} is not a setting{}", hint(name));
        self.variables.keys().filter(unknown).map(note).collect()
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
    if let Err(wrong) = result {
        mistakes.push(place, wrong.message);
    }
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
    match DeTable::parse(&text) {
        Ok(table) => Walk { document, only, settings, mistakes }.section("", table.get_ref()),
        Err(error) => mistakes.push(document.place(&error.span().unwrap_or(0..0)), error.message()),
    }
}

/// Goes through a file, key by key.
struct Walk<'a> {
    document: Document<'a>,
    only: &'a str,
    settings: &'a mut Settings,
    mistakes: &'a mut Mistakes,
}

impl Walk<'_> {
    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path =
                if section.is_empty() { key.get_ref().to_string() } else { format!("{section}.{}", key.get_ref()) };
            if !self.only.is_empty() && path != self.only {
                let message = format!("only [[{}]] can stand here, not \"{path}\"", self.only);
                self.mistakes.push(self.document.place(&key.span()), message);
            } else if let Some(knob) = Knob::find(&path) {
                self.set(knob, value);
            } else if !Knob::is_section(&path) {
                self.mistakes.push(self.document.place(&key.span()), unknown_key(section, key.get_ref()));
            } else if let DeValue::Table(table) = value.get_ref() {
                self.section(&path, table);
            } else {
                let message = format!("expected the section [{path}], {}", found(value.get_ref()));
                self.mistakes.push(self.document.place(&value.span()), message);
            }
        }
    }

    fn set(&mut self, knob: &Knob, value: &Value<'_>) {
        if let Err(wrong) = knob.set(self.settings, value) {
            let place = self.document.place(&wrong.at.unwrap_or(value.span()));
            self.mistakes.push(place, format!("{}: {}", knob.path, wrong.message));
        }
    }
}

fn unknown_path(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) if Knob::is_section(section) => unknown_key(section, key),
        _ => format!("there is no setting \"{path}\"{}", nearest(path, KNOBS.iter().map(|knob| knob.path))),
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
        None => nearest(key, siblings),
    };
    format!("unknown key \"{key}\"{place}{hint}")
}
