//! The ports of game servers: open, closed, and answering queries.

use crate::wait::LIMIT;
use socket2::{Domain, Socket, Type};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// A TCP port that belongs to this test and is closed: whoever connects is refused.
#[derive(Debug)]
pub struct TcpPort(Socket);

impl TcpPort {
    /// A free port of an address of this machine.
    ///
    /// # Panics
    /// If this machine does not have that address.
    #[must_use]
    pub fn closed(ip: &str) -> Self {
        let addr = SocketAddr::new(ip.parse().expect("an address"), 0);
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None).expect("a socket");
        socket.bind(&addr.into()).expect("an address of this machine");
        Self(socket)
    }

    /// A port that can be connected to.
    #[must_use]
    pub fn open(ip: &str) -> Self {
        let port = Self::closed(ip);
        port.listen();
        port
    }

    /// Opens it.
    ///
    /// # Panics
    /// If the system does not let it.
    pub fn listen(&self) {
        self.0.listen(128).expect("a port that can be listened at");
    }

    /// Its number.
    ///
    /// # Panics
    /// Never: it has one.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.0.local_addr().ok().and_then(|addr| addr.as_socket()).expect("its address").port()
    }
}

/// A UDP port of 127.0.0.1 where queries are answered, until the test ends.
#[derive(Debug)]
pub struct Responder {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Responder {
    /// Answers each datagram with these datagrams.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
        let addr = socket.local_addr().expect("its address");
        let asked: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let noted = asked.clone();
        thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(buffer[..length].to_vec());
                for datagram in answer(&buffer[..length]) {
                    // Whoever asked may be gone.
                    let _ = socket.send_to(&datagram, from);
                }
            }
        });
        Self { addr, asked }
    }

    /// Where it answers.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// All datagrams that have arrived so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Vec<u8>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
