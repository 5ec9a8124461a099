//! The effect of an ack on a message, and through it on the knowledge about the path.

use super::congestion::DeliverySnapshot;
use rallypoint_wire::session::{MessageNumber, NumberList};
use std::time::{Duration, Instant};

/// A received ack, with the time limits for interpreting it.
#[derive(Debug)]
pub(crate) struct ReceivedAck<'a> {
    pub now: Instant,
    pub numbers: NumberList<'a>,
    /// The newest of the numbers.
    pub newest: MessageNumber,
    /// An ack that arrives within this time of a transmission cannot come from the peer, and is ignored (W62).
    pub floor: Duration,
    /// An ack that arrives sooner than this after a resend acknowledges an earlier transmission.
    pub min_resend_rtt: Duration,
    /// From this time after a transmission on, an ack could already report it and its copy (W82).
    pub evidence_delay: Duration,
    /// Number of its numbers that were acked before and may still be evaluated for how often their messages arrived (W82).
    pub repetitions_left: u8,
}

impl ReceivedAck<'_> {
    /// Initial value of [`repetitions_left`](Self::repetitions_left): twice as many as a peer repeats. Each of them takes a
    /// pass over the whole list, and anyone can forge acks of 63 numbers.
    pub const MAX_REPETITIONS: u8 = 16;
}

/// Effect of an ack on a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AckEffect {
    /// The message is unknown, or was acked before.
    None,
    /// The ack came sooner after the transmission than it can, and was ignored.
    Early(Duration),
    Acked(AckedMessage),
}

/// Effect of an ack on a message that was not acked before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedMessage {
    pub len: u64,
    /// Position of its last transmission in the order of all transmissions.
    pub order: u64,
    /// Time since its transmission, if there was only one (Karn's algorithm).
    pub rtt: Option<Duration>,
    pub first_sent_at: Instant,
    /// Whether it was resent because several later transmissions were acked: it was lost, and not late.
    pub is_overtaken: bool,
    pub snapshot: Option<DeliverySnapshot>,
    /// Whether a copy was sent after the first transmission.
    pub is_copied: bool,
    /// Whether the first transmission was lost, and its copy if there was one.
    pub are_all_lost: bool,
    /// Loss sample of a first transmission without a copy: whether it was lost. Only for the first of several lost messages.
    pub loss_sample: Option<bool>,
    /// Whether it was resent although the ack came too soon to be caused by the resend.
    pub is_spurious_resend: bool,
    /// Whether it counted as lost and its only transmission, or its first of two, arrived nevertheless.
    pub is_spurious_loss: bool,
}

/// The times between the transmission of a message and two acks of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedAck {
    pub first: Duration,
    pub second: Duration,
}
