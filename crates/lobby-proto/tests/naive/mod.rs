//! The rulings implemented with plain vectors that are scanned every time.

mod inputs;
mod registration;

use crate::support::*;
pub use inputs::*;
use rallypoint_lobby_proto::{CheckTarget, RegistrationOutcome};
use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Checking,
    Unreachable,
    Listed,
}

#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    pub inside: (IpAddr, u16),
    pub outside: (IpAddr, u16),
    pub ends: Instant,
    pub state: State,
    /// Since when it has been listed with an outdated check result.
    pub stale_since: Option<Instant>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub data: RegistrationData,
    /// IPv4 and IPv6.
    pub endpoints: [Option<Endpoint>; 2],
    /// The proven server whose endpoint this one has taken (W45), and that endpoint.
    pub displaced: Option<Box<(Entry, (IpAddr, u16))>>,
    /// The server that it replaced last (W100).
    pub replaced: Option<u128>,
    /// When the entry was created.
    pub admitted: Instant,
}

impl Entry {
    /// Whether it has displaced a server whose lease has not ended, and which is checked in another way.
    fn yields(&self, reached: Instant) -> bool {
        let probe = |data: &RegistrationData| data.target((ip("0.0.0.0"), 1));
        let is_leased = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.ends > reached);
        self.displaced
            .as_ref()
            .is_some_and(|displaced| is_leased(&displaced.0) && probe(&displaced.0.data) != probe(&self.data))
    }

    /// Whether it was not reached at the endpoint of the server that it has displaced.
    fn is_unreachable_where_taken(&self) -> bool {
        let taken = self.displaced.as_ref().map(|displaced| displaced.1);
        let mut endpoints = self.endpoints.iter().flatten();
        endpoints.any(|endpoint| endpoint.state == State::Unreachable && Some(endpoint.outside) == taken)
    }

    /// The addresses at which the lobby itself reaches the listed endpoints.
    fn reached(&self) -> [Option<(IpAddr, u16)>; 2] {
        self.endpoints.map(|endpoint| Some(endpoint.filter(|endpoint| endpoint.state == State::Listed)?.inside))
    }
}

/// A listed endpoint: address, port, whether it is TCP, and how its server is queried: one that has displaced another differs in
/// that when it yields (W45).
pub type ListedEndpoint = (IpAddr, u16, bool, String);

/// W44: an external endpoint that a mapped inside host has left before its lease ended.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    /// Address, port and whether it is TCP.
    pub place: ((IpAddr, u16), bool),
    pub host: IpAddr,
    pub ends: Instant,
}

pub struct Model {
    pub began: Instant,
    pub settings: Settings,
    pub entries: Vec<Entry>,
    pub unregistered: Vec<(u128, Instant)>,
    pub check_results: Vec<(CheckTarget, bool, Instant)>,
    /// Pending checks, with the server and family that waits for each.
    pub waiters: Vec<(CheckTarget, u128, usize)>,
    pub reserved: Vec<Reservation>,
    /// Checks in flight, and when they are overdue.
    pub under_way: Vec<(CheckTarget, Instant)>,
    pub outcomes: [u64; RegistrationOutcome::CODES.len()],
}

impl Model {
    /// The first point of the grid that is not before `at`.
    pub fn grid(&self, at: Instant) -> Instant {
        let grains = (at - self.began).as_nanos().div_ceil(GRAIN.as_nanos());
        self.began + GRAIN * grains as u32
    }

    /// The last point of the grid that has been reached.
    pub fn reached(&self, now: Instant) -> Instant {
        self.began + GRAIN * ((now - self.began).as_nanos() / GRAIN.as_nanos()) as u32
    }

    pub fn check_result(&self, now: Instant, target: CheckTarget) -> Option<bool> {
        let reached = self.reached(now);
        self.check_results
            .iter()
            .find(|(known, _, until)| *known == target && reached < *until)
            .map(|(_, is_good, _)| *is_good)
    }

    pub fn target(&self, entry: &Entry, family: usize) -> Option<CheckTarget> {
        let endpoint = entry.endpoints[family]?;
        let is_exempt = self.settings.is_exempt && endpoint.inside.0 == ip(EXEMPT);
        if !self.settings.checks || is_exempt { None } else { entry.data.target(endpoint.inside) }
    }

    pub fn find(&self, id: u128) -> Option<usize> {
        self.entries.iter().position(|entry| entry.data.id == id)
    }

    /// Removes an entry, and lets the one that it has displaced return.
    pub fn remove(&mut self, now: Instant, at: usize) {
        if let Some(displaced) = self.take(at).displaced {
            self.return_displaced(now, displaced.0);
        }
    }

    fn take(&mut self, at: usize) -> Entry {
        let entry = self.entries.swap_remove(at);
        self.waiters.retain(|(_, id, _)| *id != entry.data.id);
        entry
    }

    fn is_occupied(&self, outside: (IpAddr, u16), is_tcp: bool) -> bool {
        let is_there = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
        self.entries.iter().any(|entry| entry.data.is_tcp == is_tcp && is_there(entry))
    }

    /// W45: the former server is listed for the rest of its lease.
    fn return_displaced(&mut self, now: Instant, mut entry: Entry) {
        let reached = self.reached(now);
        for endpoint in &mut entry.endpoints {
            *endpoint = endpoint.filter(|endpoint| {
                endpoint.ends > reached
                    && !self.is_occupied(endpoint.outside, entry.data.is_tcp)
                    && !self.settings.is_private(endpoint.outside)
            });
        }
        entry.replaced = None;
        let is_gone = entry.endpoints.iter().all(Option::is_none) || self.is_banned(&entry);
        if !is_gone {
            self.entries.push(entry);
        }
    }

    /// Forgets a displaced server, unless it was displaced at this place.
    fn forget_displaced(&mut self, now: Instant, id: u128, except: Option<((IpAddr, u16), bool)>) -> bool {
        let holds = |entry: &Entry| {
            entry.displaced.as_ref().is_some_and(|displaced| {
                displaced.0.data.id == id && Some((displaced.1, displaced.0.data.is_tcp)) != except
            })
        };
        let holder = self.entries.iter().position(holds);
        let displaced = holder.and_then(|at| self.entries[at].displaced.take());
        let reached = self.reached(now);
        displaced
            .is_some_and(|displaced| displaced.0.endpoints.iter().flatten().any(|endpoint| endpoint.ends > reached))
    }

    /// Lets a displaced server return when the entry that displaced it has left its endpoint.
    fn release(&mut self, now: Instant, at: usize) {
        let entry = &self.entries[at];
        let Some((former, taken)) = entry.displaced.as_deref() else { return };
        let is_there = entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == *taken);
        let is_expired = former.endpoints.iter().flatten().all(|endpoint| endpoint.ends <= self.reached(now));
        if !is_there || entry.data.is_tcp != former.data.is_tcp || is_expired {
            let displaced = self.entries[at].displaced.take().unwrap();
            self.return_displaced(now, displaced.0);
        }
    }

    fn is_banned(&self, entry: &Entry) -> bool {
        let settings = self.settings;
        let mut endpoints = entry.endpoints.iter().flatten();
        let is_from_banned = endpoints.clone().any(|endpoint| endpoint.inside.0 == ip(BANNED));
        settings.bans_network && is_from_banned
            || settings.bans_name && entry.data.has_bad_name
            || endpoints.any(|endpoint| settings.is_bad_place(endpoint.outside, &entry.data))
    }

    /// The endpoints behind the address map, each with the ID of its server.
    pub fn mapped(&self) -> Vec<(u128, Reservation)> {
        let mapped = |entry: &Entry| {
            let RegistrationData { id, is_tcp, .. } = entry.data;
            let endpoints =
                entry.endpoints.into_iter().flatten().filter(|endpoint| endpoint.inside != endpoint.outside);
            let reservation = move |Endpoint { outside, inside, ends, .. }| {
                (id, Reservation { place: (outside, is_tcp), host: inside.0, ends })
            };
            endpoints.map(reservation).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(mapped).collect()
    }

    /// Reserves those that have been left since then.
    pub fn reserve_left(&mut self, now: Instant, before: Vec<(u128, Reservation)>) {
        let reached = self.reached(now);
        self.reserved.retain(|reserved| reserved.ends > reached);
        let now = self.mapped();
        for (id, left) in before {
            let is_it =
                |(known, there): &(u128, Reservation)| (*known, there.place, there.host) == (id, left.place, left.host);
            let is_free = |reserved: &Reservation| reserved.place != left.place || reserved.host == left.host;
            if !now.iter().any(is_it) && self.reserved.iter().all(is_free) {
                self.reserved.retain(|reserved| reserved.place != left.place);
                self.reserved.push(left);
            }
        }
    }

    pub fn unregister(&mut self, now: Instant, from: IpAddr, id: u128) -> RegistrationOutcome {
        match self.find(id) {
            _ if from == ip("0.0.0.0") => RegistrationOutcome::InvalidSource,
            _ if self.settings.bans_network && from == ip(BANNED) => RegistrationOutcome::Banned,
            None if !self.forget_displaced(now, id, None) => RegistrationOutcome::NotRegistered,
            found => {
                found.into_iter().for_each(|at| self.remove(now, at));
                self.unregistered.push((id, now + secs(3)));
                RegistrationOutcome::Unregistered
            }
        }
    }

    /// Applies a check result to the endpoints that wait for it. Listed endpoints may or may not have requested the check again,
    /// which `is_shown` decides.
    pub fn settle(
        &mut self,
        now: Instant,
        target: CheckTarget,
        is_good: bool,
        is_shown: impl Fn(ListedEndpoint) -> bool,
    ) {
        self.under_way.retain(|(known, _)| *known != target);
        let until = self.grid(now + if is_good { KEEP } else { RETRY });
        self.check_results.retain(|(known, ..)| *known != target);
        self.check_results.push((target, is_good, until));
        let (told, waiters) = std::mem::take(&mut self.waiters).into_iter().partition(|(known, ..)| *known == target);
        self.waiters = waiters;
        let told: Vec<(CheckTarget, u128, usize)> = told;
        for at in 0..self.entries.len() {
            for family in [0, 1] {
                if self.target(&self.entries[at], family) != Some(target) {
                    continue;
                }
                let RegistrationData { id, is_tcp, query, .. } = self.entries[at].data;
                let is_told = told.iter().any(|(_, waiter, _)| *waiter == id);
                let Some(endpoint) = &mut self.entries[at].endpoints[family] else { continue };
                endpoint.state = match endpoint.state {
                    State::Listed if is_told && !is_good => State::Unreachable,
                    State::Listed
                        if is_good
                            || is_shown((
                                endpoint.outside.0,
                                endpoint.outside.1,
                                is_tcp,
                                query.unwrap_or_default().into(),
                            )) =>
                    {
                        State::Listed
                    }
                    State::Listed => State::Unreachable,
                    _ if is_told && is_good => State::Listed,
                    _ if is_told => State::Unreachable,
                    state => state,
                };
            }
        }
        // W45: a server that was not reached does not stay in the place of one that was.
        let reached = self.reached(now);
        let is_yielding = |entry: &Entry| entry.yields(reached) && entry.is_unreachable_where_taken();
        while let Some(at) = self.entries.iter().position(is_yielding) {
            self.remove(now, at);
        }
    }

    pub fn timeout(&mut self, now: Instant, is_shown: impl Fn(ListedEndpoint) -> bool) {
        let reached = self.reached(now);
        while let Some(&(target, _)) = self.under_way.iter().find(|(_, overdue)| *overdue <= reached) {
            self.settle(now, target, false, &is_shown);
        }
        for at in (0..self.entries.len()).rev() {
            for endpoint in &mut self.entries[at].endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.ends > reached);
            }
            if self.entries[at].endpoints.iter().all(Option::is_none) {
                self.remove(now, at);
            } else {
                self.release(now, at);
            }
        }
    }

    pub fn set(&mut self, now: Instant, settings: Settings) {
        self.settings = settings;
        for at in (0..self.entries.len()).rev() {
            let is_banned = self.is_banned(&self.entries[at]);
            for endpoint in &mut self.entries[at].endpoints {
                *endpoint = endpoint.filter(|endpoint| !settings.is_private(endpoint.outside));
            }
            if is_banned || self.entries[at].endpoints.iter().all(Option::is_none) {
                self.remove(now, at);
            } else {
                self.release(now, at);
            }
        }
    }

    pub fn restart(&mut self, now: Instant) {
        self.began = now;
        (self.waiters, self.under_way, self.check_results, self.unregistered) = Default::default();
        self.reserved = Vec::new();
        self.outcomes = Default::default();
        let lease = secs(self.settings.lease);
        for entry in &mut self.entries {
            entry.displaced = None;
            entry.replaced = None;
            entry.admitted = now;
            for endpoint in &mut entry.endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.state == State::Listed);
            }
        }
        self.entries.retain(|entry| entry.endpoints.iter().any(Option::is_some));
        for at in 0..self.entries.len() {
            for family in [0, 1] {
                let Some(Endpoint { ends, .. }) = self.entries[at].endpoints[family] else { continue };
                let left = Duration::from_millis(ends.saturating_duration_since(now).as_millis() as u64);
                let ends = self.grid(now + left.clamp(secs(35), lease.max(secs(35))));
                let endpoint = self.entries[at].endpoints[family].as_mut().unwrap();
                (endpoint.ends, endpoint.stale_since) = (ends, None);
            }
        }
    }

    /// The line of the list for an entry, if it is listed.
    pub fn shown(&self, entry: &Entry) -> Option<String> {
        let listed = |family: usize| {
            entry.endpoints[family].filter(|endpoint| endpoint.state == State::Listed).map(|endpoint| endpoint.outside)
        };
        let endpoints: Vec<_> =
            [listed(1), listed(0)].into_iter().flatten().map(|at| SocketAddr::from(at).to_string()).collect();
        let RegistrationData { id, players, has_bad_name, .. } = entry.data;
        let name = if has_bad_name { BAD_NAME.to_owned() } else { format!("server {id}") };
        let query = entry.data.query.unwrap_or_default();
        let transport = entry.data.transport().as_str();
        (!endpoints.is_empty()).then(|| format!("{} {transport} {name} {players} {query}", endpoints.join(" ")))
    }

    pub fn list(&self, lobby: u32) -> Vec<String> {
        let entries = self.entries.iter().filter(|entry| entry.data.lobby == lobby);
        let mut list: Vec<_> = entries.filter_map(|entry| self.shown(entry)).collect();
        list.sort();
        list
    }
}
