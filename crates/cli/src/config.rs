//! What `rallypoint serve` is told: by a file, by the environment, by flags, or not at all.
//!
//! All settings stand in one table ([`knobs`]), and everything goes by it: a file is walked key by key, each variable and
//! flag names a key, `--print-config` writes every key. So there is one reader, one message for a wrong value, and no
//! setting that can be made in one way only.

mod address_map;
mod bans;
mod kind;
mod knobs;
mod mistake;
pub mod names;
mod print;
mod secret;
mod settings;
mod sources;
#[cfg(test)]
mod tests;
mod variables;
mod watch;

pub use kind::found;
pub use knobs::{KNOBS, Knob};
pub use mistake::{Document, Mistakes, syntax};
pub use print::print;
pub use secret::read_token;
pub use settings::{HistorySettings, LogFormat, LogSettings, Settings};
pub use sources::{Loaded, Override, Sources};

/// The end of a message about an unknown word: what may have been meant, or what there is.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    match known.iter().min_by_key(|known| distance(known)) {
        Some(best) if distance(best) <= (best.len() / 3).clamp(1, 3) => format!("; did you mean \"{best}\"?"),
        _ => format!("; there are {}", known.join(", ")),
    }
}
