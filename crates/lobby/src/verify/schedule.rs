//! Decides which servers may be probed now.
//!
//! (W40) A registration can be forged, so a probe is traffic that a third party can cause, like a check (L12), and has the same
//! limits. A server that changes all the time must not keep others from being probed.

use super::INTERVAL;
use rallypoint_limit::{Host, Net, Quota, QuotaPermit, Rate, TokenBuckets};
use rallypoint_lobby_proto::PublicId;
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Maximum number of probes under way. A server for which there is no room is probed one interval later.
const MAX_PROBES: usize = 256;

/// Maximum number of probes under way to one IPv4 address or IPv6 /56.
const MAX_PROBES_PER_ADDRESS: usize = 16;

/// Probes per address and per network (/24 or /56): as many as there are checks by default.
const ADDRESS_RATE: Rate = Rate::per_minute(60, 60);
const NETWORK_RATE: Rate = Rate::per_minute(600, 60);

/// Number of addresses and of networks whose rates are tracked.
const PREFIXES: usize = 16_384;

/// Maximum number of servers that are tracked: the default maximum of a lobby.
const MAX_SERVERS: usize = 1_000_000;

/// Minimum time between two probes of a server. It is a little shorter than the interval, whose ticks are not exact.
const MIN_PAUSE: Duration = INTERVAL.saturating_sub(Duration::from_secs(5));

/// Remembers which servers were probed recently, and limits the rate per address and network.
pub(crate) struct ProbeSchedule {
    probes: Quota,
    probed_at: HashMap<PublicId, Instant>,
    /// When servers that may be probed again are removed from `probed_at`.
    tidy_at: Option<Instant>,
    per_address: TokenBuckets<Host>,
    per_network: TokenBuckets<Net>,
}

impl ProbeSchedule {
    pub fn new(seed: u128) -> Self {
        Self {
            probes: Quota::new(MAX_PROBES, MAX_PROBES_PER_ADDRESS),
            probed_at: HashMap::new(),
            tidy_at: None,
            per_address: TokenBuckets::new(ADDRESS_RATE, PREFIXES, seed),
            per_network: TokenBuckets::new(NETWORK_RATE, PREFIXES, seed.rotate_left(64)),
        }
    }

    /// Decides whether a server at these addresses may be probed now. If so, it returns permits to be held for the duration of
    /// the probe.
    pub fn begin(
        &mut self,
        now: Instant,
        id: PublicId,
        mut ips: impl ExactSizeIterator<Item = IpAddr> + Clone,
    ) -> Option<Vec<QuotaPermit>> {
        self.tidy(now);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < MIN_PAUSE;
        if ips.len() == 0 || self.probed_at.len() >= MAX_SERVERS || self.probed_at.get(&id).is_some_and(is_recent) {
            return None;
        }
        let permits = ips.clone().map(|ip| self.probes.take(ip, false)).collect::<Option<Vec<_>>>()?;
        let is_within =
            ips.all(|ip| self.per_address.take(now, Host::of(ip)) && self.per_network.take(now, Net::of(ip)));
        is_within.then(|| {
            self.probed_at.insert(id, now);
            permits
        })
    }

    /// Forgets servers that may be probed again.
    fn tidy(&mut self, now: Instant) {
        if self.tidy_at.is_none_or(|at| at <= now) {
            self.probed_at.retain(|_, at| now.saturating_duration_since(*at) < MIN_PAUSE);
            self.tidy_at = Some(now + MIN_PAUSE);
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
    fn w40_a_server_is_probed_once_per_minute_however_often_it_changes() {
        let mut schedule = ProbeSchedule::new(7);
        let start = Instant::now();
        let at_second = |second| start + Duration::from_secs(second);
        let mut count = 0;
        for second in 0..600 {
            count += usize::from(schedule.begin(at_second(second), id(1), at([192, 0, 2, 1])).is_some());
        }
        assert_eq!(count, 11);
        assert!(schedule.begin(at_second(600), id(2), [].into_iter()).is_none(), "it does not state how");
        schedule.begin(at_second(700), id(3), at([192, 0, 2, 1]));
        assert_eq!(schedule.probed_at.len(), 1, "servers that may be probed again are forgotten");
    }

    #[test]
    fn w40_probes_of_many_servers_do_not_flood_one_address() {
        let mut schedule = ProbeSchedule::new(7);
        let start = Instant::now();
        let mut probe = |second, number| {
            let now = start + Duration::from_secs(second);
            schedule.begin(now, id(number), at([192, 0, 2, (number % 200) as u8])).is_some()
        };
        let burst = (0..1_000).filter(|number| probe(0, 200 * number)).count();
        assert_eq!(burst, 60);
        let network = (1..=600).filter(|number| probe(60, 7 + 1_000 * number + number % 200)).count();
        assert_eq!(network, 60, "the network has a rate of its own");
    }

    #[test]
    fn w40_one_address_has_a_small_share_of_the_probes() {
        let mut schedule = ProbeSchedule::new(7);
        let now = Instant::now();
        let held: Vec<_> = (0..100).filter_map(|number| schedule.begin(now, id(number), at([192, 0, 2, 1]))).collect();
        assert_eq!(held.len(), MAX_PROBES_PER_ADDRESS);
        assert!(schedule.begin(now, id(1_000), at([198, 51, 100, 1])).is_some());
        drop(held);
        assert!(schedule.begin(now, id(1_001), at([192, 0, 2, 1])).is_some());
    }
}
