//! How much may be handed over to the connection, and of what.

use crate::{
    Connection,
    channels::{
        droppable_traffic::DroppableTraffic,
        reliable_limit::{ReliableAdmission, ReliableLimit},
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
    /// Number of payloads with droppable messages, if only those may be handed over now.
    pub preceding: Option<u8>,
    /// Whether those are so few that they need not wait for the congestion window.
    may_overdraw: bool,
}

/// Whether droppable messages wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingDroppable {
    None,
    Some,
    /// They are few, and reliable ones wait as well, which make room for them.
    FewBesideReliable,
}

impl FillState {
    pub fn new(
        now: Instant,
        connection: &mut Connection,
        waiting_droppable: WaitingDroppable,
        allowance: usize,
    ) -> Self {
        let may_overdraw = waiting_droppable == WaitingDroppable::FewBesideReliable;
        let has_precedence = connection.has_precedence(now) || (may_overdraw && connection.is_window_full());
        let preceding = if has_precedence { Some(connection.max_preceding(may_overdraw)) } else { None };
        let may_send = preceding.is_none_or(|count| waiting_droppable != WaitingDroppable::None && count > 0);
        Self {
            budget: if may_send { connection.droppable_budget(now, has_precedence && may_overdraw) } else { 0 },
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
    pub fn check_reliable(
        &self,
        connection: &Connection,
        limit: &ReliableLimit,
        traffic: &DroppableTraffic,
    ) -> ReliableAdmission {
        if self.preceding.is_some() || (traffic.is_active() && !connection.has_room_beside_droppable()) {
            ReliableAdmission::WindowFull
        } else {
            limit.check(self.in_flight, self.window, traffic)
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
