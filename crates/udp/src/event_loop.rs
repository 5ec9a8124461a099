//! Runs a state machine on real sockets, in a thread of its own.
//!
//! One thread owns the machine, so nothing in it needs a lock. Each turn of the loop receives one batch from every socket
//! that is readable, runs the closures that other threads have posted, lets due timers fire, sends what the machine has to
//! send, and passes on its events; then it waits until a socket, a timer or another thread needs it. It never waits while
//! there is something to receive, unless the machine allows a [short delay](Machine::max_receive_delay) at high rates.

use crate::{
    RecvBatch, SendBatch, UdpSocket, clock,
    receive_moderation::ReceiveModeration,
    sys::{BATCH_SIZE, Poller, Waker},
};
use rallypoint_machine::{Machine, SocketIndex};
use std::{
    fmt, io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Number of datagrams that are sent between two readings of the clock. More would save hardly any system calls, but those at the
/// end of a batch leave later than the machine assumes: by 0.7 ms with 128.
const SEND_BATCH: usize = 32;

/// Maximum number of datagrams sent, of delivery errors taken and of posted closures run per turn, before the sockets are
/// polled again.
const MAX_PER_TURN: usize = 4 * BATCH_SIZE;

/// A turn that begins later than this after it was due means that the process was suspended. It is also the maximum time
/// that is then spent on receiving what has arrived meanwhile.
const SUSPENSION: Duration = Duration::from_secs(1);

/// An event loop that has its sockets and waits to be given a state machine.
///
/// ```
/// use rallypoint_machine::{Machine, Transmit};
/// use rallypoint_udp::{EventLoop, UdpSocket};
/// use std::{net::SocketAddr, sync::Arc, time::Instant};
///
/// /// Counts the datagrams that arrive, and reports each count.
/// #[derive(Default)]
/// struct Counter {
///     count: u32,
///     reported: u32,
/// }
///
/// impl Machine for Counter {
///     type Event = u32;
///     fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {
///         self.count += 1;
///     }
///     fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<Transmit> {
///         None
///     }
///     fn poll_event(&mut self) -> Option<u32> {
///         (self.reported < self.count).then(|| {
///             self.reported = self.count;
///             self.count
///         })
///     }
/// }
///
/// let socket = Arc::new(UdpSocket::bind("127.0.0.1:0".parse()?, 1 << 20)?);
/// let addr = socket.local_addr();
/// let (sender, events) = std::sync::mpsc::channel();
/// let thread = EventLoop::new(vec![socket])?.spawn("counter", Counter::default(), move |count| {
///     let _ = sender.send(count);
/// })?;
/// std::net::UdpSocket::bind("127.0.0.1:0")?.send_to(b"hello", addr)?;
/// assert_eq!(events.recv()?, 1);
/// let counter = thread.stop().expect("the thread did not panic");
/// assert_eq!(counter.count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EventLoop<M> {
    sockets: Vec<Arc<UdpSocket>>,
    poller: Poller,
    receiver: mpsc::Receiver<Command<M>>,
    handle: EventLoopHandle<M>,
}

/// The thread of an [`EventLoop`]. Dropping this stops the thread and waits for its end.
pub struct EventLoopThread<M> {
    handle: EventLoopHandle<M>,
    thread: Option<JoinHandle<M>>,
}

/// Runs closures on the thread of an [`EventLoop`], with access to its state machine. Clones refer to the same thread.
pub struct EventLoopHandle<M> {
    sender: mpsc::Sender<Command<M>>,
    waker: Arc<Waker>,
}

enum Command<M> {
    Run(Closure<M>),
    Stop,
}

type Closure<M> = Box<dyn FnOnce(&mut M, Instant) + Send>;

impl<M: Machine + Send + 'static> EventLoop<M> {
    /// Prepares an event loop on these sockets. Datagrams are sent from the first socket of the destination's family.
    ///
    /// # Errors
    /// If the system has no more file descriptors.
    pub fn new(sockets: Vec<Arc<UdpSocket>>) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let (poller, waker) = Poller::with_waker(&sockets)?;
        Ok(Self { sockets, poller, receiver, handle: EventLoopHandle { sender, waker } })
    }

    /// The handle to the loop's thread, for machines that have to be built with it. What is posted before the thread starts
    /// is run then.
    #[must_use]
    pub fn handle(&self) -> &EventLoopHandle<M> {
        &self.handle
    }

    /// Starts the thread. At the end of each turn, on that thread, `on_event` is given the machine's events.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn spawn(
        self,
        name: &str,
        machine: M,
        on_event: impl FnMut(M::Event) + Send + 'static,
    ) -> io::Result<EventLoopThread<M>> {
        let Self { sockets, poller, receiver, handle } = self;
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            if machine.uses_receive_times() {
                for socket in &sockets {
                    // A system without this reports none.
                    let _ = socket.enable_receive_times();
                }
            }
            let incoming = new_batch(&machine);
            let outgoing = SendBatch::default();
            let moderation = ReceiveModeration::new(clock::now());
            Running { machine, on_event, sockets, poller, receiver, incoming, outgoing, moderation }.run()
        })?;
        Ok(EventLoopThread { handle, thread: Some(thread) })
    }
}

impl<M> EventLoopThread<M> {
    /// The handle to this thread.
    #[must_use]
    pub fn handle(&self) -> &EventLoopHandle<M> {
        &self.handle
    }

    /// Stops the thread, after it has run everything posted before, and returns its machine. `None` if the thread panicked.
    #[must_use]
    pub fn stop(mut self) -> Option<M> {
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> Option<M> {
        let thread = self.thread.take()?;
        self.handle.push(Command::Stop);
        thread.join().ok()
    }
}

impl<M> Drop for EventLoopThread<M> {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}

impl<M> EventLoopHandle<M> {
    /// Posts a closure to the thread, without waiting for it. It is given the machine and the time of the turn. It is
    /// dropped if the thread has ended.
    pub fn run(&self, command: impl FnOnce(&mut M, Instant) + Send + 'static) {
        self.push(Command::Run(Box::new(command)));
    }

    /// Runs a closure on the thread and waits for its result. `None` if the thread has ended.
    #[cfg(feature = "async")]
    pub async fn call<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut M, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.run(move |machine, now| {
            let _ = sender.send(command(machine, now));
        });
        receiver.await.ok()
    }

    fn push(&self, command: Command<M>) {
        let _ = self.sender.send(command);
        self.waker.wake();
    }
}

impl<M> Clone for EventLoopHandle<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: self.waker.clone() }
    }
}

impl<M> fmt::Debug for EventLoop<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for EventLoopThread<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLoopThread")
    }
}

impl<M> fmt::Debug for EventLoopHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLoopHandle")
    }
}

/// State of the running thread.
struct Running<M, F> {
    machine: M,
    on_event: F,
    sockets: Vec<Arc<UdpSocket>>,
    poller: Poller,
    receiver: mpsc::Receiver<Command<M>>,
    incoming: RecvBatch,
    outgoing: SendBatch,
    moderation: ReceiveModeration,
}

/// The datagrams that a turn has received.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    datagrams: usize,
    /// Whether there may be more.
    has_more: bool,
}

fn new_batch(machine: &impl Machine) -> RecvBatch {
    let max_datagram = machine.max_datagram();
    if machine.uses_receive_times() {
        RecvBatch::with_receive_times(max_datagram)
    } else {
        RecvBatch::new(max_datagram)
    }
}

impl<M: Machine, F: FnMut(M::Event)> Running<M, F> {
    fn run(mut self) -> M {
        let mut is_busy = false;
        let mut last_turn = clock::now();
        loop {
            let until = if is_busy { Some(last_turn) } else { self.machine.poll_timeout() };
            self.wait(until);
            let mut now = clock::now();
            let received = self.recv(now);
            if until.is_some_and(|until| now.saturating_duration_since(until.max(last_turn)) > SUSPENSION) {
                self.catch_up(now);
            }
            last_turn = now;
            let Some(has_more_commands) = self.run_commands(now) else { return self.machine };
            if self.machine.poll_timeout().is_some_and(|at| at <= now) {
                self.machine.handle_timeout(now);
            }
            let has_more_to_send = self.transmit(&mut now);
            self.machine.handle_turn_end(now);
            while let Some(event) = self.machine.poll_event() {
                (self.on_event)(event);
            }
            is_busy = has_more_commands || has_more_to_send;
            if self.moderation.handle_turn(last_turn, received.datagrams, received.has_more || is_busy) {
                let delay = self.machine.max_receive_delay();
                if !delay.is_zero() {
                    std::thread::sleep(delay);
                }
            }
        }
    }

    fn wait(&mut self, until: Option<Instant>) {
        let timeout = until.map(|until| until.saturating_duration_since(clock::now()));
        if let Err(error) = self.poller.wait(timeout) {
            // This happens only for lack of memory: the turn continues with whatever can be received.
            tracing::warn!(%error, "cannot wait for sockets");
        }
    }

    fn recv(&mut self, now: Instant) -> Received {
        let mut received = Received::default();
        if self.incoming.max_datagram() != self.machine.max_datagram() {
            self.incoming = new_batch(&self.machine);
        }
        for (index, socket) in self.sockets.iter().enumerate() {
            let index = SocketIndex(index);
            if self.poller.has_error(index) {
                let errors = std::iter::from_fn(|| socket.recv_error().ok().flatten());
                errors.take(MAX_PER_TURN).for_each(|error| self.machine.handle_delivery_error(now, &error));
            }
            if !self.poller.is_readable(index) {
                continue;
            }
            match self.incoming.recv(socket) {
                Ok(()) => {
                    received.datagrams += self.incoming.len();
                    received.has_more |= self.incoming.is_full();
                    self.machine.handle_batch(now, index, self.incoming.iter());
                }
                Err(error) => tracing::debug!(%error, addr = %socket.local_addr(), "cannot receive from a socket"),
            }
        }
        received
    }

    /// Receives everything that has arrived before any timer fires: a lease that ran out while the process was suspended may
    /// have been renewed in time, by a datagram that still waits in a socket.
    fn catch_up(&mut self, now: Instant) {
        while clock::now() < now + SUSPENSION {
            self.wait(Some(now));
            if !(0..self.sockets.len()).any(|index| self.poller.is_readable(SocketIndex(index))) {
                return;
            }
            self.recv(now);
        }
    }

    /// Runs the posted closures. Returns whether there may be more; `None` if the thread has to end.
    fn run_commands(&mut self, now: Instant) -> Option<bool> {
        for _ in 0..MAX_PER_TURN {
            match self.receiver.try_recv() {
                Ok(Command::Run(command)) => command(&mut self.machine, now),
                Ok(Command::Stop) => return None,
                Err(_) => return Some(false),
            }
        }
        Some(true)
    }

    /// Sends what the machine has to send. While a socket's buffer is full, nothing more is taken from the machine. Returns
    /// whether there may be more to send at once. `now` is the time of the last batch.
    fn transmit(&mut self, now: &mut Instant) -> bool {
        let mut sent = 0;
        let mut full = self.outgoing.flush(&self.sockets);
        while full.is_none() && sent < MAX_PER_TURN {
            // Receiving and sending takes a part of a millisecond, by which measured round trips would be too long.
            *now = clock::now();
            self.outgoing.fill(SEND_BATCH, |out| self.machine.poll_transmit(*now, out));
            if self.outgoing.is_empty() {
                break;
            }
            sent += SEND_BATCH;
            full = self.outgoing.flush(&self.sockets);
        }
        for index in (0..self.sockets.len()).map(SocketIndex) {
            self.poller.set_writable_interest(index, full == Some(index));
        }
        full.is_none() && sent >= MAX_PER_TURN
    }
}
