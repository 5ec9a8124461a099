//! Unreal Tournament 3, whose keys are numbers.

use crate::{Mod, ServerInfo};

/// Numbers, and names of the rules instead of them.
const NAMES: [(&str, &str); 8] = [
    ("p1073741825", "map"),
    ("p1073741826", "gametype"),
    ("p1073741827", "description"),
    ("p1073741828", "mutators"),
    ("p268435703", "bots"),
    ("p268435704", "goal score"),
    ("p268435705", "time limit"),
    ("s0", "bot skill"),
];

/// Names the rules, and fills in what they say of the server. Other games have no such keys.
pub(super) fn refine(info: &mut ServerInfo) {
    let Some(map) = info.rules.get("p1073741825").cloned() else { return };
    for (number, name) in NAMES {
        if let Some(value) = info.rules.remove(number) {
            info.rules.insert(name.to_owned(), value);
        }
    }
    let rule = |name: &str| info.rules.get(name).filter(|value| !value.is_empty());
    let name = rule("description").cloned();
    let mode = rule("gametype").map(|class| class.rsplit('.').next().unwrap_or(class).to_owned());
    let bots = rule("bots").and_then(|bots| bots.parse().ok());
    // Names are separated by a control character, which is shown as U+FFFD.
    let mutators =
        rule("mutators").map(|names| names.split('\u{fffd}').filter(|name| !name.is_empty()).map(str::to_owned));
    let mods: Vec<_> = mutators.into_iter().flatten().map(|name| Mod { id: None, name: Some(name) }).collect();
    info.name = name.or_else(|| info.name.take());
    info.map = Some(map);
    info.mode = mode.or_else(|| info.mode.take());
    info.bots = bots.or(info.bots);
    info.mods = mods;
}
