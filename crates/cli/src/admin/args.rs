//! The flags of `rallypoint admin`.

use crate::{scan_args, units::duration_within};
use rallypoint_lobby_proto::{CanonicalNetwork, ParseNetworkError, PublicId};
use rallypoint_query::HttpUrl;
use std::{path::PathBuf, str::FromStr, time::Duration};

/// Manage bans and notes of a running lobby
///
/// For the operator of a lobby, authenticated by a token: `rallypoint admin token` generates one, to be stored in the file
/// of the setting web.admin_token_file. All changes survive restarts of the lobby and are recorded in its audit log.
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// URL of the lobby's web server [default: that of the lobby on this machine, http://127.0.0.1:29950 unless configured
    /// otherwise]
    #[arg(long, global = true, value_name = "URL", value_parser = url)]
    pub url: Option<HttpUrl>,

    /// File with the admin token
    ///
    /// Default: $RALLYPOINT_ADMIN_TOKEN, or the token in the configuration of the lobby on this machine.
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Configuration file (TOML) of the lobby on this machine, as with rallypoint serve
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print the response of the lobby as JSON
    #[arg(long, global = true)]
    pub json: bool,

    /// Timeout of a request: 4s, 500ms, or a number of seconds
    #[arg(long, short = 't', global = true, value_name = "TIME", default_value = "4s", value_parser = scan_args::time)]
    pub timeout: Duration,

    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Ban an address, a network or a name pattern; matching servers are removed from the list at once
    Ban {
        #[command(flatten)]
        subject: Subject,

        /// Reason, visible to the owner of a banned server
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,

        /// End of the ban: 2027-01-31 or 2027-01-31T18:00:00Z
        #[arg(long, value_name = "DATE", conflicts_with = "time")]
        until: Option<String>,

        /// Duration of the ban: 30m, 12h, 7d, 4w
        #[arg(long = "for", id = "time", value_name = "TIME", value_parser = parse_duration)]
        time: Option<Duration>,
    },
    Unban(UnbanArgs),
    /// List all bans, including those of the configuration file
    Bans,
    Unlist(UnlistArgs),
    Note(NoteArgs),
    /// List notes
    Notes {
        /// Only notes about this server, address or network
        about: Option<String>,
    },
    /// Remove a note
    Forget {
        /// ID of the note, as shown by notes
        id: u64,
    },
    /// Show the audit log, newest entries first
    Audit {
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// Print a new random token
    Token,
}

/// The subject of a ban: exactly one of the two.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct Subject {
    /// Address or network: 203.0.113.9, 203.0.113.0/24, 2001:db8::/32
    #[arg(value_name = "NETWORK")]
    pub network: Option<CanonicalNetwork>,

    /// Pattern of server names: * matches any text, ? one character; at least 3 other characters
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
}

/// Remove a ban
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct UnbanArgs {
    /// ID of the ban as shown by bans, its address or network, or the public ID of an unlisted server
    #[arg(value_name = "ID|NETWORK|SERVER")]
    pub ban: Option<UnbanTarget>,

    /// Name pattern of the ban
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
}

/// An existing ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnbanTarget {
    /// By its ID.
    Id(u64),
    /// By its network.
    Network(CanonicalNetwork),
    /// By the server that was unlisted.
    Server(PublicId),
}

/// Remove a server from the list for a while
///
/// The server stays unlisted even if it or the lobby is restarted. It is shown by bans, and unban lists it again.
#[derive(clap::Args)]
pub struct UnlistArgs {
    /// Public ID of the server: 32 hexadecimal digits, as in the URL of its page
    #[arg(value_name = "SERVER")]
    pub server: PublicId,

    /// Duration: 30m, 12h, 7d [default: 10m]
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,

    /// Reason, visible to the owner of the server
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,

    /// Ban the addresses of the server for the same time
    #[arg(long)]
    pub ban: bool,
}

/// Add a note about a server, an address or a network
#[derive(clap::Args)]
pub struct NoteArgs {
    /// Public ID of a server, address or network
    pub about: String,

    /// Text of the note
    pub text: String,
}

const MORE: &str = "\
Examples:
  rallypoint admin token | install -D -m 600 /dev/stdin /etc/rallypoint/token
  rallypoint admin bans
  rallypoint admin ban 203.0.113.0/24 --reason floods --for 7d
  rallypoint admin ban --name '*casino*' --until 2027-01-31
  rallypoint admin unban 203.0.113.0/24
  rallypoint admin unlist 0123456789abcdef0123456789abcdef --ban --for 1h
  rallypoint admin unban 0123456789abcdef0123456789abcdef
  rallypoint admin note 203.0.113.9 'asked the owner to move the port'
  rallypoint admin audit --json
  ssh -L 29950:localhost:29950 lobby.example.org
      http does not encrypt the token: use https or ssh

Exit codes:
  0  success
  1  the lobby did not answer or refused; the last line states the reason
  2  wrong usage, or no token
  3  the answer is not that of a lobby
  4  the connection was refused: no web server at that address
  5  a local error, such as no network";

impl FromStr for UnbanTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.parse().map(Self::Id);
        let known = id.or_else(|_| text.parse().map(Self::Server)).or_else(|_| text.parse().map(Self::Network));
        known.map_err(|error: ParseNetworkError| format!("{error}, the ID of a ban or the public ID of a server"))
    }
}

fn url(text: &str) -> Result<HttpUrl, String> {
    let expected = || "expected an address such as http://127.0.0.1:29950 or https://lobby.example.org".to_owned();
    let Ok(url) = text.trim_end_matches('/').parse::<HttpUrl>() else { return Err(expected()) };
    // Host and port only: the paths of the API are fixed.
    if text.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty()) { Err(expected()) } else { Ok(url) }
}

/// Parses a duration from seconds to weeks.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(366 * 86_400);
    let time = duration_within(text, range);
    time.ok_or_else(|| "expected a duration such as 30m, 12h, 7d or 4w, at most one year".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_range_from_seconds_to_a_year() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2w"), Ok(Duration::from_secs(1_209_600)));
        for wrong in ["", "7", "d", "0d", "-1h", "2y", "400d", "1\u{e4}", "99999999999999999999w"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ban_is_referred_to_by_id_network_or_server() {
        assert_eq!("7".parse(), Ok(UnbanTarget::Id(7)));
        let network = |text: &str| Ok(UnbanTarget::Network(text.parse().unwrap()));
        assert_eq!("203.0.113.7/24".parse(), network("203.0.113.0/24"));
        assert_eq!("2001:DB8:0::1/32".parse(), network("2001:db8::/32"));
        let server = "0123456789abcdef0123456789abcdef";
        assert_eq!(server.parse(), Ok(UnbanTarget::Server(server.parse().unwrap())));
        assert_eq!("7".repeat(32).parse(), Ok(UnbanTarget::Server("7".repeat(32).parse().unwrap())));
        assert!("somebody".parse::<UnbanTarget>().unwrap_err().contains("expected an address"));
    }

    #[test]
    fn the_url_has_no_path() {
        assert_eq!(url("http://[::1]:8080/").unwrap().port.get(), 8080);
        assert_eq!(url("https://lobby.example.org").unwrap().port.get(), 443);
        for wrong in ["localhost:29950", "http://x/api", "lobby://x"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
