//! Registrations: refusals, replacement (L8), contested and displaced endpoints.

use super::*;

impl Model {
    /// `is_proven`: whether a check has reached the server with this ID, which depends on when the registry repeats it. `is_kept`:
    /// whether it is kept when its endpoint is taken.
    pub fn register(
        &mut self,
        now: Instant,
        from: IpAddr,
        data: RegistrationData,
        is_proven: impl Fn(u128) -> bool,
        is_kept: impl Fn(u128) -> bool,
    ) -> RegistrationOutcome {
        let from = from.to_canonical();
        if let Some(refusal) = self.refusal(now, from, data) {
            return refusal;
        }
        let inside = (from, data.port);
        let outside = self.settings.outside(inside);
        let known = self.find(data.id);
        let replaced = self.replaced_by(outside, &data);
        let replaced_id = replaced.map(|at| self.entries[at].data.id);
        // W100
        let recent = secs(2 * self.settings.lease);
        let is_contested = replaced
            .map(|at| &self.entries[at])
            .is_some_and(|entry| entry.replaced == Some(data.id) && entry.admitted + recent > self.reached(now));
        self.forget_displaced(now, data.id, Some((outside, data.is_tcp)));
        let displaced = replaced.and_then(|replaced| {
            let mut old = self.take(replaced);
            let is_same_place =
                |displaced: &(Entry, (IpAddr, u16))| displaced.1 == outside && displaced.0.data.is_tcp == data.is_tcp;
            let inherited = old.displaced.take_if(|displaced| is_same_place(displaced));
            let reached = self.reached(now);
            let is_leased = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.ends > reached);
            let inherited = inherited.filter(|displaced| is_leased(&displaced.0));
            if let Some(former) = old.displaced.take() {
                self.return_displaced(now, former.0);
            }
            for endpoint in &mut old.endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.state == State::Listed);
            }
            old.endpoints[1 - usize::from(from.is_ipv6())] = None;
            let is_there = old.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
            let is_old_proven = is_proven(old.data.id);
            let kept = (is_there && is_kept(old.data.id)).then(|| Box::new((old, outside)));
            if is_old_proven { kept.or(inherited) } else { inherited.or(kept) }
        });
        if known.is_none() {
            let admitted = self.reached(now);
            self.entries.push(Entry { data, endpoints: [None; 2], displaced: None, replaced: None, admitted });
        }
        let at = self.find(data.id).unwrap();
        self.entries[at].replaced = replaced_id.or(self.entries[at].replaced);
        let before = self.entries[at].clone();
        let is_new_in_lobby = self.shown(&before).is_none() || before.data.lobby != data.lobby;
        self.update(now, at, data, inside, outside);
        self.release(now, at);
        let at = self.find(data.id).unwrap();
        // A proof at another address or port no longer counts.
        let stays = before.endpoints[usize::from(from.is_ipv6())].is_some_and(|endpoint| endpoint.inside == inside);
        let is_proven_here = stays && is_proven(data.id);
        if let Some(displaced) = displaced.as_ref().filter(|displaced| displaced.0.data.id == data.id) {
            self.entries[at].admitted = displaced.0.admitted;
        }
        if let Some(displaced) = displaced.filter(|displaced| displaced.0.data.id != data.id && !is_proven_here)
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

    pub fn update(
        &mut self,
        now: Instant,
        at: usize,
        data: RegistrationData,
        inside: (IpAddr, u16),
        outside: (IpAddr, u16),
    ) {
        let family = usize::from(inside.0.is_ipv6());
        let old = self.entries[at].clone();
        // A new transport applies to the other endpoint too, unless another server has it or it is banned.
        if old.data.is_tcp != data.is_tcp {
            let place = old.endpoints[1 - family].map(|endpoint| endpoint.outside);
            let is_there =
                |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| Some(endpoint.outside) == place);
            let is_other = |entry: &&Entry| entry.data.id != data.id && entry.data.is_tcp == data.is_tcp;
            let is_bad = place.is_some_and(|place| self.settings.is_bad_place(place, &data));
            if is_bad || place.is_some() && self.entries.iter().filter(is_other).any(is_there) {
                self.entries[at].endpoints[1 - family] = None;
            }
        }
        let is_other_transport = old.data.is_tcp != data.is_tcp;
        let any_place = (inside.0, 1);
        let is_other_probe = old.data.target(any_place) != data.target(any_place);
        let is_other_place = old.endpoints[family].is_none_or(|endpoint| endpoint.inside != inside);
        let ends = self.grid(now + secs(self.settings.lease));
        let (state, stale_since) =
            old.endpoints[family].map_or((State::Checking, None), |endpoint| (endpoint.state, endpoint.stale_since));
        let entry = &mut self.entries[at];
        entry.data = data;
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
                    Some(target) => match self.check_result(now, target) {
                        Some(true) => State::Listed,
                        Some(false) => State::Unreachable,
                        None => {
                            self.waiters.push((target, data.id, at_family));
                            if before == State::Listed { State::Listed } else { State::Checking }
                        }
                    },
                };
                self.entries[at].endpoints[at_family].as_mut().unwrap().state = state;
            }
        }
    }

    /// Why a registration is refused, if it is.
    fn refusal(&self, now: Instant, from: IpAddr, data: RegistrationData) -> Option<RegistrationOutcome> {
        if from == ip("0.0.0.0") {
            return Some(RegistrationOutcome::InvalidSource);
        }
        if self.settings.bans_network && from == ip(BANNED) || self.settings.bans_name && data.has_bad_name {
            return Some(RegistrationOutcome::Banned);
        }
        // L11
        if self.unregistered.iter().any(|(id, until)| *id == data.id && now < *until) {
            return Some(RegistrationOutcome::JustUnregistered);
        }
        let inside = (from, data.port);
        let outside = self.settings.outside(inside);
        if self.settings.is_bad_place(outside, &data) {
            return Some(RegistrationOutcome::Banned);
        }
        if self.settings.is_private(outside) {
            return Some(RegistrationOutcome::PrivateSource);
        }
        let known = self.find(data.id);
        let replaced = self.replaced_by(outside, &data);
        // W44
        let is_mapped = |inside: IpAddr, outside: IpAddr| inside != outside;
        let may_replace = |entry: &Entry| {
            let there = entry.endpoints.iter().flatten().find(|endpoint| endpoint.outside == outside).unwrap();
            there.inside.0 == from || is_mapped(from, outside.0) && !is_mapped(there.inside.0, outside.0)
        };
        let is_reserved =
            |reserved: &&Reservation| reserved.place == (outside, data.is_tcp) && reserved.ends > self.reached(now);
        let owner = self.reserved.iter().find(is_reserved).map(|reserved| reserved.host);
        let is_at = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
        let is_own = known.is_some_and(|at| self.entries[at].data.is_tcp == data.is_tcp && is_at(&self.entries[at]));
        let is_taken = match replaced {
            Some(at) => !may_replace(&self.entries[at]) && owner != Some(from),
            None => !is_own && owner.is_some_and(|owner| owner != from),
        };
        is_taken.then_some(RegistrationOutcome::EndpointTaken)
    }

    /// The entry of another server at this endpoint (L8).
    fn replaced_by(&self, outside: (IpAddr, u16), data: &RegistrationData) -> Option<usize> {
        self.entries.iter().position(|entry| {
            let is_there = entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
            is_there && entry.data.is_tcp == data.is_tcp && entry.data.id != data.id
        })
    }
}
