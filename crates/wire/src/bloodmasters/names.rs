//! Numbers with names. A number without a name is kept and displayed as a number (B11).

use core::fmt;

/// Game type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GameType(pub u8);

impl GameType {
    /// All players against each other.
    pub const DEATHMATCH: Self = Self(0);
    /// Red against blue.
    pub const TEAM_DEATHMATCH: Self = Self(1);
    /// Red against blue, for the flag.
    pub const CAPTURE_THE_FLAG: Self = Self(2);
    /// All players against each other, for the most items.
    pub const SCAVENGER: Self = Self(3);
    /// Red against blue, for the most items.
    pub const TEAM_SCAVENGER: Self = Self(4);

    /// Its name in the document, if it has one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::DEATHMATCH => Some("Deathmatch"),
            Self::TEAM_DEATHMATCH => Some("Team Deathmatch"),
            Self::CAPTURE_THE_FLAG => Some("Capture The Flag"),
            Self::SCAVENGER => Some("Scavenger"),
            Self::TEAM_SCAVENGER => Some("Team Scavenger"),
            _ => None,
        }
    }
}

/// Team of a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Team(pub u8);

impl Team {
    /// No team: a spectator, or a game without teams.
    pub const NONE: Self = Self(0);
    /// The red team.
    pub const RED: Self = Self(1);
    /// The blue team.
    pub const BLUE: Self = Self(2);

    /// Its name, if it has one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::NONE => Some("none"),
            Self::RED => Some("red"),
            Self::BLUE => Some("blue"),
            _ => None,
        }
    }
}

impl fmt::Display for GameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_or_number(self.name(), self.0, f)
    }
}

impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_or_number(self.name(), self.0, f)
    }
}

fn name_or_number(name: Option<&str>, number: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match name {
        Some(name) => f.pad(name),
        None => fmt::Display::fmt(&number, f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn b11_unknown_numbers_are_displayed_as_numbers() {
        assert_eq!(GameType(2).to_string(), "Capture The Flag");
        assert_eq!(GameType(5).to_string(), "5");
        assert_eq!(Team(1).to_string(), "red");
        assert_eq!(Team(200).to_string(), "200");
    }
}
