//! The directory with the copy.

use super::{CopySnapshot, ExportKey, ListFile};
use crate::{
    FILE, KEY_FILE, LISTS, PAGE, SIGNED_FILE,
    minisign::{Signature, TrustedComment},
};
use rallypoint_files::NewFile;
use rallypoint_wire::lobby::ListId;
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Extension of the signature of a file.
const SIGNATURE: &str = ".minisig";

/// Why copies cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The directory cannot be created or written to.
    #[error("cannot write to the directory for copies of the list, {}: {source}", .path.display())]
    Directory {
        /// The directory, or the file in it.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory has a page that is not a copy.
    #[error("the directory {} contains a page of something else, which would be replaced: choose an empty one", .0.display())]
    InUse(PathBuf),
}

/// The directory, and what was written to it.
#[derive(Debug)]
pub(super) struct ExportDirectory {
    path: PathBuf,
    key: ExportKey,
    has_copy: bool,
    /// Whether the file with the public key is that of this key.
    has_key_file: bool,
    /// The lists whose files are current, with their versions.
    current: HashMap<ListId, u64>,
}

impl ExportDirectory {
    /// Creates the directory if it does not exist, and writes the public key if there is no copy yet.
    pub fn open(path: PathBuf, key: ExportKey) -> Result<Self, ExportError> {
        if path.join(PAGE).exists() && !path.join(KEY_FILE).exists() {
            return Err(ExportError::InUse(path));
        }
        let fail = |source| ExportError::Directory { path: path.clone(), source };
        rallypoint_files::create_public_dir(&path.join(LISTS)).map_err(fail)?;
        // Also if it is not needed, because an error at the start is better than one in the log.
        let key_file = prepare_public(path.join(KEY_FILE), &[key.public().to_file().as_bytes()]).map_err(fail)?;
        // The key of an earlier copy stays until there is a new copy.
        let has_copy = path.join(SIGNED_FILE).exists();
        let has_key_file = !has_copy;
        if has_key_file {
            key_file.commit().map_err(fail)?;
        }
        Ok(Self { path, key, has_copy, has_key_file, current: HashMap::new() })
    }

    /// Whether it contained a copy when it was opened.
    pub fn has_copy(&self) -> bool {
        self.has_copy
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a copy: the raw lists that have changed, then the list of all servers and the page. Returns the number of bytes.
    ///
    /// # Errors
    /// An error of the system. Every file is then as it was, or as it should be.
    pub fn write<S: CopySnapshot>(&mut self, snapshot: S, made_at: u64) -> io::Result<u64> {
        let lists = snapshot.lists();
        let mut bytes = 0;
        for list in &lists {
            if self.current.get(&list.id) == Some(&list.version) {
                continue;
            }
            self.current.remove(&list.id);
            bytes += self.write_signed(&list.path(), &snapshot.list(list), made_at)?;
            self.current.insert(list.id, list.version);
        }
        let document = snapshot.document(&lists, made_at);
        let page = snapshot.page(self.key.public(), made_at);
        // The disk may be slow, and a snapshot keeps servers in memory that are no longer listed.
        drop(snapshot);
        bytes += self.write_document(&document, made_at)?;
        bytes += self.write_signed(PAGE, &page, made_at)?;
        self.current.retain(|id, _| lists.iter().any(|list| list.id == *id));
        self.outdated::<S>(&lists)?.into_iter().try_for_each(fs::remove_file)?;
        Ok(bytes)
    }

    /// Writes `servers.json` with its signature, and both in one. None of the three is replaced before all are on the disk.
    fn write_document(&mut self, document: &[u8], made_at: u64) -> io::Result<u64> {
        let signature = self.sign(FILE, document, made_at).to_string();
        let signature = signature.as_bytes();
        let files = [
            self.prepare(FILE, &[document])?,
            self.prepare(&format!("{FILE}{SIGNATURE}"), &[signature])?,
            self.prepare(SIGNED_FILE, &[signature, document])?,
        ];
        if !self.has_key_file {
            self.prepare(KEY_FILE, &[self.key.public().to_file().as_bytes()])?.commit()?;
            self.has_key_file = true;
        }
        files.into_iter().try_for_each(NewFile::commit)?;
        Ok((2 * (document.len() + signature.len())) as u64)
    }

    fn write_signed(&self, file: &str, content: &[u8], made_at: u64) -> io::Result<u64> {
        let signature = self.sign(file, content, made_at).to_string();
        let files =
            [self.prepare(file, &[content])?, self.prepare(&format!("{file}{SIGNATURE}"), &[signature.as_bytes()])?];
        files.into_iter().try_for_each(NewFile::commit)?;
        Ok((content.len() + signature.len()) as u64)
    }

    fn sign(&self, file: &str, content: &[u8], made_at: u64) -> Signature {
        // Like minisign, without the directory.
        let name = file.rsplit('/').next().unwrap_or(file);
        let comment = TrustedComment { timestamp: made_at, file: name.to_owned() };
        self.key.signing_key().sign(content, &comment)
    }

    fn prepare(&self, file: &str, parts: &[&[u8]]) -> io::Result<NewFile> {
        prepare_public(self.path.join(file), parts)
    }

    /// The files of lists that are gone. Files that cannot be of a list are not among them.
    fn outdated<S: CopySnapshot>(&self, lists: &[ListFile]) -> io::Result<Vec<PathBuf>> {
        let mut outdated = Vec::new();
        for entry in fs::read_dir(self.path.join(LISTS))? {
            let path = entry?.path();
            let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let content = file.strip_suffix(SIGNATURE).unwrap_or(file);
            let Some(name) = content.strip_suffix(ListFile::EXTENSION) else { continue };
            if S::is_list_name(name) && !lists.iter().any(|list| list.name == name) {
                outdated.push(path);
            }
        }
        Ok(outdated)
    }
}

/// Writes a file completely, without replacing the old one.
fn prepare_public(path: PathBuf, parts: &[&[u8]]) -> io::Result<NewFile> {
    let mut file = NewFile::create_public(path)?;
    parts.iter().try_for_each(|part| file.write(part))?;
    file.sync()?;
    Ok(file)
}
