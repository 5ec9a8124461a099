//! The order of servers.

use crate::book::Row;
use std::{cmp::Ordering, fmt, str::FromStr, sync::Arc};

/// A column and a direction. Servers that are equal in it are in the order of players, the most first, and then of IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub column: Column,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// What servers can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The public ID: no meaning, but never a change.
    Id,
    /// The name.
    Name,
    /// The map.
    Map,
    /// People who play.
    Players,
    /// Bots that play.
    Bots,
    /// Places.
    Slots,
    /// The game.
    Game,
    /// Its version.
    Version,
    /// The latency that the lobby measured; servers without one come last either way.
    Latency,
    /// How long it has been there.
    Age,
    /// Whether a password is needed.
    Password,
    /// What was found by asking it.
    Verified,
    /// The address: IPv4 first.
    Address,
    /// The lobby.
    Lobby,
}

impl Column {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 14] = [
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
        ("lobby", Self::Lobby),
    ];

    /// Its name, as in `sort=name`.
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

    /// How two servers stand to each other: never equal unless they are the same.
    #[must_use]
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
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
            // What was not measured is last in both directions.
            Column::Latency => a.latency.is_none().cmp(&b.latency.is_none()).then(x.latency.cmp(&y.latency)),
            Column::Age => y.since.cmp(&x.since),
            Column::Password => x.password.cmp(&y.password),
            Column::Verified => x.verification.cmp(&y.verification),
            Column::Address => (x.v4, x.v6).cmp(&(y.v4, y.v6)),
            Column::Lobby => x.lobby.cmp(&y.lobby),
        };
        first.then_with(|| b.players.cmp(&a.players)).then_with(|| a.id.cmp(&b.id))
    }

    /// Puts the rows from one place to another in order; the others are only on the right side of them. They come in the
    /// order of their IDs.
    pub(super) fn arrange(self, rows: &mut [&Arc<Row>], from: usize, to: usize) {
        if self == Self::ascending(Column::Id) || from >= to {
            return;
        }
        let compare = |a: &&Arc<Row>, b: &&Arc<Row>| self.compare(a, b);
        if to < rows.len() {
            rows.select_nth_unstable_by(to, compare);
        }
        let rows = &mut rows[..to];
        if from > 0 {
            rows.select_nth_unstable_by(from, compare);
        }
        rows[from..].sort_unstable_by(compare);
    }
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
