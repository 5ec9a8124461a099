//! The settings of `rallypoint serve`: from a file, the environment and flags, each with a default.
//!
//! All settings are defined in one table ([`table`]), with their defaults. A file is read key by key, each variable and flag
//! names a key, and `--print-config` writes every key. So there is one parser and one error message per setting, and every
//! setting can be made in every way.

#[cfg(test)]
mod docs;
mod export;
mod kind;
pub mod names;
mod networks;
mod print;
mod records;
mod secrets;
mod setting;
mod settings;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod unknown_variables;

pub use print::print;
pub use secrets::read_token;
pub use setting::Setting;
pub use settings::{ClusterSettings, HistorySettings, LogFormat, LogSettings, Settings};
pub use sources::{LoadedConfig, Override, Sources};
pub use table::SETTINGS;
