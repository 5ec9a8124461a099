//! Resolves the names of lobbies, at the start and every few minutes, without blocking.

use crate::{LobbyHost, ResolvedLobby};
use std::{
    net::SocketAddr,
    sync::mpsc,
    time::{Duration, Instant},
};

/// Interval between resolutions: the address of a lobby can change while a server runs.
const INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Interval between resolutions while not a single address is known.
const RETRY: Duration = Duration::from_secs(30);

/// Time after which a name counts as not found. The system's resolver queries several name servers several times.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which a resolution in progress is polled: it runs in threads that cannot wake the caller.
const POLL: Duration = Duration::from_millis(20);

/// Resolves a fixed set of hosts again and again.
#[derive(Debug)]
pub(crate) struct Resolver {
    hosts: Vec<LobbyHost>,
    /// The last addresses of each host; empty while none was found.
    addrs: Vec<Vec<SocketAddr>>,
    next: Instant,
    pending: Option<Pending>,
}

/// A resolution in progress.
#[derive(Debug)]
struct Pending {
    results: mpsc::Receiver<(usize, Vec<SocketAddr>)>,
    found: Vec<Option<Vec<SocketAddr>>>,
    deadline: Instant,
}

/// The result of one resolution of all hosts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// The lobbies that have an address. A host that cannot be resolved any more keeps its previous addresses.
    pub lobbies: Vec<ResolvedLobby>,
    /// Hosts that never had an address.
    pub not_found: Vec<LobbyHost>,
}

impl Resolver {
    pub fn new(hosts: Vec<LobbyHost>, now: Instant) -> Self {
        let addrs = vec![Vec::new(); hosts.len()];
        Self { hosts, addrs, next: now, pending: None }
    }

    /// Starts a resolution when it is due, and returns its result once it is complete.
    pub fn poll(&mut self, now: Instant) -> Option<Resolution> {
        if self.pending.is_none() && self.next <= now {
            self.pending = Some(Pending::start(&self.hosts, now));
        }
        let found = self.pending.as_mut()?.poll(now)?;
        self.pending = None;
        for (known, found) in self.addrs.iter_mut().zip(found) {
            if !found.is_empty() {
                *known = found;
            }
        }
        let is_any_known = self.addrs.iter().any(|addrs| !addrs.is_empty());
        self.next = now + if is_any_known { INTERVAL } else { RETRY };
        let hosts = || self.hosts.iter().zip(&self.addrs);
        let resolved = hosts().filter(|(_, addrs)| !addrs.is_empty());
        let unresolved = hosts().filter(|(_, addrs)| addrs.is_empty());
        Some(Resolution {
            lobbies: resolved.map(|(host, addrs)| ResolvedLobby { host: host.clone(), addrs: addrs.clone() }).collect(),
            not_found: unresolved.map(|(host, _)| host.clone()).collect(),
        })
    }

    /// When to call [`poll`](Self::poll) again.
    pub fn poll_timeout(&self, now: Instant) -> Instant {
        if self.pending.is_some() { now + POLL } else { self.next }
    }

    #[cfg(test)]
    pub fn replace(&mut self, hosts: Vec<LobbyHost>, now: Instant) {
        *self = Self::new(hosts, now);
    }
}

impl Pending {
    fn start(hosts: &[LobbyHost], now: Instant) -> Self {
        let (sender, results) = mpsc::channel();
        let mut found: Vec<_> = hosts.iter().map(LobbyHost::resolve_now).collect();
        for (index, host) in hosts.iter().enumerate().filter(|(index, _)| found[*index].is_none()).collect::<Vec<_>>() {
            let host = host.clone();
            let sender = sender.clone();
            let resolve = move || {
                // The receiver is gone if this took longer than the timeout.
                let _ = sender.send((index, host.resolve()));
            };
            if std::thread::Builder::new().name("resolve".into()).spawn(resolve).is_err() {
                found[index] = Some(Vec::new());
            }
        }
        Self { results, found, deadline: now + TIMEOUT }
    }

    /// The addresses of each host, in the order of the hosts, once all are known or the time is over.
    fn poll(&mut self, now: Instant) -> Option<Vec<Vec<SocketAddr>>> {
        for (index, addrs) in self.results.try_iter() {
            self.found[index] = Some(addrs);
        }
        let is_complete = self.found.iter().all(Option::is_some);
        if !is_complete && now < self.deadline {
            return None;
        }
        Some(self.found.iter_mut().map(|found| found.take().unwrap_or_default()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(texts: &[&str]) -> Vec<LobbyHost> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_are_resolved_at_once_and_again_every_5_minutes() {
        let now = Instant::now();
        let mut resolver = Resolver::new(hosts(&["192.0.2.1", "192.0.2.2:7"]), now);
        let resolution = resolver.poll(now).unwrap();
        let addrs: Vec<_> = resolution.lobbies.iter().flat_map(|lobby| &lobby.addrs).map(ToString::to_string).collect();
        assert_eq!(addrs, ["192.0.2.1:29944", "192.0.2.2:7"]);
        assert_eq!(resolution.not_found, []);
        assert_eq!(resolver.poll(now), None);
        assert_eq!(resolver.poll_timeout(now), now + INTERVAL);
        assert_eq!(resolver.poll(now + INTERVAL), Some(resolution));
    }

    #[test]
    fn a_name_that_cannot_be_found_any_more_keeps_its_addresses() {
        let now = Instant::now();
        let mut resolver = Resolver::new(hosts(&["lobby.invalid", "other.invalid"]), now);
        // As if the name had been found earlier.
        resolver.addrs[0] = vec!["192.0.2.1:29944".parse().unwrap()];
        let (_sender, results) = mpsc::channel();
        resolver.pending = Some(Pending { results, found: vec![None; 2], deadline: now + TIMEOUT });
        assert_eq!(resolver.poll(now), None);
        assert_eq!(resolver.poll_timeout(now), now + POLL);
        let resolution = resolver.poll(now + TIMEOUT).unwrap();
        assert_eq!(resolution.lobbies.len(), 1);
        assert_eq!(resolution.lobbies[0].addrs, ["192.0.2.1:29944".parse().unwrap()]);
        assert_eq!(resolution.not_found, hosts(&["other.invalid"]));
    }

    #[test]
    fn without_any_address_the_names_are_resolved_again_after_30_seconds() {
        let now = Instant::now();
        let mut resolver = Resolver::new(hosts(&["lobby.invalid"]), now);
        let (_sender, results) = mpsc::channel();
        resolver.pending = Some(Pending { results, found: vec![None], deadline: now });
        assert_eq!(resolver.poll(now).unwrap().not_found, hosts(&["lobby.invalid"]));
        assert_eq!(resolver.poll_timeout(now), now + RETRY);
    }
}
