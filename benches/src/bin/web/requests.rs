//! Minimal HTTP clients and event listeners.

use rallypoint_bench::{Failure, cpu_time};
use socket2::{Domain, Socket, Type};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client with a persistent connection.
pub struct Client {
    tcp: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Result<Self, Failure> {
        let tcp = TcpStream::connect(addr)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { tcp, buffer: vec![0; 1 << 20] })
    }

    /// Connects from an address of this machine.
    pub fn connect_from(from: Ipv4Addr, to: SocketAddr) -> Result<Self, Failure> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((from, 0)).into())?;
        socket.connect(&to.into())?;
        let tcp = TcpStream::from(socket);
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { tcp, buffer: vec![0; 64 << 10] })
    }

    /// Sends a request, discards the response, and returns its status.
    pub fn status(&mut self, path: &str) -> Result<u16, Failure> {
        write!(self.tcp, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let (status, begun, length) = self.head()?;
        let mut taken = begun.len();
        while taken < length {
            taken += self.read()?;
        }
        Ok(status)
    }

    /// Sends a request and returns the body of the response.
    pub fn get(&mut self, path: &str, headers: &str) -> Result<Vec<u8>, Failure> {
        write!(self.tcp, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")?;
        let (mut body, length) = self.successful_head()?;
        while body.len() < length {
            let read = self.read()?;
            body.extend_from_slice(&self.buffer[..read]);
        }
        Ok(body)
    }

    /// Sends a request, discards the response, and returns its length.
    fn discard(&mut self, request: &[u8]) -> Result<usize, Failure> {
        self.tcp.write_all(request)?;
        let (begun, length) = self.successful_head()?;
        let mut taken = begun.len();
        while taken < length {
            taken += self.read()?;
        }
        Ok(taken)
    }

    fn successful_head(&mut self) -> Result<(Vec<u8>, usize), Failure> {
        match self.head()? {
            (200, body, length) => Ok((body, length)),
            (status, ..) => Err(Failure(format!("unexpected status {status}"))),
        }
    }

    /// Reads the head of a response; returns the status, the received part of the body, and the length of the body.
    fn head(&mut self) -> Result<(u16, Vec<u8>, usize), Failure> {
        let mut head = Vec::new();
        loop {
            let read = self.read()?;
            head.extend_from_slice(&self.buffer[..read]);
            let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
            let body = head.split_off(end + 4);
            let text = String::from_utf8_lossy(&head).to_lowercase();
            let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
            return match (status, length) {
                (Some(status), Some(length)) => Ok((status, body, length)),
                _ => Err(Failure(format!("unexpected response: {text}"))),
            };
        }
    }

    fn read(&mut self) -> Result<usize, Failure> {
        match self.tcp.read(&mut self.buffer)? {
            0 => Err(Failure("the connection was closed".into())),
            read => Ok(read),
        }
    }
}

/// Responses per second, and nanoseconds of the server's CPU time per response.
pub fn measure(
    addr: SocketAddr,
    server: u32,
    path: &str,
    clients: usize,
    time: Duration,
    length: usize,
) -> Result<[f64; 2], Failure> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    let connected = (0..clients).map(|_| Client::connect(addr)).collect::<Result<Vec<_>, _>>()?;
    let is_over = AtomicBool::new(false);
    let request = &request;
    let cpu = cpu_time(server)?;
    let began = Instant::now();
    let run = |mut client: Client| -> Result<u64, Failure> {
        let mut answers = 0;
        while !is_over.load(Relaxed) {
            if client.discard(request)? != length {
                return Err(Failure("a response has another length".into()));
            }
            answers += 1;
        }
        Ok(answers)
    };
    let answers: Result<u64, Failure> = thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = connected.into_iter().map(|client| scope.spawn(move || run(client))).collect();
        thread::sleep(time);
        is_over.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).sum()
    });
    let answers = answers? as f64;
    let took = began.elapsed().as_secs_f64();
    let used = cpu_time(server)? - cpu;
    Ok([answers / took, used.as_nanos() as f64 / answers])
}

/// A listener for live events.
pub struct Listener {
    tcp: TcpStream,
    received: Vec<u8>,
}

impl Listener {
    pub fn new(addr: SocketAddr) -> Result<Self, Failure> {
        let mut tcp = TcpStream::connect(addr)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        write!(tcp, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut listener = Self { tcp, received: Vec::new() };
        listener.wait_for("event: hello")?;
        Ok(listener)
    }

    /// Waits for a text, and discards everything received until then.
    pub fn wait_for(&mut self, text: &str) -> Result<(), Failure> {
        let mut buffer = [0; 16 << 10];
        while !self.received.windows(text.len()).any(|part| part == text.as_bytes()) {
            match self.tcp.read(&mut buffer)? {
                0 => return Err(Failure("a listener was disconnected".into())),
                read => self.received.extend_from_slice(&buffer[..read]),
            }
        }
        self.received.clear();
        Ok(())
    }
}
