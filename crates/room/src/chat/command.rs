//! Commands of guests: words that start with a slash.

use crate::{QUIT, STATS};

/// A command that the room knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Me,
    Who,
    Team,
    TeamTalk,
    Help,
}

/// A parsed line of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedLine<'a> {
    /// Chat for all guests.
    Chat(&'a str),
    /// A command and its argument.
    Command(Command, &'a str),
    /// An unknown command word.
    Unknown(&'a str),
}

impl Command {
    pub const ALL: [Self; 5] = [Self::Me, Self::Who, Self::Team, Self::TeamTalk, Self::Help];

    pub fn word(self) -> &'static str {
        match self {
            Self::Me => "me",
            Self::Who => "who",
            Self::Team => "team",
            Self::TeamTalk => "t",
            Self::Help => "help",
        }
    }

    /// Usage and effect, as shown after the word in the help.
    fn about(self) -> &'static str {
        match self {
            Self::Me => " ACTION shows an action",
            Self::Who => " lists the guests",
            Self::Team => " NAME joins a team",
            Self::TeamTalk => " TEXT sends to the team",
            Self::Help => "",
        }
    }

    /// The help text: all commands, and those that the client handles itself.
    pub fn help() -> String {
        let own = Self::ALL.map(|command| format!("/{}{}", command.word(), command.about()));
        format!("{} · {} shows the connection · {} leaves", own.join(" · "), STATS, QUIT)
    }
}

impl<'a> ParsedLine<'a> {
    pub fn parse(line: &'a str) -> Self {
        let Some((word, rest)) = split_command(line) else { return Self::Chat(line) };
        match Command::ALL.into_iter().find(|command| command.word() == word) {
            Some(command) => Self::Command(command, rest),
            None => Self::Unknown(word),
        }
    }
}

/// The word after the slash, and the rest of the line.
pub fn split_command(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.strip_prefix('/').map(|line| line.split_once(' ').unwrap_or((line, "")))?;
    Some((word, rest.trim()))
}
