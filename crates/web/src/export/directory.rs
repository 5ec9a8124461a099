//! The directory with the copy.

use super::{
    ExportKey, ExportSettings,
    document::{self, ExportedList},
    page,
};
use rallypoint_files::NewFile;
use rallypoint_lobby::TableSnapshot;
use rallypoint_lobby_proto::{ListSnapshot, LobbyList};
use rallypoint_minisign::{Signature, TrustedComment};
use rallypoint_query::{
    list_names,
    mirror::{FILE, KEY_FILE, SIGNED_FILE},
};
use rallypoint_wire::lobby::ListId;
use std::{
    cmp::Reverse,
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The directory of the raw lists, below that of the copy.
pub(super) const LISTS: &str = "lists";

const PAGE: &str = "index.html";
const RAW: &str = ".bin";
const SIGNATURE: &str = ".minisig";

/// Maximum number of raw lists: any server can open a list of its own. Lists with a name come first, then those with the most
/// servers. `servers.json` contains the servers of all lists.
const MAX_LISTS: usize = 256;

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
    pub fn write(
        &mut self,
        table: Arc<TableSnapshot>,
        lists: &ListSnapshot,
        settings: &ExportSettings,
        made_at: u64,
    ) -> io::Result<u64> {
        let chosen = choose(lists, settings);
        let mut bytes = 0;
        for (list, content) in &chosen {
            if self.current.get(&list.id) == Some(&content.version()) {
                continue;
            }
            self.current.remove(&list.id);
            bytes += self.write_signed(&list.file, &content.pieces().collect::<Vec<_>>().concat(), made_at)?;
            self.current.insert(list.id, content.version());
        }
        let exported: Vec<_> = chosen.into_iter().map(|(list, _)| list).collect();
        let document = document::write(&table, &exported, settings, made_at);
        let page = page::write(&table, settings, self.key.public(), made_at);
        // The disk may be slow, and a snapshot keeps servers in memory that are no longer listed.
        drop(table);
        bytes += self.write_document(&document, made_at)?;
        bytes += self.write_signed(PAGE, &page, made_at)?;
        self.remove_others(&exported)?;
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

    /// Removes the files of lists that are gone. Files that cannot be of a list are left alone.
    fn remove_others(&mut self, exported: &[ExportedList]) -> io::Result<()> {
        self.current.retain(|id, _| exported.iter().any(|list| list.id == *id));
        for entry in fs::read_dir(self.path.join(LISTS))? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let Some(list) = name.strip_suffix(SIGNATURE).unwrap_or(name).strip_suffix(RAW) else { continue };
            let is_ours = list_names::find(list).is_ok_and(|id| list_names::short_name(id) == list);
            let file = format!("{LISTS}/{list}{RAW}");
            if is_ours && !exported.iter().any(|exported| exported.file == file) {
                fs::remove_file(self.path.join(LISTS).join(name))?;
            }
        }
        Ok(())
    }
}

/// The lists that have files of their own.
fn choose<'a>(lists: &'a ListSnapshot, settings: &ExportSettings) -> Vec<(ExportedList, &'a Arc<LobbyList>)> {
    let mut chosen: Vec<_> = lists.lobbies().collect();
    chosen.sort_by_key(|(id, list)| (settings.names.name(id).is_none(), Reverse(list.count()), **id));
    chosen.truncate(MAX_LISTS);
    chosen.into_iter().map(|(id, list)| (ExportedList::new(*id), list)).collect()
}

/// Writes a file completely, without replacing the old one.
fn prepare_public(path: PathBuf, parts: &[&[u8]]) -> io::Result<NewFile> {
    let mut file = NewFile::create_public(path)?;
    parts.iter().try_for_each(|part| file.write(part))?;
    file.sync()?;
    Ok(file)
}
