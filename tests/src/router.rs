//! A router between a client and a server, whose outside address can change.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

/// Forwards the datagrams of one client to a server and back. It has two outside addresses and starts with the first;
/// after [`Router::rebind`], datagrams that arrive at the first one are lost.
#[derive(Debug)]
pub struct Router {
    /// Address that the client connects to.
    pub addr: SocketAddr,
    has_moved: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
}

impl Router {
    /// A router whose second outside address is another port of 127.0.0.1.
    #[must_use]
    pub fn new(server: SocketAddr) -> Self {
        Self::start(server, [Ipv4Addr::LOCALHOST; 2], &[false, true])
    }

    /// A router that spoofs its second outside address: replies that are sent there do not reach the client.
    #[must_use]
    pub fn spoofing(server: SocketAddr, own: Ipv4Addr, claimed: Ipv4Addr) -> Self {
        Self::start(server, [own, claimed], &[false])
    }

    /// Forwards from the second outside address from now on.
    pub fn rebind(&self) {
        self.has_moved.store(true, SeqCst);
    }

    /// Drops everything that the client sends from now on.
    pub fn cut(&self) {
        self.is_cut.store(true, SeqCst);
    }

    /// `replies` lists the states of `has_moved` in which replies are forwarded to the client.
    fn start(server: SocketAddr, outside: [Ipv4Addr; 2], replies: &[bool]) -> Self {
        let bind = |ip| Arc::new(UdpSocket::bind((IpAddr::from(ip), 0)).expect("an address of this machine"));
        let inside = bind(Ipv4Addr::LOCALHOST);
        let outside = outside.map(bind);
        let client = Arc::new(OnceLock::new());
        let router = Self {
            addr: inside.local_addr().expect("a bound socket has an address"),
            has_moved: Arc::default(),
            is_cut: Arc::default(),
        };
        for &after in replies {
            let (inside, client, has_moved) = (inside.clone(), client.clone(), router.has_moved.clone());
            forward(outside[usize::from(after)].clone(), move |datagram, _| {
                if let Some(client) = client.get().filter(|_| has_moved.load(SeqCst) == after) {
                    let _ = inside.send_to(datagram, client);
                }
            });
        }
        let (has_moved, is_cut) = (router.has_moved.clone(), router.is_cut.clone());
        forward(inside, move |datagram, from| {
            client.get_or_init(|| from);
            if !is_cut.load(SeqCst) {
                let _ = outside[usize::from(has_moved.load(SeqCst))].send_to(datagram, server);
            }
        });
        router
    }
}

/// Passes on every datagram of a socket until the test ends.
fn forward(socket: Arc<UdpSocket>, mut send: impl FnMut(&[u8], SocketAddr) + Send + 'static) {
    thread::spawn(move || {
        let mut buffer = [0; 600];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            send(&buffer[..length], from);
        }
    });
}
