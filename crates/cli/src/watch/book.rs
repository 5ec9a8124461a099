//! Remembers what was seen, and says what is different now. No I/O.

use super::event::{Change, Event, What};
use crate::ask::survey::{News, Seen};
use rallypoint_query_proto::{Player, ServerInfo};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// All servers that are there.
#[derive(Debug, Default)]
pub struct Book {
    known: BTreeMap<String, Known>,
    places: BTreeMap<usize, Place>,
    look: u64,
}

#[derive(Debug)]
struct Known {
    seen: Seen,
    look: u64,
}

#[derive(Debug, Default)]
struct Place {
    /// Whether its last list has arrived in full.
    is_good: bool,
    /// Whether it ever has, or has been told to have failed.
    is_known: bool,
    /// Whether its list was seen in full before this look.
    was_seen: bool,
}

impl Book {
    /// A look begins.
    pub fn begin(&mut self) {
        self.look += 1;
    }

    /// Something was learned: what does it mean?
    pub fn handle_news(&mut self, news: &News) -> Vec<Event> {
        match news {
            // It is asked itself: that tells more.
            News::Listed { asked: true, .. } => Vec::new(),
            News::Listed { seen, asked: false } | News::Answered(seen) | News::Silent(seen) => self.compare(seen),
            News::Complete(place, _) => self.list(*place, None),
            News::Failed(place, trouble) => self.list(*place, Some(What::ListFailed(trouble.clone()))),
        }
    }

    /// The look has ended: who was in a list and is not any more is gone.
    pub fn end(&mut self) -> Vec<Event> {
        let (look, places) = (self.look, &self.places);
        let is_gone =
            |known: &Known| known.look != look && places.get(&known.seen.place).is_some_and(|place| place.is_good);
        let gone: Vec<_> = self.known.iter().filter(|(_, known)| is_gone(known)).map(|(id, _)| id.clone()).collect();
        let events = gone.iter().filter_map(|id| self.known.remove(id)).map(|known| about(known.seen, What::Gone));
        let events = events.collect();
        self.places.values_mut().for_each(|place| place.was_seen |= place.is_good);
        events
    }

    fn list(&mut self, place: usize, failed: Option<What>) -> Vec<Event> {
        let known = self.places.entry(place).or_default();
        let (was_good, was_known) = (known.is_good, known.is_known);
        (known.is_good, known.is_known) = (failed.is_none(), true);
        let what = match failed {
            Some(failed) if was_good || !was_known => failed,
            None if was_known && !was_good => What::ListBack,
            _ => return Vec::new(),
        };
        vec![Event { server: None, place, what }]
    }

    fn compare(&mut self, seen: &Seen) -> Vec<Event> {
        let look = self.look;
        let Some(known) = self.known.get_mut(&seen.id) else {
            self.known.insert(seen.id.clone(), Known { seen: seen.clone(), look });
            // A list that was seen before did not have it; a server that a person named is there with the first look.
            let at_first = self.look == 1 || self.places.get(&seen.place).is_some_and(|place| !place.was_seen);
            let mut events = Vec::new();
            // Of a server that a person named and that does not answer, nothing says that it is there.
            if seen.record.trouble.is_none() || !seen.record.endpoints.is_empty() {
                events.push(about(seen.clone(), What::Appeared { at_first }));
            }
            if let Some(trouble) = &seen.record.trouble {
                events.push(about(seen.clone(), What::Silent(trouble.clone())));
            }
            return events;
        };
        known.look = look;
        let before = std::mem::replace(&mut known.seen, seen.clone());
        if seen.record.trouble.is_none() && before.record.info == ServerInfo::default() {
            return vec![about(seen.clone(), What::Appeared { at_first: false })];
        }
        let mut events = Vec::new();
        match (&before.record.trouble, &seen.record.trouble) {
            (None, Some(trouble)) => events.push(What::Silent(trouble.clone())),
            (Some(_), None) => events.push(What::Back),
            _ => {}
        }
        if seen.record.trouble.is_some() {
            // It said more when it last spoke: that still holds until it speaks again.
            known.seen.record.info = before.record.info;
            return events.into_iter().map(|what| about(seen.clone(), what)).collect();
        }
        let is_partial = seen.record.answer.as_ref().is_some_and(|answer| !answer.missing.is_empty());
        if is_partial {
            known.seen.record.info.fill_from(&before.record.info);
        }
        let changes = changes(&before.record.info, &known.seen.record.info);
        if !changes.is_empty() {
            events.push(What::Changed(changes));
        }
        if is_partial {
            // Who is missing in half an answer has not left.
            known.seen.record.info.player_list.clone_from(&before.record.info.player_list);
        } else {
            events.extend(players(&before.record.info, &seen.record.info));
        }
        let seen = known.seen.clone();
        events.into_iter().map(|what| about(seen.clone(), what)).collect()
    }
}

fn about(seen: Seen, what: What) -> Event {
    Event { place: seen.place, server: Some(seen), what }
}

/// What a server says differently.
fn changes(before: &ServerInfo, now: &ServerInfo) -> Vec<Change> {
    let fields = |info: &ServerInfo| {
        [
            ("name", json!(info.name)),
            ("description", json!(info.description)),
            ("game", json!(info.game_name.as_ref().or(info.game.as_ref()))),
            ("version", json!(info.version)),
            ("mode", json!(info.mode)),
            ("map", json!(info.map)),
            ("password", json!(info.password)),
            ("players", json!(info.players)),
            ("max_players", json!(info.max_players)),
            ("bots", json!(info.bots)),
            ("spectators", json!(info.spectators)),
            ("website", json!(info.website)),
        ]
    };
    let pairs = fields(before).into_iter().zip(fields(now));
    let changed = pairs.filter(|((_, from), (_, to))| from != to);
    changed.map(|((field, from), (_, to))| Change { field, from, to }).collect()
}

/// Who has come, who has left. Two can have the same name.
fn players(before: &ServerInfo, now: &ServerInfo) -> Vec<What> {
    let (Some(before), Some(now)) = (&before.player_list, &now.player_list) else { return Vec::new() };
    let mut balance: HashMap<&str, i32> = HashMap::new();
    let mut order = Vec::new();
    for (list, sign) in [(before, -1), (now, 1)] {
        for Player { name, .. } in list {
            *balance.entry(name).or_insert_with(|| {
                order.push(&**name);
                0
            }) += sign;
        }
    }
    let mut events = Vec::new();
    for name in order {
        let count = balance[name];
        let what = if count > 0 { What::Joined(name.to_owned()) } else { What::Left(name.to_owned()) };
        events.extend(std::iter::repeat_n(what, count.unsigned_abs() as usize));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{
        Trouble,
        lobby::Fetched,
        output::record::{Answered, Record},
    };

    fn seen(name: &str, map: &str, players: &[&str]) -> Seen {
        let list = players.iter().map(|name| Player { name: (*name).into(), ..Player::default() }).collect();
        let info = ServerInfo {
            name: Some(name.into()),
            map: Some(map.into()),
            players: Some(players.len() as u16),
            player_list: Some(list),
            ..ServerInfo::default()
        };
        let answer = Some(Answered { ping_ms: 1.0, measured: "echo", retries: 0, missing: vec![] });
        let record = Record { info, answer, ..Record::named(format!("udp://{name}")) };
        Seen { id: name.into(), place: 0, record }
    }

    fn complete() -> News {
        let from = ([192, 0, 2, 9], 29_944).into();
        News::Complete(0, Fetched { from, connected: std::time::Duration::ZERO, servers: 1, malformed: 0 })
    }

    fn look(book: &mut Book, news: &[News]) -> Vec<String> {
        book.begin();
        let mut events: Vec<_> = news.iter().flat_map(|news| book.handle_news(news)).collect();
        events.extend(book.end());
        events.iter().map(|event| event.line("lobby")).collect()
    }

    #[test]
    fn servers_come_change_and_go() {
        let mut book = Book::default();
        let first = look(&mut book, &[News::Answered(seen("A", "dusk", &["Ada", "Ada"])), complete()]);
        assert_eq!(first, ["A: is there (dusk, 2 players)"]);
        assert!(look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &["Ada", "Ada"]))]).is_empty());
        let second =
            [complete(), News::Answered(seen("B", "dawn", &[])), News::Answered(seen("A", "dawn", &["Grace", "Ada"]))];
        assert_eq!(
            look(&mut book, &second),
            ["B: is there (dawn, 0 players)", "A: map dusk -> dawn", "A: Ada left", "A: Grace joined"]
        );
        assert_eq!(look(&mut book, &[complete(), News::Answered(seen("B", "dawn", &[]))]), ["A: is gone"]);
    }

    #[test]
    fn nobody_is_gone_because_a_list_could_not_be_had() {
        let mut book = Book::default();
        look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &[]))]);
        let failed = || News::Failed(0, Trouble::Refused);
        assert_eq!(look(&mut book, &[failed()]).len(), 1, "only that the list is not there");
        assert!(look(&mut book, &[failed()]).is_empty(), "it is told once");
        let back = look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &[]))]);
        assert_eq!(back, ["lobby: the list is there again"]);
    }

    #[test]
    fn who_is_silent_has_not_lost_players() {
        let mut book = Book::default();
        look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &["Ada"]))]);
        let mut silent = seen("A", "", &[]);
        silent.record.info = ServerInfo::default();
        silent.record.answer = None;
        silent.record.trouble = Some(Trouble::Refused);
        let told = look(&mut book, &[complete(), News::Silent(silent.clone())]);
        assert!(told.len() == 1 && told[0].contains("does not answer: refused"), "{told:?}");
        assert!(look(&mut book, &[complete(), News::Silent(silent)]).is_empty());
        let back = look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &["Ada"]))]);
        assert_eq!(back, ["A: answers again"]);
        let mut partial = seen("A", "dusk", &[]);
        partial.record.info.map = None;
        partial.record.answer.as_mut().unwrap().missing = vec!["players".into()];
        partial.record.info.players = Some(1);
        assert!(look(&mut book, &[complete(), News::Answered(partial)]).is_empty());
        assert!(look(&mut book, &[complete(), News::Answered(seen("A", "dusk", &["Ada"]))]).is_empty());
    }

    #[test]
    fn a_named_server_is_there_when_it_answers() {
        let mut book = Book::default();
        let mut silent = seen("A", "", &[]);
        silent.record.info = ServerInfo::default();
        silent.record.trouble = Some(Trouble::Refused);
        let first = look(&mut book, &[News::Silent(silent)]);
        assert!(first.len() == 1 && first[0].starts_with("udp://A: does not answer"), "{first:?}");
        let second = look(&mut book, &[News::Answered(seen("A", "dusk", &["Ada"]))]);
        assert_eq!(second, ["A: is there (dusk, 1 player)"]);
    }

    #[test]
    fn json_has_types() {
        let mut book = Book::default();
        book.begin();
        let news = News::Answered(seen("A", "dusk", &["Ada"]));
        let read = |event: &Event| serde_json::from_str::<serde_json::Value>(&event.json("now", "lobby")).unwrap();
        let appeared = read(&book.handle_news(&news)[0]);
        assert_eq!((&appeared["event"], &appeared["at_first"]), (&json!("appeared"), &json!(true)));
        assert_eq!(appeared["server"]["map"], "dusk");
        book.begin();
        let events = book.handle_news(&News::Answered(seen("A", "dusk", &["Ada", "Grace"])));
        assert_eq!(read(&events[0])["changes"]["players"], json!({ "from": 1, "to": 2 }));
        assert_eq!(read(&events[1])["player"], "Grace");
    }
}
