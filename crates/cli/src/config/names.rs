//! Settings that are tables from lists to texts: names and links.

use super::kind::{Invalid, Kind, ValueError, all};
use crate::toml_file::{Value, found, quoted};
use rallypoint_query::list_names as known_lists;
use rallypoint_web::JoinLink;
use rallypoint_wire::lobby::ListId;
use std::{collections::BTreeMap, fmt::Display};

/// The names of lists, which add to the ones that are known; an empty name removes one.
pub fn list_names() -> Kind<BTreeMap<ListId, String>> {
    by_list("their names", "the name of a list", |name| Some(name.to_owned()))
}

/// Links that join a server.
pub fn join_links() -> Kind<BTreeMap<ListId, JoinLink>> {
    by_list("links", "a link that contains {address}, or {ip} and {port}", |link| link.parse().ok())
}

/// The names that lists have without a configuration.
pub fn known() -> BTreeMap<ListId, String> {
    known_lists::known().map(|list| (list.id, list.name.to_owned())).collect()
}

/// A table from lists to texts, which is added to the one before.
fn by_list<T: Display + 'static>(
    what: &str,
    each: &'static str,
    read: fn(&str) -> Option<T>,
) -> Kind<BTreeMap<ListId, T>> {
    let read_all = move |value: &Value<'_>| {
        let entries = value.get_ref().as_table().ok_or(Invalid::Unexpected)?;
        let entries = all(entries.iter().map(|(id, text)| {
            let error = |message, at| ValueError { message, at: Some(at) };
            let unknown = |why: String| error(format!("{why}, not {}", quoted(id.get_ref())), id.span());
            let id = known_lists::find(id.get_ref()).map_err(|why| unknown(why.to_string()))?;
            let unexpected = || error(format!("expected {each}, {}", found(text.get_ref())), text.span());
            Ok((id, text.get_ref().as_str().and_then(read).ok_or_else(unexpected)?))
        }));
        entries.map(|entries| entries.into_iter().collect())
    };
    let show = |texts: &BTreeMap<ListId, T>| {
        let texts: Vec<_> = texts.iter().map(|(id, text)| format!("{} = {}", quoted(id), quoted(text))).collect();
        if texts.is_empty() { "{}".into() } else { format!("{{ {} }}", texts.join(", ")) }
    };
    Kind::new(format!("lists (UUIDs or well-known names) with {what}"), read_all, show).merged_by(BTreeMap::extend)
}
