//! Messages to several players, which share their bytes.

use super::ChannelServer;
use crate::{
    PlayerId, SendError,
    channels::{ChannelIndex, MessageId, message_store::OutgoingMessage},
};
use std::{sync::Arc, time::Instant};

impl ChannelServer {
    /// Sends a message to several players; its bytes are kept once. `refused` is called for each player that it cannot be sent to.
    pub fn broadcast(
        &mut self,
        now: Instant,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        mut refused: impl FnMut(PlayerId, SendError),
    ) {
        self.broadcast_with(now, players, channel, message, |player, sent| {
            if let Err(error) = sent {
                refused(player, error);
            }
        });
    }

    /// Like [`broadcast`](Self::broadcast), with a function that is called for each player: with the ID of its message,
    /// which [`ServerEvent::Receipt`](crate::ServerEvent::Receipt) names, or with the reason why it cannot be sent.
    pub fn broadcast_with(
        &mut self,
        now: Instant,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        mut report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        self.now = now;
        let message = message.into();
        for player in players {
            let Some(own) = self.sessions.get_mut(player) else {
                report(player, Err(SendError::UnknownPlayer));
                continue;
            };
            let message = OutgoingMessage::Shared(&message);
            if !self.queues.take(player, own, message) {
                report(player, Err(SendError::WouldBlock));
                continue;
            }
            let sent = own.layer.send(now, channel, message);
            if sent.is_err() {
                self.queues.count(own);
            } else if !std::mem::replace(&mut own.is_woken, true) {
                self.wake(player);
            }
            report(player, sent);
        }
    }
}
