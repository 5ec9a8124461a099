//! Scans on a thread of its own, so that keys are never slow.

use crate::{error::CommandError, runtime, scan_args::ScanArgs};
use rallypoint_query::{ScanEvent, ScannedServer, Scanner, Target, mirror::MirrorConfig, proto::Detail};
use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};

/// The thread that scans. Dropping this ends it.
pub struct Worker {
    commands: Option<mpsc::UnboundedSender<WorkerCommand>>,
    /// Reports of the thread.
    pub events: Receiver<WorkerEvent>,
    thread: Option<JoinHandle<Result<(), CommandError>>>,
}

/// A command to the thread.
pub enum WorkerCommand {
    /// Scan all targets, and probe these servers as well.
    Scan(Vec<ScannedServer>),
    /// Probe one server.
    ProbeAgain(Box<ScannedServer>),
}

/// A report of the thread.
pub enum WorkerEvent {
    Scan(Box<ScanEvent>),
    /// A pass over all targets has ended.
    PassEnded,
}

/// Maximum number of events that wait to be drawn.
const MAX_EVENTS: usize = 4_096;

/// Interval at which the thread checks whether its owner is gone.
const CLOSE_CHECK: Duration = Duration::from_millis(50);

impl Worker {
    /// `connect_tcp`: whether to connect to TCP servers that have no query, for their ping.
    pub fn start(
        scan: &ScanArgs,
        targets: Vec<Target>,
        connect_tcp: bool,
        mirrors: Option<MirrorConfig>,
    ) -> Result<Self, CommandError> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let (sender, events) = sync_channel(MAX_EVENTS);
        let scan = scan.clone();
        // Invalid flags are reported before the screen is taken over.
        scan.validate()?;
        let thread = std::thread::Builder::new()
            .name("worker".into())
            .spawn(move || runtime::block_on(run(scan, targets, connect_tcp, mirrors, receiver, sender)))
            .map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { commands: Some(commands), events, thread: Some(thread) })
    }

    pub fn send(&self, command: WorkerCommand) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// Ends the thread, and returns its error if there was one.
    pub fn stop(mut self) -> Result<(), CommandError> {
        self.commands = None;
        // Unblocks the thread if it waits for room in the channel.
        drop(std::mem::replace(&mut self.events, sync_channel(0).1));
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(CommandError::failed("internal error: the thread that scans has panicked")),
            Some(Ok(result)) => result,
            None => Ok(()),
        }
    }
}

async fn run(
    scan: ScanArgs,
    targets: Vec<Target>,
    connect_tcp: bool,
    mirrors: Option<MirrorConfig>,
    mut commands: mpsc::UnboundedReceiver<WorkerCommand>,
    events: SyncSender<WorkerEvent>,
) -> Result<(), CommandError> {
    let mut scanner = match connect_tcp {
        true => scan.scanner_with_tcp(targets, Some(Detail::Players))?,
        false => scan.scanner(targets, Some(Detail::Players))?,
    };
    scanner.set_mirrors(mirrors);
    while let Some(command) = commands.recv().await {
        tokio::select! {
            () = execute(&mut scanner, command, &events) => {}
            // Commands wait for the current one to end; the end of the program does not.
            () = wait_for_close(&commands) => break,
        }
    }
    Ok(())
}

async fn execute(scanner: &mut Scanner, command: WorkerCommand, events: &SyncSender<WorkerEvent>) {
    let report = |event| drop(events.send(WorkerEvent::Scan(Box::new(event))));
    match command {
        WorkerCommand::Scan(more) => {
            more.into_iter().for_each(|server| scanner.probe_again(server));
            scanner.scan(report).await;
            let _ = events.send(WorkerEvent::PassEnded);
        }
        WorkerCommand::ProbeAgain(server) => {
            scanner.probe_again(*server);
            scanner.finish(report).await;
        }
    }
}

async fn wait_for_close(commands: &mpsc::UnboundedReceiver<WorkerCommand>) {
    while !commands.is_closed() {
        sleep(CLOSE_CHECK).await;
    }
}
