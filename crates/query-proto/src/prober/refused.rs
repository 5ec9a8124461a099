//! Being told that nothing listens there.
//!
//! The network says so with a packet (ICMP "port unreachable") that quotes the datagram which did not arrive. Anybody can
//! send such a packet, so it is worth as much as it can prove.

use super::{Prober, probe::Probe};
use crate::{Question, target::Peer};
use rallypoint_wire::{bloodmasters, session::ClientDatagram};
use std::net::SocketAddr;

/// How many questions have to be refused if nothing proves that the refusals are genuine. Whoever forges them has to
/// guess the port that was asked from, twice, and that the answer takes longer than the wait for the second question.
const UNPROVEN: u8 = 2;

/// What was refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    /// How many questions were.
    count: u8,
    /// How many attempts there were when the last one was: more refusals of the same question tell nothing new.
    attempts: u8,
}

impl Refusals {
    pub fn is_any(self) -> bool {
        self.count > 0
    }
}

/// Being refused.
impl Prober {
    /// The network says that nothing listens at an address, and quotes what was sent there, or the beginning of it.
    ///
    /// A quote with the echo value of a question (document 002) proves that whoever says so has seen it: then nobody is
    /// asked there any more, and reports say [`Outcome::Refused`](crate::Outcome::Refused). A question of document 003 has
    /// nothing that could not be guessed: there, two questions have to be refused. A server that has answered anything is
    /// there, whatever the network says. Any refusal is enough to say at the deadline that it was not mere silence.
    pub fn handle_refused(&mut self, address: SocketAddr, quoted: &[u8]) {
        let slots = self.by_peer.get(&Peer::of(address)).copied().unwrap_or_default();
        let asked = [slots.bloodmasters, slots.session].into_iter().flatten();
        let is_proven = asked.clone().any(|slot| self.probes.get(slot).is_some_and(|probe| self.proves(probe, quoted)));
        for slot in asked {
            let Some(probe) = self.probes.get_mut(slot) else { continue };
            if (is_proven || probe.may_have_sent(quoted)) && probe.refuse(is_proven) {
                self.finish(slot);
            }
        }
    }

    fn proves(&self, probe: &Probe, quoted: &[u8]) -> bool {
        let mut sent = Vec::new();
        let is_it = |attempt| {
            sent.clear();
            bloodmasters::Query { echo: self.secrets.echo(probe.serial, attempt) }.emit(&mut sent);
            quoted == sent
        };
        probe.target.question == Question::Bloodmasters && (0..probe.attempts).any(is_it)
    }
}

impl Probe {
    /// Whether a quote that proves nothing could be of its question. Old routers quote nothing of it at all.
    fn may_have_sent(&self, quoted: &[u8]) -> bool {
        let is_question = || {
            matches!(self.target.question, Question::Session { .. })
                && matches!(ClientDatagram::parse(quoted), Ok(ClientDatagram::Query | ClientDatagram::QueryPlayers))
        };
        quoted.is_empty() || is_question()
    }

    /// Notes a refusal. Whether that is the end.
    fn refuse(&mut self, is_proven: bool) -> bool {
        if self.collected.is_some() || self.malformed > 0 {
            return false;
        }
        if self.refusals.attempts < self.attempts {
            self.refusals = Refusals { count: self.refusals.count.saturating_add(1), attempts: self.attempts };
        }
        let can_prove = self.target.question == Question::Bloodmasters;
        is_proven || (!can_prove && self.refusals.count >= UNPROVEN)
    }
}
