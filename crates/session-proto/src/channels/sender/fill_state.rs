//! How much may be handed over to the connection, and of what.

use crate::{
    Connection,
    channels::{
        bulk_limit::{BulkAdmission, BulkLimit},
        urgent_traffic::UrgentTraffic,
    },
};
use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::Instant;

/// The remaining budgets while messages are handed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillState {
    /// Number of bytes that would be sent at once.
    budget: usize,
    /// Number of bytes by which the memory may grow.
    pub allowance: usize,
    pub in_flight: u64,
    /// Congestion window in bytes.
    window: u64,
    /// Number of payloads with messages that must not be late, if only those may be handed over now.
    pub preceding: Option<u8>,
    /// Whether those are so few that they need not wait for the congestion window.
    may_overdraw: bool,
}

/// Messages that wait and must not be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    None,
    Some,
    /// They are few, and reliable ones wait as well, which make room for them.
    FewBesideBulk,
}

impl FillState {
    pub fn new(now: Instant, connection: &mut Connection, urgency: Urgency, allowance: usize) -> Self {
        let may_overdraw = urgency == Urgency::FewBesideBulk;
        let has_precedence = connection.has_precedence(now) || (may_overdraw && connection.is_window_full());
        let preceding = if has_precedence { Some(connection.max_preceding(may_overdraw)) } else { None };
        let may_send = preceding.is_none_or(|count| urgency != Urgency::None && count > 0);
        Self {
            budget: if may_send { connection.urgent_budget(now, has_precedence && may_overdraw) } else { 0 },
            may_overdraw,
            allowance,
            in_flight: connection.in_flight(),
            window: connection.window(),
            preceding,
        }
    }

    /// Whether another payload may be handed over.
    pub fn admits(&self, connection: &Connection) -> bool {
        let has_memory = self.allowance >= MAX_DATAGRAM || connection.unacked() == 0;
        self.budget >= MAX_DATAGRAM && has_memory && connection.is_writable()
    }

    /// Whether a reliable message may be handed over.
    pub fn check_bulk(&self, connection: &Connection, bulk: &BulkLimit, traffic: &UrgentTraffic) -> BulkAdmission {
        if self.preceding.is_some() || (traffic.is_active() && !connection.has_room_beside_urgent()) {
            BulkAdmission::WindowFull
        } else {
            bulk.check(self.in_flight, self.window, traffic)
        }
    }

    /// A payload was handed over, in a datagram of this size.
    pub fn on_sent(&mut self, connection: &mut Connection, size: usize) {
        if let Some(left) = &mut self.preceding {
            connection.precede_resends(self.may_overdraw);
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.budget = 0;
                return;
            }
        }
        self.in_flight += size as u64;
        self.budget = self.budget.saturating_sub(size);
        self.allowance = self.allowance.saturating_sub(MAX_DATAGRAM);
    }
}
