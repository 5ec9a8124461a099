//! ICMP errors that report that nothing listens at an address.
//!
//! The network reports this with a packet (ICMP "port unreachable") that quotes the datagram which could not be delivered.
//! Anyone can send such a packet, so it is trusted only as far as the quote proves that its sender saw the query.

use super::{
    Prober,
    active::{ActiveProbe, ProbeIndex},
};
use crate::{probe::Peer, protocols};
use std::net::SocketAddr;

/// Number of queries that have to be refused if the quote proves nothing. An attacker who forges refusals has to guess the
/// local port twice, and the server's reply has to take longer than the wait for the second query.
const UNPROVEN_REFUSALS: u8 = 2;

/// Refused queries of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    /// Number of refused queries.
    count: u8,
    /// Number of attempts made at the last counted refusal: further refusals of the same attempt do not count.
    attempts: u8,
}

impl Refusals {
    pub fn is_any(self) -> bool {
        self.count > 0
    }
}

/// ICMP errors.
impl Prober {
    /// Handles an ICMP error: nothing listens at an address. `quoted` is the beginning of the datagram that was sent there.
    ///
    /// A quote with the token of a query (the echo value of document 002, for example) proves that the sender of the error has
    /// seen the query: all probes of the address end with [`ProbeOutcome::Refused`](crate::ProbeOutcome::Refused). A query
    /// without a token (document 003) contains nothing that cannot be guessed: there, two queries have to be refused. An address
    /// that has sent anything is in use, whatever the network reports. A probe that times out after any refusal ends as refused
    /// rather than as timed out.
    pub fn handle_refused(&mut self, address: SocketAddr, quoted: &[u8]) {
        let probes: Vec<ProbeIndex> = self.probes_at(Peer::of(address)).collect();
        let is_proven = probes.iter().any(|index| self.proves_delivery(*index, quoted));
        for index in probes {
            let Some(probe) = self.probes.get_mut(index) else { continue };
            if (is_proven || probe.may_have_sent(quoted)) && probe.note_refusal(is_proven) {
                self.finish(index);
            }
        }
    }

    /// Whether a quote contains the token of one of the queries of a probe.
    fn proves_delivery(&self, index: ProbeIndex, quoted: &[u8]) -> bool {
        let Some(probe) = self.probes.get(index) else { return false };
        let query = probe.probe.query;
        let mut sent = Vec::new();
        protocols::has_token(query.protocol)
            && (0..probe.attempts).any(|attempt| {
                let mut requests = protocols::first_attempt(query.protocol, query.detail);
                std::iter::from_fn(|| (!requests.is_empty()).then(|| requests.pop())).any(|request| {
                    sent.clear();
                    let token = || self.secrets.token(probe.serial, attempt);
                    protocols::emit_first(query.protocol, request, token, &mut sent);
                    protocols::insert_address(query.protocol, &mut sent, probe.probe.address);
                    quoted == sent
                })
            })
    }
}

impl ActiveProbe {
    /// Whether a quote that proves nothing could be of a query of this probe. Old routers do not quote any of its bytes.
    fn may_have_sent(&self, quoted: &[u8]) -> bool {
        quoted.is_empty() || protocols::is_query(self.probe.query.protocol, quoted)
    }

    /// Counts a refusal. True if it ends the probe.
    fn note_refusal(&mut self, is_proven: bool) -> bool {
        if self.has_answered() || self.malformed > 0 {
            return false;
        }
        if self.refusals.attempts < self.attempts {
            self.refusals = Refusals { count: self.refusals.count.saturating_add(1), attempts: self.attempts };
        }
        is_proven || (!protocols::has_token(self.probe.query.protocol) && self.refusals.count >= UNPROVEN_REFUSALS)
    }
}
