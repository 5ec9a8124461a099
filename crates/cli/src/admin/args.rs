//! The flags of `rallypoint admin`.

use crate::scan_args;
use rallypoint_lobby_proto::{Network, ParseNetworkError, PublicId};
use rallypoint_query::HttpUrl;
use std::{path::PathBuf, str::FromStr, time::Duration};

/// Ban, unban, unlist and note, while a lobby runs
///
/// For the operator of a lobby, who is known by a token: `rallypoint admin token` makes one, which goes into a file that
/// web.admin_token_file names. What is decided here is kept by the lobby over restarts, and written into its audit log.
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// Where the lobby's web server is; http only
    #[arg(long, global = true, value_name = "URL", default_value = "http://127.0.0.1:29950", value_parser = url)]
    pub url: HttpUrl,

    /// The file that the token is in
    ///
    /// Without it: $RALLYPOINT_ADMIN_TOKEN, else the token in the configuration of this machine's own lobby.
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Print the lobby's answer, as JSON
    #[arg(long, global = true)]
    pub json: bool,

    /// How long to wait for an answer: 4s, 500ms, or a number of seconds
    #[arg(long, short = 't', global = true, value_name = "TIME", default_value = "4s", value_parser = scan_args::time)]
    pub timeout: Duration,

    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(clap::Subcommand)]
pub enum Verb {
    Ban(BanArgs),
    Unban(UnbanArgs),
    /// Show all bans, those of the lobby's configuration among them
    Bans,
    Unlist(UnlistArgs),
    Note(NoteArgs),
    /// Show notes
    Notes {
        /// Only those about this server, address or network
        about: Option<String>,
    },
    /// Remove a note
    Forget {
        /// Its number, as in notes
        id: u64,
    },
    /// Show who did what, the latest first
    Audit {
        /// How much of it
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// Print a new token, and do nothing else
    Token,
}

/// Ban an address, a network, or a pattern of names: its servers leave the list at once
#[derive(clap::Args)]
pub struct BanArgs {
    #[command(flatten)]
    pub whom: Whom,

    /// Why: whoever is banned can read it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,

    /// Until when: 2027-01-31, or 2027-01-31T18:00:00Z
    #[arg(long, value_name = "DATE", conflicts_with = "time")]
    pub until: Option<String>,

    /// For how long: 30m, 12h, 7d, 4w
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = long_time)]
    pub time: Option<Duration>,
}

/// Who is meant: one of them.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct Whom {
    /// An address or a network: 203.0.113.9, 203.0.113.0/24, 2001:db8::/32
    #[arg(value_name = "NETWORK")]
    pub network: Option<Network>,

    /// Pattern of server names: * matches any text, ? one character
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
}

/// Remove a ban
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct UnbanArgs {
    /// Its number, as in bans; or the address or network, or the public ID of a server that is kept off the list
    #[arg(value_name = "ID|NETWORK|SERVER")]
    pub ban: Option<KnownBan>,

    /// The pattern, as in bans
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
}

/// A ban that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBan {
    /// By its number.
    Id(u64),
    /// By whom it is about.
    Network(Network),
    /// By the server that was taken off the list.
    Server(PublicId),
}

/// Take a server off the list, and keep it off for a while
///
/// Also if it is started again at the same address and port, and also if the lobby is started again. It is among the bans,
/// and unban lets it come back.
#[derive(clap::Args)]
pub struct UnlistArgs {
    /// Its public ID: 32 hexadecimal digits, as in the address of its page
    #[arg(value_name = "SERVER")]
    pub server: PublicId,

    /// For how long: 30m, 12h, 7d [default: 10m]
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = long_time)]
    pub time: Option<Duration>,

    /// Why: its owner can read it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,

    /// Also ban its addresses, for as long
    #[arg(long)]
    pub ban: bool,
}

/// Write something down about a server, an address or a network
#[derive(clap::Args)]
pub struct NoteArgs {
    /// The public ID of a server, an address or a network
    pub about: String,

    /// What is to be remembered
    pub text: String,
}

const MORE: &str = "\
Examples:
  rallypoint admin token | install -m 600 /dev/stdin /etc/rallypoint/token
  rallypoint admin bans
  rallypoint admin ban 203.0.113.0/24 --reason floods --for 7d
  rallypoint admin ban --name '*casino*' --until 2027-01-31
  rallypoint admin unban 203.0.113.0/24
  rallypoint admin unlist 0123456789abcdef0123456789abcdef --ban --for 1h
  rallypoint admin unban 0123456789abcdef0123456789abcdef
  rallypoint admin note 203.0.113.9 'asked the owner to move the port'
  rallypoint admin audit --json
  ssh -L 29950:localhost:29950 lobby.example.org
      the token is not encrypted by http: go to the machine, or through ssh

Exit codes:
  0  done
  1  the lobby did not answer, or refused: the last line says why
  2  wrong usage, or there is no token
  3  its answer makes no sense: that is no lobby
  4  nothing listens there
  5  this machine could not do it: no network";

impl FromStr for KnownBan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.parse().map(Self::Id);
        let known = id.or_else(|_| text.parse().map(Self::Server)).or_else(|_| text.parse().map(Self::Network));
        known.map_err(|error: ParseNetworkError| format!("{error}, the number of a ban or the public ID of a server"))
    }
}

fn url(text: &str) -> Result<HttpUrl, String> {
    let expected = || "expected an address such as http://127.0.0.1:29950 or https://lobby.example.org".to_owned();
    let Ok(url) = text.trim_end_matches('/').parse::<HttpUrl>() else { return Err(expected()) };
    // Only the host counts: the rest is known.
    if text.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty()) { Err(expected()) } else { Ok(url) }
}

/// Minutes to weeks.
fn long_time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time such as 30m, 12h, 7d or 4w, a year at most".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(expected)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(expected()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=366 * 86_400).contains(seconds)).ok_or_else(expected)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_long_as_bans() {
        assert_eq!(long_time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(long_time("2w"), Ok(Duration::from_secs(1_209_600)));
        for wrong in ["", "7", "d", "0d", "-1h", "2y", "400d", "1\u{e4}", "99999999999999999999w"] {
            assert!(long_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ban_is_known_by_its_number_or_by_whom_it_is_about() {
        assert_eq!("7".parse(), Ok(KnownBan::Id(7)));
        let network = |text: &str| Ok(KnownBan::Network(text.parse().unwrap()));
        assert_eq!("203.0.113.7/24".parse(), network("203.0.113.0/24"));
        assert_eq!("2001:DB8:0::1/32".parse(), network("2001:db8::/32"));
        let server = "0123456789abcdef0123456789abcdef";
        assert_eq!(server.parse(), Ok(KnownBan::Server(server.parse().unwrap())));
        assert_eq!("7".repeat(32).parse(), Ok(KnownBan::Server("7".repeat(32).parse().unwrap())));
        assert!("somebody".parse::<KnownBan>().unwrap_err().contains("expected an address"));
    }

    #[test]
    fn only_the_host_of_the_address_counts() {
        assert_eq!(url("http://[::1]:8080/").unwrap().port.get(), 8080);
        assert_eq!(url("https://lobby.example.org").unwrap().port.get(), 443);
        for wrong in ["localhost:29950", "http://x/api", "lobby://x"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
