//! As much HTTP as master lists and a lobby's APIs need: one request of version 1.0, so that the answer is never in chunks.

use crate::ask::{
    Asking, Trouble,
    connect::{Stream, connect},
    resolve::resolve,
    target::Page,
};
use rallypoint_wire::text;

/// The longest header and the longest list that are read. A list of a hundred thousand servers is shorter.
const MAX_HEADER: usize = 16 << 10;
const MAX_BODY: usize = 4 << 20;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    /// More lines of the head, each with its end.
    pub headers: &'a str,
    pub body: &'a [u8],
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Where to ask instead, if that is what it says.
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// What stands on a page.
pub async fn read(page: &Page, asking: &Asking) -> Result<Vec<u8>, Trouble> {
    read_from(open(page, asking).await?, page).await
}

/// The same over a connection that is there.
pub async fn read_from(stream: Stream, page: &Page) -> Result<Vec<u8>, Trouble> {
    let request = Request { method: "GET", headers: "Accept: text/plain\r\n", body: &[] };
    body_of(ask(stream, page, request).await?)
}

/// Sends a request, and gets the answer, whatever it is.
pub async fn request(to: &Page, request: Request<'_>, asking: &Asking) -> Result<Answer, Trouble> {
    ask(open(to, asking).await?, to, request).await
}

async fn open(page: &Page, asking: &Asking) -> Result<Stream, Trouble> {
    connect(&resolve(&page.host, page.port.get(), asking.family()).await?, asking).await
}

async fn ask(mut stream: Stream, to: &Page, request: Request<'_>) -> Result<Answer, Trouble> {
    let Page { host, port, path } = to;
    let Request { method, headers, body } = request;
    let (version, length) = (env!("CARGO_PKG_VERSION"), body.len());
    let mut bytes = format!(
        "{method} {path} HTTP/1.0\r\nHost: {host}:{port}\r\nUser-Agent: rallypoint/{version}\r\n{headers}\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes).await?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return parse(answer);
        }
        answer.extend_from_slice(&buffer[..read]);
        let limit = if header_end(&answer).is_some() { MAX_HEADER + MAX_BODY } else { MAX_HEADER };
        if answer.len() > limit {
            return Err(Trouble::Malformed("it is too long to be a list of servers".into()));
        }
    }
}

/// Takes an answer apart.
fn parse(mut answer: Vec<u8>) -> Result<Answer, Trouble> {
    let no_page = || Trouble::Malformed("it is not a web page".into());
    let end = header_end(&answer).ok_or_else(no_page)?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut words = head.split_whitespace();
    let status = match (words.next(), words.next()) {
        (Some(version), Some(status)) if version.starts_with("HTTP/1.") => status.parse().map_err(|_| no_page())?,
        _ => return Err(no_page()),
    };
    let body = answer.split_off(end);
    // Who closes early has not told everything.
    match field(&head, "content-length").and_then(|length| length.parse().ok()) {
        Some(length) if body.len() < length => Err(Trouble::Malformed("it ends before it is complete".into())),
        _ => Ok(Answer { status, location: field(&head, "location"), body }),
    }
}

/// The body, if all is well.
fn body_of(answer: Answer) -> Result<Vec<u8>, Trouble> {
    match (answer.status, answer.location) {
        (200, _) => Ok(answer.body),
        (_, Some(to)) => {
            Err(Trouble::Malformed(format!("it has moved to {}: ask there, by http", text::sanitize(&to))))
        }
        (status, None) => Err(Trouble::Malformed(format!("the page answers with status {status}"))),
    }
}

fn header_end(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn field(head: &str, name: &str) -> Option<String> {
    let named = |line: &str| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    head.lines().find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Result<String, String> {
        parse(answer.into())
            .and_then(body_of)
            .map(|body| String::from_utf8(body).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_page_is_its_body_or_says_why_not() {
        assert_eq!(read("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n192.0.2.1:6969\n"), Ok("192.0.2.1:6969\n".into()));
        assert_eq!(read("HTTP/1.0 200\r\nContent-Length: 2\r\n\r\nab"), Ok("ab".into()));
        for (answer, part) in [
            ("", "not a web page"),
            ("SSH-2.0\r\n\r\n", "not a web page"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "status 404"),
            ("HTTP/1.1 301 Moved\r\nLocation: https://x/\x1b[2J\r\n\r\n", "moved to https://x/\u{fffd}[2J"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nab", "ends before"),
        ] {
            let error = read(answer).unwrap_err();
            assert!(error.contains(part), "{answer}: {error}");
        }
    }
}
