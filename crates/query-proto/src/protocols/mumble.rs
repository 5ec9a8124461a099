//! Mumble: one ping with a token, one datagram in reply. If it says that the patch level of the version does not fit, the ping
//! of version 1.5 is sent, too.

#[cfg(test)]
mod tests;

use crate::{
    Extension, MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        mumble::{self, Query, Status},
    },
};

/// The query protocol of Mumble.
pub(crate) struct Mumble;

const SHORT: Request = Request(0);
const EXTENDED: Request = Request(1);

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_short: bool,
    has_extended: bool,
    /// Whether the version in the short reply is not complete.
    is_overflown: bool,
}

impl QueryProtocol for Mumble {
    const MAX_DATAGRAM: usize = mumble::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let needs_extended = progress.is_overflown && !progress.has_extended && detail != Detail::Presence;
        Requests::only_if(SHORT, !progress.has_short).with(Requests::only_if(EXTENDED, needs_extended))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let token = mumble::Token(token().0);
        if request == EXTENDED { Query::Extended(token) } else { Query::Short(token) }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let status = Status::parse(datagram)?;
        let Some(attempt) = context.attempt_with(|token| token.0 == status.token.0) else {
            return Ok(Received::WrongToken);
        };
        let has_arrived = if status.is_extended { &mut progress.has_extended } else { &mut progress.has_short };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        if status.is_extended {
            // It was sent when the other reply arrived, later than the attempt began: no attempt is named.
            return Ok(Received::accepted(Requests::NONE));
        }
        progress.is_overflown = status.version[2] == mumble::PATCH_OVERFLOW;
        let next = Requests::only_if(EXTENDED, progress.is_overflown);
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), next, is_transient: false }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut short = None;
        let mut extended = None;
        for status in raw.datagrams().flat_map(Status::parse) {
            let latest = if status.is_extended { &mut extended } else { &mut short };
            *latest = Some(status);
        }
        // Fields of an extended reply that are 0 are left out, and so are those of one that is cut off.
        let Some(status) = short.or(extended) else { return (ServerInfo::default(), Vec::new()) };
        let [major, minor, patch] = extended.unwrap_or(status).version;
        let is_cut = progress.is_overflown && !progress.has_extended;
        let version = if is_cut { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
        let missing = is_cut && detail != Detail::Presence;
        let info = ServerInfo {
            game: Some("mumble".into()),
            game_name: Some("Mumble".into()),
            version: Some(version),
            players: u16::try_from(status.users).ok(),
            max_players: u16::try_from(status.max_users).ok(),
            extensions: [(Protocol::Mumble, Extension::from([("bandwidth", status.bandwidth.into())]))].into(),
            ..ServerInfo::default()
        };
        (info, missing.then_some(MissingPart::Part("extended ping (patch level)")).into_iter().collect())
    }
}
