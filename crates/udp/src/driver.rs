//! Drives a state machine on real sockets.
//!
//! One thread owns the machine, so nothing in it needs a lock. Each turn it takes a batch from every socket that has
//! something, lets the time pass that has passed, sends what there is to send, and does what others asked for; then it
//! waits for whatever comes next. It never pauses while there is something to receive.

use crate::{
    RecvBatch, SendBatch, UdpSocket, Undelivered, clock,
    sys::{self, BATCH, Watch},
    waker::Waker,
};
use rallypoint_machine::{Machine, Transmit};
use std::{
    fmt, io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How many datagrams are sent, errors are taken and commands are run before the sockets are looked at again.
const PER_TURN: usize = 4 * BATCH;

/// A turn that begins so much too late means that this process was halted, and after that it takes at most this long to
/// receive what has arrived meanwhile.
const HALT: Duration = Duration::from_secs(1);

/// What a [`Driver`] drives: a state machine (see [`Solo`]), or something around one.
pub trait Driven: Send + 'static {
    /// Datagrams arrived at one of the sockets, counted from 0.
    fn handle_batch(&mut self, now: Instant, socket: usize, batch: &RecvBatch);

    /// The network says that a datagram did not arrive. It is asked for that with [`UdpSocket::keep_errors`].
    fn handle_undelivered(&mut self, _undelivered: &Undelivered) {}

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagrams to send, as in [`Machine::poll_transmit`].
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// A turn ends: the time to take the machine's events.
    fn handle_turn(&mut self, now: Instant);

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The longest datagram of interest, in bytes: longer ones arrive cut. It may change.
    fn max_datagram(&self) -> usize;
}

/// A thread that drives something. Dropping it ends the thread.
pub struct Driver<D> {
    commands: Commands<D>,
    thread: Option<JoinHandle<D>>,
}

/// A way to have something done by the thread of a [`Driver`].
pub struct Commands<D> {
    sender: mpsc::Sender<Command<D>>,
    waker: Arc<Waker>,
}

enum Command<D> {
    Run(Task<D>),
    Stop,
}

type Task<D> = Box<dyn FnOnce(&mut D, Instant) + Send>;

impl<D: Driven> Driver<D> {
    /// Starts a thread. `make` makes what it drives, and can keep the [`Commands`] for whoever has to report to it.
    pub fn start(name: &str, sockets: Vec<Arc<UdpSocket>>, make: impl FnOnce(Commands<D>) -> D) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let waker = Arc::new(Waker::new()?);
        let commands = Commands { sender, waker: waker.clone() };
        let driven = make(commands.clone());
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            let mut watches = vec![waker.watch()];
            watches.extend(sockets.iter().map(|socket| Watch::new(&**socket)));
            let (received, outgoing) = (RecvBatch::new(driven.max_datagram()), SendBatch::default());
            Loop { driven, sockets, watches, waker, receiver, received, outgoing }.run()
        })?;
        Ok(Self { commands, thread: Some(thread) })
    }

    /// For having something done by the thread.
    #[must_use]
    pub fn commands(&self) -> &Commands<D> {
        &self.commands
    }

    /// Ends the thread, after it has done everything it was asked for before, and gives back what it drove. `None` if the
    /// thread panicked.
    #[must_use]
    pub fn stop(mut self) -> Option<D> {
        self.end()
    }
}

impl<D> Driver<D> {
    fn end(&mut self) -> Option<D> {
        let thread = self.thread.take()?;
        self.commands.push(Command::Stop);
        thread.join().ok()
    }
}

impl<D> Drop for Driver<D> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<D> Commands<D> {
    /// Has something done. Nothing happens if the thread has ended.
    pub fn run(&self, command: impl FnOnce(&mut D, Instant) + Send + 'static) {
        self.push(Command::Run(Box::new(command)));
    }

    /// Has something done and waits for what comes of it. `None` if the thread has ended.
    #[cfg(feature = "async")]
    pub async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut D, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.run(move |driven, now| {
            let _ = answer.send(question(driven, now));
        });
        answered.await.ok()
    }

    fn push(&self, command: Command<D>) {
        let _ = self.sender.send(command);
        self.waker.wake();
    }
}

impl<D> Clone for Commands<D> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: self.waker.clone() }
    }
}

impl<D> fmt::Debug for Commands<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commands")
    }
}

impl<D> fmt::Debug for Driver<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

/// A [`Machine`] on its own: its events go to a function.
#[derive(Debug)]
pub struct Solo<M, F> {
    /// The machine.
    pub machine: M,
    /// Is told its events, in the thread of the driver.
    pub on_event: F,
    /// The longest datagram of interest, in bytes.
    pub max_datagram: usize,
}

impl<M: Machine + Send + 'static, F: FnMut(M::Event) + Send + 'static> Driven for Solo<M, F> {
    fn handle_batch(&mut self, now: Instant, _socket: usize, batch: &RecvBatch) {
        for datagram in batch.iter().filter(|datagram| !datagram.is_cut()) {
            self.machine.handle_datagram(now, datagram.from, datagram.bytes);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.machine.poll_transmit(now, out)
    }

    fn handle_turn(&mut self, _now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            (self.on_event)(event);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn max_datagram(&self) -> usize {
        self.max_datagram
    }
}

/// What the thread has.
struct Loop<D> {
    driven: D,
    sockets: Vec<Arc<UdpSocket>>,
    /// The waker, then the sockets.
    watches: Vec<Watch>,
    waker: Arc<Waker>,
    receiver: mpsc::Receiver<Command<D>>,
    received: RecvBatch,
    outgoing: SendBatch,
}

impl<D: Driven> Loop<D> {
    fn run(mut self) -> D {
        let (mut is_busy, mut last) = (false, clock::now());
        loop {
            let until = if is_busy { Some(last) } else { self.driven.poll_timeout() };
            self.wait(until);
            let now = clock::now();
            self.receive(now);
            if until.is_some_and(|until| now.saturating_duration_since(until.max(last)) > HALT) {
                self.catch_up(now);
            }
            last = now;
            let Some(more_commands) = self.run_commands(now) else { return self.driven };
            if self.driven.poll_timeout().is_some_and(|at| at <= now) {
                self.driven.handle_timeout(now);
            }
            let more_to_send = self.transmit(now);
            self.driven.handle_turn(now);
            is_busy = more_commands || more_to_send;
        }
    }

    fn wait(&mut self, until: Option<Instant>) {
        let timeout = until.map(|until| until.saturating_duration_since(clock::now()));
        if let Err(error) = sys::wait(&mut self.watches, timeout) {
            // Only for want of memory: go on with whatever can be received.
            tracing::warn!(%error, "cannot wait for sockets");
        }
    }

    fn receive(&mut self, now: Instant) {
        if self.received.max() != self.driven.max_datagram() {
            self.received = RecvBatch::new(self.driven.max_datagram());
        }
        for (index, (socket, watch)) in self.sockets.iter().zip(&self.watches[1..]).enumerate() {
            if watch.has_error() {
                let errors = std::iter::from_fn(|| socket.next_error().ok().flatten());
                errors.take(PER_TURN).for_each(|undelivered| self.driven.handle_undelivered(&undelivered));
            }
            if !watch.is_readable() {
                continue;
            }
            match self.received.receive(socket) {
                Ok(()) => self.driven.handle_batch(now, index, &self.received),
                Err(error) => tracing::debug!(%error, "a socket reports an error"),
            }
        }
    }

    /// Receives all that has arrived before any time passes: what ran out while this process was halted may have been renewed
    /// in time, by a datagram that waits here.
    fn catch_up(&mut self, now: Instant) {
        while clock::now() < now + HALT {
            self.wait(Some(now));
            if !self.watches[1..].iter().any(Watch::is_readable) {
                return;
            }
            self.receive(now);
        }
    }

    /// Does what others asked for. Says whether there may be more of it; `None` if the thread is to end.
    fn run_commands(&mut self, now: Instant) -> Option<bool> {
        if self.watches[0].is_readable() {
            self.waker.clear();
        }
        for _ in 0..PER_TURN {
            match self.receiver.try_recv() {
                Ok(Command::Run(command)) => command(&mut self.driven, now),
                Ok(Command::Stop) => return None,
                Err(_) => return Some(false),
            }
        }
        Some(true)
    }

    /// Sends what there is. While a socket has no room, nothing more is taken from the machine. Says whether there may be
    /// more to send at once.
    fn transmit(&mut self, now: Instant) -> bool {
        let mut sent = 0;
        let mut full = self.outgoing.flush(&self.sockets);
        while full.is_none() && sent < PER_TURN {
            self.outgoing.fill(BATCH, |out| self.driven.poll_transmit(now, out));
            if self.outgoing.is_empty() {
                break;
            }
            sent += BATCH;
            full = self.outgoing.flush(&self.sockets);
        }
        for (index, watch) in self.watches[1..].iter_mut().enumerate() {
            watch.also_writable(full == Some(index));
        }
        full.is_none() && sent >= PER_TURN
    }
}
