//! QUIC with quinn and its default settings: one stream per direction, with messages of a known length.

use crate::library::{Library, Received, Side};
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, TransportConfig, congestion::BbrConfig,
};
use rallypoint_machine::{Machine, Transmit};
use rustls::{
    RootCertStore,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Bytes after which no further message is queued.
const MAX_QUEUED: usize = 256 << 10;

/// quinn.
pub struct Quinn;

/// quinn with BBR, and with windows of 8 MB.
pub struct QuinnBbr;

const BBR_WINDOW: u32 = 8_000_000;

/// Both sides are endpoints with one connection.
pub struct Node {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
    sends: Option<StreamId>,
    /// Bytes that the stream has not accepted yet.
    rest: Vec<u8>,
    receives: Option<StreamId>,
    stream: Vec<u8>,
    size: usize,
    /// Datagrams to send: one, or several of the same size.
    leaving: VecDeque<(SocketAddr, Vec<u8>, Option<usize>)>,
    timeout: Option<Instant>,
    received: Received,
}

impl Library for Quinn {
    const NAME: &'static str = "quinn";
    type Server = Node;
    type Client = Node;

    fn pair(now: Instant, server: SocketAddr, size: usize) -> (Node, Node) {
        pair(now, server, size, &Arc::new(transport()))
    }
}

impl Library for QuinnBbr {
    const NAME: &'static str = "quinn, BBR";
    type Server = Node;
    type Client = Node;

    fn pair(now: Instant, server: SocketAddr, size: usize) -> (Node, Node) {
        let mut transport = transport();
        transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        transport.stream_receive_window(BBR_WINDOW.into());
        transport.receive_window(BBR_WINDOW.into());
        transport.send_window(BBR_WINDOW.into());
        pair(now, server, size, &Arc::new(transport))
    }
}

fn pair(now: Instant, server: SocketAddr, size: usize, transport: &Arc<TransportConfig>) -> (Node, Node) {
    let made = rcgen::generate_simple_self_signed(vec!["bench".to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let mut config = ServerConfig::with_single_cert(vec![certificate], key).expect("a certificate and its key");
    config.transport_config(Arc::clone(transport));
    let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a root");
    client_config.transport_config(Arc::clone(transport));
    let mut client = Node::new(None, size);
    let begun = client.endpoint.connect(now, client_config, server, "bench").expect("a connection");
    client.connection = Some(begun);
    client.step(now);
    (Node::new(Some(Arc::new(config)), size), client)
}

/// The defaults, with an idle timeout longer than the outage whose recovery is measured.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(60).try_into().expect("a minute")));
    transport
}

impl Node {
    fn new(config: Option<Arc<ServerConfig>>, size: usize) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), config, true, Some([7; 32])),
            connection: None,
            connected: false,
            sends: None,
            rest: Vec::new(),
            receives: None,
            stream: Vec::new(),
            size,
            leaving: VecDeque::new(),
            timeout: None,
            received: Received::default(),
        }
    }

    /// Adds a message to the bytes that the next step writes to the stream, as programs do that pack small messages. Returns
    /// false if there are many already.
    pub fn queue(&mut self, message: &[u8]) -> bool {
        let has_room = self.rest.len() < MAX_QUEUED;
        if has_room {
            self.rest.extend_from_slice(message);
        }
        has_room
    }

    /// Takes a datagram without processing the events of the connection, of which a batch of datagrams causes as many as one.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let mut buffer = Vec::new();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(bytes), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut buffer, None).ok();
            }
            Some(DatagramEvent::Response(transmit)) => self.leaving.push_back((transmit.destination, buffer, None)),
            None => {}
        }
    }

    /// Processes the events of the connection, and collects its datagrams.
    fn step(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.sends = connection.streams().open(Dir::Uni);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.receives = connection.streams().accept(Dir::Uni);
                }
                Event::ConnectionLost { reason } => panic!("disconnected: {reason}"),
                _ => {}
            }
        }
        if let Some(stream) = self.sends
            && !self.rest.is_empty()
        {
            let written = connection.send_stream(stream).write(&self.rest).unwrap_or(0);
            self.rest.drain(..written);
        }
        if let Some(stream) = self.receives {
            let mut stream = connection.recv_stream(stream);
            if let Ok(mut chunks) = stream.read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    self.stream.extend_from_slice(&chunk.bytes);
                }
                let _ = chunks.finalize();
            }
            let complete = self.stream.len() - self.stream.len() % self.size;
            self.stream[..complete].chunks(self.size).for_each(|message| self.received.take(now, message));
            self.stream.drain(..complete);
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut buffer) {
            self.leaving.push_back((transmit.destination, std::mem::take(&mut buffer), transmit.segment_size));
        }
        self.timeout = connection.poll_timeout();
    }
}

impl Side for Node {
    fn is_connected(&self) -> bool {
        self.connected
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        if !self.rest.is_empty() {
            self.step(now);
        }
        let (Some(stream), Some((_, connection)), true) = (self.sends, &mut self.connection, self.rest.is_empty())
        else {
            return false;
        };
        let written = connection.send_stream(stream).write(message).unwrap_or(0);
        self.rest.extend_from_slice(&message[written..]);
        true
    }

    fn end_frame(&mut self, now: Instant) {
        self.step(now);
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Machine for Node {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.receive(now, from, bytes);
        self.step(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.step(now);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes, segment) = self.leaving.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit { to, len: bytes.len(), segment, from: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }
}
