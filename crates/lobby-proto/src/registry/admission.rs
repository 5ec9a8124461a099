//! The first decision about a datagram that is not a refresh: source address, budgets, bans and size.

use super::{Registry, groups::Groups, open_lists::OpenLists, seen_endpoints::SeenEndpoints};
use crate::{BanList, Config, RegistrationOutcome, bans::Candidate, hash::KeyedHash, index::SlotIndex};
use rallypoint_limit::{Decision, Lan, Limiter, OverBudget, Scope, is_possible_source};
use rallypoint_wire::lobby::Datagram;
use std::{net::IpAddr, time::Instant};

/// Number of keys that are not charged in addition to their bytes: real servers send 5 to 12.
const FREE_KEYS: usize = 16;

/// Charge for each key beyond these besides its own bytes: a registration of 600 keys takes as long as three with few keys
/// and the same length.
const BYTES_PER_KEY: usize = 16;

/// The charge for a datagram in bytes: hundreds of keys are more work than the same number of bytes with few keys.
fn charge(bytes: &[u8]) -> usize {
    bytes.len() + BYTES_PER_KEY * Datagram::peek_count(bytes).saturating_sub(FREE_KEYS)
}

/// The part of the registry that decides which servers are accepted: budgets, bans, caps, and who gives way when a cap is
/// reached.
#[derive(Debug)]
pub(super) struct Admission {
    pub limiter: Limiter,
    /// The bans that the operator adds while the registry runs, in addition to those of the configuration.
    pub admin_bans: BanList,
    /// When bans were last changed, if they were.
    pub bans_changed_at: Option<Instant>,
    pub groups: Groups,
    pub lists: OpenLists,
    pub seen: SeenEndpoints,
}

impl Admission {
    pub fn new(config: &Config, keyed: KeyedHash, seed: u64) -> Self {
        Self {
            limiter: Limiter::new(&config.limits, u128::from(seed)),
            admin_bans: BanList::default(),
            bans_changed_at: None,
            groups: Groups::new(keyed),
            lists: OpenLists::new(keyed),
            seen: SeenEndpoints::new(keyed, config.caps.memory),
        }
    }
}

impl Registry {
    /// Decides whether a datagram is parsed; `known` is the slot of the server whose ID it contains.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        known: Option<SlotIndex>,
        source: IpAddr,
        bytes: &[u8],
    ) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source) {
            let is_from = known.is_some_and(|slot| self.is_from(slot, source));
            if is_from {
                // A sender that knows the secret ID of a server at this address is not forged, so a flood must not use up
                // its share.
                self.admission.limiter.mark_known(now, source);
            }
            let charge = charge(bytes);
            if let Decision::Refused(refusal) = self.admission.limiter.check(now, source, charge)
                && !self.is_admitted_by_id(now, source, bytes, refusal, is_from)
            {
                return Err(RegistrationOutcome::OverBudget(refusal));
            }
        }
        self.admit_unlimited(now, source, bytes.len())
    }

    /// Decides whether a datagram without an ID is handled.
    pub(crate) fn admit_size(&mut self, now: Instant, source: IpAddr, size: usize) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source)
            && let Decision::Refused(refusal) = self.admission.limiter.check(now, source, size)
        {
            return Err(RegistrationOutcome::OverBudget(refusal));
        }
        self.admit_unlimited(now, source, size)
    }

    fn admit_unlimited(&mut self, now: Instant, source: IpAddr, size: usize) -> Result<(), RegistrationOutcome> {
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
        let tick = self.entries.wheel.tick(now);
        let is_vouched = is_registered || self.admission.seen.was_listed_with_id(tick, Lan::of(source), id);
        let is_admitted = is_vouched
            && self.admission.seen.may_admit(tick, id)
            && self.admission.limiter.check_total(now, source, charge(bytes)) == Decision::Allowed;
        if is_admitted {
            self.admission.seen.note_admitted(tick, id);
        }
        is_admitted
    }

    fn is_from(&self, slot: SlotIndex, source: IpAddr) -> bool {
        self.entries.slots.cold(slot).endpoints.iter().flatten().any(|endpoint| endpoint.internal.ip == source)
    }
}
