//! Responses over `http://` that are not HTTP, end early, are too large or take too long: each is an error that names the reason.

use rallypoint_query::{HttpUrl, ProbeError, ScanConfig, http::get};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

async fn fetch(response: Vec<u8>, is_closed: bool) -> Result<String, ProbeError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: HttpUrl = format!("http://{}/list", listener.local_addr().unwrap()).parse().unwrap();
    let config = ScanConfig { timeout: Duration::from_millis(500), ..ScanConfig::default() };
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
        let _ = stream.write_all(&response).await;
        if !is_closed {
            std::future::pending::<()>().await;
        }
    });
    let result = get(&url, &config).await;
    server.abort();
    result.map(|body| String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn the_body_is_returned_with_or_without_a_length() {
    for response in [
        "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    ] {
        assert_eq!(fetch(response.into(), true).await, Ok("abc".into()), "{response}");
    }
}

#[tokio::test]
async fn invalid_responses_say_what_is_wrong() {
    let large = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 5 << 20]].concat();
    let header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000)).into_bytes();
    for (response, part) in [
        (b"SSH-2.0\r\n\r\n".to_vec(), "not an HTTP response"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), "status 404"),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: https://x/\xc2\x9b2J\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "moved to https://x/",
        ),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nab".to_vec(), "ends before"),
        (large, "larger than 4 MiB"),
        (header, "header is too large"),
    ] {
        let error = fetch(response, true).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\u{9b}'), "{part}: {error}");
    }
    let silent = fetch(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na".to_vec(), false).await;
    assert!(matches!(silent, Err(ProbeError::TimedOut(_))), "{silent:?}");
}
