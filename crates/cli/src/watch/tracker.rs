//! Compares each pass of a scan with the previous ones and reports what changed. No I/O.

use super::event::{FieldChange, WatchEvent, WatchEventKind};
use crate::mirror_args;
use rallypoint_query::{
    ScanEvent, ScannedServer,
    mirror::MirrorEvent,
    proto::{Player, ServerInfo},
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The servers and lists that are known, to find out what changes.
#[derive(Debug, Default)]
pub struct ChangeTracker {
    /// By ID.
    servers: BTreeMap<String, TrackedServer>,
    /// By target index.
    lists: BTreeMap<usize, TrackedList>,
    /// Number of the current pass, from 1.
    pass: u64,
}

#[derive(Debug)]
struct TrackedServer {
    record: ScannedServer,
    /// The last pass that found it.
    pass: u64,
}

#[derive(Debug, Default)]
struct TrackedList {
    state: ListState,
    /// The last pass in which a copy of a mirror took the place of the list.
    copied_in: u64,
    /// Mirrors whose copies were not used since the list could be read.
    failed_mirrors: BTreeSet<String>,
    /// Whether the list was read completely in an earlier pass.
    was_complete: bool,
}

/// The result of the last attempt to read a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ListState {
    /// There was no attempt yet.
    #[default]
    Unknown,
    /// The list was read.
    Live,
    /// A copy of a mirror was read.
    Copied,
    /// Nothing could be read.
    Failed,
}

impl ChangeTracker {
    /// Begins a pass.
    pub fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// Compares an event of the scan with what is known.
    pub fn handle_event(&mut self, event: &ScanEvent) -> Vec<WatchEvent> {
        match event {
            // Compared with the result of its probe, which has more details.
            ScanEvent::Listed { is_probed: true, .. } => Vec::new(),
            ScanEvent::Listed { server, is_probed: false } => self.handle_listed(server),
            ScanEvent::Answered(server) | ScanEvent::Failed(server) => self.compare(server),
            ScanEvent::ListComplete(index, _) => self.handle_complete(*index),
            ScanEvent::ListFailed(index, error) => {
                self.set_state(*index, ListState::Failed, WatchEventKind::ListFailed(error.clone()))
            }
            ScanEvent::Mirror(index, event) => self.handle_mirror(*index, event),
        }
    }

    /// Ends a pass: servers that are not in their list any more are removed.
    pub fn end_pass(&mut self) -> Vec<WatchEvent> {
        let pass = self.pass;
        let lists = &self.lists;
        let is_gone = |server: &TrackedServer| {
            server.pass != pass
                && lists.get(&server.record.target_index).is_some_and(|list| list.state == ListState::Live)
        };
        let gone: Vec<_> =
            self.servers.iter().filter(|(_, server)| is_gone(server)).map(|(id, _)| id.clone()).collect();
        let removed = gone.iter().filter_map(|id| self.servers.remove(id));
        let events = removed.map(|server| about(server.record, WatchEventKind::Gone)).collect();
        let is_complete = |state| matches!(state, ListState::Live | ListState::Copied);
        self.lists.values_mut().for_each(|list| list.was_complete |= is_complete(list.state));
        events
    }

    /// Compares a server that is not probed with what is known. A copy is older than that.
    fn handle_listed(&mut self, server: &ScannedServer) -> Vec<WatchEvent> {
        let pass = self.pass;
        let is_copied = self.lists.get(&server.target_index).is_some_and(|list| list.copied_in == pass);
        match self.servers.get_mut(&server.id) {
            Some(known) if is_copied => {
                known.pass = pass;
                Vec::new()
            }
            _ => self.compare(server),
        }
    }

    fn handle_complete(&mut self, index: usize) -> Vec<WatchEvent> {
        let list = self.lists.entry(index).or_default();
        if list.copied_in == self.pass {
            return Vec::new();
        }
        list.failed_mirrors.clear();
        let is_first = list.state == ListState::Unknown;
        let events = self.set_state(index, ListState::Live, WatchEventKind::ListBack);
        if is_first { Vec::new() } else { events }
    }

    fn handle_mirror(&mut self, index: usize, event: &MirrorEvent) -> Vec<WatchEvent> {
        let list = self.lists.entry(index).or_default();
        match event {
            MirrorEvent::Used(copy) => {
                list.copied_in = self.pass;
                self.set_state(index, ListState::Copied, WatchEventKind::ListCopied(Box::new(copy.clone())))
            }
            MirrorEvent::Failed { url, error } => {
                let mirror = url.to_string();
                if !list.failed_mirrors.insert(mirror.clone()) {
                    return Vec::new();
                }
                let message = mirror_args::describe_failure(url, error);
                let kind = WatchEventKind::MirrorFailed { mirror, message };
                vec![WatchEvent { server: None, target_index: index, kind }]
            }
        }
    }

    /// Number of lists that could not be read at the last attempt.
    pub fn unreadable_lists(&self) -> usize {
        self.lists.values().filter(|list| list.state == ListState::Failed).count()
    }

    /// Sets the state of a list. Returns the event if it is another state than before.
    fn set_state(&mut self, target_index: usize, state: ListState, kind: WatchEventKind) -> Vec<WatchEvent> {
        let list = self.lists.entry(target_index).or_default();
        let before = std::mem::replace(&mut list.state, state);
        if before == state {
            return Vec::new();
        }
        vec![WatchEvent { server: None, target_index, kind }]
    }

    fn compare(&mut self, record: &ScannedServer) -> Vec<WatchEvent> {
        let pass = self.pass;
        let Some(known) = self.servers.get_mut(&record.id) else {
            self.servers.insert(record.id.clone(), TrackedServer { record: record.clone(), pass });
            return self.first_events(record);
        };
        known.pass = pass;
        let before = std::mem::replace(&mut known.record, record.clone());
        if record.error.is_none() && before.info == ServerInfo::default() {
            return vec![about(record.clone(), WatchEventKind::Appeared { at_first: false })];
        }
        let mut kinds = Vec::new();
        match (&before.error, &record.error) {
            (None, Some(error)) => kinds.push(WatchEventKind::Silent { error: error.clone(), at_first: false }),
            (Some(_), None) => kinds.push(WatchEventKind::Back),
            _ => {}
        }
        if record.error.is_some() {
            // Its last reply stays valid until it answers again.
            known.record.info = before.info;
            return kinds.into_iter().map(|kind| about(record.clone(), kind)).collect();
        }
        let is_partial = record.reply.as_ref().is_some_and(|reply| !reply.missing.is_empty());
        if is_partial {
            known.record.info.fill_from(&before.info);
        }
        let changes = changes(&before.info, &known.record.info);
        if !changes.is_empty() {
            kinds.push(WatchEventKind::Changed(changes));
        }
        if is_partial {
            // Players that are missing from a partial reply have not left.
            known.record.info.player_list.clone_from(&before.info.player_list);
        } else {
            kinds.extend(players(&before.info, &record.info));
        }
        let record = known.record.clone();
        kinds.into_iter().map(|kind| about(record.clone(), kind)).collect()
    }

    /// The events of a server that was not known.
    fn first_events(&self, record: &ScannedServer) -> Vec<WatchEvent> {
        // Not `at_first` if an earlier pass has read its list completely: then the server is new.
        let at_first = self.pass == 1 || self.lists.get(&record.target_index).is_some_and(|list| !list.was_complete);
        let mut events = Vec::new();
        // Nothing shows that a named server exists if it does not answer.
        if record.error.is_none() || !record.endpoints.is_empty() {
            events.push(about(record.clone(), WatchEventKind::Appeared { at_first }));
        }
        if let Some(error) = &record.error {
            events.push(about(record.clone(), WatchEventKind::Silent { error: error.clone(), at_first }));
        }
        events
    }
}

fn about(server: ScannedServer, kind: WatchEventKind) -> WatchEvent {
    WatchEvent { target_index: server.target_index, server: Some(server), kind }
}

/// The fields that changed.
fn changes(before: &ServerInfo, now: &ServerInfo) -> Vec<FieldChange> {
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
    changed.map(|((field, from), (_, to))| FieldChange { field, from, to }).collect()
}

/// Players that joined or left. Several can have the same name.
fn players(before: &ServerInfo, now: &ServerInfo) -> Vec<WatchEventKind> {
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
        let kind =
            if count > 0 { WatchEventKind::Joined(name.to_owned()) } else { WatchEventKind::Left(name.to_owned()) };
        events.extend(std::iter::repeat_n(kind, count.unsigned_abs() as usize));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::{
        HttpUrl, ListSummary, ProbeError, ReplyStats, Target,
        mirror::{CopyError, MirrorError, MirroredList},
        proto::{MissingPart, RoundTrip, RttMethod},
    };
    use std::time::Duration;

    fn named(name: &str) -> ScannedServer {
        let Ok(Target::Server(server)) = format!("session://{name}").parse() else { panic!("{name}") };
        ScannedServer { id: name.into(), ..ScannedServer::named(&server, 0) }
    }

    fn online(name: &str, map: &str, players: &[&str]) -> ScannedServer {
        let list = players.iter().map(|name| Player { name: (*name).into(), ..Player::default() }).collect();
        let info = ServerInfo {
            name: Some(name.into()),
            map: Some(map.into()),
            players: Some(players.len() as u16),
            player_list: Some(list),
            ..ServerInfo::default()
        };
        let round_trip = RoundTrip { time: Duration::from_millis(1), method: RttMethod::Echo };
        let reply = Some(ReplyStats { round_trip, retries: 0, missing: vec![] });
        ScannedServer { info, reply, ..named(name) }
    }

    fn silent(name: &str) -> ScannedServer {
        ScannedServer { error: Some(ProbeError::Refused), ..named(name) }
    }

    fn complete() -> ScanEvent {
        let from = ([192, 0, 2, 9], 29_944).into();
        ScanEvent::ListComplete(
            0,
            ListSummary { from, connect_time: Duration::ZERO, servers: 1, malformed: 0, has_players: true },
        )
    }

    fn pass(tracker: &mut ChangeTracker, events: &[ScanEvent]) -> Vec<String> {
        tracker.begin_pass();
        let mut changes: Vec<_> = events.iter().flat_map(|event| tracker.handle_event(event)).collect();
        changes.extend(tracker.end_pass());
        changes.iter().map(|change| change.line("lobby")).collect()
    }

    #[test]
    fn servers_appear_change_and_disappear() {
        let mut tracker = ChangeTracker::default();
        let first = pass(&mut tracker, &[ScanEvent::Answered(online("A", "dusk", &["Ada", "Ada"])), complete()]);
        assert_eq!(first, ["A: online (dusk, 2 players)"]);
        let same = ScanEvent::Answered(online("A", "dusk", &["Ada", "Ada"]));
        assert!(pass(&mut tracker, &[complete(), same]).is_empty());
        let second = [
            complete(),
            ScanEvent::Answered(online("B", "dawn", &[])),
            ScanEvent::Answered(online("A", "dawn", &["Grace", "Ada"])),
        ];
        assert_eq!(
            pass(&mut tracker, &second),
            ["B: appeared (dawn, 0 players)", "A: map dusk -> dawn", "A: Ada left", "A: Grace joined"]
        );
        let third = [complete(), ScanEvent::Answered(online("B", "dawn", &[]))];
        assert_eq!(pass(&mut tracker, &third), ["A: no longer listed"]);
    }

    #[test]
    fn no_server_is_gone_because_a_list_could_not_be_read() {
        let mut tracker = ChangeTracker::default();
        pass(&mut tracker, &[complete(), ScanEvent::Answered(online("A", "dusk", &[]))]);
        let failed = || ScanEvent::ListFailed(0, ProbeError::Refused);
        assert_eq!(pass(&mut tracker, &[failed()]).len(), 1, "only that the list cannot be read");
        assert!(pass(&mut tracker, &[failed()]).is_empty(), "reported once");
        let back = pass(&mut tracker, &[complete(), ScanEvent::Answered(online("A", "dusk", &[]))]);
        assert_eq!(back, ["lobby: the list is available again"]);
    }

    #[test]
    fn a_copy_takes_the_place_of_a_list_and_removes_nothing() {
        let listed = |map: &str| ScanEvent::Listed { server: online("A", map, &[]), is_probed: false };
        let url: HttpUrl = "https://m.example/a/".parse().unwrap();
        let copied = || {
            let list = MirroredList {
                lobby: "lobby".into(),
                url: url.clone(),
                age: Duration::from_secs(120),
                cause: ProbeError::Refused,
                older_by: None,
                new_key: None,
            };
            ScanEvent::Mirror(0, Box::new(MirrorEvent::Used(list)))
        };
        let bad = || {
            let error = MirrorError::Copy(CopyError::NotAList);
            ScanEvent::Mirror(0, Box::new(MirrorEvent::Failed { url: url.clone(), error }))
        };
        let mut tracker = ChangeTracker::default();
        let new = || ScanEvent::Answered(online("B", "dusk", &[]));
        pass(&mut tracker, &[listed("dawn"), new(), complete()]);
        // The copy was made before B was listed, and before A changed its map.
        assert_eq!(
            pass(&mut tracker, &[copied(), listed("dusk"), complete()]),
            ["lobby: does not answer; its list of 2 minutes ago is used, from https://m.example/a/"]
        );
        assert!(pass(&mut tracker, &[copied(), listed("dusk"), complete()]).is_empty(), "reported once");
        let failed = || ScanEvent::ListFailed(0, ProbeError::Refused);
        let lines = pass(&mut tracker, &[bad(), failed()]);
        assert!(lines.len() == 2 && lines[0].contains("https://m.example/a/: the copy is not used"), "{lines:?}");
        assert!(pass(&mut tracker, &[bad(), failed()]).is_empty(), "reported once");
        assert_eq!(pass(&mut tracker, &[copied(), complete()]).len(), 1, "the copy is used again");
        assert_eq!(
            pass(&mut tracker, &[listed("noon"), complete()]),
            ["A: map dawn -> noon", "lobby: the list is available again", "B: no longer listed"]
        );
        assert_eq!(pass(&mut tracker, &[bad(), failed()]).len(), 2, "another outage");
    }

    #[test]
    fn a_silent_server_has_not_lost_its_players() {
        let mut tracker = ChangeTracker::default();
        pass(&mut tracker, &[complete(), ScanEvent::Answered(online("A", "dusk", &["Ada"]))]);
        let events = pass(&mut tracker, &[complete(), ScanEvent::Failed(silent("A"))]);
        assert!(events.len() == 1 && events[0].contains("does not answer: refused"), "{events:?}");
        assert!(pass(&mut tracker, &[complete(), ScanEvent::Failed(silent("A"))]).is_empty());
        let back = pass(&mut tracker, &[complete(), ScanEvent::Answered(online("A", "dusk", &["Ada"]))]);
        assert_eq!(back, ["A: answers again"]);
        let mut partial = online("A", "dusk", &[]);
        partial.info.map = None;
        partial.reply.as_mut().unwrap().missing = vec![MissingPart::Players { received: 0, expected: None }];
        partial.info.players = Some(1);
        assert!(pass(&mut tracker, &[complete(), ScanEvent::Answered(partial)]).is_empty());
        assert!(pass(&mut tracker, &[complete(), ScanEvent::Answered(online("A", "dusk", &["Ada"]))]).is_empty());
    }

    #[test]
    fn a_named_server_appears_when_it_answers() {
        let mut tracker = ChangeTracker::default();
        let first = pass(&mut tracker, &[ScanEvent::Failed(silent("A"))]);
        assert!(first.len() == 1 && first[0].starts_with("session://A: does not answer"), "{first:?}");
        let second = pass(&mut tracker, &[ScanEvent::Answered(online("A", "dusk", &["Ada"]))]);
        assert_eq!(second, ["A: appeared (dusk, 1 player)"]);
    }

    #[test]
    fn json_has_types() {
        let mut tracker = ChangeTracker::default();
        tracker.begin_pass();
        let event = ScanEvent::Answered(online("A", "dusk", &["Ada"]));
        let read = |event: &WatchEvent| serde_json::from_str::<serde_json::Value>(&event.json("now", "lobby")).unwrap();
        let appeared = read(&tracker.handle_event(&event)[0]);
        assert_eq!((&appeared["event"], &appeared["at_first"]), (&json!("appeared"), &json!(true)));
        assert_eq!(appeared["server"]["map"], "dusk");
        tracker.begin_pass();
        let events = tracker.handle_event(&ScanEvent::Answered(online("A", "dusk", &["Ada", "Grace"])));
        assert_eq!(read(&events[0])["changes"]["players"], json!({ "from": 1, "to": 2 }));
        assert_eq!(read(&events[1])["player"], "Grace");
    }
}
