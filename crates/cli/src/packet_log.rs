//! Prints and captures the datagrams of a scan: `--debug` and `--capture`.

use crate::{error::CommandError, scan_args::ScanArgs, stdio::print_stderr};
use rallypoint_query::{Direction, PacketObserver, PcapWriter};
use std::{fmt::Write, fs::File, io::BufWriter, net::SocketAddr, time::Instant};

/// Prints datagrams, writes them to a file, or both.
#[derive(Debug)]
pub struct PacketLog {
    is_printed: bool,
    capture: Option<PcapWriter<BufWriter<File>>>,
    start: Instant,
}

impl PacketLog {
    /// Opens the file; `None` if the flags ask for neither.
    pub fn open(args: &ScanArgs) -> Result<Option<Box<dyn PacketObserver>>, CommandError> {
        let open = |path| File::create(path).and_then(|file| PcapWriter::new(BufWriter::new(file)));
        let capture = match &args.capture {
            Some(path) => Some(open(path).map_err(|error| {
                CommandError::failed(format!("cannot write {}: {error}; give --capture another file", path.display()))
            })?),
            None => None,
        };
        if !args.debug && capture.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(Self { is_printed: args.debug, capture, start: Instant::now() })))
    }
}

impl PacketObserver for PacketLog {
    fn observe(&mut self, direction: Direction, local: SocketAddr, remote: SocketAddr, bytes: &[u8]) {
        if self.is_printed {
            let time = self.start.elapsed().as_secs_f64();
            let preposition = match direction {
                Direction::Sent => "to",
                Direction::Received => "from",
            };
            print_stderr(format_args!("{time:9.6} {preposition} {remote}, {} bytes\n{}", bytes.len(), hex_dump(bytes)));
        }
        if let Some(Err(error)) = self.capture.as_mut().map(|capture| capture.write(direction, local, remote, bytes)) {
            print_stderr(format_args!("cannot write the capture any more: {error}"));
            self.capture = None;
        }
    }
}

/// Sixteen bytes per line: offset, hexadecimal digits, characters.
fn hex_dump(bytes: &[u8]) -> String {
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
    fn hex_dumps_have_offsets_digits_and_characters() {
        assert_eq!(
            hex_dump(b"\x07\0\rabcdefghijklm n"),
            "  0000  07 00 0d 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d  ...abcdefghijklm\n  \
               0010  20 6e                                             n"
        );
    }
}
