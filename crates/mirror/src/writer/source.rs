//! What copies are made of. A lobby implements it.

use crate::{LISTS, minisign::PublicKey};
use rallypoint_wire::lobby::ListId;

/// The list that copies are made of.
pub trait CopySource: Send + 'static {
    /// The list at one moment.
    type Snapshot: CopySnapshot;

    /// Waits until the list is complete: servers of an earlier run are loaded.
    fn until_current(&self) -> impl Future<Output = ()> + Send;

    /// Waits until the list ends.
    fn ended(&self) -> impl Future<Output = ()> + Send;

    /// The version of the list now, and whether it is empty.
    fn state(&self) -> (u64, bool);

    /// The list as it is now.
    fn snapshot(&self) -> Self::Snapshot;
}

/// The list at one moment, with its documents. They are made on the blocking pool.
pub trait CopySnapshot: Send + 'static {
    /// The lists that have a file of their own.
    fn lists(&self) -> Vec<ListFile>;

    /// The content of such a file: the reply of document 001.
    fn list(&self, list: &ListFile) -> Vec<u8>;

    /// Whether [`ListFile::name`] can have this value: other files in the directory are left alone.
    fn is_list_name(name: &str) -> bool;

    /// `servers.json`.
    fn document(&self, lists: &[ListFile], made_at: u64) -> Vec<u8>;

    /// `index.html`.
    fn page(&self, key: PublicKey, made_at: u64) -> Vec<u8>;
}

/// A list that has a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFile {
    /// The list.
    pub id: ListId,
    /// The name of the file without its extension.
    pub name: String,
    /// The version of the content: the file is replaced when it changes.
    pub version: u64,
}

impl ListFile {
    /// The path of the file, from the directory of the copy.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{LISTS}/{}{}", self.name, Self::EXTENSION)
    }

    pub(super) const EXTENSION: &str = ".bin";
}
