//! The flags of `rallypoint serve`.

use crate::{
    config::{Override, Sources},
    error::CommandError,
};
use std::{net::SocketAddr, path::PathBuf};

/// Run a lobby (master server): game servers register with it, players get the list from it
///
/// It needs no configuration: without any flag it listens on all addresses of both families, UDP and TCP 29944, and for
/// old Gang Garrison 2 versions on 29942; its web page and API are at HTTP 29950. Once it serves it prints a line for each address on standard output; its log is
/// on standard error.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples, signals and exit codes: rallypoint serve --help")]
pub struct Args {
    /// The configuration file (TOML)
    ///
    /// Without it: $RALLYPOINT_CONFIG, else $XDG_CONFIG_HOME/rallypoint/rallypoint.toml (~/.config/...) or
    /// /etc/rallypoint/rallypoint.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where the list is kept over a restart
    ///
    /// Without it: $STATE_DIRECTORY (systemd), else $XDG_STATE_HOME/rallypoint or ~/.local/state/rallypoint.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    // These three are no doc comments, because of the brackets.
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    #[arg(help = "Where the lobby listens, UDP and TCP; can be repeated [default: 0.0.0.0:29944 and [::]:29944]")]
    lobby: Vec<SocketAddr>,

    #[arg(long, value_name = "ADDR:PORT|off", value_parser = addr_or_off)]
    #[arg(help = "Where the legacy lobby listens, or off; can be repeated [default: 0.0.0.0:29942 and [::]:29942]")]
    legacy: Vec<AddrOrOff>,

    #[arg(long, value_name = "ADDR:PORT|off", value_parser = addr_or_off)]
    #[arg(
        help = "Where the web page and the API are, or off; can be repeated [default: 0.0.0.0:29950 and [::]:29950]"
    )]
    http: Vec<AddrOrOff>,

    /// Any setting of the configuration file; can be repeated
    ///
    /// For example --set lobby.lease=2m --set lobby.allow_private=false. docs/configuration.md and --print-config have
    /// all of them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,

    /// Only say whether the configuration is fine
    #[arg(long)]
    pub check_config: bool,

    /// Only print the configuration in force, as a file: also a good template
    #[arg(long, conflicts_with = "check_config")]
    pub print_config: bool,
}

const MORE: &str = "\
Examples:
  rallypoint serve
  rallypoint serve --lobby 127.0.0.1:29944 --legacy off
  rallypoint serve --set lobby.allow_private=false    for a public lobby
  rallypoint serve --print-config > rallypoint.toml   all settings, to be edited
  rallypoint serve --config rallypoint.toml --check-config

Settings:
  Flags win over the environment, that over the file, that over the defaults.
  Each setting has a variable: lobby.lease is RALLYPOINT_LOBBY_LEASE.
  LobbyNamesType of lobbies ([lobby.names]) and bans ([[ban]]) belong into the file: they
  have no flags of their own.

Signals:
  SIGHUP           reads bans, names and limits again, and drops nothing
  SIGTERM, Ctrl-C  finishes replies, saves the list, ends; a second: at once

Exit codes:
  0  it was told to stop, and did
  1  it could not start or go on; the last line says why and what to do
  2  wrong usage or a mistake in the configuration, with file and line
  5  it was told to stop, and did, but could not save the list";

/// An address to listen on, or the wish not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddrOrOff {
    Addr(SocketAddr),
    Off,
}

impl Args {
    /// Everything that has a say in the settings.
    pub fn sources(&self) -> Result<Sources, CommandError> {
        let mut sources = Sources::new(self.config.clone());
        let mut flag = |label: &str, path: &str, value: String| {
            sources.flags.push(Override { label: label.into(), path: path.into(), value });
        };
        for (path, value) in &self.set {
            flag(&format!("--set {path}"), path, value.clone());
        }
        if let Some(dir) = &self.data_dir {
            flag("--data-dir", "data_dir", dir.display().to_string());
        }
        if !self.lobby.is_empty() {
            flag("--lobby", "lobby.listen", join(self.lobby.iter()));
        }
        for (label, path, wanted) in [("--legacy", "legacy.listen", &self.legacy), ("--http", "web.listen", &self.http)]
        {
            if wanted.is_empty() {
                continue;
            }
            let addrs: Vec<_> = wanted.iter().filter_map(|wanted| wanted.addr()).collect();
            if !addrs.is_empty() && addrs.len() < wanted.len() {
                return Err(CommandError::Usage(format!("{label} is off, or one or more addresses; not both")));
            }
            flag(label, path, if addrs.is_empty() { "off".into() } else { join(addrs.iter()) });
        }
        Ok(sources)
    }
}

impl AddrOrOff {
    fn addr(self) -> Option<SocketAddr> {
        match self {
            Self::Addr(addr) => Some(addr),
            Self::Off => None,
        }
    }
}

fn join(addrs: impl Iterator<Item = impl ToString>) -> String {
    addrs.map(|addr| addr.to_string()).collect::<Vec<_>>().join(",")
}

fn addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address with a port, such as 0.0.0.0:29944 or [::]:29944")
}

fn addr_or_off(text: &str) -> Result<AddrOrOff, &'static str> {
    match text {
        "off" => Ok(AddrOrOff::Off),
        _ => addr(text).map(AddrOrOff::Addr).map_err(|_| "expected an address with a port, such as [::]:29942, or off"),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as lobby.lease=2m")?;
    Ok((key.trim().into(), value.trim().into()))
}
