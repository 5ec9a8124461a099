//! The task that drives a polled client or server for the async API, and the callers that wait for it.

use crate::socket_driver::DriveState;
use rallypoint_machine::SocketIndex;
use rallypoint_session_proto::SendError;
use rallypoint_udp::{AsyncSocket, UdpSocket, clock};
use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::JoinHandle, time};

/// A polled client or server that a task can drive.
pub(crate) trait PolledSession: Send + 'static {
    /// The conditions that a caller can wait for.
    type Interest: Copy + PartialEq + Send;

    fn sockets(&self) -> &[Arc<UdpSocket>];

    fn drive(&mut self, now: Instant) -> DriveState;

    /// Whether a caller with this interest should try again.
    fn is_ready(&mut self, interest: Self::Interest) -> bool;
}

/// A polled session with the task that drives it. Dropping it stops the task without sending anything.
pub(crate) struct DriverTask<S: PolledSession> {
    shared: Arc<Shared<S>>,
    task: JoinHandle<()>,
}

struct Shared<S: PolledSession> {
    state: Mutex<State<S>>,
    /// Notified when there is something to send.
    wake: Notify,
}

struct State<S: PolledSession> {
    session: S,
    waiting: Vec<(S::Interest, Waker)>,
}

impl<S: PolledSession> DriverTask<S> {
    /// Starts the task on the runtime of the caller.
    pub fn start(session: S) -> io::Result<Self> {
        let sockets: Vec<_> =
            session.sockets().iter().map(|socket| AsyncSocket::udp(socket)).collect::<Result<_, _>>()?;
        let state = Mutex::new(State { session, waiting: Vec::new() });
        let shared = Arc::new(Shared { state, wake: Notify::new() });
        Ok(Self { task: tokio::spawn(run(shared.clone(), sockets)), shared })
    }

    /// Calls a function that makes the session send nothing.
    pub fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.shared.lock().session)
    }

    /// Calls a function that may make the session send something, and wakes the task.
    pub fn command<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        let result = self.with(f);
        self.wake();
        result
    }

    /// Calls `attempt` whenever `interest` may be met, until it returns a result.
    pub async fn wait_for<R>(&self, interest: S::Interest, mut attempt: impl FnMut(&mut S) -> Option<R>) -> R {
        poll_fn(|context| {
            let State { session, waiting } = &mut *self.shared.lock();
            if let Some(result) = attempt(session) {
                return Poll::Ready(result);
            }
            if !waiting.iter().any(|(known, waker)| *known == interest && waker.will_wake(context.waker())) {
                waiting.push((interest, context.waker().clone()));
            }
            Poll::Pending
        })
        .await
    }

    /// Calls `send` whenever there may be room for its message, until the message is accepted or refused, or `timeout` has passed.
    pub async fn send<R>(
        &self,
        room: S::Interest,
        timeout: Duration,
        mut send: impl FnMut(&mut S) -> Result<R, SendError>,
    ) -> Result<R, SendError> {
        let attempt = |session: &mut S| match send(session) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = time::timeout(timeout, self.wait_for(room, attempt)).await;
        self.wake();
        sent.unwrap_or(Err(SendError::TimedOut))
    }

    /// Wakes the task, which drives the session.
    pub fn wake(&self) {
        self.shared.wake.notify_one();
    }

    /// Stops the task. Its sockets are closed when this returns.
    pub async fn stop(mut self) {
        self.task.abort();
        // The result only reports that the task was aborted.
        let _ = (&mut self.task).await;
    }
}

impl<S: PolledSession> Drop for DriverTask<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S: PolledSession> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // A panic in another caller leaves a state that is no worse than a lost datagram.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives the session once, and wakes the callers whose interest is met.
    fn drive(&self) -> DriveState {
        let State { session, waiting } = &mut *self.lock();
        let state = session.drive(clock::now());
        waiting.retain(|(interest, waker)| {
            let is_ready = session.is_ready(*interest);
            if is_ready {
                waker.wake_by_ref();
            }
            !is_ready
        });
        state
    }
}

async fn run<S: PolledSession>(shared: Arc<Shared<S>>, sockets: Vec<AsyncSocket>) {
    loop {
        let state = shared.drive();
        if state.is_busy {
            tokio::task::yield_now().await;
            continue;
        }
        let timeout = async {
            match state.next_timeout {
                Some(at) => time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            () = ready(&sockets, state.blocked_socket) => {}
            () = timeout => {}
        }
    }
}

/// Waits until a socket is readable, or the blocked one is writable. The next call of `drive` empties them, so their readiness
/// is cleared here: what arrives later sets it again.
async fn ready(sockets: &[AsyncSocket], blocked: Option<SocketIndex>) {
    poll_fn(|context| {
        let mut is_ready = false;
        for (index, socket) in sockets.iter().enumerate() {
            let is_blocked = blocked == Some(SocketIndex(index));
            is_ready |= matches!(socket.poll_take_readable(context), Poll::Ready(Ok(())));
            is_ready |= is_blocked && matches!(socket.poll_take_writable(context), Poll::Ready(Ok(())));
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
