//! The door of documents 000 and 001: registrations over UDP, lists over TCP.

use super::{Datagrams, Door, DoorReply, DoorSockets, RequestDoor};
use crate::PublishedLists;
use rallypoint_wire::{
    DecodeError,
    lobby::{ListRequest, PORT},
};
use std::time::Instant;

/// The lobby protocol of documents 000 and 001.
pub static LOBBY: Door = Door {
    name: "lobby",
    code: 1,
    title: "lobby protocol (documents 000 and 001)",
    is_default: true,
    sockets: Some(DoorSockets {
        setting: "lobby.listen",
        default: "0.0.0.0:29944, [::]:29944",
        about: "Addresses the lobby listens on, UDP and TCP. [::] means IPv6 only and is skipped on a machine without IPv6.",
        port: PORT,
        datagrams: Some(Datagrams::Registrations),
        requests: Some(|| Box::new(Requests)),
    }),
    http: None,
    query: None,
};

#[derive(Debug)]
struct Requests;

impl RequestDoor for Requests {
    fn reply(&self, _now: Instant, lists: &PublishedLists, request: &[u8]) -> Result<DoorReply, DecodeError> {
        let request = ListRequest::parse(request)?;
        Ok(DoorReply::List(lists.reply(&request.list_id)))
    }
}
