//! Well-known lists and their names.

use rallypoint_wire::lobby::ListId;

/// A list that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownList {
    /// UUID of the list.
    pub id: ListId,
    /// Full name: `Gang Garrison 2`.
    pub name: &'static str,
    /// Short name for command lines and URLs: `gg2`.
    pub short: &'static str,
}

/// The list for rooms of `rallypoint host`: an ID of its own, so that no game lists what it cannot join.
pub const ROOMS: &str = "6b7de0f4-5b2f-4c0e-9a57-0d1f6f3c8e21";

const KNOWN: [(&str, &str, &str); 6] = [
    ("1ccf16b1-436d-856f-504d-cc1af306aaa7", "Gang Garrison 2", "gg2"),
    ("0e29560e-443a-93a3-e15e-7bd072df7506", "PyGG2 testing", "pygg2"),
    ("4fd0319b-5868-4f24-8b77-568cbb18fde9", "Vanguard", "vanguard"),
    (ROOMS, "Rallypoint rooms", "rooms"),
    ("c3c4f9d0-7f63-4d0b-8a0e-2b1d5e6f7a90", "Bloodmasters", "bloodmasters"),
    ("5e0a413c-97d2-4b6f-8c35-51334127950d", "Quake 3 and relatives", "quake3"),
];

/// A text that is neither a UUID nor the name of a known list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the list's UUID or one of {}", names())]
pub struct UnknownList;

/// All well-known lists.
pub fn known() -> impl Iterator<Item = KnownList> {
    KNOWN.iter().filter_map(|&(id, name, short)| Some(KnownList { id: id.parse().ok()?, name, short }))
}

/// Whether a list is well known.
#[must_use]
pub fn is_known(id: ListId) -> bool {
    known().any(|list| list.id == id)
}

/// The short name of a list if it is known, otherwise its UUID. [`find`] accepts both.
#[must_use]
pub fn short_name(id: ListId) -> String {
    known().find(|list| list.id == id).map_or_else(|| id.to_string(), |list| list.short.to_owned())
}

/// Finds a list by its UUID or by one of the known names, ignoring case, spaces and hyphens.
///
/// # Errors
/// If the text is neither.
pub fn find(text: &str) -> Result<ListId, UnknownList> {
    let normalized = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = normalized(text);
    let named = known().find(|list| normalized(list.name) == wanted || normalized(list.short) == wanted);
    named.map_or_else(|| text.parse().map_err(|_| UnknownList), |list| Ok(list.id))
}

fn names() -> String {
    KNOWN.iter().map(|(_, name, short)| format!("{short} ({name})")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_by_name_or_uuid() {
        assert_eq!(known().count(), KNOWN.len(), "every UUID in the table is valid");
        for text in ["gg2", "Gang Garrison 2", "gang-garrison-2", "1CCF16B1-436d-856f-504d-cc1af306aaa7"] {
            assert_eq!(find(text), Ok(ListId::GANG_GARRISON_2), "{text}");
        }
        assert_eq!(short_name(ListId::GANG_GARRISON_2), "gg2");
        assert!(find("quake").unwrap_err().to_string().contains("gg2 (Gang Garrison 2)"));
    }
}
