//! The task that reads one list of a scan.

#[cfg(feature = "http")]
use crate::mirror::{MirrorConfig, MirrorEvent};
use crate::{FetchedServer, ListSummary, ProbeError, ScanConfig, Target, list::fetch_list};
#[cfg(feature = "http")]
use std::sync::Arc;
use tokio::sync::mpsc;

/// A list that is being read.
pub(super) struct ListTask {
    /// Index of the target.
    pub index: usize,
    pub target: Target,
    pub config: ScanConfig,
    /// Where to read the list if the lobby does not answer.
    #[cfg(feature = "http")]
    pub mirrors: Option<Arc<MirrorConfig>>,
    pub sender: mpsc::UnboundedSender<ListEvent>,
}

/// Progress of a list, with the index of its target.
#[derive(Debug)]
pub(super) enum ListEvent {
    Server(usize, Box<FetchedServer>),
    Done(usize, Result<ListSummary, ProbeError>),
    #[cfg(feature = "http")]
    Mirror(usize, Box<MirrorEvent>),
}

impl ListTask {
    /// Reads the list, and sends what it finds. Nothing is received after the scan has ended, so errors of sending are ignored.
    pub async fn run(self) {
        let result = self.fetch().await;
        let _ = self.sender.send(ListEvent::Done(self.index, result));
    }

    /// Reads the list from the lobby.
    #[cfg(not(feature = "http"))]
    async fn fetch(&self) -> Result<ListSummary, ProbeError> {
        fetch_list(&self.target, &self.config, |server| self.send(server)).await
    }

    /// Reads the list from the lobby, or else from a mirror.
    #[cfg(feature = "http")]
    async fn fetch(&self) -> Result<ListSummary, ProbeError> {
        let Self { index, target, config, mirrors, sender } = self;
        let mut is_empty = true;
        let on_server = |server| {
            is_empty = false;
            self.send(server);
        };
        let result = fetch_list(target, config, on_server).await;
        let Some(mirrors) = mirrors else { return result };
        match result {
            // A list that broke off is better than a copy.
            Err(error) if is_empty => {
                let on_event = |event| drop(sender.send(ListEvent::Mirror(*index, Box::new(event))));
                mirrors.fall_back(target, config, error, on_event, |server| self.send(server)).await
            }
            Ok(summary) => {
                mirrors.learn_key(target, config).await;
                Ok(summary)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&self, server: FetchedServer) {
        let _ = self.sender.send(ListEvent::Server(self.index, Box::new(server)));
    }
}
