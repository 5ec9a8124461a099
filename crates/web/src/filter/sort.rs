//! The order of servers in a list.

use rallypoint_lobby::ServerRecord;
use rallypoint_lobby_proto::PublicId;
use std::{cmp::Ordering, fmt, str::FromStr, sync::Arc};

/// A column and a direction. Servers that are equal in the column are ordered by players, the most first, and then by ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The column to sort by.
    pub column: Column,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// A column that servers can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The public ID: it has no meaning, but never changes.
    Id,
    /// The name of the server.
    Name,
    /// The map.
    Map,
    /// Number of players.
    Players,
    /// Number of bots.
    Bots,
    /// Number of slots.
    Slots,
    /// The short name of the game.
    Game,
    /// The version of the game.
    Version,
    /// The latency that the lobby measured; servers without one come last in both directions.
    Latency,
    /// The time since the server registered.
    Age,
    /// Whether a password is needed.
    Password,
    /// The result of verification.
    Verified,
    /// The address: IPv4 before IPv6.
    Address,
    /// The list.
    List,
    /// Average number of players in the last seven days.
    Popularity,
}

impl Column {
    /// All columns with their names.
    pub const ALL: [(&'static str, Self); 15] = [
        ("id", Self::Id),
        ("name", Self::Name),
        ("map", Self::Map),
        ("players", Self::Players),
        ("bots", Self::Bots),
        ("slots", Self::Slots),
        ("game", Self::Game),
        ("version", Self::Version),
        ("latency", Self::Latency),
        ("age", Self::Age),
        ("password", Self::Password),
        ("verified", Self::Verified),
        ("address", Self::Address),
        ("list", Self::List),
        ("popularity", Self::Popularity),
    ];

    /// The name of the column, as in `sort=name`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, column)| *column == self).map_or("id", |(name, _)| name)
    }
}

impl Sort {
    /// Smallest first.
    #[must_use]
    pub const fn ascending(column: Column) -> Self {
        Self { column, descending: false }
    }

    /// Largest first.
    #[must_use]
    pub const fn descending(column: Column) -> Self {
        Self { column, descending: true }
    }

    /// Compares two servers. They are equal only if they have the same ID. Their popularity, which is not part of a record, is
    /// taken to be equal.
    #[must_use]
    pub fn compare(self, a: &ServerRecord, b: &ServerRecord) -> Ordering {
        let (x, y) = if self.descending { (b, a) } else { (a, b) };
        let first = match self.column {
            Column::Id => x.id.cmp(&y.id),
            Column::Name => x.folded().name().cmp(y.folded().name()),
            Column::Map => x.folded().map().cmp(y.folded().map()),
            Column::Players => x.players.cmp(&y.players),
            Column::Bots => x.bots.cmp(&y.bots),
            Column::Slots => x.slots.cmp(&y.slots),
            Column::Game => x.folded().game().cmp(y.folded().game()),
            Column::Version => x.folded().version().cmp(y.folded().version()),
            // Unmeasured latencies come last in both directions.
            Column::Latency => a.latency.is_none().cmp(&b.latency.is_none()).then(x.latency.cmp(&y.latency)),
            Column::Age => y.since.cmp(&x.since),
            Column::Password => x.password.cmp(&y.password),
            Column::Verified => x.verification.cmp(&y.verification),
            Column::Address => (x.v4, x.v6).cmp(&(y.v4, y.v6)),
            Column::List => x.list.cmp(&y.list),
            Column::Popularity => Ordering::Equal,
        };
        first.then_with(|| b.players.cmp(&a.players)).then_with(|| a.id.cmp(&b.id))
    }

    /// Sorts the rows so that those from `start` to `end` are where they would be if all were sorted. The rows have to be in
    /// the order of their IDs.
    pub(super) fn sort_range(
        self,
        rows: &mut [&Arc<ServerRecord>],
        start: usize,
        end: usize,
        popularity: &dyn Fn(PublicId) -> f32,
    ) {
        if self == Self::ascending(Column::Id) || start >= end {
            return;
        }
        if self.column == Column::Popularity {
            // Each is looked up once.
            let mut weighted: Vec<_> = rows.iter().map(|row| (popularity(row.id), *row)).collect();
            sort_range_by(&mut weighted, start, end, |(x, a), (y, b)| {
                let by_weight = if self.descending { y.total_cmp(x) } else { x.total_cmp(y) };
                by_weight.then_with(|| self.compare(a, b))
            });
            rows.iter_mut().zip(weighted).for_each(|(row, (_, sorted))| *row = sorted);
        } else {
            sort_range_by(rows, start, end, |a, b| self.compare(a, b));
        }
    }
}

fn sort_range_by<T>(rows: &mut [T], start: usize, end: usize, compare: impl Fn(&T, &T) -> Ordering) {
    if end < rows.len() {
        rows.select_nth_unstable_by(end, &compare);
    }
    let rows = &mut rows[..end];
    if start > 0 {
        rows.select_nth_unstable_by(start, &compare);
    }
    rows[start..].sort_unstable_by(compare);
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.descending {
            f.write_str("-")?;
        }
        f.write_str(self.column.name())
    }
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('-').unwrap_or(text);
        let column = Column::ALL.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
        let column = column.ok_or_else(|| {
            let names: Vec<_> = Column::ALL.iter().map(|(name, _)| *name).collect();
            format!("expected one of {}, with a - in front for the largest first", names.join(", "))
        })?;
        Ok(Self { column, descending: text.starts_with('-') })
    }
}
