//! Which servers, in which order.

use crate::ask::output::Record;
use clap::ValueEnum;
use std::cmp::{Ordering, Reverse};

/// Which servers.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which servers")]
pub struct Filter {
    /// Only servers where somebody plays
    #[arg(long)]
    not_empty: bool,

    /// Only servers with a free place
    #[arg(long)]
    not_full: bool,

    /// Only servers without a password
    #[arg(long)]
    no_password: bool,

    /// Only servers whose game has this in its name
    #[arg(long, value_name = "TEXT")]
    game: Option<String>,

    /// Only servers whose map has this in its name
    #[arg(long, value_name = "TEXT")]
    map: Option<String>,

    /// Only servers that have this in their name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Only servers whose version has this in it
    #[arg(long, value_name = "TEXT")]
    version: Option<String>,
}

/// In which order, and how many.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct SortArgs {
    /// The order of the table is by players, unless this says otherwise
    #[arg(long = "sort", value_name = "BY", value_enum)]
    pub by: Option<Sort>,

    /// The other way round
    #[arg(long)]
    reverse: bool,

    /// Show so many at most
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::number::number::<usize>(0..=u64::MAX))]
    pub limit: Option<usize>,
}

/// What to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Where most people play first
    Players,
    /// The nearest first
    Ping,
    Name,
    Map,
    Game,
    Address,
}

impl Filter {
    /// Whether a server is one of those. What it does not tell it does not have.
    pub fn accepts(&self, record: &Record) -> bool {
        let info = &record.info;
        let players = info.players.unwrap_or(0);
        let has = |wanted: &Option<String>, told: &[&Option<String>]| {
            let Some(wanted) = wanted else { return true };
            let wanted = wanted.to_lowercase();
            told.iter().any(|text| text.as_ref().is_some_and(|text| text.to_lowercase().contains(&wanted)))
        };
        let is_full = info.max_players.is_some_and(|most| players >= most);
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
    /// Brings servers into order; those that are equal are sorted by name and address, so that the order is always the
    /// same.
    pub fn sort(&self, records: &mut [Record]) {
        let by = self.by.unwrap_or(Sort::Players);
        records.sort_by(|a, b| {
            let order = by.compare(a, b);
            let order = if self.reverse { order.reverse() } else { order };
            order.then_with(|| Sort::Name.compare(a, b)).then_with(|| a.address.cmp(&b.address))
        });
    }
}

impl Sort {
    fn compare(self, a: &Record, b: &Record) -> Ordering {
        let text = |of: fn(&Record) -> Option<&str>| {
            let key = |record| of(record).map(str::to_lowercase).unwrap_or_default();
            // Whoever does not tell comes last.
            (key(a).is_empty(), key(a)).cmp(&(key(b).is_empty(), key(b)))
        };
        match self {
            Self::Players => Reverse(a.info.players).cmp(&Reverse(b.info.players)),
            Self::Ping => {
                let ping = |record: &Record| record.answer.as_ref().map_or(f64::INFINITY, |answer| answer.ping_ms);
                ping(a).total_cmp(&ping(b))
            }
            Self::Name => text(|record| Some(record.name())),
            Self::Map => text(|record| record.info.map.as_deref()),
            Self::Game => text(Record::game),
            Self::Address => a.address.cmp(&b.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::lobby::Listed;
    use rallypoint_query_proto::ServerInfo;

    fn record(name: &str, players: u16, map: &str) -> Record {
        let info = ServerInfo {
            name: Some(name.into()),
            map: Some(map.into()).filter(|map: &String| !map.is_empty()),
            players: Some(players),
            max_players: Some(10),
            password: Some(players == 3),
            ..ServerInfo::default()
        };
        Record::listed(Listed { info, endpoints: vec![([192, 0, 2, 1], 7).into()], protocol: None })
    }

    fn all() -> Vec<Record> {
        vec![record("b", 0, "Dusk"), record("A", 3, ""), record("c", 10, "dawn"), record("a", 3, "dusk")]
    }

    fn names(records: &[Record]) -> String {
        records.iter().map(Record::name).collect()
    }

    #[test]
    fn filters_keep_what_fits_all_of_them() {
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
    fn the_order_is_always_the_same() {
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
