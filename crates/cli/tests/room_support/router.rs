//! A router between a guest and a room.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// Carries datagrams of one guest to and fro, and one day from another address. What then comes to the old one is lost.
pub struct Router {
    pub addr: SocketAddr,
    pub is_moved: Arc<AtomicBool>,
    pub is_cut: Arc<AtomicBool>,
}

impl Router {
    /// The other address is another port.
    pub fn start(room: SocketAddr) -> Self {
        Self::between(room, [Ipv4Addr::LOCALHOST; 2], &[false, true])
    }

    /// The other address is somebody else's: nothing that is sent there comes to the guest.
    pub fn forging(room: SocketAddr, own: Ipv4Addr, claimed: Ipv4Addr) -> Self {
        Self::between(room, [own, claimed], &[false])
    }

    /// With these addresses outside; before or after the move it carries answers, too.
    fn between(room: SocketAddr, outside: [Ipv4Addr; 2], answers: &[bool]) -> Self {
        let socket = |ip| Arc::new(UdpSocket::bind((IpAddr::from(ip), 0)).unwrap());
        let (front, outside) = (socket(Ipv4Addr::LOCALHOST), outside.map(socket));
        let (addr, guest, is_moved) =
            (front.local_addr().unwrap(), Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
        for &after in answers {
            let (front, back) = (front.clone(), outside[usize::from(after)].clone());
            let (guest, is_moved) = (guest.clone(), is_moved.clone());
            carry(back, move |datagram, _| {
                if let Some(guest) = guest.get().filter(|_| is_moved.load(SeqCst) == after) {
                    let _ = front.send_to(datagram, guest);
                }
            });
        }
        let (moved, is_cut) = (is_moved.clone(), Arc::new(AtomicBool::new(false)));
        let cut = is_cut.clone();
        carry(front, move |datagram, from| {
            guest.get_or_init(|| from);
            if !cut.load(SeqCst) {
                let _ = outside[usize::from(moved.load(SeqCst))].send_to(datagram, room);
            }
        });
        Self { addr, is_moved, is_cut }
    }
}

/// Hands on everything that comes to a socket, until the test ends.
fn carry(socket: Arc<UdpSocket>, mut pass: impl FnMut(&[u8], SocketAddr) + Send + 'static) {
    std::thread::spawn(move || {
        let mut buffer = [0; 600];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            pass(&buffer[..length], from);
        }
    });
}
