//! Addresses to listen on, as flags take them.

use std::net::SocketAddr;

/// Parses an address with a port. `usual` is the port in the example of the error.
pub fn listen_addr(text: &str, usual: u16) -> Result<SocketAddr, String> {
    let port = || text.trim_start_matches(':').parse::<u16>();
    text.parse().map_err(|_| match port() {
        Ok(port) => format!(
            "expected an address with the port: 127.0.0.1:{port} for this machine only, 0.0.0.0:{port} for all IPv4 \
             addresses, [::]:{port} for all IPv6 addresses"
        ),
        Err(_) => format!("expected an address with a port, such as 0.0.0.0:{usual} or [::]:{usual}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_gets_a_hint() {
        assert!(listen_addr("[::1]:7", 1).is_ok());
        for text in ["8080", ":8080"] {
            assert!(listen_addr(text, 1).unwrap_err().contains("127.0.0.1:8080 for this machine only"), "{text}");
        }
        assert_eq!(
            listen_addr("x", 29_950).unwrap_err(),
            "expected an address with a port, such as 0.0.0.0:29950 or [::]:29950"
        );
    }
}
