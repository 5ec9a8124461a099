//! Favourite servers, stored in a text file.

use crate::{error::CommandError, user_dirs};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// The favourites: server IDs with their last known names.
#[derive(Debug, Default)]
pub struct Favourites {
    file: Option<PathBuf>,
    named: BTreeMap<String, String>,
}

const HEADER: &str = "# Favourites of `rallypoint browse`: a server and the name it had, each on a line.\n";

impl Favourites {
    /// Reads the favourites from a file; none if it does not exist yet.
    pub fn load(file: &Path) -> Result<Self, CommandError> {
        Ok(Self { named: read(file)?, file: Some(file.to_owned()) })
    }

    /// The default file: `favourites` in the user's data directory.
    pub fn default_file() -> Option<PathBuf> {
        Some(user_dirs::data()?.join("favourites"))
    }

    pub fn contains(&self, id: &str) -> bool {
        self.named.contains_key(id)
    }

    /// All favourites, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(id, name)| (&**id, &**name))
    }

    /// Adds or removes a server, and writes the file. True if the server is a favourite now.
    pub fn toggle(&mut self, id: &str, name: &str) -> Result<bool, String> {
        let is_favourite = !self.contains(id);
        if let Some(file) = self.file.clone() {
            // Another browser may have changed the file.
            self.named = read(&file).map_err(|failure| failure.to_string())?;
        }
        if is_favourite {
            self.named.insert(id.into(), line(name));
        } else {
            self.named.remove(id);
        }
        let written = self.file.as_deref().map_or(Ok(()), |file| write(file, &self.named));
        written.map(|()| is_favourite).map_err(|error| format!("cannot store the favourites: {error}"))
    }
}

/// A name without line breaks and other control characters.
fn line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn read(file: &Path) -> Result<BTreeMap<String, String>, CommandError> {
    let text = match fs::read(file) {
        // A file with invalid bytes is read as far as possible.
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let file = file.display();
            return Err(CommandError::failed(format!(
                "cannot read favourites from {file}: {}",
                crate::error::describe_io(&error)
            )));
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |text: &str| {
        let (id, name) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (line(id), line(name))
    };
    Ok(lines.map(split).collect())
}

fn write(file: &Path, named: &BTreeMap<String, String>) -> io::Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    let lines = named.iter().map(|(id, name)| format!("{id} {name}\n"));
    let text: String = std::iter::once(HEADER.to_owned()).chain(lines).collect();
    rallypoint_files::replace(file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn favourites_survive_a_restart_and_other_browsers() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("data/favourites");
        let mut one = Favourites::load(&file).unwrap();
        let mut other = Favourites::load(&file).unwrap();
        assert_eq!(one.toggle("tcp://192.0.2.1:8190", "Bacon\nTown  "), Ok(true));
        assert_eq!(other.toggle("udp://192.0.2.2:6969", ""), Ok(true));
        assert_eq!(one.toggle("udp://192.0.2.9:1", "x"), Ok(true));
        assert_eq!(one.toggle("udp://192.0.2.9:1", "x"), Ok(false));
        let again = Favourites::load(&file).unwrap();
        let all: Vec<_> = again.iter().collect();
        assert_eq!(all, [("tcp://192.0.2.1:8190", "Bacon Town"), ("udp://192.0.2.2:6969", "")]);
    }

    #[test]
    fn an_invalid_file_is_read_as_far_as_possible() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("favourites");
        fs::write(&file, b"# x\n\n  udp://a:1   Two  Words \n\xff\xfe\nudp://b:2\n").unwrap();
        let all = Favourites::load(&file).unwrap();
        assert!(all.contains("udp://a:1") && all.contains("udp://b:2"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let mut favourites = Favourites { file: Some(home.path().join("file/favourites")), ..Favourites::default() };
        assert!(favourites.toggle("x", "x").is_err());
    }
}
