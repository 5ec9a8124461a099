//! Fresh entropy for the secrets of later logins, drawn at intervals (W66).

use rallypoint_udp::{EntropyError, entropy};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Interval at which entropy is drawn.
const INTERVAL: Duration = Duration::from_secs(10);

/// Draws entropy from the operating system when it is due.
#[derive(Debug, Default)]
pub(crate) struct EntropyRefresh {
    next: Option<Instant>,
}

impl EntropyRefresh {
    /// Entropy to mix in. `None` if it is not due yet, or if the operating system has none: the state is secret without it.
    pub fn poll(&mut self, now: Instant) -> Option<Zeroizing<[u8; 32]>> {
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + INTERVAL);
        secret_bytes().ok()
    }
}

/// 32 unpredictable bytes, which are wiped when they are dropped.
pub(crate) fn secret_bytes() -> Result<Zeroizing<[u8; 32]>, EntropyError> {
    let mut bytes = Zeroizing::new([0; 32]);
    entropy::fill(&mut bytes[..])?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w66_entropy_is_drawn_every_ten_seconds() {
        let start = Instant::now();
        let mut refresh = EntropyRefresh::default();
        let drawn: Vec<_> = (0..60).filter_map(|second| refresh.poll(start + Duration::from_secs(second))).collect();
        assert_eq!(drawn.len(), 6);
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
