//! What a guest can type behind a slash.

use crate::join;

/// What the room understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Me,
    Who,
    Team,
    TeamTalk,
    Help,
}

/// A line as it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// It is for all.
    Said(&'a str),
    /// A command, and what stands behind it.
    Command(Command, &'a str),
    /// The word behind the slash is none that the room understands.
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

    /// What is written behind the word, and what it does.
    fn about(self) -> &'static str {
        match self {
            Self::Me => " does something",
            Self::Who => " is here",
            Self::Team => " NAME joins a team",
            Self::TeamTalk => " TEXT says something to the team",
            Self::Help => "",
        }
    }

    /// All of them, and those that the client understands by itself.
    pub fn help() -> String {
        let own = Self::ALL.map(|command| format!("/{}{}", command.word(), command.about()));
        format!("{} · {} of the connection · {} leaves", own.join(" · "), join::STATS, join::QUIT)
    }
}

impl<'a> Meaning<'a> {
    pub fn of(line: &'a str) -> Self {
        let Some((word, rest)) = split(line) else { return Self::Said(line) };
        match Command::ALL.into_iter().find(|command| command.word() == word) {
            Some(command) => Self::Command(command, rest),
            None => Self::Unknown(word),
        }
    }
}

/// The word behind the slash, and the rest.
pub fn split(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.strip_prefix('/').map(|line| line.split_once(' ').unwrap_or((line, "")))?;
    Some((word, rest.trim()))
}
