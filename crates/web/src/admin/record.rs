//! What the operator has decided, as it is kept.

use rallypoint_lobby_proto::{Ban, BanList};
use serde::{Deserialize, Serialize};
use std::time::{Instant, SystemTime};
use thiserror::Error;

/// How many bans, and how many notes, there can be.
const MOST: usize = 10_000;

/// A ban with its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NumberedBan {
    pub id: u64,
    #[serde(flatten)]
    pub ban: Ban,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// A note about a server or a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub id: u64,
    /// A public ID, an address or a network.
    pub about: String,
    pub text: String,
    /// When it was written, in seconds since 1970.
    pub time: u64,
}

/// All that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub version: u32,
    /// The number of the next ban or note.
    pub next: u64,
    pub bans: Vec<NumberedBan>,
    pub notes: Vec<Note>,
}

/// Why something cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Full {
    #[error("there are {MOST} bans: remove some first")]
    Bans,
    #[error("there are {MOST} notes: remove some first")]
    Notes,
    /// Only somebody who has edited the file gets there.
    #[error("there are no numbers left: lower \"next\" in admin.json")]
    Numbers,
}

impl Default for Record {
    fn default() -> Self {
        Self { version: Self::VERSION, next: 1, bans: Vec::new(), notes: Vec::new() }
    }
}

impl Record {
    pub const VERSION: u32 = 1;

    /// The bans for a registry.
    pub fn in_force(&self, now: Instant, utc: SystemTime) -> BanList {
        BanList::new(self.bans.iter().map(|numbered| numbered.ban.clone()), now, utc)
    }

    /// Adds a ban, or puts it in the place of one that is about the same. Says whether it is new.
    pub fn put_ban(&mut self, ban: Ban, since: u64) -> Result<(NumberedBan, bool), Full> {
        if let Some(known) = self.bans.iter_mut().find(|known| known.ban.subject.is_same(&ban.subject)) {
            known.ban = ban;
            known.since = since;
            return Ok((known.clone(), false));
        }
        has_room(&self.bans).then_some(()).ok_or(Full::Bans)?;
        let ban = NumberedBan { id: self.take_number()?, ban, since };
        self.bans.push(ban.clone());
        Ok((ban, true))
    }

    pub fn remove_ban(&mut self, id: u64) -> Option<NumberedBan> {
        let place = self.bans.iter().position(|ban| ban.id == id)?;
        Some(self.bans.remove(place))
    }

    pub fn add_note(&mut self, about: String, text: String, time: u64) -> Result<Note, Full> {
        has_room(&self.notes).then_some(()).ok_or(Full::Notes)?;
        let note = Note { id: self.take_number()?, about, text, time };
        self.notes.push(note.clone());
        Ok(note)
    }

    pub fn remove_note(&mut self, id: u64) -> Option<Note> {
        let place = self.notes.iter().position(|note| note.id == id)?;
        Some(self.notes.remove(place))
    }

    fn take_number(&mut self) -> Result<u64, Full> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or(Full::Numbers)?;
        Ok(number)
    }
}

fn has_room<T>(list: &[T]) -> bool {
    list.len() < MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::BanSubject;

    fn ban(subject: BanSubject, reason: &str) -> Ban {
        Ban { subject, reason: reason.into(), until: None }
    }

    #[test]
    fn numbers_are_not_used_again_and_the_same_is_banned_once() {
        let mut record = Record::default();
        let note = record.add_note("192.0.2.1".into(), "x".into(), 7).unwrap();
        assert_eq!(
            (note.id, record.remove_note(note.id).is_some(), record.remove_note(note.id).is_some()),
            (1, true, false)
        );
        let casino = BanSubject::name("casino").unwrap();
        let (first, is_new) = record.put_ban(ban(casino.clone(), "a"), 7).unwrap();
        assert_eq!((first.id, is_new), (2, true));
        let (again, is_new) = record.put_ban(ban(casino, "b"), 8).unwrap();
        assert_eq!((again.id, again.since, &*again.ban.reason, is_new), (2, 8, "b", false));
        assert_eq!((record.remove_ban(2).is_some(), record.bans.len()), (true, 0));
    }

    #[test]
    fn there_is_an_end_to_numbers_and_to_room() {
        let casino = || ban(BanSubject::name("casino").unwrap(), "");
        let mut record = Record { next: u64::MAX, ..Record::default() };
        assert_eq!(record.put_ban(casino(), 0).unwrap_err(), Full::Numbers);
        assert_eq!(record.add_note(String::new(), String::new(), 0).unwrap_err(), Full::Numbers);
        let pattern = |text: &str| BanSubject::Name(text.parse().unwrap());
        let numbered = |id: u64| NumberedBan { id, ban: ban(pattern(&id.to_string()), ""), since: 0 };
        let mut record = Record { bans: (0..MOST as u64).map(numbered).collect(), ..Record::default() };
        assert_eq!(record.put_ban(casino(), 0).unwrap_err(), Full::Bans);
        assert!(record.put_ban(ban(pattern("7"), "again"), 0).is_ok());
        assert!(record.add_note(String::new(), String::new(), 0).is_ok());
    }

    #[test]
    fn it_is_read_as_it_is_kept() {
        let mut record = Record::default();
        record.put_ban(ban(BanSubject::name("casino").unwrap(), "test"), 7).unwrap();
        record.add_note("192.0.2.1".into(), "x".into(), 7).unwrap();
        let json = serde_json::to_string(&record).unwrap();
        let expected = concat!(
            r#"{"version":1,"next":3,"bans":[{"id":1,"name":"casino","reason":"test","until":null,"since":7}],"#,
            r#""notes":[{"id":2,"about":"192.0.2.1","text":"x","time":7}]}"#,
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Record>(expected).unwrap()).unwrap(), expected);
    }
}
