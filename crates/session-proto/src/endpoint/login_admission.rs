//! Which encrypted logins are answered when more arrive than can be (W65).
//!
//! Answering one costs a key agreement, and a flood of forged logins asks for more of them than there is time for. An honest
//! client differs from the flood: it repeats its login, byte for byte (S12), or it has played here before. So the budget is
//! divided into lanes of the same size: one for each range of repetitions, one for known addresses, and one for logins with a
//! cookie. A login that is repeated for the fifth time competes only with others that were repeated as often. Repetitions count
//! only at the intervals of an honest client, which become longer: a flood that repeats its logins faster stays in the lower
//! lanes.
//!
//! A flood that repeats its logins just like a client cannot be told apart by that. So a login that is not admitted is answered
//! with a cookie, which costs one hash, and the client repeats its login with it: it receives what is sent to its address, which
//! a forger does not (W83).

use super::{
    attempt_table::AttemptTable, half_open::LoginId, known_addresses::KnownAddresses, login_cookies::LoginCookies,
};
use crate::rng::SecretRng;
use rallypoint_limit::{Net, Rate, TokenBuckets};
use rallypoint_wire::session::LoginCookie;
use std::{net::IpAddr, time::Instant};

/// Number of lanes, each with the same share of the budget: three by repetition, and those of known addresses and of cookies.
const LANES: u64 = 5;
const KNOWN_LANE: u64 = LANES - 2;
const COOKIE_LANE: u64 = LANES - 1;

/// Share of the budget that one network can have: one eighth.
const NETWORK_SHARE: u64 = 8;

/// Share of the lane of cookies that one network can have in the long run: a quarter. At once it can have all of it.
const COOKIE_NETWORK_SHARE: u64 = 4;

/// Number of networks whose budgets are remembered.
const REMEMBERED_NETWORKS: usize = 4_096;

/// Decides which encrypted logins are answered.
pub(super) struct LoginAdmission {
    lanes: TokenBuckets<u64>,
    networks: TokenBuckets<Net>,
    /// Budgets of networks for logins with a cookie. Forged logins do not use them up.
    cookie_networks: TokenBuckets<Net>,
    known: KnownAddresses,
    attempts: AttemptTable,
    cookies: LoginCookies,
}

/// How probable it is that a login is not forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoginTrust {
    /// Nothing is known about it.
    Unknown,
    /// It was sent before, or comes from a known address, as a forged login rarely does.
    Probable,
    /// It has a cookie that was sent to its address.
    Proven,
}

impl LoginTrust {
    /// Number of values.
    pub const COUNT: usize = Self::Proven as usize + 1;
}

impl LoginAdmission {
    /// `rate` is the number of logins per second, and the size of a burst.
    pub fn new(rate: u32, seeds: [u128; 2], seed: u64) -> Self {
        let rate = u64::from(rate);
        let lane = (rate / LANES).max(1);
        let network = (rate / NETWORK_SHARE).max(1);
        Self {
            lanes: TokenBuckets::new(Rate::per_second(lane, lane), 8 * LANES as usize, seeds[0]),
            networks: TokenBuckets::new(Rate::per_second(network, network), REMEMBERED_NETWORKS, seeds[1]),
            cookie_networks: TokenBuckets::new(
                Rate::per_second((lane / COOKIE_NETWORK_SHARE).max(1), lane),
                REMEMBERED_NETWORKS,
                seeds[1].rotate_left(64),
            ),
            known: KnownAddresses::new(seed, seeds[0] ^ seeds[1]),
            attempts: AttemptTable::new(seed),
            cookies: LoginCookies::new(),
        }
    }

    /// Charges a login to the budget. `cookie` is the one that it contains, valid or not.
    pub fn admit(&mut self, now: Instant, id: &LoginId, cookie: Option<LoginCookie>) -> Result<LoginTrust, Overloaded> {
        let ip = id.0.ip();
        let network = Net::of(ip);
        let has_cookie = cookie.is_some_and(|cookie| self.cookies.is_valid(now, ip, cookie));
        if has_cookie
            && self.cookie_networks.remaining(now, network) > 0
            && self.lanes.take(now, COOKIE_LANE)
            && self.cookie_networks.take(now, network)
        {
            return Ok(LoginTrust::Proven);
        }
        if self.known.take(now, ip) && self.lanes.take(now, KNOWN_LANE) {
            return Ok(LoginTrust::Probable);
        }
        let refusal = Overloaded { has_cookie };
        if self.networks.remaining(now, network) == 0 {
            return Err(refusal);
        }
        // Attempts are counted from the first overload on.
        let is_overloaded = self.lanes.remaining(now, 0) == 0;
        let attempt = if is_overloaded || !self.attempts.is_empty() { self.attempts.record(now, id) } else { 1 };
        // A repeated login also competes with those that were repeated less often.
        let is_admitted = (0..=lane(attempt)).rev().any(|lane| self.lanes.take(now, lane));
        if !is_admitted || !self.networks.take(now, network) {
            return Err(refusal);
        }
        match attempt {
            _ if has_cookie => Ok(LoginTrust::Proven),
            0 | 1 => Ok(LoginTrust::Unknown),
            _ => Ok(LoginTrust::Probable),
        }
    }

    /// The cookie for an address whose login is not answered.
    pub fn cookie(&mut self, now: Instant, ip: IpAddr, rng: &mut SecretRng) -> LoginCookie {
        self.cookies.cookie(now, ip, rng)
    }

    /// A player at this address has proved that it receives what is sent there.
    pub fn on_proven(&mut self, address: IpAddr) {
        self.known.insert(address);
    }
}

/// A login is not answered, because the budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overloaded {
    /// Whether it has a valid cookie, and needs no other one.
    pub has_cookie: bool,
}

/// The lane of a login that is seen for the n-th time.
fn lane(attempt: u32) -> u64 {
    match attempt {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn id(network: u32, number: u32) -> LoginId {
        let [a, b, c, _] = network.to_le_bytes();
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_le_bytes());
        (([11, a, b, c], 1).into(), hash)
    }

    fn admission() -> LoginAdmission {
        LoginAdmission::new(2_000, [1, 2], 3)
    }

    #[test]
    fn w65_without_a_flood_every_login_is_answered_at_once() {
        let mut now = Instant::now();
        let mut admission = admission();
        for number in 0..1_000 {
            now += Duration::from_millis(5);
            assert_eq!(admission.admit(now, &id(number, number), None), Ok(LoginTrust::Unknown));
        }
        assert!(admission.attempts.is_empty());
    }

    #[test]
    fn w65_repeated_logins_are_answered_during_a_flood_of_single_ones() {
        let mut now = Instant::now();
        let mut admission = admission();
        let mut flood = 0..;
        let mut answered = 0;
        for honest in 0..100 {
            for attempt in 1..=3 {
                for _ in 0..2_000 {
                    let number = flood.next().unwrap();
                    answered += u32::from(admission.admit(now, &id(number, number), None).is_ok());
                }
                now += Duration::from_millis(100);
                let admitted = admission.admit(now, &id(1 << 20 | honest, honest), None);
                if attempt > 1 {
                    assert_eq!(admitted, Ok(LoginTrust::Probable));
                }
            }
        }
        // 400 per second in the lane of new logins.
        assert!((12_000..13_000).contains(&answered), "{answered}");
    }

    #[test]
    fn w65_the_total_is_never_exceeded() {
        let start = Instant::now();
        let mut admission = admission();
        admission.on_proven([11, 1, 0, 0].into());
        let mut answered = 0;
        for ms in 0..5_000 {
            let now = start + Duration::from_millis(ms);
            for number in 0..20 {
                // Each of them is repeated ten times within a second.
                let number = (ms as u32 / 1_000) * 2_000 + (ms as u32 % 100) * 20 + number;
                answered += u32::from(admission.admit(now, &id(number, number), None).is_ok());
            }
        }
        assert!(answered <= 6 * 2_000, "{answered}");
    }

    #[test]
    fn w65_one_network_cannot_use_up_the_budget() {
        let now = Instant::now();
        let mut admission = admission();
        let from_one_network = (0..10_000).filter(|number| admission.admit(now, &id(5, *number), None).is_ok()).count();
        assert_eq!(from_one_network, 250);
        assert!(admission.admit(now, &id(6, 0), None).is_ok());
    }

    #[test]
    fn w65_a_known_address_is_answered_during_a_flood() {
        let now = Instant::now();
        let mut admission = admission();
        let known = id(77, 1);
        admission.on_proven(known.0.ip());
        (1_000..50_000).for_each(|number| {
            let _ = admission.admit(now, &id(number, number), None);
        });
        assert_eq!(admission.admit(now, &known, None), Ok(LoginTrust::Probable));
    }

    #[test]
    fn w83_a_login_with_a_cookie_is_answered_during_a_flood_of_its_own_network() {
        let now = Instant::now();
        let mut admission = admission();
        let mut rng = SecretRng::new([1; 32]);
        let honest = id(5, 1 << 20);
        let cookie = admission.cookie(now, honest.0.ip(), &mut rng);
        for number in 0..10_000 {
            let _ = admission.admit(now, &id(number % 100, number), None);
            // Cookies of other addresses, and invented ones.
            let _ = admission.admit(now, &id(number % 100, number), Some(LoginCookie([number as u8; 16])));
            if number % 100 != 5 {
                let _ = admission.admit(now, &id(number % 100, number), Some(cookie));
            }
        }
        assert_eq!(admission.admit(now, &honest, None), Err(Overloaded { has_cookie: false }));
        assert_eq!(admission.admit(now, &honest, Some(cookie)), Ok(LoginTrust::Proven));
    }

    #[test]
    fn w83_a_network_with_cookies_does_not_use_up_the_lane_of_others_for_long() {
        let start = Instant::now();
        let mut admission = admission();
        let mut rng = SecretRng::new([1; 32]);
        let mut others = 0;
        for second in 0..60 {
            let now = start + Duration::from_secs(second);
            for network in [1, 2] {
                let cookie = admission.cookie(now, id(network, 0).0.ip(), &mut rng);
                for number in 0..2_000 {
                    let number = network << 20 | (second as u32) << 12 | number;
                    let _ = admission.admit(now, &id(network, number), Some(cookie));
                }
            }
            let cookie = admission.cookie(now, id(3, 0).0.ip(), &mut rng);
            for number in 0..20 {
                others += u32::from(admission.admit(now, &id(3, number << 6 | second as u32), Some(cookie)).is_ok());
            }
        }
        assert!(others >= 58 * 20, "{others}: each of the two has the lane for a second, and then a quarter of it");
    }
}
