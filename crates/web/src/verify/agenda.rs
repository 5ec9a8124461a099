//! Who may be asked now.
//!
//! (W40) A registration can be forged, so a question is traffic that a stranger can cause, like a check (L12): it has the same
//! bounds. And who changes and changes again must not be in the way of those who wait for their turn.

use super::EVERY;
use crate::serve::{Place, Places};
use rallypoint_limit::{Host, Net, Rate, TokenBuckets};
use rallypoint_lobby_proto::PublicId;
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// So many are asked at once. Who finds no place is asked the next time.
const AT_ONCE: usize = 256;

/// Those of one IPv4 address or IPv6 /56.
const PER_ADDRESS: usize = 16;

/// How many questions an address and a network (/24 or /56) are asked: as many as there are checks by default.
const RATE_OF_ADDRESS: Rate = Rate::per_minute(60, 60);
const RATE_OF_NETWORK: Rate = Rate::per_minute(600, 60);

/// So many addresses and networks are remembered.
const PREFIXES: usize = 16_384;

/// So many servers are remembered: as many as there can be by default.
const SERVERS: usize = 1_000_000;

/// Nobody is asked again sooner than this. Turns come every minute, but not to the millisecond.
const AGAIN_AFTER: Duration = EVERY.saturating_sub(Duration::from_secs(5));

/// Who was asked when, and how often.
pub(super) struct Agenda {
    places: Places,
    asked: HashMap<PublicId, Instant>,
    /// When those who were asked long ago are forgotten again.
    tidy_at: Option<Instant>,
    per_address: TokenBuckets<Host>,
    per_network: TokenBuckets<Net>,
}

impl Agenda {
    pub fn new(seed: u128) -> Self {
        Self {
            places: Places::with(AT_ONCE, PER_ADDRESS),
            asked: HashMap::new(),
            tidy_at: None,
            per_address: TokenBuckets::new(RATE_OF_ADDRESS, PREFIXES, seed),
            per_network: TokenBuckets::new(RATE_OF_NETWORK, PREFIXES, seed.rotate_left(64)),
        }
    }

    /// Whether a server at these addresses may be asked now: if so, it is, for as long as the places are held.
    pub fn begin(
        &mut self,
        now: Instant,
        id: PublicId,
        mut ips: impl ExactSizeIterator<Item = IpAddr> + Clone,
    ) -> Option<Vec<Place>> {
        self.tidy(now);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < AGAIN_AFTER;
        if ips.len() == 0 || self.asked.len() >= SERVERS || self.asked.get(&id).is_some_and(is_recent) {
            return None;
        }
        let places = ips.clone().map(|ip| self.places.take(ip, false)).collect::<Option<Vec<_>>>()?;
        let is_within =
            ips.all(|ip| self.per_address.take(now, Host::of(ip)) && self.per_network.take(now, Net::of(ip)));
        is_within.then(|| {
            self.asked.insert(id, now);
            places
        })
    }

    /// Forgets who may be asked again.
    fn tidy(&mut self, now: Instant) {
        if self.tidy_at.is_none_or(|at| at <= now) {
            self.asked.retain(|_, at| now.saturating_duration_since(*at) < AGAIN_AFTER);
            self.tidy_at = Some(now + AGAIN_AFTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> PublicId {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        PublicId::from_bytes(bytes)
    }

    fn at(address: [u8; 4]) -> std::array::IntoIter<IpAddr, 1> {
        [IpAddr::from(address)].into_iter()
    }

    #[test]
    fn w40_nobody_is_asked_twice_in_a_minute_however_it_changes() {
        let (mut agenda, start) = (Agenda::new(7), Instant::now());
        let asked = |second| start + Duration::from_secs(second);
        let mut count = 0;
        for second in 0..600 {
            count += usize::from(agenda.begin(asked(second), id(1), at([192, 0, 2, 1])).is_some());
        }
        assert_eq!(count, 11);
        assert!(agenda.begin(asked(600), id(2), [].into_iter()).is_none(), "it does not say how");
        agenda.begin(asked(700), id(3), at([192, 0, 2, 1]));
        assert_eq!(agenda.asked.len(), 1, "the others are forgotten");
    }

    #[test]
    fn w40_an_address_is_not_flooded_with_questions_in_the_name_of_many() {
        let (mut agenda, start) = (Agenda::new(7), Instant::now());
        let mut ask = |second, number| {
            let now = start + Duration::from_secs(second);
            agenda.begin(now, id(number), at([192, 0, 2, (number % 200) as u8])).is_some()
        };
        let burst = (0..1_000).filter(|number| ask(0, 200 * number)).count();
        assert_eq!(burst, 60);
        let network = (1..=600).filter(|number| ask(60, 7 + 1_000 * number + number % 200)).count();
        assert_eq!(network, 60, "the network has a budget, too");
    }

    #[test]
    fn w40_one_address_has_few_of_the_places() {
        let (mut agenda, now) = (Agenda::new(7), Instant::now());
        let held: Vec<_> = (0..100).filter_map(|number| agenda.begin(now, id(number), at([192, 0, 2, 1]))).collect();
        assert_eq!(held.len(), PER_ADDRESS);
        assert!(agenda.begin(now, id(1_000), at([198, 51, 100, 1])).is_some());
        drop(held);
        assert!(agenda.begin(now, id(1_001), at([192, 0, 2, 1])).is_some());
    }
}
