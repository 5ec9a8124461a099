//! What a server tells its lobbies, wherever they are.

use super::{
    lobbies::{Host, Lobby, addrs, find},
    sender::Sender,
};
use crate::failure::Failure;
use rallypoint_lobby_proto::Announcer;
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::Occupancy;
use std::{
    future::Future,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};

/// How often names are looked up again: lobbies move, too.
const FIND_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long after the first word of goodbye the second is sent, in case the first is lost.
const GOODBYE_AGAIN: Duration = Duration::from_millis(200);

/// An announcer and its sockets.
pub struct Voice {
    announcer: Announcer,
    sender: Sender,
    hosts: Vec<Host>,
    lobbies: Vec<Lobby>,
    /// Where the lobbies are the next time that they are looked for.
    found: JoinSet<Vec<Lobby>>,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something is to be [sent](Voice::send).
    Due,
    /// A lobby is somewhere else than before, and will be told there.
    Moved,
}

impl Voice {
    /// Looks for the lobbies. Nothing is sent yet; `None` if there is nobody to send it to.
    pub async fn find(mut announcer: Announcer, hosts: &[Host]) -> Result<Option<Self>, Failure> {
        let sender = Sender::open()?;
        let lobbies = find(hosts, &[]).await;
        if lobbies.is_empty() {
            return Ok(None);
        }
        announcer.set_lobbies(addrs(&lobbies));
        let mut voice = Self { announcer, sender, hosts: hosts.into(), lobbies, found: JoinSet::new() };
        voice.find_again();
        Ok(Some(voice))
    }

    /// The lobbies that were found.
    pub fn lobbies(&self) -> &[Lobby] {
        &self.lobbies
    }

    pub fn set_occupancy(&mut self, occupancy: Occupancy) {
        self.announcer.set_occupancy(occupancy);
    }

    /// Waits until there is something to do. It can be given up at any time.
    pub async fn next(&mut self) -> Turn {
        let due = self.announcer.poll_timeout();
        let is_due = async {
            match due {
                Some(at) => time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(is_due);
        loop {
            tokio::select! {
                () = &mut is_due => return Turn::Due,
                Some(Ok(lobbies)) = self.found.join_next() => {
                    let is_elsewhere = lobbies != self.lobbies;
                    self.lobbies = lobbies;
                    self.find_again();
                    if is_elsewhere {
                        self.announcer.set_lobbies(addrs(&self.lobbies));
                        return Turn::Moved;
                    }
                }
            }
        }
    }

    /// Sends whatever is due. Says whether anything could be sent.
    pub async fn send(&mut self) -> bool {
        let mut is_sent = false;
        for (to, datagram) in self.due() {
            is_sent |= self.sender.send(to, &datagram).await;
        }
        is_sent
    }

    /// Takes the server off the list. The protocol has no answers, so it is said twice; at once if there is a hurry.
    pub async fn goodbye(mut self, hurry: impl Future<Output = ()>) {
        self.announcer.stop();
        let goodbyes = self.due();
        for (to, goodbye) in &goodbyes {
            self.sender.send(*to, goodbye).await;
        }
        tokio::select! {
            () = time::sleep(GOODBYE_AGAIN) => {}
            () = hurry => {}
        }
        for (to, goodbye) in &goodbyes {
            self.sender.send(*to, goodbye).await;
        }
    }

    fn due(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut datagram, mut due) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.announcer.poll_transmit(Instant::now(), &mut datagram) {
            due.push((transmit.to, std::mem::take(&mut datagram)));
        }
        due
    }

    /// Beside everything else: a name server can take its time.
    fn find_again(&mut self) {
        let (hosts, before) = (self.hosts.clone(), self.lobbies.clone());
        self.found.spawn(async move {
            time::sleep(FIND_EVERY).await;
            find(&hosts, &before).await
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::lobby::{LobbyId, ServerId, Transport};
    use std::net::UdpSocket;

    #[tokio::test]
    async fn a_lobby_that_has_moved_is_told_where_it_is_now() {
        let [old, new] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let hosts: [Host; 2] = [&old, &new].map(|socket| socket.local_addr().unwrap().to_string().parse().unwrap());
        let (id, port, now) = (ServerId::from_bytes([7; 16]), 8190.try_into().unwrap(), Instant::now());
        let (lobby, transport) = (LobbyId::GANG_GARRISON_2, Transport::Udp);
        let announcer = Announcer::new(id, lobby, transport, port, b"server", Vec::new(), now).unwrap();
        let mut voice = Voice::find(announcer, &hosts[..1]).await.unwrap().unwrap();
        assert_eq!(voice.next().await, Turn::Due);
        assert!(voice.send().await);
        // It is looked for again, and found where it was; and again, and it is somewhere else.
        for hosts in [&hosts[..1], &hosts[1..]] {
            let lobbies = find(hosts, &[]).await;
            voice.found.spawn(async { lobbies });
        }
        assert_eq!(voice.next().await, Turn::Moved);
        assert_eq!(addrs(voice.lobbies()), [new.local_addr().unwrap()]);
        voice.goodbye(async {}).await;
        let mut datagram = [0; 512];
        let mut heard = |socket: &UdpSocket| {
            socket.set_nonblocking(true).unwrap();
            std::iter::from_fn(|| socket.recv(&mut datagram).ok()).count()
        };
        assert_eq!((heard(&old), heard(&new)), (1, 2));
    }
}
