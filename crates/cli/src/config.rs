//! The settings of `rallypoint serve`: from a file, the environment and flags, each with a default.
//!
//! All settings are defined in one table ([`setting_table`]). A file is read key by key, each variable and flag names a
//! key, and `--print-config` writes every key. So there is one parser and one error message per setting, and every setting
//! can be made in every way.

mod address_map;
mod bans;
mod cluster;
mod config_error;
mod export;
pub mod names;
mod print;
mod setting_table;
mod setting_type;
mod settings;
mod site;
mod sources;
#[cfg(test)]
mod tests;
mod token;
mod unknown_variables;
mod watch;

pub use config_error::{ConfigErrors, Document, syntax_errors};
pub use export::ExportConfig;
pub use print::print;
pub use setting_table::{SETTINGS, Setting};
pub use setting_type::found;
pub use settings::{ClusterSettings, HistorySettings, LogFormat, LogSettings, Settings};
pub use sources::{LoadedConfig, Override, Sources};
pub use token::read_token;

/// The end of a message about an unknown word: the most similar known word, or the list of known words.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    match known.iter().min_by_key(|known| distance(known)) {
        Some(best) if distance(best) <= (best.len() / 3).clamp(1, 3) => format!("; did you mean \"{best}\"?"),
        _ => format!("; known keys: {}", known.join(", ")),
    }
}
