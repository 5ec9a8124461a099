//! What became of the transmissions of one message: copies and resends included, each is lost or arrives (W82).

use super::{arrival_evidence::ArrivalEvidence, loss_meter::LossMeter};

/// Fates of the transmissions of a message, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransmissionFates {
    /// Transmissions about which nothing is known.
    unsettled: u8,
    /// Transmissions that count as lost.
    missing: u8,
    /// Transmissions that have arrived.
    arrivals: u8,
    /// Whether the first transmission or its copy has arrived before anything was resent: what is unsettled or missing is the
    /// other of the two.
    is_pair: bool,
}

impl TransmissionFates {
    /// The message, or a copy of it, is sent.
    pub fn on_sent(&mut self) {
        self.unsettled = self.unsettled.saturating_add(1);
    }

    /// What was sent counts as lost. `is_pair`: that is the first transmission and its copy.
    pub fn on_lost(&mut self, meter: &mut LossMeter, is_pair: bool) {
        if is_pair {
            meter.add_lost_pair();
        }
        (0..self.unsettled).for_each(|_| meter.add(true));
        self.missing = self.missing.saturating_add(self.unsettled);
        self.unsettled = 0;
    }

    /// The first ack arrives. `is_pair`: only the first transmission and its copy were sent. `is_of_last`: it comes late enough to
    /// be caused by the last transmission.
    pub fn on_first_ack(&mut self, meter: &mut LossMeter, is_pair: bool, is_of_last: bool) {
        self.is_pair = is_pair && self.unsettled == 2;
        self.arrivals = 1;
        if self.missing > 0 && (self.unsettled == 0 || !is_of_last) {
            self.missing -= 1;
            meter.take_back();
        } else {
            self.unsettled = self.unsettled.saturating_sub(1);
            meter.add(false);
        }
        if self.is_pair {
            meter.add_arrived_pair();
        }
    }

    /// What the first ack says beyond the first arrival: if the message was resent, that was the arrival of the last transmission, and
    /// the others are of earlier ones that counted as lost.
    pub fn on_first_evidence(&mut self, meter: &mut LossMeter, evidence: ArrivalEvidence) {
        while self.arrivals < evidence.arrivals && self.missing > 0 {
            self.arrivals += 1;
            self.missing -= 1;
            meter.take_back();
        }
        self.raise(meter, evidence.arrivals);
    }

    /// What a later ack says. `is_due`: it comes late enough to be caused by the last transmission, or by its copy.
    pub fn on_evidence(&mut self, meter: &mut LossMeter, evidence: ArrivalEvidence, is_due: bool) {
        self.raise(meter, evidence.arrivals);
        if !evidence.is_exact || evidence.arrivals != self.arrivals || !is_due || self.unsettled == 0 {
            return;
        }
        if self.is_pair {
            meter.add_copy(true);
        } else if meter.peer_reports_copies() {
            (0..self.unsettled).for_each(|_| meter.add(true));
        } else {
            return;
        }
        self.missing = self.missing.saturating_add(self.unsettled);
        self.unsettled = 0;
    }

    /// Whether acks may still change something.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.unsettled > 0 || self.missing > 0
    }

    /// The message has arrived at least this often. What was sent last arrived last.
    fn raise(&mut self, meter: &mut LossMeter, arrivals: u8) {
        while self.arrivals < arrivals && self.is_open() {
            self.arrivals += 1;
            match (self.unsettled > 0, self.is_pair) {
                (true, true) => meter.add_copy(false),
                (true, false) => meter.add(false),
                (false, true) => meter.take_back_copy(),
                (false, false) => meter.take_back(),
            }
            if self.unsettled > 0 {
                self.unsettled -= 1;
            } else {
                self.missing -= 1;
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
        let mut fates = TransmissionFates::default();
        fates.on_sent();
        fates.on_lost(&mut meter, false);
        assert_eq!(meter.loss(), 1.0);
        fates.on_sent();
        fates.on_first_ack(&mut meter, false, true);
        assert!((meter.loss() - 0.5).abs() < 0.001, "{meter:?}");
        fates.on_evidence(&mut meter, TWICE, true);
        assert_eq!((meter.loss(), fates.is_open()), (0.0, false));
    }

    #[test]
    fn w82_of_a_pair_the_second_arrives_or_is_lost_and_may_be_late() {
        let mut meter = LossMeter::default();
        let mut fates = TransmissionFates::default();
        fates.on_sent();
        fates.on_sent();
        fates.on_first_ack(&mut meter, true, true);
        fates.on_evidence(&mut meter, ONCE, false);
        assert_eq!(meter.loss(), 0.0, "too early to tell");
        // A pair of which both arrive shows that the peer tells.
        let mut other = fates;
        other.on_evidence(&mut meter, TWICE, true);
        fates.on_evidence(&mut meter, ONCE, true);
        assert!(meter.loss() > 0.0 && fates.is_open());
        fates.on_evidence(&mut meter, TWICE, true);
        assert_eq!((meter.loss(), fates.is_open()), (0.0, false));
    }
}
