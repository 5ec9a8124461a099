//! Environment variables that look like settings but are not.

use super::{setting::Setting, table::SETTINGS};
use crate::toml_file::nearest;
use std::collections::BTreeMap;

/// A warning about all of them, if there are any.
///
/// They are no errors: container engines create variables from the names of services, such as
/// `RALLYPOINT_PORT_29944_TCP_ADDR`. Those are ignored; the rest may be misspelt settings.
pub fn unknown(variables: &BTreeMap<String, String>) -> Option<String> {
    let known: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
    let is_known = |name: &str| OTHERS.contains(&name) || known.iter().any(|known| known == name);
    let ours = variables.keys().filter(|name| name.starts_with("RALLYPOINT_"));
    let unknown: Vec<_> = ours.filter(|name| !is_known(name) && !is_from_container_engine(name)).collect();
    let hint = |name: &str| match nearest(name, known.iter().map(String::as_str)) {
        hint if hint.contains("did you mean") => format!(" ({})", hint.trim_start_matches("; ")),
        _ => String::new(),
    };
    let shown: Vec<_> = unknown.iter().map(|name| format!("{name}{}", hint(name))).collect();
    match &shown[..] {
        [] => None,
        [one] => Some(format!("the variable {one} is not a setting and has no effect")),
        _ => Some(format!("these variables are not settings and have no effect: {}", shown.join(", "))),
    }
}

/// Variables of other commands.
const OTHERS: [&str; 3] = ["RALLYPOINT_CONFIG", "RALLYPOINT_LOBBY", "RALLYPOINT_ADMIN_TOKEN"];

/// Whether container engines create such names from those of services.
fn is_from_container_engine(name: &str) -> bool {
    let is_port = |rest: &str| rest.split('_').next().is_some_and(|word| word.parse::<u16>().is_ok());
    name.ends_with("_PORT")
        || name.contains("_SERVICE_")
        || name.split_once("_PORT_").is_some_and(|(_, rest)| is_port(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(names: &[&str]) -> Option<String> {
        unknown(&names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect())
    }

    #[test]
    fn possibly_misspelt_variables_are_reported_once_with_a_suggestion() {
        assert_eq!(
            note(&["RALLYPOINT_LOBY_LEASE"]).unwrap(),
            "the variable RALLYPOINT_LOBY_LEASE (did you mean \"RALLYPOINT_LOBBY_LEASE\"?) is not a setting and has no effect"
        );
        assert_eq!(
            note(&["RALLYPOINT_CONFIGURE", "RALLYPOINT_LOBBY_LEESE", "HOME"]).unwrap(),
            "these variables are not settings and have no effect: RALLYPOINT_CONFIGURE, RALLYPOINT_LOBBY_LEESE (did you \
             mean \"RALLYPOINT_LOBBY_LEASE\"?)"
        );
    }

    #[test]
    fn known_variables_and_those_of_container_engines_are_not_reported() {
        let from_engine =
            ["SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_29944_TCP", "PORT_29944_TCP_ADDR", "LOBBY_PORT"];
        for name in ["CONFIG", "LOBBY", "LOBBY_LEASE"].iter().chain(&from_engine) {
            assert_eq!(note(&[&format!("RALLYPOINT_{name}")]), None, "{name}");
        }
    }
}
