//! A made-up week of history for the servers that are listed.

use super::catalogue::SERVERS;
use crate::GAME;
use rallypoint_history::{History, Observation, ObservedServer, ServerSource};
use rallypoint_lobby::ServerRecord;
use std::sync::Arc;

/// Number of minutes in a week.
const WEEK: i64 = 7 * 24 * 60;

/// The mean of the curve over a week, in percent.
const MEAN_LOAD: f64 = 45.0;

/// Time in seconds over which the curve approaches the present, where the usual percentage of slots is taken at any hour.
const APPROACH: f64 = 4.0 * 3_600.0;

/// Records the week before this time, in seconds since 1970.
pub fn record_week(history: &History, servers: &[Arc<ServerRecord>], now: i64) {
    for minute in (1..WEEK).rev() {
        let time = now - minute * 60;
        history.record(Observation {
            time,
            servers: Arc::new(PastServers { servers: servers.to_vec(), time, age: now - time }),
            changes: Vec::new(),
        });
        // The queue of the history is short.
        if minute % 4 == 0 {
            history.flush();
        }
    }
    history.flush();
}

/// The servers as they are now, with the players of an earlier time.
#[derive(Debug)]
struct PastServers {
    servers: Vec<Arc<ServerRecord>>,
    time: i64,
    /// Time until the present, in seconds.
    age: i64,
}

impl ServerSource for PastServers {
    fn for_each(&self, show: &mut dyn FnMut(ObservedServer<'_>)) {
        // The chat room is real: its guests are not made up.
        let servers = self.servers.iter().filter(|server| *server.game != *GAME);
        for (number, server) in (0..).zip(servers) {
            let popularity =
                SERVERS.iter().find(|profile| *profile.name == *server.name).map_or(40, |it| it.popularity);
            let players = players_at(self.time, self.age, number, server.slots, popularity);
            let bots = server.bots.min(server.slots.saturating_sub(players));
            let (id, list, name, map) = (server.id, server.list, &*server.name, &*server.map);
            show(ObservedServer { id, list, players, bots, slots: server.slots, name, map });
        }
    }
}

/// Most players come in the evening and at the weekend; each server has hours of its own. `popularity` is the usual percentage of
/// taken slots, as now.
fn players_at(time: i64, age: i64, server: i64, slots: u16, popularity: u8) -> u16 {
    let hour = time as f64 / 3_600.0 + (server * 5 % 7) as f64;
    let evening = ((hour - 14.0) / 24.0 * std::f64::consts::TAU).sin().mul_add(0.35, 0.4);
    // 1970 began on a Thursday.
    let weekday = (time / 86_400 + 3) % 7;
    let weekend = if weekday >= 5 { 1.4 } else { 1.0 };
    // A slow wobble instead of noise: players stay for a while.
    let wobble = (hour * 1.7 + server as f64).sin() * 0.12 + (hour * 7.3).sin() * 0.06;
    let curve = (evening * weekend + wobble) * f64::from(popularity) / MEAN_LOAD;
    let weight = (age as f64 / APPROACH).min(1.0);
    let load = weight.mul_add(curve, (1.0 - weight) * f64::from(popularity) / 100.0);
    (load.clamp(0.0, 1.0) * f64::from(slots)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_come_and_go_within_the_slots() {
        let day: Vec<_> = (0..1_440).map(|minute| players_at(1_800_000_000 + minute * 60, 86_400, 3, 16, 45)).collect();
        assert!(day.iter().all(|players| *players <= 16));
        assert_eq!(players_at(1_800_000_000, 86_400, 3, 16, 0), 0, "a server without players");
        for hour in 0..24 {
            assert_eq!(players_at(1_800_000_000 + hour * 3_600, 0, 3, 16, 50), 8, "as many as now");
        }
        assert!(day.iter().max() > day.iter().min().map(|least| least + 8).as_ref(), "{day:?}");
    }
}
