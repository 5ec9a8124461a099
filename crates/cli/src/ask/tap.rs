//! Shows and keeps the datagrams that go by: `--debug` and `--capture`.

use crate::{
    ask::{Asking, capture::Capture, route::route},
    error::CommandError,
    stdio::print_stderr,
};
use std::{
    collections::HashMap,
    fmt::Write,
    fs::File,
    io::BufWriter,
    net::{IpAddr, SocketAddr},
    time::{Instant, SystemTime},
};

/// Where datagrams are shown and kept.
#[derive(Debug)]
pub struct Tap {
    debug: bool,
    capture: Option<Capture<BufWriter<File>>>,
    began: Instant,
    /// By which address of this machine another one is reached: a socket that is bound to all of them does not tell.
    routes: HashMap<IpAddr, IpAddr>,
}

/// Which way a datagram went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Out,
    In,
}

impl Tap {
    /// Opens what was asked for; `None` if nothing was.
    pub fn open(asking: &Asking) -> Result<Option<Self>, CommandError> {
        let open = |path| File::create(path).and_then(|file| Capture::new(BufWriter::new(file)));
        let capture = match &asking.capture {
            Some(path) => Some(open(path).map_err(|error| {
                CommandError::failed(format!("cannot write {}: {error}; give --capture another file", path.display()))
            })?),
            None => None,
        };
        if !asking.debug && capture.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { debug: asking.debug, capture, began: Instant::now(), routes: HashMap::new() }))
    }

    /// A datagram goes by.
    pub fn see(&mut self, way: Way, local: SocketAddr, peer: SocketAddr, bytes: &[u8]) {
        if self.debug {
            let time = self.began.elapsed().as_secs_f64();
            let way = if way == Way::Out { "to" } else { "from" };
            print_stderr(format_args!("{time:9.6} {way} {peer}, {} bytes\n{}", bytes.len(), hex(bytes)));
        }
        let Some(capture) = &mut self.capture else { return };
        let ip = if local.ip().is_unspecified() {
            *self.routes.entry(peer.ip()).or_insert_with(|| route(peer).unwrap_or(local.ip()))
        } else {
            local.ip()
        };
        let local = SocketAddr::new(ip, local.port());
        let (from, to) = if way == Way::Out { (local, peer) } else { (peer, local) };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if let Err(error) = capture.write(now, from, to, bytes) {
            print_stderr(format_args!("the capture cannot be written any more: {error}"));
            self.capture = None;
        }
    }
}

/// Sixteen bytes on a line, with their places before and their characters behind.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
        let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        let chars: String = bytes.iter().map(shown).collect();
        let _ = write!(text, "{}  {:04x}  {digits:<48} {chars}", if line > 0 { "\n" } else { "" }, line * 16);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_usual() {
        assert_eq!(
            hex(b"\x07\0\rabcdefghijklm n"),
            "  0000  07 00 0d 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d  ...abcdefghijklm\n  \
               0010  20 6e                                             n"
        );
    }
}
