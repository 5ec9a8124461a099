//! A prober on real sockets.
//!
//! What is asked is a group of probes: the addresses of a name, the protocols that a server may speak. The first answer
//! settles the group; if there is none, the trouble that tells most does.

mod asker;

use crate::{
    ask::{Asking, Trouble, options::Family, route::route},
    error::CommandError,
};
use asker::Asker;
use rallypoint_query_proto::{Probe, QueryReply};
use rallypoint_udp::{BindError, EventLoop, EventLoopThread, SocketKind, UdpSocket};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tokio::sync::mpsc;

/// Asks servers, in a thread of its own. Dropping it ends that.
#[derive(Debug)]
pub struct Engine {
    driver: EventLoopThread<Asker>,
    findings: mpsc::Receiver<Finding>,
    /// Whether the thread waits for room in the channel.
    is_stalled: Arc<AtomicBool>,
    open: usize,
    family: Option<Family>,
}

/// What came of a question.
#[derive(Debug)]
pub struct Finding {
    /// What it was asked as.
    pub key: u64,
    /// The answer, or why there is none.
    pub result: Result<Found, Failed>,
}

/// An answer, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub target: Probe,
    pub answer: Box<QueryReply>,
    /// How often it was asked again.
    pub retries: u8,
}

/// Why there is no answer, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub trouble: Trouble,
    /// Whom the trouble is about, if it is somebody.
    pub address: Option<SocketAddr>,
}

/// How many findings wait to be taken, at most. While there is no room, nobody else is asked.
const WAITING: usize = 1_024;

/// How much the system keeps of what arrives while this program does something else.
const RECEIVE_BUFFER: usize = 4 << 20;

/// While no more questions are open than this, it is looked beforehand whether there is a way at all: a person wants to know
/// that. Whoever asks thousands has no time for it.
const FEW: usize = 256;

impl Engine {
    /// Opens sockets, and waits for questions.
    pub fn start(asking: &Asking) -> Result<Self, CommandError> {
        asking.validate()?;
        let sockets = sockets(asking)?;
        let (sender, findings) = mpsc::channel(WAITING);
        let is_stalled = Arc::new(AtomicBool::new(false));
        let asker = Asker::new(asking, sockets.clone(), sender, is_stalled.clone())?;
        let driver = EventLoop::new(sockets)
            .and_then(|event_loop| event_loop.spawn("ask", asker, drop))
            .map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { driver, findings, is_stalled, open: 0, family: asking.family() })
    }

    /// Asks; there will be one [`Finding`] with this key. Keys may repeat.
    pub fn ask(&mut self, key: u64, mut probes: Vec<Probe>) {
        self.open += 1;
        let mut trouble = Trouble::NotFound;
        probes.retain(|probe| match self.look(probe) {
            Ok(()) => true,
            Err(found) => {
                trouble = found;
                false
            }
        });
        self.driver.handle().run(move |asker, _| {
            if probes.is_empty() {
                asker.tell(Finding { key, result: Err(Failed { trouble, address: None }) });
            } else {
                asker.ask(key, probes);
            }
        });
    }

    /// The next finding; `None` if everything that was asked is done.
    pub async fn next(&mut self) -> Option<Finding> {
        if self.open == 0 {
            return None;
        }
        let finding = self.findings.recv().await?;
        self.open -= 1;
        if self.is_stalled.swap(false, SeqCst) {
            self.driver.handle().run(|_, _| {});
        }
        Some(finding)
    }

    /// How many questions have no finding yet.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a datagram could leave this machine for there.
    fn look(&self, probe: &Probe) -> Result<(), Trouble> {
        if let Some(family) = self.family.filter(|family| *family != Family::of(probe.address.ip())) {
            return Err(Trouble::NoAddress(family));
        }
        if self.open > FEW {
            return Ok(());
        }
        route(probe.address).map(drop).map_err(|error| Trouble::of_route(&error, probe.address.ip()))
    }
}

/// A socket for each family that is wanted and that this machine has.
fn sockets(asking: &Asking) -> Result<Vec<Arc<UdpSocket>>, CommandError> {
    let wanted: Vec<SocketAddr> = match (asking.source, asking.family()) {
        (Some(source), _) => vec![source],
        (None, family) => [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()]
            .into_iter()
            .filter(|ip| Family::fits(family, *ip))
            .map(|ip| SocketAddr::new(ip, 0))
            .collect(),
    };
    let (mut opened, mut trouble) = (Vec::new(), None);
    for addr in wanted {
        let with_errors = |socket: UdpSocket| match socket.enable_error_queue() {
            Ok(()) => Ok(socket),
            Err(error) => Err(BindError::new(SocketKind::Udp, addr, error)),
        };
        match UdpSocket::bind(addr, RECEIVE_BUFFER).and_then(with_errors) {
            Ok(socket) => opened.push(Arc::new(socket)),
            Err(error) => trouble = Some(error),
        }
    }
    match trouble {
        Some(error) if opened.is_empty() => Err(match asking.source {
            Some(_) => CommandError::bind(&error, "--source"),
            None => CommandError::failed(error),
        }),
        _ => Ok(opened),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query_proto::Protocol;
    use std::time::Duration;

    #[tokio::test]
    async fn whoever_asks_one_after_the_other_is_always_told_that_there_is_no_way() {
        let mut engine = Engine::start(&Asking::once(Duration::from_secs(1))).unwrap();
        // The system lets nobody send to everybody.
        let target = Probe::new("255.255.255.255:9".parse().unwrap(), Protocol::Bloodmasters.info());
        for key in 0..2 * FEW as u64 {
            engine.ask(key, vec![target]);
            let finding = engine.next().await.unwrap();
            assert!(matches!(finding.result, Err(Failed { trouble: Trouble::NoRoute(_), .. })), "{finding:?}");
        }
    }
}
