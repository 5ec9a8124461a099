//! Filters and sort order of `rallypoint list`.

use clap::ValueEnum;
use rallypoint_query::ScannedServer;
use std::cmp::{Ordering, Reverse};

/// Which servers are shown.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct Filter {
    /// Only servers with players
    #[arg(long)]
    not_empty: bool,

    /// Only servers that are not full
    #[arg(long)]
    not_full: bool,

    /// Only servers without a password
    #[arg(long)]
    no_password: bool,

    /// Only servers whose game contains this text
    #[arg(long, value_name = "TEXT")]
    game: Option<String>,

    /// Only servers whose map contains this text
    #[arg(long, value_name = "TEXT")]
    map: Option<String>,

    /// Only servers whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Only servers whose version contains this text
    #[arg(long, value_name = "TEXT")]
    version: Option<String>,
}

/// Order and number of servers.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct SortArgs {
    /// Sort order; a table is sorted by players by default
    #[arg(long = "sort", value_name = "BY", value_enum)]
    pub by: Option<Sort>,

    /// Reverse the order
    #[arg(long)]
    reverse: bool,

    /// Maximum number of servers to show
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::number::number::<usize>(0..=u64::MAX))]
    pub limit: Option<usize>,
}

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most players first
    Players,
    /// Lowest ping first
    Ping,
    Name,
    Map,
    Game,
    Address,
}

impl Filter {
    /// Whether a server is shown. Unknown values do not match.
    pub fn accepts(&self, record: &ScannedServer) -> bool {
        let info = &record.info;
        let players = info.players.unwrap_or(0);
        let has = |wanted: &Option<String>, texts: &[&Option<String>]| {
            let Some(wanted) = wanted else { return true };
            let wanted = wanted.to_lowercase();
            texts.iter().any(|text| text.as_ref().is_some_and(|text| text.to_lowercase().contains(&wanted)))
        };
        // Registrations without a number of slots have 0: then it is unknown whether the server is full.
        let is_full = info.max_players.is_some_and(|most| most > 0 && players >= most);
        let unwanted = self.not_empty && players == 0
            || self.not_full && is_full
            || self.no_password && info.password == Some(true);
        !unwanted
            && has(&self.game, &[&info.game, &info.game_name])
            && has(&self.map, &[&info.map])
            && has(&self.name, &[&info.name])
            && has(&self.version, &[&info.version])
    }
}

impl SortArgs {
    /// Sorts servers. Equal ones are sorted by name and address, so that the order is deterministic.
    pub fn sort(&self, records: &mut [ScannedServer]) {
        let by = self.by.unwrap_or(Sort::Players);
        records.sort_by(|a, b| {
            let order = by.compare(a, b);
            let order = if self.reverse { order.reverse() } else { order };
            order.then_with(|| Sort::Name.compare(a, b)).then_with(|| a.address.cmp(&b.address))
        });
    }
}

impl Sort {
    fn compare(self, a: &ScannedServer, b: &ScannedServer) -> Ordering {
        let text = |of: fn(&ScannedServer) -> Option<&str>| {
            let key = |record| of(record).map(str::to_lowercase).unwrap_or_default();
            // Servers without the text come last.
            (key(a).is_empty(), key(a)).cmp(&(key(b).is_empty(), key(b)))
        };
        match self {
            Self::Players => Reverse(a.info.players).cmp(&Reverse(b.info.players)),
            Self::Ping => {
                let ping = |record: &ScannedServer| record.ping_ms().unwrap_or(f64::INFINITY);
                ping(a).total_cmp(&ping(b))
            }
            Self::Name => text(|record| Some(record.name())),
            Self::Map => text(|record| record.info.map.as_deref()),
            Self::Game => text(ScannedServer::game),
            Self::Address => a.address.cmp(&b.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::FetchedServer;
    use rallypoint_query::proto::ServerInfo;

    fn record(name: &str, players: u16, map: &str) -> ScannedServer {
        let info = ServerInfo {
            name: Some(name.into()),
            map: Some(map.into()).filter(|map: &String| !map.is_empty()),
            players: Some(players),
            max_players: Some(10),
            password: Some(players == 3),
            ..ServerInfo::default()
        };
        ScannedServer::listed(
            FetchedServer {
                info,
                endpoints: vec![([192, 0, 2, 1], 7).into()],
                protocol: None,
                list: None,
                list_name: None,
            },
            0,
        )
    }

    fn all() -> Vec<ScannedServer> {
        vec![record("b", 0, "Dusk"), record("A", 3, ""), record("c", 10, "dawn"), record("a", 3, "dusk")]
    }

    fn names(records: &[ScannedServer]) -> String {
        records.iter().map(ScannedServer::name).collect()
    }

    #[test]
    fn servers_have_to_match_all_filters() {
        let kept =
            |filter: &Filter| names(&all().into_iter().filter(|record| filter.accepts(record)).collect::<Vec<_>>());
        assert_eq!(kept(&Filter::default()), "bAca");
        assert_eq!(kept(&Filter { not_empty: true, ..Filter::default() }), "Aca");
        assert_eq!(kept(&Filter { not_full: true, ..Filter::default() }), "bAa");
        assert_eq!(kept(&Filter { no_password: true, ..Filter::default() }), "bc");
        assert_eq!(kept(&Filter { map: Some("DU".into()), ..Filter::default() }), "ba");
        assert_eq!(kept(&Filter { map: Some("du".into()), not_empty: true, ..Filter::default() }), "a");
        assert_eq!(kept(&Filter { version: Some("1".into()), ..Filter::default() }), "");
    }

    #[test]
    fn the_order_is_deterministic() {
        let sorted = |by, reverse| {
            let mut records = all();
            SortArgs { by, reverse, limit: None }.sort(&mut records);
            names(&records)
        };
        assert_eq!(sorted(None, false), "cAab");
        assert_eq!(sorted(None, true), "bAac");
        assert_eq!(sorted(Some(Sort::Name), false), "Aabc");
        assert_eq!(sorted(Some(Sort::Map), false), "cabA");
        assert_eq!(sorted(Some(Sort::Ping), false), "Aabc");
    }
}
