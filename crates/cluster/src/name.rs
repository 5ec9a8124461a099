//! Names of clusters and nodes.

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// The form of a name, as error messages describe it.
pub const NAME_FORM: &str = "1 to 64 letters, digits, '-', '_' or '.'";

/// Whether a cluster or node can have this name: it is part of keys in the store, and shown on pages.
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_valid)
}
