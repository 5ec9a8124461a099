//! A plain web server: files of a directory, and nothing else.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    thread,
};

/// Serves the files of a directory over HTTP, until the test ends.
#[derive(Debug)]
pub struct StaticFiles {
    addr: SocketAddr,
}

impl StaticFiles {
    /// Serves a directory on a free port.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn serve(directory: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let addr = listener.local_addr().expect("a local address");
        let directory = directory.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let directory = directory.clone();
                thread::spawn(move || answer(client, &directory));
            }
        });
        Self { addr }
    }

    /// The URL of the directory.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

fn answer(mut client: TcpStream, directory: &Path) -> Option<()> {
    let mut request = [0; 4_096];
    let read = client.read(&mut request).ok()?;
    let request = String::from_utf8_lossy(&request[..read]).into_owned();
    let path = request.strip_prefix("GET /")?.split(' ').next()?;
    let path: PathBuf = path.split('/').filter(|part| *part != "..").collect();
    let (status, body) = match fs::read(directory.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    client.write_all(&[head.as_bytes(), &body].concat()).ok()
}
