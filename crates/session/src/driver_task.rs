//! The task that drives a polled client or server for the async API, and the callers that wait for it.

use crate::{DriverPanicked, local_link::Wake, socket_driver::DriveState};
use rallypoint_machine::SocketIndex;
use rallypoint_session_proto::SendError;
use rallypoint_udp::{AsyncSocket, UdpSocket, clock};
use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::JoinHandle, time};

/// A polled client or server that a task can drive.
pub(crate) trait PolledSession: Send + 'static {
    /// The conditions that a caller can wait for.
    type Interest: Copy + PartialEq + Send;

    fn sockets(&mut self) -> &[Arc<UdpSocket>];

    /// Sets the function that wakes the task when a datagram arrives from a peer in this process.
    fn set_wake(&mut self, wake: Wake);

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
    wake: Arc<Notify>,
}

struct State<S: PolledSession> {
    session: S,
    waiting: Vec<(S::Interest, Waker)>,
    /// The task has panicked: nothing that a caller waits for will happen.
    has_panicked: bool,
}

impl<S: PolledSession> DriverTask<S> {
    /// Starts the task on the runtime of the caller.
    pub fn start(mut session: S) -> io::Result<Self> {
        let sockets: Vec<_> =
            session.sockets().iter().map(|socket| AsyncSocket::udp(socket)).collect::<Result<_, _>>()?;
        let wake = Arc::new(Notify::new());
        let notify = Arc::clone(&wake);
        session.set_wake(Arc::new(move || notify.notify_one()));
        let state = Mutex::new(State { session, waiting: Vec::new(), has_panicked: false });
        let shared = Arc::new(Shared { state, wake });
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
    ///
    /// # Errors
    /// If the task has panicked.
    pub async fn wait_for<R>(
        &self,
        interest: S::Interest,
        mut attempt: impl FnMut(&mut S) -> Option<R>,
    ) -> Result<R, DriverPanicked> {
        poll_fn(|context| {
            let State { session, waiting, has_panicked } = &mut *self.shared.lock();
            if *has_panicked {
                return Poll::Ready(Err(DriverPanicked));
            }
            if let Some(result) = attempt(session) {
                return Poll::Ready(Ok(result));
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
        match sent {
            Ok(Ok(result)) => result,
            Ok(Err(DriverPanicked)) => Err(SendError::DriverPanicked),
            Err(_) => Err(SendError::TimedOut),
        }
    }

    /// Whether the task has panicked.
    pub fn has_panicked(&self) -> bool {
        self.shared.lock().has_panicked
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
        let State { session, waiting, .. } = &mut *self.lock();
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

/// Ends the waiting callers with an error if the task panics.
struct PanicGuard<'a, S: PolledSession>(&'a Shared<S>);

impl<S: PolledSession> Drop for PanicGuard<'_, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            state.has_panicked = true;
            state.waiting.drain(..).for_each(|(_, waker)| waker.wake());
        }
    }
}

async fn run<S: PolledSession>(shared: Arc<Shared<S>>, sockets: Vec<AsyncSocket>) {
    let _guard = PanicGuard(&shared);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that panics when it is driven.
    struct Broken;

    impl PolledSession for Broken {
        type Interest = ();

        fn sockets(&mut self) -> &[Arc<UdpSocket>] {
            &[]
        }

        fn set_wake(&mut self, _wake: Wake) {}

        fn drive(&mut self, _now: Instant) -> DriveState {
            panic!("a bug")
        }

        fn is_ready(&mut self, (): ()) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn callers_that_wait_when_the_task_panics_get_an_error() {
        let driver = DriverTask::start(Broken).unwrap();
        assert!(!driver.has_panicked(), "the task runs when this one waits");
        assert_eq!(driver.wait_for((), |_| None::<()>).await, Err(DriverPanicked));
        assert!(driver.has_panicked());
        let sent = driver.send((), Duration::from_secs(60), |_| Err::<(), _>(SendError::WouldBlock)).await;
        assert_eq!(sent, Err(SendError::DriverPanicked));
        driver.stop().await;
    }
}
