//! Cookies by which the sender of a login shows that it receives what is sent to its address (W83).
//!
//! They are computed, not stored: a keyed hash of the address. So an answer to a forged login costs no memory, and one hash
//! instead of a key agreement.

use crate::{
    crypto::{Secret, hmac_sha256},
    rng::SecretRng,
};
use aws_lc_rs::constant_time;
use rallypoint_wire::session::LoginCookie;
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// Time for which a key makes cookies. It is replaced by the first cookie after that, and verifies cookies for as long again: a
/// cookie is valid for one to three times this long. A login ends after 5 s.
const KEY_LIFETIME: Duration = Duration::from_secs(30);

/// Makes and verifies cookies.
pub(super) struct LoginCookies {
    keys: Option<CookieKeys>,
}

struct CookieKeys {
    current: Secret,
    previous: Secret,
    drawn_at: Instant,
}

impl LoginCookies {
    pub fn new() -> Self {
        Self { keys: None }
    }

    /// The cookie of an address. The port is left out: a NAT may change it.
    pub fn cookie(&mut self, now: Instant, ip: IpAddr, rng: &mut SecretRng) -> LoginCookie {
        let keys = match self.keys.take() {
            Some(keys) if keys.age(now) < KEY_LIFETIME => keys,
            Some(keys) if keys.age(now) < 2 * KEY_LIFETIME => {
                CookieKeys { current: rng.secret(), previous: keys.current, drawn_at: now }
            }
            _ => CookieKeys { current: rng.secret(), previous: rng.secret(), drawn_at: now },
        };
        let cookie = hash(&keys.current, ip);
        self.keys = Some(keys);
        cookie
    }

    /// Whether this is the cookie of this address under a key that is still in use.
    pub fn is_valid(&self, now: Instant, ip: IpAddr, cookie: LoginCookie) -> bool {
        let Some(keys) = &self.keys else { return false };
        let is_hash = |key| constant_time::verify_slices_are_equal(&hash(key, ip).0, &cookie.0).is_ok();
        match keys.age(now) {
            age if age < KEY_LIFETIME => is_hash(&keys.current) || is_hash(&keys.previous),
            age if age < 2 * KEY_LIFETIME => is_hash(&keys.current),
            _ => false,
        }
    }
}

impl CookieKeys {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.drawn_at)
    }
}

fn hash(key: &Secret, ip: IpAddr) -> LoginCookie {
    let hash = match ip.to_canonical() {
        IpAddr::V4(ip) => hmac_sha256(&key[..], &[&ip.octets()]),
        IpAddr::V6(ip) => hmac_sha256(&key[..], &[&ip.octets()]),
    };
    let mut cookie = [0; 16];
    cookie.copy_from_slice(&hash[..16]);
    LoginCookie(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w83_a_cookie_is_valid_for_its_address_and_for_a_limited_time() {
        let start = Instant::now();
        let mut rng = SecretRng::new([1; 32]);
        let mut cookies = LoginCookies::new();
        let ip = IpAddr::from([192, 0, 2, 1]);
        let other = IpAddr::from([192, 0, 2, 2]);
        assert!(!cookies.is_valid(start, ip, LoginCookie([0; 16])), "no cookie was sent yet");
        let cookie = cookies.cookie(start, ip, &mut rng);
        assert_eq!(cookies.cookie(start + Duration::from_secs(29), ip, &mut rng), cookie);
        let is_valid = |cookies: &LoginCookies, seconds| {
            assert!(!cookies.is_valid(start + Duration::from_secs(seconds), other, cookie));
            cookies.is_valid(start + Duration::from_secs(seconds), ip, cookie)
        };
        assert!(is_valid(&cookies, 0) && is_valid(&cookies, 59) && !is_valid(&cookies, 60));
        assert_ne!(cookies.cookie(start + Duration::from_secs(31), ip, &mut rng), cookie);
        assert!(is_valid(&cookies, 60) && !is_valid(&cookies, 61));
        cookies.cookie(start + Duration::from_secs(200), ip, &mut rng);
        assert!(!is_valid(&cookies, 200));
    }
}
