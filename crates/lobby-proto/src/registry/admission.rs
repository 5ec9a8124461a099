//! The part of the registry that decides which servers are accepted: budgets, bans, caps, and who gives way when a cap is reached.

mod eviction;
mod seen_endpoints;
mod seen_filter;
mod space;

pub(super) use eviction::{Room, Victim};
pub(super) use space::{Cap, SpaceRequest};

use super::{
    entries::{DisplacedServer, Entries, Group},
    evidence::{Evidence, KNOWN_FOR},
};
use crate::{
    Ban, BanList, Config, PublicId, RegistrationOutcome,
    bans::Candidate,
    entry::{EndpointEntry, EndpointKey, Endpoints, Family},
    hash::KeyedHash,
    index::SlotIndex,
    wheel::Clock,
};
use rallypoint_limit::{Decision, Lan, Limiter, OverBudget, Scope, is_possible_source};
use rallypoint_wire::lobby::{Datagram, ListBlock, Transport};
use seen_endpoints::SeenEndpoints;
use std::{net::IpAddr, sync::Arc, time::Instant};

/// Number of keys that are not charged in addition to their bytes: real servers send 5 to 12.
const FREE_KEYS: usize = 16;

/// Charge for each key beyond these besides its own bytes: a registration of 600 keys takes as long as three with few keys
/// and the same length.
const BYTES_PER_KEY: usize = 16;

/// The charge for a datagram in bytes: hundreds of keys are more work than the same number of bytes with few keys.
fn charge(bytes: &[u8]) -> usize {
    bytes.len() + BYTES_PER_KEY * Datagram::peek_count(bytes).saturating_sub(FREE_KEYS)
}

#[derive(Debug)]
pub(super) struct Admission {
    config: Arc<Config>,
    clock: Clock,
    limiter: Limiter,
    /// The bans that the operator adds while the registry runs, in addition to those of the configuration.
    admin_bans: BanList,
    /// When bans were last changed, if they were.
    bans_changed_at: Option<Instant>,
    seen: SeenEndpoints,
    keyed: KeyedHash,
    /// Number of random numbers that were drawn.
    drawn: u64,
}

impl Admission {
    pub fn new(config: &Arc<Config>, keyed: KeyedHash, clock: Clock, seed: u64) -> Self {
        Self {
            limiter: Limiter::new(&config.limits, u128::from(seed)),
            admin_bans: BanList::default(),
            bans_changed_at: None,
            seen: SeenEndpoints::new(keyed, config.caps.memory),
            config: Arc::clone(config),
            clock,
            keyed,
            drawn: 0,
        }
    }

    pub fn set_config(&mut self, now: Instant, config: &Arc<Config>) {
        self.limiter.set_config(&config.limits);
        self.config = Arc::clone(config);
        self.bans_changed_at = Some(now);
    }

    pub fn set_admin_bans(&mut self, now: Instant, bans: BanList) {
        self.admin_bans = bans;
        self.bans_changed_at = Some(now);
    }

    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    // Bans.

    /// The ban that applies to a server, as far as it is known; one with a reason, if there are several.
    pub fn ban_for(&self, now: Instant, candidate: &Candidate<'_>) -> Option<&Ban> {
        let lists = [&self.config.bans, &self.admin_bans].into_iter();
        lists.filter_map(|bans| bans.ban_for(now, candidate)).min_by_key(|ban| ban.reason.is_empty())
    }

    /// Whether a server that other nodes of a cluster accepted is banned here, at any of its endpoints.
    pub fn bans_replica(&self, now: Instant, id: PublicId, block: &ListBlock<'_>, endpoints: &Endpoints) -> bool {
        let name = Some(block.table.get(b"name").unwrap_or_default());
        endpoints.iter().flatten().any(|&endpoint| {
            let at_endpoint = Candidate::at_endpoint(endpoint, block.transport);
            self.ban_for(now, &Candidate { name, id: Some(id), ..at_endpoint }).is_some()
        })
    }

    /// The operator's reason for an outcome, if it is a ban that has one.
    pub fn reason_for<'a>(
        &self,
        now: Instant,
        outcome: RegistrationOutcome,
        candidate: impl FnOnce() -> Candidate<'a>,
    ) -> Option<Arc<str>> {
        let is_ban = outcome == RegistrationOutcome::Banned;
        is_ban.then(|| self.ban_for(now, &candidate())).flatten().and_then(Ban::reason)
    }

    /// When bans were last changed, if an address is not banned any more since then.
    pub fn former_bans_until(&self, now: Instant, ip: IpAddr) -> Option<Instant> {
        self.bans_changed_at.filter(|_| self.ban_for(now, &Candidate::at(ip)).is_none())
    }

    /// The reason why no server at this endpoint is accepted, if none is.
    pub fn endpoint_refusal(
        &self,
        now: Instant,
        endpoint: EndpointEntry,
        transport: Transport,
    ) -> Option<RegistrationOutcome> {
        if self.ban_for(now, &Candidate::at_endpoint(endpoint, transport)).is_some() {
            return Some(RegistrationOutcome::Banned);
        }
        self.config.refuses_as_private(&endpoint).then_some(RegistrationOutcome::PrivateSource)
    }

    // Budgets.

    /// Decides whether a datagram is parsed; `is_registered` tells whether it has the ID of a server at this address.
    pub fn admit(
        &mut self,
        now: Instant,
        source: IpAddr,
        bytes: &[u8],
        is_registered: bool,
    ) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source) {
            if is_registered {
                // A sender that knows the secret ID of a server at this address is not forged, so a flood must not use up its
                // share.
                self.limiter.mark_known(now, source);
            }
            if let Decision::Refused(refusal) = self.limiter.check(now, source, charge(bytes))
                && !self.is_admitted_by_id(now, source, bytes, refusal, is_registered)
            {
                return Err(RegistrationOutcome::OverBudget(refusal));
            }
        }
        self.admit_unlimited(now, source, bytes.len())
    }

    /// Decides whether a datagram of this size, which has no ID, is handled.
    pub fn admit_size(&mut self, now: Instant, source: IpAddr, size: usize) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source)
            && let Decision::Refused(refusal) = self.limiter.check(now, source, size)
        {
            return Err(RegistrationOutcome::OverBudget(refusal));
        }
        self.admit_unlimited(now, source, size)
    }

    fn admit_unlimited(&self, now: Instant, source: IpAddr, size: usize) -> Result<(), RegistrationOutcome> {
        if self.ban_for(now, &Candidate::at(source)).is_some() {
            return Err(RegistrationOutcome::Banned);
        }
        if size > self.config.max_registration {
            return Err(RegistrationOutcome::TooLarge);
        }
        Ok(())
    }

    /// Whether a registration is admitted although the budget of its address or network is used up (W87): if it has the secret
    /// ID of a server that is or was listed at this address, once in 5 to 10 seconds. Otherwise datagrams that are forged in the
    /// name of a server's address would keep it from registering. The total is charged as for any other.
    fn is_admitted_by_id(
        &mut self,
        now: Instant,
        source: IpAddr,
        bytes: &[u8],
        refusal: OverBudget,
        is_registered: bool,
    ) -> bool {
        let Some(id) = Datagram::peek_registration(bytes).filter(|_| refusal.scope != Scope::Total) else {
            return false;
        };
        let tick = self.clock.tick(now);
        let is_vouched = is_registered || self.seen.was_listed_with_id(tick, Lan::of(source), id);
        is_vouched
            && self.seen.may_admit(tick, id)
            && self.limiter.check_total(now, source, charge(bytes)) == Decision::Allowed
            && self.seen.note_admitted(tick, id)
    }

    /// Keeps a server known to the limiter, which refreshes bypass.
    pub fn vouch(&mut self, now: Instant, source: IpAddr) {
        if !self.config.limit_exempt.contains(source) {
            self.limiter.mark_known(now, source);
        }
    }

    // Servers that left.

    /// Remembers the endpoint of a listed server that leaves it, if there is more evidence than one registration that the
    /// server is real.
    pub fn note_departure(&mut self, now: Instant, entries: &Entries, slot: SlotIndex, family: Family) {
        if entries.cold(slot).evidence > Evidence::First || entries.has_returned(slot) {
            self.note_replaced(now, entries, slot, family);
        }
    }

    /// Remembers the endpoint of a listed server that is replaced, whatever else is known about it: if the new ID is forged, the
    /// server returns.
    pub fn note_replaced(&mut self, now: Instant, entries: &Entries, slot: SlotIndex, family: Family) {
        if let Some(key) = self.note_resident(now, entries, slot, family) {
            self.seen.note_listed(self.clock.tick(now), key);
        }
    }

    /// Remembers that a server was listed at its address, which takes it back however full it is. Returns its endpoint if it is
    /// listed.
    fn note_resident(
        &mut self,
        now: Instant,
        entries: &Entries,
        slot: SlotIndex,
        family: Family,
    ) -> Option<EndpointKey> {
        let endpoint = entries.listed_endpoint(slot, family)?;
        let key = (endpoint.external, entries.cold(slot).transport);
        self.seen.note_resident(self.clock.tick(now), key, Lan::of(endpoint.internal.ip), entries.hot(slot).id);
        Some(key)
    }

    /// Remembers a server that gives way, whose next registration counts as a return, if it is not too soon.
    pub fn note_evicted(&mut self, now: Instant, entries: &Entries, victim: Victim) {
        let Victim { slot, cap } = victim;
        let cold = entries.cold(slot);
        for key in Family::ALL.into_iter().filter_map(|family| cold.endpoint_key(family)) {
            self.seen.note_refused(self.clock.tick(now), cold.admitted, key);
        }
        if cap == Cap::Source {
            for family in Family::ALL {
                self.note_resident(now, entries, slot, family);
            }
        }
    }

    /// Records that the registry was restored: which servers were listed before, and gone when it was saved, is not known.
    pub fn note_restored(&mut self, now: Instant) {
        self.seen.note_restored(self.clock.deadline(now, KNOWN_FOR));
    }

    /// Frees the memory of endpoints that are not remembered any more.
    pub fn forget_expired(&mut self, now: Instant) {
        self.seen.forget_expired(self.clock.tick(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BanSubject, Caps, CheckTarget,
        registry::entries::tests::{address, entry_at, key_of, with_config},
    };
    use rallypoint_wire::lobby::ListId;
    use std::time::{Duration, SystemTime};

    fn admission(caps: Caps) -> (Admission, Entries, Instant) {
        let config = Arc::new(Config { caps, ..Config::default() });
        let (entries, clock, now) = with_config(&config);
        (Admission::new(&config, KeyedHash::new(7), clock, 7), entries, now)
    }

    fn ban(now: Instant, network: &str, reason: &str) -> BanList {
        let utc = SystemTime::now();
        let subject = BanSubject::Network(network.parse().unwrap());
        BanList::new([Ban { subject, reason: reason.into(), until: None }], now, utc)
    }

    #[test]
    fn of_several_bans_one_with_a_reason_counts() {
        let (mut admission, _, now) = admission(Caps::default());
        let config = Config { bans: ban(now, "203.0.113.9", ""), ..Config::default() };
        admission.set_config(now, &Arc::new(config));
        admission.set_admin_bans(now, ban(now, "203.0.113.0/24", "spam"));
        let ip = IpAddr::from([203, 0, 113, 9]);
        let reason = |outcome| admission.reason_for(now, outcome, || Candidate::at(ip));
        assert_eq!(reason(RegistrationOutcome::Banned).as_deref(), Some("spam"));
        assert_eq!(reason(RegistrationOutcome::TooLarge), None);
        assert_eq!(admission.former_bans_until(now, ip), None);
        assert_eq!(admission.former_bans_until(now, IpAddr::from([203, 0, 114, 9])), Some(now));
    }

    #[test]
    fn a_datagram_is_refused_for_its_source_then_its_ban_then_its_size() {
        let (mut admission, _, now) = admission(Caps::default());
        admission.set_admin_bans(now, ban(now, "203.0.113.9", ""));
        let mut decide = |ip: [u8; 4], size| admission.admit_size(now, ip.into(), size).err();
        assert_eq!(decide([0; 4], 100_000), Some(RegistrationOutcome::InvalidSource));
        assert_eq!(decide([203, 0, 113, 9], 5_000), Some(RegistrationOutcome::Banned));
        assert_eq!(decide([203, 0, 113, 8], 5_000), Some(RegistrationOutcome::TooLarge));
        assert_eq!(decide([203, 0, 113, 8], 500), None);
    }

    /// A request of the server with this number, which is at a network of its own.
    fn request(number: u8) -> SpaceRequest {
        SpaceRequest { source: Some(address(number)), ..SpaceRequest::new(key_of(number), ListId::GANG_GARRISON_2) }
    }

    #[test]
    fn a_full_registry_lets_one_that_has_proven_nothing_give_way_to_one_that_has() {
        let (mut admission, mut entries, now) = admission(Caps { total: 2, ..Caps::default() });
        let proven = entry_at(&mut entries, now, 1);
        let unproven = entry_at(&mut entries, now, 2);
        entries.set_evidence(proven, Evidence::Proven);
        let mut room = |request, is_reachable| admission.find_room(now, &entries, request, |_| is_reachable);
        assert!(matches!(room(request(3), false), Room::No(RegistrationOutcome::RegistryFull, None)));
        let known = SpaceRequest { evidence: Some(Evidence::Known), ..request(3) };
        let Room::Yes(Evidence::Known, victims) = room(known, false) else { panic!("it is known") };
        assert_eq!(
            victims.iter().map(|victim| (victim.slot, victim.cap)).collect::<Vec<_>>(),
            [(unproven, Cap::Total)]
        );
        let own = SpaceRequest { known: Some(unproven), ..request(2) };
        assert!(
            matches!(room(own, false), Room::Yes(Evidence::First, victims) if victims.is_empty()),
            "it has a place"
        );
    }

    #[test]
    fn a_refused_server_that_returns_has_more_evidence_and_is_to_be_checked() {
        let (mut admission, mut entries, now) = admission(Caps { total: 1, ..Caps::default() });
        let proven = entry_at(&mut entries, now, 1);
        entries.set_evidence(proven, Evidence::Proven);
        let addr = (address(3), 8190).into();
        let target = Some(CheckTarget { addr, kind: crate::CheckKind::Connect });
        let with_target = SpaceRequest { target, ..request(3) };
        let later = now + Duration::from_secs(30);
        let mut room = |at| admission.find_room(at, &entries, with_target, |_| false);
        assert!(matches!(room(now), Room::No(RegistrationOutcome::RegistryFull, None)));
        assert!(matches!(room(later), Room::No(RegistrationOutcome::RegistryFull, to_check) if to_check == target));
    }
}
