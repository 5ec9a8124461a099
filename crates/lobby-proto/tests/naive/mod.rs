//! The rulings implemented with plain vectors that are scanned every time.

mod inputs;

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
    pub says: Says,
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
        let probe = |says: &Says| says.target((ip("0.0.0.0"), 1));
        let is_leased = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.ends > reached);
        self.displaced
            .as_ref()
            .is_some_and(|displaced| is_leased(&displaced.0) && probe(&displaced.0.says) != probe(&self.says))
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
pub type Place = (IpAddr, u16, bool, String);

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
    pub knobs: Knobs,
    pub entries: Vec<Entry>,
    pub unregistered: Vec<(u128, Instant)>,
    pub verdicts: Vec<(CheckTarget, bool, Instant)>,
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

    pub fn verdict(&self, now: Instant, target: CheckTarget) -> Option<bool> {
        let reached = self.reached(now);
        self.verdicts
            .iter()
            .find(|(known, _, until)| *known == target && reached < *until)
            .map(|(_, is_good, _)| *is_good)
    }

    pub fn target(&self, entry: &Entry, family: usize) -> Option<CheckTarget> {
        let endpoint = entry.endpoints[family]?;
        let is_exempt = self.knobs.is_exempt && endpoint.inside.0 == ip(EXEMPT);
        if !self.knobs.checks || is_exempt { None } else { entry.says.target(endpoint.inside) }
    }

    pub fn find(&self, id: u128) -> Option<usize> {
        self.entries.iter().position(|entry| entry.says.id == id)
    }

    /// Removes an entry, and lets the one that it has displaced return.
    pub fn remove(&mut self, now: Instant, at: usize) {
        if let Some(displaced) = self.take(at).displaced {
            self.return_displaced(now, displaced.0);
        }
    }

    fn take(&mut self, at: usize) -> Entry {
        let entry = self.entries.swap_remove(at);
        self.waiters.retain(|(_, id, _)| *id != entry.says.id);
        entry
    }

    fn is_occupied(&self, outside: (IpAddr, u16), is_tcp: bool) -> bool {
        let is_there = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
        self.entries.iter().any(|entry| entry.says.is_tcp == is_tcp && is_there(entry))
    }

    /// W45: the former server is listed for the rest of its lease.
    fn return_displaced(&mut self, now: Instant, mut entry: Entry) {
        let reached = self.reached(now);
        for endpoint in &mut entry.endpoints {
            *endpoint = endpoint.filter(|endpoint| {
                endpoint.ends > reached
                    && !self.is_occupied(endpoint.outside, entry.says.is_tcp)
                    && !self.knobs.is_private(endpoint.outside)
            });
        }
        entry.replaced = None;
        entry.admitted = reached;
        let is_gone = entry.endpoints.iter().all(Option::is_none) || self.is_banned(&entry);
        if !is_gone {
            self.entries.push(entry);
        }
    }

    /// Forgets a displaced server, unless it was displaced at this place.
    fn forget_displaced(&mut self, now: Instant, id: u128, except: Option<((IpAddr, u16), bool)>) -> bool {
        let holds = |entry: &Entry| {
            entry.displaced.as_ref().is_some_and(|displaced| {
                displaced.0.says.id == id && Some((displaced.1, displaced.0.says.is_tcp)) != except
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
        if !is_there || entry.says.is_tcp != former.says.is_tcp || is_expired {
            let displaced = self.entries[at].displaced.take().unwrap();
            self.return_displaced(now, displaced.0);
        }
    }

    fn is_banned(&self, entry: &Entry) -> bool {
        let knobs = self.knobs;
        let mut endpoints = entry.endpoints.iter().flatten();
        let is_from_banned = endpoints.clone().any(|endpoint| endpoint.inside.0 == ip(BANNED));
        knobs.bans_network && is_from_banned
            || knobs.bans_name && entry.says.has_bad_name
            || endpoints.any(|endpoint| knobs.is_bad_place(endpoint.outside, &entry.says))
    }

    /// `is_proven`: whether a check has reached the server with this ID, which depends on when the registry repeats it.
    pub fn register(
        &mut self,
        now: Instant,
        from: IpAddr,
        says: Says,
        is_proven: impl Fn(u128) -> bool,
    ) -> RegistrationOutcome {
        let from = from.to_canonical();
        if from == ip("0.0.0.0") {
            return RegistrationOutcome::InvalidSource;
        }
        if self.knobs.bans_network && from == ip(BANNED) || self.knobs.bans_name && says.has_bad_name {
            return RegistrationOutcome::Banned;
        }
        // L11
        if self.unregistered.iter().any(|(id, until)| *id == says.id && now < *until) {
            return RegistrationOutcome::JustUnregistered;
        }
        let inside = (from, says.port);
        let outside = self.knobs.outside(inside);
        if self.knobs.is_bad_place(outside, &says) {
            return RegistrationOutcome::Banned;
        }
        if self.knobs.is_private(outside) {
            return RegistrationOutcome::PrivateSource;
        }
        // L8
        let known = self.find(says.id);
        let replaced = self.entries.iter().position(|entry| {
            let is_there = entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
            is_there && entry.says.is_tcp == says.is_tcp && entry.says.id != says.id
        });
        // W44
        let is_mapped = |inside: IpAddr, outside: IpAddr| inside != outside;
        let may_replace = |entry: &Entry| {
            let there = entry.endpoints.iter().flatten().find(|endpoint| endpoint.outside == outside).unwrap();
            there.inside.0 == from || is_mapped(from, outside.0) && !is_mapped(there.inside.0, outside.0)
        };
        let is_reserved =
            |reserved: &&Reservation| reserved.place == (outside, says.is_tcp) && reserved.ends > self.reached(now);
        let owner = self.reserved.iter().find(is_reserved).map(|reserved| reserved.host);
        let is_at = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
        let is_own = known.is_some_and(|at| self.entries[at].says.is_tcp == says.is_tcp && is_at(&self.entries[at]));
        let is_taken = match replaced {
            Some(at) => !may_replace(&self.entries[at]) && owner != Some(from),
            None => !is_own && owner.is_some_and(|owner| owner != from),
        };
        if is_taken {
            return RegistrationOutcome::EndpointTaken;
        }
        let replaced_id = replaced.map(|at| self.entries[at].says.id);
        // W100
        let recent = secs(2 * self.knobs.lease);
        let is_contested = replaced
            .map(|at| &self.entries[at])
            .is_some_and(|entry| entry.replaced == Some(says.id) && entry.admitted + recent > self.reached(now));
        self.forget_displaced(now, says.id, Some((outside, says.is_tcp)));
        let displaced = replaced.and_then(|replaced| {
            let mut old = self.take(replaced);
            let is_same_place =
                |displaced: &(Entry, (IpAddr, u16))| displaced.1 == outside && displaced.0.says.is_tcp == says.is_tcp;
            let inherited = old.displaced.take_if(|displaced| is_same_place(displaced));
            if let Some(former) = old.displaced.take() {
                self.return_displaced(now, former.0);
            }
            for endpoint in &mut old.endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.state == State::Listed);
            }
            old.endpoints[1 - usize::from(from.is_ipv6())] = None;
            let is_there = old.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
            (is_there && is_proven(old.says.id)).then(|| Box::new((old, outside))).or(inherited)
        });
        if known.is_none() {
            let admitted = self.reached(now);
            self.entries.push(Entry { says, endpoints: [None; 2], displaced: None, replaced: None, admitted });
        }
        let at = self.find(says.id).unwrap();
        self.entries[at].replaced = replaced_id.or(self.entries[at].replaced);
        let before = self.entries[at].clone();
        let is_new_in_lobby = self.shown(&before).is_none() || before.says.lobby != says.lobby;
        self.update(now, at, says, inside, outside);
        self.release(now, at);
        let at = self.find(says.id).unwrap();
        // A proof at another address or port no longer counts.
        let stays = before.endpoints[usize::from(from.is_ipv6())].is_some_and(|endpoint| endpoint.inside == inside);
        let is_proven_here = stays && is_proven(says.id);
        if let Some(displaced) = displaced.filter(|displaced| displaced.0.says.id != says.id && !is_proven_here)
            && self.entries[at].displaced.is_none()
        {
            self.entries[at].displaced = Some(displaced);
        }
        let entry = self.entries[at].clone();
        let family = usize::from(from.is_ipv6());
        // The internal address has changed, though the list shows the same.
        let is_changed = self.shown(&before) != self.shown(&entry) || before.reached() != entry.reached();
        let state = entry.endpoints[family].unwrap().state;
        if entry.is_unreachable_where_taken() && entry.yields(self.reached(now)) {
            self.remove(now, at);
        }
        match state {
            State::Listed if is_contested => RegistrationOutcome::Contested,
            State::Listed if is_new_in_lobby => RegistrationOutcome::Listed,
            State::Listed if is_changed => RegistrationOutcome::Changed,
            State::Listed => RegistrationOutcome::Refreshed,
            State::Checking => RegistrationOutcome::Checking,
            State::Unreachable => RegistrationOutcome::Unreachable,
        }
    }

    pub fn update(&mut self, now: Instant, at: usize, says: Says, inside: (IpAddr, u16), outside: (IpAddr, u16)) {
        let family = usize::from(inside.0.is_ipv6());
        let old = self.entries[at].clone();
        // A new transport applies to the other endpoint too, unless another server has it or it is banned.
        if old.says.is_tcp != says.is_tcp {
            let place = old.endpoints[1 - family].map(|endpoint| endpoint.outside);
            let is_there =
                |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| Some(endpoint.outside) == place);
            let is_other = |entry: &&Entry| entry.says.id != says.id && entry.says.is_tcp == says.is_tcp;
            let is_bad = place.is_some_and(|place| self.knobs.is_bad_place(place, &says));
            if is_bad || place.is_some() && self.entries.iter().filter(is_other).any(is_there) {
                self.entries[at].endpoints[1 - family] = None;
            }
        }
        let is_other_transport = old.says.is_tcp != says.is_tcp;
        let any_place = (inside.0, 1);
        let is_other_probe = old.says.target(any_place) != says.target(any_place);
        let is_other_place = old.endpoints[family].is_none_or(|endpoint| endpoint.inside != inside);
        let ends = self.grid(now + secs(self.knobs.lease));
        let (state, stale_since) =
            old.endpoints[family].map_or((State::Checking, None), |endpoint| (endpoint.state, endpoint.stale_since));
        let entry = &mut self.entries[at];
        entry.says = says;
        entry.endpoints[family] = Some(Endpoint { inside, outside, ends, state, stale_since });
        for at_family in [0, 1] {
            let Some(Endpoint { state, .. }) = self.entries[at].endpoints[at_family] else { continue };
            let is_here = at_family == family;
            let is_void = is_other_transport || is_here && is_other_place;
            // W14: a listed endpoint stays listed while it is checked in a new way.
            let before = if is_void { State::Checking } else { state };
            if is_void || is_other_probe || is_here && before != State::Listed {
                let state = match self.target(&self.entries[at], at_family) {
                    None => State::Listed,
                    Some(target) => match self.verdict(now, target) {
                        Some(true) => State::Listed,
                        Some(false) => State::Unreachable,
                        None => {
                            self.waiters.push((target, says.id, at_family));
                            if before == State::Listed { State::Listed } else { State::Checking }
                        }
                    },
                };
                self.entries[at].endpoints[at_family].as_mut().unwrap().state = state;
            }
        }
    }

    /// The endpoints behind the address map, each with the ID of its server.
    pub fn mapped(&self) -> Vec<(u128, Reservation)> {
        let mapped = |entry: &Entry| {
            let Says { id, is_tcp, .. } = entry.says;
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
            _ if self.knobs.bans_network && from == ip(BANNED) => RegistrationOutcome::Banned,
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
    pub fn settle(&mut self, now: Instant, target: CheckTarget, is_good: bool, is_shown: impl Fn(Place) -> bool) {
        self.under_way.retain(|(known, _)| *known != target);
        let until = self.grid(now + if is_good { KEEP } else { RETRY });
        self.verdicts.retain(|(known, ..)| *known != target);
        self.verdicts.push((target, is_good, until));
        let (told, waiters) = std::mem::take(&mut self.waiters).into_iter().partition(|(known, ..)| *known == target);
        self.waiters = waiters;
        let told: Vec<(CheckTarget, u128, usize)> = told;
        for at in 0..self.entries.len() {
            for family in [0, 1] {
                if self.target(&self.entries[at], family) != Some(target) {
                    continue;
                }
                let Says { id, is_tcp, query, .. } = self.entries[at].says;
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

    pub fn timeout(&mut self, now: Instant, is_shown: impl Fn(Place) -> bool) {
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

    pub fn set(&mut self, now: Instant, knobs: Knobs) {
        self.knobs = knobs;
        for at in (0..self.entries.len()).rev() {
            let is_banned = self.is_banned(&self.entries[at]);
            for endpoint in &mut self.entries[at].endpoints {
                *endpoint = endpoint.filter(|endpoint| !knobs.is_private(endpoint.outside));
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
        (self.waiters, self.under_way, self.verdicts, self.unregistered) = Default::default();
        self.reserved = Vec::new();
        self.outcomes = Default::default();
        let lease = secs(self.knobs.lease);
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
        let Says { id, players, has_bad_name, .. } = entry.says;
        let name = if has_bad_name { BAD_NAME.to_owned() } else { format!("server {id}") };
        let query = entry.says.query.unwrap_or_default();
        let transport = entry.says.transport().as_str();
        (!endpoints.is_empty()).then(|| format!("{} {transport} {name} {players} {query}", endpoints.join(" ")))
    }

    pub fn list(&self, lobby: u32) -> Vec<String> {
        let entries = self.entries.iter().filter(|entry| entry.says.lobby == lobby);
        let mut list: Vec<_> = entries.filter_map(|entry| self.shown(entry)).collect();
        list.sort();
        list
    }
}
