//! Name resolution.

use crate::{Family, Host, ProbeError};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// Time limit for a lookup: the system queries several name servers, several times.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of addresses used of one name.
const MAX_ADDRESSES: usize = 16;

/// Resolves a host to its addresses with this port: in the system's order, without duplicates, of the allowed family.
///
/// # Errors
/// If there is no such name, or no address of the family.
pub async fn resolve(host: &Host, port: u16, family: Option<Family>) -> Result<Vec<SocketAddr>, ProbeError> {
    let all = match host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, port)],
        Host::Name(name) if name.eq_ignore_ascii_case("localhost") => {
            // Many systems resolve this name to only one of the two.
            vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
        }
        Host::Name(name) => {
            match tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((&**name, port))).await {
                Ok(Ok(addresses)) => addresses.collect(),
                _ => return Err(ProbeError::NotFound),
            }
        }
    };
    select(&all, family)
}

/// The addresses of the allowed family.
fn select(all: &[SocketAddr], family: Option<Family>) -> Result<Vec<SocketAddr>, ProbeError> {
    let mut selected = Vec::new();
    for addr in all {
        if Family::allows(family, addr.ip()) && !selected.contains(addr) {
            selected.push(*addr);
        }
    }
    selected.truncate(MAX_ADDRESSES);
    match family {
        Some(family) if selected.is_empty() && !all.is_empty() => Err(ProbeError::NoAddress(family)),
        _ if selected.is_empty() => Err(ProbeError::NotFound),
        _ => Ok(selected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_can_have_several_addresses_of_both_families() {
        let localhost = Host::Name("localhost".into());
        let of = async |family| resolve(&localhost, 7, family).await.map(|all| format!("{all:?}"));
        assert_eq!(of(None).await, Ok("[127.0.0.1:7, [::1]:7]".into()));
        assert_eq!(of(Some(Family::V4)).await, Ok("[127.0.0.1:7]".into()));
        assert_eq!(of(Some(Family::V6)).await, Ok("[[::1]:7]".into()));
        let ip = Host::Ip(Ipv4Addr::LOCALHOST.into());
        assert_eq!(resolve(&ip, 7, Some(Family::V6)).await, Err(ProbeError::NoAddress(Family::V6)));
    }
}
