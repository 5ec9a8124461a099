//! Servers that a person wants to find again: kept in a small text file.

use crate::error::CommandError;
use std::{
    collections::BTreeMap,
    env, fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// The favourites, by what a server is known by, each with the name it last had.
#[derive(Debug, Default)]
pub struct Favourites {
    file: Option<PathBuf>,
    named: BTreeMap<String, String>,
}

const HEADER: &str = "# Favourites of `rallypoint browse`: a server and the name it had, each on a line.\n";

impl Favourites {
    /// Those that are kept in a file; none, if there is no such file yet.
    pub fn load(file: &Path) -> Result<Self, CommandError> {
        Ok(Self { named: read(file)?, file: Some(file.to_owned()) })
    }

    /// The usual place: `$XDG_DATA_HOME/rallypoint/favourites`.
    pub fn usual_file() -> Option<PathBuf> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || Some(variable("HOME")?.join(".local/share"));
        let place = variable("XDG_DATA_HOME").filter(|place| place.is_absolute()).or_else(home)?;
        Some(place.join("rallypoint/favourites"))
    }

    pub fn contains(&self, id: &str) -> bool {
        self.named.contains_key(id)
    }

    /// All of them, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(id, name)| (&**id, &**name))
    }

    /// Makes a server a favourite, or no longer one, and keeps that. Says which.
    pub fn toggle(&mut self, id: &str, name: &str) -> Result<bool, String> {
        let is_one = !self.contains(id);
        if let Some(file) = self.file.clone() {
            // Another browser may have changed them meanwhile.
            self.named = read(&file).map_err(|failure| failure.to_string())?;
        }
        if is_one {
            self.named.insert(id.into(), line(name));
        } else {
            self.named.remove(id);
        }
        let kept = self.file.as_deref().map_or(Ok(()), |file| write(file, &self.named));
        kept.map(|()| is_one).map_err(|error| format!("favourites cannot be kept: {error}"))
    }
}

/// A name that fits on a line.
fn line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn read(file: &Path) -> Result<BTreeMap<String, String>, CommandError> {
    let text = match fs::read(file) {
        // What somebody has broken with an editor is better read in part than not at all.
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let file = file.display();
            return Err(CommandError::failed(format!("cannot read favourites from {file}: {error}")));
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |text: &str| {
        let (id, name) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (line(id), line(name))
    };
    Ok(lines.map(split).collect())
}

/// Beside the old file, and then in its place: there is never half of it.
fn write(file: &Path, named: &BTreeMap<String, String>) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".favourites.{}", std::process::id()));
    let mut out = fs::File::create(&beside)?;
    out.write_all(HEADER.as_bytes())?;
    for (id, name) in named {
        writeln!(out, "{id} {name}")?;
    }
    out.sync_all()?;
    fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_survive_a_restart_and_other_browsers() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("data/favourites");
        let (mut one, mut other) = (Favourites::load(&file).unwrap(), Favourites::load(&file).unwrap());
        assert_eq!(one.toggle("tcp://192.0.2.1:8190", "Bacon\nTown  "), Ok(true));
        assert_eq!(other.toggle("udp://192.0.2.2:6969", ""), Ok(true));
        assert_eq!(one.toggle("udp://192.0.2.9:1", "x"), Ok(true));
        assert_eq!(one.toggle("udp://192.0.2.9:1", "x"), Ok(false));
        let again = Favourites::load(&file).unwrap();
        let all: Vec<_> = again.iter().collect();
        assert_eq!(all, [("tcp://192.0.2.1:8190", "Bacon Town"), ("udp://192.0.2.2:6969", "")]);
    }

    #[test]
    fn a_broken_file_is_read_as_far_as_possible() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("favourites");
        fs::write(&file, b"# x\n\n  udp://a:1   Two  Words \n\xff\xfe\nudp://b:2\n").unwrap();
        let all = Favourites::load(&file).unwrap();
        assert!(all.contains("udp://a:1") && all.contains("udp://b:2"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let mut favourites = Favourites { file: Some(home.path().join("file/favourites")), ..Favourites::default() };
        assert!(favourites.toggle("x", "x").is_err());
    }
}
