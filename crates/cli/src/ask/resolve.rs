//! From names to addresses.

use crate::ask::{Trouble, options::Family, target::Host};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// How long a name may take: the system asks several servers, several times.
const PATIENCE: Duration = Duration::from_secs(10);

/// A name can have a great many addresses, but then a few stand for all of them.
const MOST: usize = 16;

/// All addresses of a host with that port, in the system's order, without repetition, of the wanted family.
pub async fn resolve(host: &Host, port: u16, family: Option<Family>) -> Result<Vec<SocketAddr>, Trouble> {
    let all = match host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, port)],
        Host::Name(name) if name.eq_ignore_ascii_case("localhost") => {
            // Many machines know only one of the two by this name.
            vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
        }
        Host::Name(name) => match tokio::time::timeout(PATIENCE, tokio::net::lookup_host((&**name, port))).await {
            Ok(Ok(found)) => found.collect(),
            _ => return Err(Trouble::NotFound),
        },
    };
    select(&all, family)
}

/// Those of the wanted family.
pub fn select(all: &[SocketAddr], family: Option<Family>) -> Result<Vec<SocketAddr>, Trouble> {
    let mut found = Vec::new();
    for addr in all {
        if Family::fits(family, addr.ip()) && !found.contains(addr) {
            found.push(*addr);
        }
    }
    found.truncate(MOST);
    match family {
        Some(family) if found.is_empty() && !all.is_empty() => Err(Trouble::NoAddress(family)),
        _ if found.is_empty() => Err(Trouble::NotFound),
        _ => Ok(found),
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
        assert_eq!(resolve(&ip, 7, Some(Family::V6)).await, Err(Trouble::NoAddress(Family::V6)));
    }
}
