//! One pass of a scan for a waiting user: progress is shown, and Ctrl-C ends it.

use crate::{
    error::{CommandError, with_hint},
    exit::Exit,
    mirror_args,
    output::{CopyNote, FailedTarget, ListNote, Printer},
    port_hints,
    signals::Signals,
};
use rallypoint_query::{
    ListSummary, ProbeError, ScanEvent, Scanner, ServerAddress, Target, milliseconds, mirror::MirrorEvent,
};
use std::{collections::HashMap, future::ready, io, net::SocketAddr, time::Duration};
use tokio::time::{interval, sleep};

/// A pass that is under way.
pub struct InteractiveScan {
    scanner: Scanner,
    answered: usize,
    /// Whether there were events since the last pause.
    has_events: bool,
    signals: Signals,
    is_stopped: bool,
    /// Targets whose lists are copies of mirrors, by index.
    copies: HashMap<usize, CopyNote>,
}

/// Events within this time are handled together: waking up for each one of thousands costs more than printing it.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// Identifier of a copy that is not used, beside those of [`ProbeError::code`].
const MIRROR_ERROR: &str = "mirror";

/// Interval between updates of the progress bar.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

impl InteractiveScan {
    /// Begins a pass.
    pub fn start(mut scanner: Scanner) -> Result<Self, CommandError> {
        let signals = Signals::to_stop().map_err(CommandError::failed)?;
        scanner.begin_pass();
        Ok(Self { scanner, answered: 0, has_events: false, signals, is_stopped: false, copies: HashMap::new() })
    }

    /// The next event; `None` at the end of the pass, or after Ctrl-C: what arrived by then is worth printing.
    ///
    /// # Errors
    /// If what was printed before cannot be written.
    pub async fn next(&mut self, printer: &mut Printer) -> io::Result<Option<ScanEvent>> {
        let event = self.wait(printer).await?;
        self.answered += usize::from(matches!(event, Some(ScanEvent::Answered(_))));
        self.has_events = true;
        Ok(event)
    }

    async fn wait(&mut self, printer: &mut Printer) -> io::Result<Option<ScanEvent>> {
        if !self.is_stopped {
            tokio::select! {
                biased;
                event = self.scanner.next() => return Ok(event),
                () = ready(()) => {}
            }
        }
        // No event is ready: the reader gets what there is, in one piece.
        printer.flush()?;
        if std::mem::take(&mut self.has_events) && !self.is_stopped {
            tokio::select! {
                () = sleep(BATCH_DELAY) => {}
                () = self.signals.stop() => self.is_stopped = true,
            }
        }
        let mut tick = interval(PROGRESS_INTERVAL);
        while !self.is_stopped {
            tokio::select! {
                biased;
                event = self.scanner.next() => return Ok(event),
                () = self.signals.stop() => self.is_stopped = true,
                _ = tick.tick(), if printer.progress.is_enabled() => {
                    let progress = self.scanner.progress();
                    printer.progress.show(progress.total - progress.pending, progress.total, self.answered);
                }
            }
        }
        Ok(None)
    }

    /// The target with this index.
    pub fn target(&self, index: usize) -> Option<&Target> {
        self.scanner.targets().get(index)
    }

    /// The name of a target, as the user wrote it.
    pub fn target_name(&self, index: usize) -> String {
        self.scanner.targets()[index].to_string()
    }

    /// The exit code of the pass, given that of everything printed.
    pub fn exit(&self, exit: Exit) -> Exit {
        if self.is_stopped { exit.and(Exit::Silent) } else { exit }
    }

    /// Prints a list that is complete.
    pub fn print_list(&self, index: usize, summary: ListSummary, printer: &mut Printer) -> io::Result<Exit> {
        let ListSummary { from, connect_time, servers, malformed, .. } = summary;
        printer.list(ListNote {
            target: self.target_name(index),
            address: from,
            servers,
            malformed,
            connect_ms: milliseconds(connect_time),
            copy: self.copies.get(&index).cloned(),
        })?;
        Ok(Exit::Answered)
    }

    /// Prints what happened with a mirror, on standard error: the servers of its copy, if it is used, follow. A copy that is not
    /// used is also one of the errors in formats for programs.
    pub fn print_mirror(&mut self, index: usize, event: &MirrorEvent, printer: &mut Printer) -> io::Result<Exit> {
        match event {
            MirrorEvent::Failed { url, error } => {
                let message = mirror_args::describe_refusal(error);
                let target = url.to_string();
                printer.failed_target(FailedTarget { target, address: None, error: MIRROR_ERROR, message })?;
            }
            MirrorEvent::Used(list) => {
                for line in mirror_args::lines(list) {
                    printer.message(line)?;
                }
                let copy = CopyNote { mirror: list.url.to_string(), age_s: list.age.as_secs() };
                self.copies.insert(index, copy);
            }
        }
        Ok(Exit::Answered)
    }

    /// Prints a list that could not be read, with a hint for the user.
    pub fn print_list_failure(
        &self,
        index: usize,
        error: &ProbeError,
        hint: Option<String>,
        printer: &mut Printer,
    ) -> io::Result<Exit> {
        print_failure(self.target_name(index), None, error, with_hint(&error.to_string(), hint), printer)
    }
}

/// The message for a server that did not answer its query.
pub fn query_failure(error: &ProbeError) -> String {
    match error {
        ProbeError::Refused => {
            "refused: nothing answers queries at that UDP port; is it the right one, and is the server \
                                running? Games that use TCP only cannot be queried, but rallypoint doctor checks them"
                .into()
        }
        error => error.to_string(),
    }
}

/// A hint for a server that may be a lobby: a host without port and protocol, or with a port of lobbies.
pub fn lobby_hint(target: Option<&Target>, error: &ProbeError) -> Option<String> {
    let (ProbeError::TimedOut(_) | ProbeError::Refused) = error else { return None };
    let Some(Target::Server(ServerAddress { host, port, protocol })) = target else { return None };
    match port {
        None => protocol.is_none().then(|| format!("if it is a lobby, use lobby://{host}")),
        Some(port) => port_hints::for_server(host, port.get()),
    }
}

/// Prints a target that gave no answer.
pub fn print_failure(
    target: String,
    address: Option<SocketAddr>,
    error: &ProbeError,
    message: String,
    printer: &mut Printer,
) -> io::Result<Exit> {
    printer.failed_target(FailedTarget { target, address, error: error.code(), message })?;
    Ok(error.into())
}
