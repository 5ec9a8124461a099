//! Reading one list of a lobby, or of a legacy lobby (L16), over a connection.

use super::{Count, FetchedServer};
use crate::{ProbeError, tcp::TimedStream};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::{
    legacy,
    lobby::{self, ListBlock, ListId, ListReader, ListRequest, ProtocolId},
};
use std::net::SocketAddr;

const READ_BUFFER: usize = 64 << 10;

pub(super) async fn read_lobby(
    mut stream: TimedStream,
    list_id: ListId,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    let mut request = Vec::new();
    ListRequest { list_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let mut reader = ListReader::new();
    let mut buffer = vec![0; READ_BUFFER];
    let mut count = Count::default();
    let mut is_web_server = false;
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return match reader.finish() {
                Ok(()) => Ok(count),
                Err(_) if is_web_server => Err(ProbeError::Malformed(format!(
                    "this is a web server; for the lobby of a page, use http://{}/ or https://",
                    stream.peer
                ))),
                // The bytes that arrived do not begin like a list.
                Err(error) if count.servers == 0 => {
                    Err(ProbeError::Malformed(format!("{error}; is this a lobby's port ({})?", lobby::PORT)))
                }
                Err(error) => Err(error.into()),
            };
        }
        is_web_server |= buffer[..read].starts_with(b"HTTP/");
        reader.push(&buffer[..read]);
        while let Some(block) = reader.next_block() {
            let endpoints: Vec<_> = block.iter().flat_map(ListBlock::endpoints).collect();
            match block {
                Ok(block) if !endpoints.is_empty() => {
                    count.add_server()?;
                    on_server(FetchedServer {
                        info: ServerInfo::from_list(&block),
                        endpoints,
                        protocol: None,
                        list: Some(list_id),
                        list_name: None,
                    });
                }
                _ => count.add_malformed()?,
            }
        }
    }
}

pub(super) async fn read_legacy_lobby(
    mut stream: TimedStream,
    protocol_id: ProtocolId,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    let mut request = Vec::new();
    legacy::ListRequest { protocol_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let mut reader = legacy::ListReader::new();
    let mut buffer = vec![0; READ_BUFFER];
    let mut count = Count::default();
    // Passed on when the list is complete: almost any bytes begin like a legacy list, and it has at most 255 servers.
    let mut servers = Vec::new();
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            reader.finish().map_err(|error| {
                ProbeError::Malformed(format!("{error}; is this the port of a legacy lobby ({})?", legacy::PORT))
            })?;
            servers.into_iter().for_each(on_server);
            return Ok(count);
        }
        reader.push(&buffer[..read]);
        while let Some(entry) = reader.next_entry() {
            match entry {
                Ok(entry) => {
                    count.add_server()?;
                    let endpoints = vec![SocketAddr::from(entry.endpoint)];
                    servers.push(FetchedServer {
                        info: ServerInfo::from_legacy(&entry.info),
                        endpoints,
                        protocol: None,
                        list: None,
                        list_name: None,
                    });
                }
                Err(_) => count.add_malformed()?,
            }
        }
    }
}
