//! Outcomes of the transmissions of one message, copies and resends included: each is lost or arrives (W82).

use super::{arrival_evidence::ArrivalEvidence, loss_meter::LossMeter};

/// Outcomes of the transmissions of a message, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransmissionOutcomes {
    /// Transmissions about which nothing is known.
    unknown: u8,
    /// Transmissions that count as lost.
    lost: u8,
    /// Transmissions that have arrived.
    arrived: u8,
    /// Whether the first transmission or its copy has arrived before anything was resent: what is unknown or lost is the
    /// other of the two.
    is_pair: bool,
}

impl TransmissionOutcomes {
    /// The message, or a copy of it, is sent.
    pub fn on_sent(&mut self) {
        self.unknown = self.unknown.saturating_add(1);
    }

    /// What was sent counts as lost. `is_pair`: that is the first transmission and its copy.
    pub fn on_lost(&mut self, meter: &mut LossMeter, is_pair: bool) {
        if is_pair {
            meter.add_lost_pair();
        }
        (0..self.unknown).for_each(|_| meter.add(true));
        self.lost = self.lost.saturating_add(self.unknown);
        self.unknown = 0;
    }

    /// The first ack arrives. `is_pair`: only the first transmission and its copy were sent. `is_of_last`: it comes late enough to
    /// be caused by the last transmission.
    pub fn on_first_ack(&mut self, meter: &mut LossMeter, is_pair: bool, is_of_last: bool) {
        self.is_pair = is_pair && self.unknown == 2;
        self.arrived = 1;
        if self.lost > 0 && (self.unknown == 0 || !is_of_last) {
            self.lost -= 1;
            meter.revoke_loss();
        } else {
            self.unknown = self.unknown.saturating_sub(1);
            meter.add(false);
        }
        if self.is_pair {
            meter.add_arrived_pair();
        }
    }

    /// What the first ack says beyond the first arrival: if the message was resent, that was the arrival of the last
    /// transmission, and the others are of earlier ones that counted as lost.
    pub fn on_first_evidence(&mut self, meter: &mut LossMeter, evidence: ArrivalEvidence) {
        while self.arrived < evidence.arrivals && self.lost > 0 {
            self.arrived += 1;
            self.lost -= 1;
            meter.revoke_loss();
        }
        self.record_arrivals(meter, evidence.arrivals);
    }

    /// What a later ack says. `is_due`: it comes late enough to be caused by the last transmission, or by its copy.
    pub fn on_evidence(&mut self, meter: &mut LossMeter, evidence: ArrivalEvidence, is_due: bool) {
        self.record_arrivals(meter, evidence.arrivals);
        if !evidence.is_exact || evidence.arrivals != self.arrived || !is_due || self.unknown == 0 {
            return;
        }
        if self.is_pair {
            meter.add_copy(true);
        } else if meter.peer_reports_copies() {
            (0..self.unknown).for_each(|_| meter.add(true));
        } else {
            return;
        }
        self.lost = self.lost.saturating_add(self.unknown);
        self.unknown = 0;
    }

    /// Whether acks may still change something.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.unknown > 0 || self.lost > 0
    }

    /// The message has arrived at least this often. What was sent last arrived last.
    fn record_arrivals(&mut self, meter: &mut LossMeter, arrivals: u8) {
        while self.arrived < arrivals && self.is_open() {
            self.arrived += 1;
            match (self.unknown > 0, self.is_pair) {
                (true, true) => meter.add_copy(false),
                (true, false) => meter.add(false),
                (false, true) => meter.revoke_copy_loss(),
                (false, false) => meter.revoke_loss(),
            }
            if self.unknown > 0 {
                self.unknown -= 1;
            } else {
                self.lost -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: ArrivalEvidence = ArrivalEvidence { arrivals: 1, is_exact: true };
    const TWICE: ArrivalEvidence = ArrivalEvidence { arrivals: 2, is_exact: true };

    #[test]
    fn w82_a_resend_whose_first_transmission_had_arrived_is_no_loss() {
        let mut meter = LossMeter::default();
        let mut outcomes = TransmissionOutcomes::default();
        outcomes.on_sent();
        outcomes.on_lost(&mut meter, false);
        assert_eq!(meter.loss(), 1.0);
        outcomes.on_sent();
        outcomes.on_first_ack(&mut meter, false, true);
        assert!((meter.loss() - 0.5).abs() < 0.001, "{meter:?}");
        outcomes.on_evidence(&mut meter, TWICE, true);
        assert_eq!((meter.loss(), outcomes.is_open()), (0.0, false));
    }

    #[test]
    fn w82_of_a_pair_the_second_arrives_or_is_lost_and_may_be_late() {
        let mut meter = LossMeter::default();
        let mut outcomes = TransmissionOutcomes::default();
        outcomes.on_sent();
        outcomes.on_sent();
        outcomes.on_first_ack(&mut meter, true, true);
        outcomes.on_evidence(&mut meter, ONCE, false);
        assert_eq!(meter.loss(), 0.0, "too early to tell");
        // A pair of which both arrive shows that the peer tells.
        let mut other = outcomes;
        other.on_evidence(&mut meter, TWICE, true);
        outcomes.on_evidence(&mut meter, ONCE, true);
        assert!(meter.loss() > 0.0 && outcomes.is_open());
        outcomes.on_evidence(&mut meter, TWICE, true);
        assert_eq!((meter.loss(), outcomes.is_open()), (0.0, false));
    }
}
