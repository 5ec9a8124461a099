//! What was found out, and what it means. No I/O.

use rallypoint_query::{ListedServer, ProbeError, proto::Protocol};
use rallypoint_wire::lobby::Transport;
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

/// All that was found out about a server.
#[derive(Debug, Default)]
pub struct Facts {
    /// As a person named it.
    pub host: String,
    pub port: Option<u16>,
    /// How players reach it, if that was said.
    pub transport: Option<Transport>,
    pub lobby: String,
    pub is_found: bool,
    pub addresses: Vec<Address>,
    /// Servers of the list at the same addresses.
    pub listed: Vec<ListedServer>,
    pub has_list: bool,
    /// Whether a test entry was listed, if one was sent.
    pub test: Option<bool>,
    /// Whether the lobby says that it has heard of the server, and does not take it.
    pub is_refused: bool,
}

/// What was found out about one of its addresses.
#[derive(Debug)]
pub struct Address {
    pub ip: IpAddr,
    /// Why this machine cannot send there at all.
    pub no_way: Option<String>,
    pub tcp: Option<Result<(), ProbeError>>,
    pub queries: Vec<(Protocol, SocketAddr, Result<String, ProbeError>)>,
}

/// Where an address can be reached from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Everywhere,
    /// Only from the same home or company.
    Private,
    /// Only from the same machine.
    Loopback,
}

impl Reach {
    pub fn of(ip: IpAddr) -> Self {
        let private = match ip {
            _ if ip.is_loopback() => return Self::Loopback,
            IpAddr::V4(v4) => {
                let [a, b, ..] = v4.octets();
                v4.is_private() || v4.is_link_local() || v4.is_unspecified() || a == 100 && (64..128).contains(&b)
            }
            IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified(),
        };
        if private { Self::Private } else { Self::Everywhere }
    }
}

impl Address {
    pub fn answers_query(&self) -> bool {
        self.queries.iter().any(|(_, _, result)| result.is_ok())
    }

    pub fn is_open(&self) -> bool {
        self.tcp == Some(Ok(()))
    }

    /// Whether its machine says that nothing listens where it was queried.
    fn refuses_query(&self) -> bool {
        self.queries.iter().any(|(.., result)| *result == Err(ProbeError::Refused))
    }
}

impl Facts {
    /// How players reach it: as was said, as the list says, or as it answers.
    pub fn transport(&self) -> Option<Transport> {
        let listed = || self.matching().next().and_then(|listed| Some(listed.info.lobby.as_ref()?.transport));
        let answers = || {
            if self.addresses.iter().any(Address::answers_query) {
                Some(Transport::Udp)
            } else {
                self.addresses.iter().any(Address::is_open).then_some(Transport::Tcp)
            }
        };
        self.transport.or_else(listed).or_else(answers)
    }

    /// Entries of the list that are this server: same address, same port if one was named, same transport.
    pub fn matching(&self) -> impl Iterator<Item = &ListedServer> {
        self.listed.iter().filter(|listed| {
            let transport = listed.info.lobby.as_ref().map(|lobby| lobby.transport);
            let fits = self.transport.is_none() || transport.is_none() || transport == self.transport;
            fits && self.port.is_none_or(|port| {
                let is_it =
                    |addr: &SocketAddr| addr.port() == port && self.addresses.iter().any(|it| it.ip == addr.ip());
                listed.endpoints.iter().any(is_it)
            })
        })
    }

    /// Whether a server that is played over UDP does not run: nothing listens at its port, by no address. Silence would say
    /// nothing, because such a game need not have a query.
    pub fn is_down(&self) -> bool {
        let mut tried = self.addresses.iter().filter(|address| !address.queries.is_empty()).peekable();
        let is_tried = self.port.is_some() && tried.peek().is_some();
        is_tried && self.transport() == Some(Transport::Udp) && tried.all(Address::refuses_query)
    }

    /// What to do, the most important first.
    pub fn advice(&self) -> Vec<String> {
        let Self { host, lobby, .. } = self;
        if !self.is_found {
            return vec![format!(
                "The name {host} has no address. Is it spelled right, and does this machine have a network? Try the address in numbers."
            )];
        }
        let mut advice = Vec::new();
        self.advise_on_addresses(&mut advice);
        self.advise_on_reaching(&mut advice);
        if !self.has_list {
            advice.push(format!(
                "The lobby {lobby} does not give its list. Is it the right name and port (--lobby), and does it run? If its \
                 web page works, a firewall may close TCP port 29944."
            ));
        } else if self.matching().next().is_none() {
            self.advise_on_listing(&mut advice);
        }
        advice
    }

    fn advise_on_addresses(&self, advice: &mut Vec<String>) {
        let reaches: Vec<_> = self.addresses.iter().map(|address| Reach::of(address.ip)).collect();
        let is_listed = self.matching().next().is_some();
        if reaches.contains(&Reach::Everywhere) || is_listed {
            return;
        }
        let Some(address) = self.addresses.first() else { return };
        advice.push(match Reach::of(address.ip) {
            Reach::Loopback => format!(
                "{} is only this machine itself: use the address by which players reach the server, and let the server \
                 announce itself to the lobby by that one.",
                address.ip
            ),
            _ => format!(
                "{} is an address inside a home or company: nobody outside can reach it, and most lobbies refuse it. Use \
                 the public address, and forward the port in the router.",
                address.ip
            ),
        });
    }

    fn advise_on_reaching(&self, advice: &mut Vec<String>) {
        let ports = self.ports();
        let reachable: Vec<_> = self.addresses.iter().filter(|address| address.no_way.is_none()).collect();
        if reachable.is_empty() {
            advice.push("This machine has no way to the server's addresses: try doctor from another machine.".into());
            return;
        }
        let answers = |address: &&&Address| match self.transport() {
            Some(Transport::Tcp) => address.is_open(),
            Some(Transport::Udp) => address.answers_query(),
            None => false,
        };
        if reachable.iter().any(|address| answers(&address)) {
            return;
        }
        let refused =
            reachable.iter().any(|address| address.tcp == Some(Err(ProbeError::Refused)) || address.refuses_query());
        match self.transport() {
            // A game that is played over UDP need not have a query.
            Some(Transport::Udp) if !self.is_down() => advice.push(format!(
                "Nothing answers a query at UDP {ports}. If the game has no query of its own, that is normal (rallypoint \
                 respond can answer for it). If it has, allow the port in the firewall and forward it in the router."
            )),
            _ if refused => advice.push(format!(
                "The machine is there, but nothing listens at {ports}: start the server, and compare the port with its \
                 settings."
            )),
            _ => advice.push(format!(
                "Nothing answers at {ports}. Does the server run? Then allow the port in the machine's firewall, and \
                 forward it in the router (a lobby lists a TCP server only if it can connect to it)."
            )),
        }
    }

    /// `port 8190`, or, if none was named, those that were tried: `port 6969 or 45555`.
    fn ports(&self) -> String {
        let queried = self.addresses.iter().flat_map(|address| &address.queries).map(|(_, at, _)| at.port());
        let ports: BTreeSet<u16> = self.port.map_or_else(|| queried.collect(), |port| [port].into());
        let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
        format!("port {}", ports.join(" or "))
    }

    fn advise_on_listing(&self, advice: &mut Vec<String>) {
        let Self { host, lobby, .. } = self;
        let port = self.port.map_or_else(|| "PORT".to_owned(), |port| port.to_string());
        let others: Vec<_> = self.listed.iter().flat_map(|listed| &listed.endpoints).map(ToString::to_string).collect();
        if !others.is_empty() {
            let more = if others.len() > 5 { format!(" and {} more", others.len() - 5) } else { String::new() };
            let some = others.iter().take(5).map(|addr| &**addr).collect::<Vec<_>>().join(", ");
            advice.push(format!(
                "The list has other servers at the same address: {some}{more}. Is one of these the right port and \
                 transport?"
            ));
        }
        match self.test {
            _ if self.is_refused => advice.push(
                "The server does announce itself, but the lobby does not take it: what it says about that above is what to \
                 mend."
                    .into(),
            ),
            Some(true) => advice.push(format!(
                "A test entry from here was listed, so the way to the lobby is open and the server itself does not announce, \
                 or to another lobby. Look at its settings, or let rallypoint do it: rallypoint announce --name NAME \
                 --port {port} --lobby {}",
                lobby.replacen('/', " --lobby-id ", 1)
            )),
            Some(false) => advice.push(format!(
                "A test entry from here was not listed either. The lobby may refuse this address (bans, private addresses, too \
                 many servers), it may not be able to reach port {port}, or datagrams to its UDP port do not get there. \
                 Its operator can see the reason in the log."
            )),
            None => advice.push(format!(
                "If the server can be reached, it may not announce itself: is {lobby} the lobby in its settings, is it the \
                 right list (--lobby HOST/LIST), and may it send UDP out? On the server's machine, \
                 rallypoint doctor {host}:{port} --lobby {lobby} --register-test tries it."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::proto::{LobbyInfo, ServerInfo};
    use std::time::Duration;

    fn address(ip: &str, tcp: Option<Result<(), ProbeError>>, query: Option<Result<(), ProbeError>>) -> Address {
        let ip: IpAddr = ip.parse().unwrap();
        let at = SocketAddr::new(ip, 8190);
        let queries = query.into_iter().map(|result| (Protocol::Session, at, result.map(|()| String::new()))).collect();
        Address { ip, no_way: None, tcp, queries }
    }

    fn listed(at: &str, transport: Transport) -> ListedServer {
        let endpoints: Vec<SocketAddr> = vec![at.parse().unwrap()];
        let lobby = LobbyInfo { transport, endpoints: endpoints.clone(), protocol_id: None, entries: vec![] };
        ListedServer { info: ServerInfo { lobby: Some(lobby), ..ServerInfo::default() }, endpoints, protocol: None }
    }

    fn facts(addresses: Vec<Address>, listed: Vec<ListedServer>) -> Facts {
        let (host, lobby) = ("play.example.org".into(), "lobby.example.org".into());
        let (port, is_found, has_list) = (Some(8190), true, true);
        Facts { host, port, lobby, is_found, has_list, addresses, listed, ..Facts::default() }
    }

    fn advice(facts: &Facts) -> String {
        facts.advice().join("\n")
    }

    const TIMED_OUT: ProbeError = ProbeError::TimedOut(Duration::from_secs(4));

    #[test]
    fn a_healthy_server_needs_no_advice() {
        let open = address("198.51.100.1", Some(Ok(())), Some(Err(TIMED_OUT)));
        let tcp = facts(vec![open], vec![listed("198.51.100.1:8190", Transport::Tcp)]);
        assert_eq!((tcp.transport(), advice(&tcp)), (Some(Transport::Tcp), String::new()));
        let answers = address("198.51.100.1", Some(Err(ProbeError::Refused)), Some(Ok(())));
        let udp = facts(vec![answers], vec![listed("198.51.100.1:8190", Transport::Udp)]);
        assert_eq!((udp.transport(), advice(&udp)), (Some(Transport::Udp), String::new()));
    }

    #[test]
    fn each_illness_has_its_cure() {
        let public = "198.51.100.1";
        let not_found = Facts { is_found: false, ..facts(vec![], vec![]) };
        assert!(advice(&not_found).contains("has no address"));
        let closed =
            facts(vec![address(public, Some(Err(ProbeError::Refused)), Some(Err(ProbeError::Refused)))], vec![]);
        assert!(advice(&closed).contains("nothing listens at port 8190: start the server"));
        let down = Facts { transport: Some(Transport::Udp), ..closed };
        assert!(down.is_down() && advice(&down).contains("nothing listens at port 8190: start the server"));
        let mut one_way = Facts { transport: Some(Transport::Udp), ..facts(vec![], vec![]) };
        one_way.addresses = [ProbeError::Refused, TIMED_OUT].map(|it| address(public, None, Some(Err(it)))).into();
        assert!(!one_way.is_down() && advice(&one_way).contains("that is normal"));
        let closed = Facts { transport: None, ..down };
        let mut unnamed = Facts { port: None, ..closed };
        let at = SocketAddr::new(public.parse().unwrap(), 45_555);
        unnamed.addresses[0].queries.push((Protocol::Session, at, Err(ProbeError::Refused)));
        assert!(advice(&unnamed).contains("nothing listens at port 8190 or 45555: start the server"));
        let filtered = facts(vec![address(public, Some(Err(TIMED_OUT)), Some(Err(TIMED_OUT)))], vec![]);
        assert!(advice(&filtered).contains("forward it in the router"));
        let inside = facts(vec![address("192.168.1.5", Some(Ok(())), None)], vec![]);
        assert!(advice(&inside).contains("192.168.1.5 is an address inside a home"));
        let unlisted = facts(vec![address(public, Some(Ok(())), None)], vec![]);
        assert!(advice(&unlisted).contains("--register-test tries it"));
        let refused = advice(&Facts { is_refused: true, ..unlisted });
        assert!(refused.contains("does announce itself") && !refused.contains("may not announce itself"));
        let no_list = Facts { has_list: false, ..facts(vec![address(public, Some(Ok(())), None)], vec![]) };
        assert!(advice(&no_list).contains("lobby.example.org does not give its list"));
        let elsewhere =
            facts(vec![address(public, Some(Ok(())), None)], vec![listed("198.51.100.1:8191", Transport::Tcp)]);
        assert!(advice(&elsewhere).contains("other servers at the same address: 198.51.100.1:8191"));
        let mut far = address(public, None, None);
        far.no_way = Some("no IPv4".into());
        assert!(advice(&facts(vec![far], vec![])).contains("from another machine"));
    }

    #[test]
    fn a_test_entry_tells_where_the_fault_is() {
        let tested = |test| Facts { test, ..facts(vec![address("198.51.100.1", Some(Ok(())), None)], vec![]) };
        assert!(
            advice(&tested(Some(true)))
                .ends_with("rallypoint announce --name NAME --port 8190 --lobby lobby.example.org")
        );
        let list = Facts { lobby: "lobby.example.org/rooms".into(), ..tested(Some(true)) };
        assert!(advice(&list).ends_with("--lobby lobby.example.org --lobby-id rooms"), "{}", advice(&list));
        assert!(advice(&tested(Some(false))).contains("may refuse this address"));
    }

    #[test]
    fn addresses_of_the_internet_are_told_from_others() {
        for (ip, reach) in [
            ("127.0.0.1", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("10.1.2.3", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("100.128.0.1", Reach::Everywhere),
            ("fd00::1", Reach::Private),
            ("fe80::1", Reach::Private),
            ("2001:db8::1", Reach::Everywhere),
        ] {
            assert_eq!(Reach::of(ip.parse().unwrap()), reach, "{ip}");
        }
    }
}
