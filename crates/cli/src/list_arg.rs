//! Arguments that name a list of a lobby.

use rallypoint_query::list_names;

/// The help of an argument that [`list_names::find`] parses.
pub fn help(what: &str, default: &str) -> String {
    let names: Vec<_> = list_names::known().map(|list| list.short).collect();
    format!("{what}: a UUID, or {}{default}", names.join(", "))
}
