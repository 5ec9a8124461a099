//! What makes the async API out of the polled one: a task that takes turns, and those who wait for what comes of them.

use crate::port::Turn;
use rallypoint_machine::SocketIndex;
use rallypoint_udp::{UdpSocket, clock, register_udp};
use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Instant,
};
use tokio::{io::unix::AsyncFd, sync::Notify, task::JoinHandle, time};

/// What can be driven.
pub(crate) trait Polled: Send + 'static {
    /// What somebody can wait for.
    type Want: Copy + PartialEq + Send;

    fn sockets(&self) -> &[Arc<UdpSocket>];

    fn turn(&mut self, now: Instant) -> Turn;

    /// Whether it is worth while to try again.
    fn is_there(&mut self, want: Self::Want) -> bool;
}

/// Something that a task drives. When this is dropped, the task ends, in silence.
pub(crate) struct Driven<P: Polled> {
    shared: Arc<Shared<P>>,
    task: JoinHandle<()>,
}

struct Shared<P: Polled> {
    state: Mutex<State<P>>,
    /// There is something to send.
    wake: Notify,
}

struct State<P: Polled> {
    polled: P,
    waiting: Vec<(P::Want, Waker)>,
}

impl<P: Polled> Driven<P> {
    /// Starts the task on the runtime of the caller.
    pub fn start(polled: P) -> io::Result<Self> {
        let sockets: Vec<_> = polled.sockets().iter().cloned().map(register_udp).collect::<Result<_, _>>()?;
        let state = Mutex::new(State { polled, waiting: Vec::new() });
        let shared = Arc::new(Shared { state, wake: Notify::new() });
        Ok(Self { task: tokio::spawn(drive(shared.clone(), sockets)), shared })
    }

    /// Does something that sends nothing.
    pub fn look<R>(&self, look: impl FnOnce(&mut P) -> R) -> R {
        look(&mut self.shared.lock().polled)
    }

    /// Does something, and has what comes of it sent.
    pub fn run<R>(&self, command: impl FnOnce(&mut P) -> R) -> R {
        let result = self.look(command);
        self.shared.wake.notify_one();
        result
    }

    /// Tries until there is a result, whenever what is wanted may be there.
    pub async fn until<R>(&self, want: P::Want, mut attempt: impl FnMut(&mut P) -> Option<R>) -> R {
        poll_fn(|context| {
            let State { polled, waiting } = &mut *self.shared.lock();
            if let Some(result) = attempt(polled) {
                return Poll::Ready(result);
            }
            if !waiting.iter().any(|(known, waker)| *known == want && waker.will_wake(context.waker())) {
                waiting.push((want, context.waker().clone()));
            }
            Poll::Pending
        })
        .await
    }

    /// Ends the task, and has its sockets closed when this returns.
    pub async fn end(mut self) {
        self.task.abort();
        // It was asked to end: that is no error.
        let _ = (&mut self.task).await;
    }

    /// Has the task take a turn.
    pub fn wake(&self) {
        self.shared.wake.notify_one();
    }
}

impl<P: Polled> Drop for Driven<P> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<P: Polled> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        // A panic elsewhere leaves a state that is no worse than a datagram that was lost.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> Turn {
        let State { polled, waiting } = &mut *self.lock();
        let turn = polled.turn(clock::now());
        waiting.retain(|(want, waker)| {
            let is_there = polled.is_there(*want);
            if is_there {
                waker.wake_by_ref();
            }
            !is_there
        });
        turn
    }
}

async fn drive<P: Polled>(shared: Arc<Shared<P>>, sockets: Vec<AsyncFd<Arc<UdpSocket>>>) {
    loop {
        let turn = shared.turn();
        if turn.is_busy {
            tokio::task::yield_now().await;
            continue;
        }
        let time = async {
            match turn.next {
                Some(at) => time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            () = ready(&sockets, turn.full) => {}
            () = time => {}
        }
    }
}

/// Waits until a socket has something, or this one has room. The next turn empties them, so they count as not ready from here
/// on: what arrives after that makes them ready again.
async fn ready(sockets: &[AsyncFd<Arc<UdpSocket>>], full: Option<SocketIndex>) {
    poll_fn(|context| {
        let mut is_ready = false;
        for (index, socket) in sockets.iter().enumerate() {
            if let Poll::Ready(Ok(mut guard)) = socket.poll_read_ready(context) {
                guard.clear_ready();
                is_ready = true;
            }
            if full == Some(SocketIndex(index))
                && let Poll::Ready(Ok(mut guard)) = socket.poll_write_ready(context)
            {
                guard.clear_ready();
                is_ready = true;
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
