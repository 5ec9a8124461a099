//! Messages of which each fills a payload by itself.

use super::{FillState, Sender};
use crate::{
    Connection,
    channels::{priority_group::bit, reliable_limit::ReliableAdmission},
};
use rallypoint_wire::session::{MAX_DATAGRAM, channels::message_header};
use std::time::Instant;

impl Sender {
    /// Whether what waits is a single message, without fragments.
    pub(super) fn has_single_message(&self, limit: usize) -> bool {
        let position = self.waiting.trailing_zeros() as usize;
        self.waiting.is_power_of_two() && self.channels.get(position).is_some_and(|channel| channel.is_single(limit))
    }

    /// Sends messages of the only waiting channel while each fills a payload by itself, so that nothing has to be chosen or packed.
    /// This is the common case for downloads and for one position per frame.
    pub(super) fn fill_single(&mut self, now: Instant, connection: &mut Connection, state: &mut FillState) {
        let Self { channels, waiting, reliable, delay_limited, reliable_limit, traffic, .. } = self;
        if !waiting.is_power_of_two() {
            return;
        }
        let position = waiting.trailing_zeros() as usize;
        let Some(channel) = channels.get_mut(position).filter(|channel| channel.rate.is_none()) else { return };
        let size = connection.max_message();
        if *waiting & *reliable == 0 {
            if self.droppable_limit.is_unlimited() && state.admits(connection) {
                self.fill_single_droppable(now, connection, state, position);
            }
            return;
        }
        // One that goes before all others is not limited by delay, which is left to the general case.
        if *waiting & *delay_limited == 0 && traffic.is_active() {
            return;
        }
        while state.admits(connection)
            && state.check_reliable(connection, reliable_limit, traffic) == ReliableAdmission::Admitted
            && let Some((number, message)) = channel.front_single(size)
        {
            let header = message_header(channel.index, number as u16);
            let sent = header.len() + message.len() + MAX_DATAGRAM - size;
            if connection.send_numbered(now, &header, message, state.allowance).is_err() {
                return;
            }
            channel.pop();
            state.on_sent(connection, sent);
        }
        if channel.is_empty() {
            *waiting = 0;
        }
    }

    /// [`fill_single`](Self::fill_single) with a single droppable message.
    fn fill_single_droppable(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut FillState,
        position: usize,
    ) {
        let Self { channels, waiting, traffic, newest, .. } = self;
        let size = connection.max_message();
        let Some(channel) = channels.get_mut(position).filter(|channel| channel.is_single(size)) else { return };
        let index = channel.index;
        let Some(front) = channel.start_front() else { return };
        let header = message_header(index, *front.number as u16);
        let sent = header.len() + front.bytes.len() + MAX_DATAGRAM - size;
        let expires_at = front.expires_at;
        // The session is open and has room: that was just checked.
        let Ok(number) = connection.send_numbered(now, &header, front.bytes, state.allowance) else { return };
        channel.pop();
        *waiting = 0;
        if let Some(expires_at) = expires_at {
            connection.discard_at(number, expires_at);
        } else {
            if let Some(replaced) = channel.newest_payload.replace(number) {
                connection.discard_at(replaced, now);
            }
            newest.supersede(now, bit(position), |number, at| connection.discard_at(number, at));
        }
        traffic.on_sent(now, sent);
        state.on_sent(connection, sent);
    }
}
