//! The findings about a server and the advice that follows from them. No I/O.

use super::address_scope::AddressScope;
use rallypoint_query::{FetchedServer, ProbeError, proto::Protocol};
use rallypoint_wire::lobby::Transport;
use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, SocketAddr},
};

/// All findings about a server.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// The server as given by the user.
    pub host: String,
    pub port: Option<u16>,
    /// Transport protocol, if given by the user.
    pub transport: Option<Transport>,
    pub lobby: String,
    pub is_found: bool,
    pub addresses: Vec<Address>,
    /// Entries of the list with the same addresses.
    pub listed: Vec<FetchedServer>,
    pub has_list: bool,
    /// Whether a test entry was listed, if one was registered.
    pub test: Option<bool>,
    /// Whether the lobby reports why it was not.
    pub is_test_refused: bool,
    /// Whether the lobby reports that it lists the server, although it is in none of the lists that were read.
    pub is_in_another_list: bool,
    /// Whether the lobby reports that it refused the server.
    pub is_refused: bool,
    /// Whether it reports that the operator has banned the server.
    pub is_banned: bool,
    /// Whether it reports that another server registers at the same address and port.
    pub is_contested: bool,
    /// Whether it refused it because it could not reach it.
    pub is_check_failed: bool,
    /// Whether no port was given, and several servers are listed at the address.
    pub is_ambiguous: bool,
}

/// A server that is reached over another transport than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportMismatch {
    pub expected: Transport,
    pub answers_over: Transport,
    source: TransportSource,
    /// Whether the expected transport is known to fail. A UDP server need not answer queries.
    pub is_certain: bool,
}

/// Why a transport is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportSource {
    /// It was given by the user.
    Given,
    /// The list contains it.
    Listed,
    /// The lobby tried to connect and failed.
    Registered,
}

impl fmt::Display for TransportMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = match self.answers_over {
            Transport::Udp => "answers queries over UDP and does not accept TCP connections",
            Transport::Tcp => "accepts TCP connections and does not answer over UDP",
        };
        let name = self.expected.as_str().to_uppercase();
        let but = match self.source {
            TransportSource::Given => format!("but --transport {} was given", self.expected.as_str()),
            TransportSource::Listed => format!("but it is listed as a {name} server"),
            TransportSource::Registered => format!("but it seems to register as a {name} server"),
        };
        write!(f, "the server {answers}, {but}")
    }
}

/// The findings about one address.
#[derive(Debug)]
pub struct Address {
    pub ip: IpAddr,
    /// Why this machine cannot send to the address, if so.
    pub no_route: Option<String>,
    pub tcp: Option<Result<(), ProbeError>>,
    pub queries: Vec<(Protocol, SocketAddr, Result<String, ProbeError>)>,
}

impl Address {
    pub fn answers_query(&self) -> bool {
        self.queries.iter().any(|(_, _, result)| result.is_ok())
    }

    pub fn is_open(&self) -> bool {
        self.tcp == Some(Ok(()))
    }

    /// Whether the machine reported a closed port.
    fn refuses_query(&self) -> bool {
        self.queries.iter().any(|(.., result)| *result == Err(ProbeError::Refused))
    }
}

impl Diagnosis {
    /// The transport protocol: given by the user, taken from the list, or detected.
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

    /// Whether the server is reached over another transport than expected.
    pub fn wrong_transport(&self) -> Option<TransportMismatch> {
        let listed = self.matching().next().and_then(|listed| Some(listed.info.lobby.as_ref()?.transport));
        let given = self.transport.map(|expected| (expected, TransportSource::Given));
        let listed = listed.map(|expected| (expected, TransportSource::Listed));
        // A lobby connects to a TCP server; a UDP server is queried only if it wants that.
        let registered = self.is_check_failed.then_some((Transport::Tcp, TransportSource::Registered));
        let (expected, source) = given.or(listed).or(registered)?;
        let is_open = self.addresses.iter().any(Address::is_open);
        let answers = self.addresses.iter().any(Address::answers_query);
        let (answers_over, is_certain) = match expected {
            Transport::Tcp if answers && !is_open => (Transport::Udp, true),
            Transport::Udp if is_open && !answers => {
                (Transport::Tcp, self.addresses.iter().any(Address::refuses_query))
            }
            _ => return None,
        };
        Some(TransportMismatch { expected, answers_over, source, is_certain })
    }

    /// Entries of the list with the address and port of this server, over any transport.
    fn at_port(&self) -> impl Iterator<Item = &FetchedServer> {
        self.listed.iter().filter(|listed| {
            self.port.is_none_or(|port| {
                let is_it =
                    |addr: &SocketAddr| addr.port() == port && self.addresses.iter().any(|it| it.ip == addr.ip());
                listed.endpoints.iter().any(is_it)
            })
        })
    }

    /// Entries of the list that match this server: address, port and transport, as far as given.
    pub fn matching(&self) -> impl Iterator<Item = &FetchedServer> {
        self.at_port().filter(|listed| {
            let transport = listed.info.lobby.as_ref().map(|lobby| lobby.transport);
            self.transport.is_none() || transport.is_none() || transport == self.transport
        })
    }

    /// The transport and the entry of a server that is listed only over another transport than the given one.
    pub fn listed_over_other_transport(&self) -> Option<(Transport, &FetchedServer)> {
        if self.matching().next().is_some() {
            return None;
        }
        let listed = self.at_port().next()?;
        Some((listed.info.lobby.as_ref()?.transport, listed))
    }

    /// Whether a UDP server is not running: its port is closed at all addresses. A missing answer would not prove that, as a
    /// game need not answer queries.
    pub fn is_down(&self) -> bool {
        let mut tried = self.addresses.iter().filter(|address| !address.queries.is_empty()).peekable();
        let is_tried = self.port.is_some() && tried.peek().is_some();
        is_tried && self.transport() == Some(Transport::Udp) && tried.all(Address::refuses_query)
    }

    /// Advice, most important first.
    pub fn advice(&self) -> Vec<String> {
        let Self { host, lobby, .. } = self;
        if !self.is_found {
            return vec![format!(
                "The name {host} has no address. Check the spelling and the network connection of this machine, or use the IP address."
            )];
        }
        let mut advice = Vec::new();
        if self.is_ambiguous {
            return vec![format!("Run doctor again with the port of one of them: rallypoint doctor {host}:PORT")];
        }
        self.advise_on_addresses(&mut advice);
        if self.is_contested {
            advice.push(
                "Two programs register a server at this address and port. Find the other one (a second announcer, or the game \
                 itself), and stop it or give it another port."
                    .into(),
            );
        }
        let is_known_wrong = self.wrong_transport().is_some_and(|mismatch| mismatch.is_certain);
        if let (Some((listed, _)), Some(given), false) =
            (self.listed_over_other_transport(), self.transport, is_known_wrong)
        {
            let (listed, given) = (listed.as_str(), given.as_str());
            advice.push(format!(
                "Run doctor again with --transport {listed}, or without it. If players connect over {}, register the server \
                 with that transport: rallypoint announce --transport {given}, or the corresponding setting of the game.",
                given.to_uppercase()
            ));
            return advice;
        }
        match self.wrong_transport() {
            Some(mismatch) if mismatch.is_certain => {
                let transport = mismatch.answers_over.as_str();
                advice.push(match mismatch.source {
                    TransportSource::Given => format!("Run doctor again with --transport {transport}, or without it."),
                    _ => format!(
                        "Register the server with the transport {}: rallypoint announce --transport {transport}, or the \
                         corresponding setting of the game.",
                        transport.to_uppercase()
                    ),
                });
                if mismatch.source == TransportSource::Given {
                    return advice;
                }
            }
            _ => self.advise_on_reaching(&mut advice),
        }
        if !self.has_list {
            advice.push(format!(
                "The list of {lobby} cannot be fetched. Check the name and port (--lobby), and that the lobby is running. If \
                 its web page works, a firewall may block TCP port 29944."
            ));
        } else if self.matching().next().is_none() {
            self.advise_on_listing(&mut advice);
        }
        advice
    }

    fn advise_on_addresses(&self, advice: &mut Vec<String>) {
        let scopes: Vec<_> = self.addresses.iter().map(|address| AddressScope::of(address.ip)).collect();
        let is_listed = self.at_port().next().is_some();
        if scopes.contains(&AddressScope::Public) || is_listed || self.is_in_another_list {
            return;
        }
        let Some(address) = self.addresses.first() else { return };
        advice.push(match AddressScope::of(address.ip) {
            AddressScope::Loopback => format!(
                "{} is a loopback address: use the address by which players reach the server, and let the server register \
                 with the lobby from that one.",
                address.ip
            ),
            AddressScope::Documentation => {
                format!("{} is an address for examples in documentation: use the address of your server.", address.ip)
            }
            _ => format!(
                "{} is a private address: it cannot be reached from outside, and most lobbies refuse it. Use the public \
                 address, and forward the port in the router.",
                address.ip
            ),
        });
    }

    fn advise_on_reaching(&self, advice: &mut Vec<String>) {
        let ports = self.ports();
        let reachable: Vec<_> = self.addresses.iter().filter(|address| address.no_route.is_none()).collect();
        if reachable.is_empty() {
            advice.push(
                "This machine has no route to the addresses of the server: run doctor on another machine.".into(),
            );
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
            // A UDP game need not answer queries.
            Some(Transport::Udp) if !self.is_down() => advice.push(format!(
                "UDP {ports} does not answer queries. If the game has no query protocol, that is normal (rallypoint respond \
                 can answer for it). If it has one, open the port in the firewall and forward it in the router."
            )),
            _ if refused => {
                let is_v6 = reachable.iter().all(|address| address.ip.is_ipv6());
                let family = if is_v6 { " over IPv6" } else { "" };
                let other = if is_v6 {
                    " If it runs, it may listen on IPv4 only: then examine its IPv4 address, and let it register over IPv4."
                } else {
                    ""
                };
                advice.push(format!(
                    "The machine is reachable, but nothing listens at {ports}{family}: start the server, and compare the port \
                     with its settings.{other}"
                ));
            }
            _ => advice.push(format!(
                "There is no answer from {ports}. If the server is running, open the port in the firewall of its machine and \
                 forward it in the router (a lobby lists a TCP server only if it can connect to it)."
            )),
        }
    }

    /// `port 8190`, or the default ports that were tried: `port 6969 or 45555`.
    fn ports(&self) -> String {
        let queried = self.addresses.iter().flat_map(|address| &address.queries).map(|(_, at, _)| at.port());
        let ports: BTreeSet<u16> = self.port.map_or_else(|| queried.collect(), |port| [port].into());
        let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
        format!("port {}", ports.join(" or "))
    }

    fn advise_on_listing(&self, advice: &mut Vec<String>) {
        let Self { host, lobby, .. } = self;
        if self.is_in_another_list {
            advice.push(
                "Compare the list that the server registers in with the list that the game of the players requests: doctor \
                 --lobby HOST/LIST reads one list, and --lobby with the address of the lobby's page reads all of them."
                    .into(),
            );
            return;
        }
        let port = self.port.map_or_else(|| "PORT".to_owned(), |port| port.to_string());
        let others: Vec<_> = self.listed.iter().flat_map(|listed| &listed.endpoints).map(ToString::to_string).collect();
        if !others.is_empty() {
            let more = if others.len() > 5 { format!(" and {} more", others.len() - 5) } else { String::new() };
            let some = others.iter().take(5).map(|addr| &**addr).collect::<Vec<_>>().join(", ");
            advice.push(format!(
                "The list has other servers at the same address: {some}{more}. Check whether one of them has the right port \
                 and transport."
            ));
        }
        match self.test {
            _ if self.is_banned => {
                advice.push("The lobby's operator has banned the server: only the operator can lift the ban.".into());
            }
            _ if self.is_refused => {
                advice.push("The server registers, but the lobby refuses it: correct what the lobby reports above.".into());
            }
            Some(false) if self.is_test_refused => {
                advice.push("The lobby refused a test entry: correct what it reports above, and try again.".into());
            }
            Some(true) => advice.push(format!(
                "A test entry from this machine was listed, so the server itself does not register, or registers with another \
                 lobby. Check its settings, or register it with: rallypoint announce --name NAME \
                 --port {port} --lobby {}",
                lobby.replacen('/', " --list ", 1)
            )),
            Some(false) => advice.push(format!(
                "A test entry from this machine was not listed either. The lobby may refuse this address (bans, private \
                 addresses, too many servers), may be unable to reach port {port}, or its UDP port may be blocked on the \
                 way. The log of the lobby contains the reason."
            )),
            None => advice.push(format!(
                "If the server is reachable, it may not register: check that {lobby} is the lobby in its settings, that it is \
                 the right list (--lobby HOST/LIST), and that outgoing UDP is allowed. To test this, run on the machine of \
                 the server: rallypoint doctor {host}:{port} --lobby {lobby} --register-test"
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
        Address { ip, no_route: None, tcp, queries }
    }

    fn listed(at: &str, transport: Transport) -> FetchedServer {
        let endpoints: Vec<SocketAddr> = vec![at.parse().unwrap()];
        let lobby = LobbyInfo { transport, endpoints: endpoints.clone(), protocol_id: None, entries: vec![] };
        FetchedServer {
            info: ServerInfo { lobby: Some(lobby), ..ServerInfo::default() },
            endpoints,
            protocol: None,
            list: None,
            list_name: None,
        }
    }

    fn diagnosis(addresses: Vec<Address>, listed: Vec<FetchedServer>) -> Diagnosis {
        let (host, lobby) = ("play.example.org".into(), "lobby.example.org".into());
        let (port, is_found, has_list) = (Some(8190), true, true);
        Diagnosis { host, port, lobby, is_found, has_list, addresses, listed, ..Diagnosis::default() }
    }

    fn advice(diagnosis: &Diagnosis) -> String {
        diagnosis.advice().join("\n")
    }

    const TIMED_OUT: ProbeError = ProbeError::TimedOut(Duration::from_secs(4));

    #[test]
    fn a_healthy_server_needs_no_advice() {
        let open = address("9.9.9.9", Some(Ok(())), Some(Err(TIMED_OUT)));
        let tcp = diagnosis(vec![open], vec![listed("9.9.9.9:8190", Transport::Tcp)]);
        assert_eq!((tcp.transport(), advice(&tcp)), (Some(Transport::Tcp), String::new()));
        let answers = address("9.9.9.9", Some(Err(ProbeError::Refused)), Some(Ok(())));
        let udp = diagnosis(vec![answers], vec![listed("9.9.9.9:8190", Transport::Udp)]);
        assert_eq!((udp.transport(), advice(&udp)), (Some(Transport::Udp), String::new()));
    }

    #[test]
    fn each_problem_has_its_advice() {
        let public = "9.9.9.9";
        let not_found = Diagnosis { is_found: false, ..diagnosis(vec![], vec![]) };
        assert!(advice(&not_found).contains("has no address"));
        let closed =
            diagnosis(vec![address(public, Some(Err(ProbeError::Refused)), Some(Err(ProbeError::Refused)))], vec![]);
        assert!(advice(&closed).contains("nothing listens at port 8190: start the server"));
        let down = Diagnosis { transport: Some(Transport::Udp), ..closed };
        assert!(down.is_down() && advice(&down).contains("nothing listens at port 8190: start the server"));
        let mut one_way = Diagnosis { transport: Some(Transport::Udp), ..diagnosis(vec![], vec![]) };
        one_way.addresses = [ProbeError::Refused, TIMED_OUT].map(|it| address(public, None, Some(Err(it)))).into();
        assert!(!one_way.is_down() && advice(&one_way).contains("that is normal"));
        let closed = Diagnosis { transport: None, ..down };
        let mut unnamed = Diagnosis { port: None, ..closed };
        let at = SocketAddr::new(public.parse().unwrap(), 45_555);
        unnamed.addresses[0].queries.push((Protocol::Session, at, Err(ProbeError::Refused)));
        assert!(advice(&unnamed).contains("nothing listens at port 8190 or 45555: start the server"));
        let v6 = diagnosis(vec![address("2620:fe::9", Some(Err(ProbeError::Refused)), None)], vec![]);
        assert!(advice(&v6).contains("nothing listens at port 8190 over IPv6") && advice(&v6).contains("IPv4 only"));
        let filtered = diagnosis(vec![address(public, Some(Err(TIMED_OUT)), Some(Err(TIMED_OUT)))], vec![]);
        assert!(advice(&filtered).contains("forward it in the router"));
        let inside = diagnosis(vec![address("192.168.1.5", Some(Ok(())), None)], vec![]);
        assert!(advice(&inside).contains("192.168.1.5 is a private address"));
        let unlisted = diagnosis(vec![address(public, Some(Ok(())), None)], vec![]);
        assert!(advice(&unlisted).contains("--register-test"));
        let banned = diagnosis(vec![address(public, Some(Ok(())), None)], vec![]);
        let banned = advice(&Diagnosis { is_refused: true, is_banned: true, ..banned });
        assert!(banned.contains("only the operator can lift the ban") && !banned.contains("correct what"), "{banned}");
        let refused = advice(&Diagnosis { is_refused: true, ..unlisted });
        assert!(refused.contains("the lobby refuses it") && !refused.contains("it may not register"));
        let no_list = Diagnosis { has_list: false, ..diagnosis(vec![address(public, Some(Ok(())), None)], vec![]) };
        assert!(advice(&no_list).contains("The list of lobby.example.org cannot be fetched"));
        let elsewhere =
            diagnosis(vec![address(public, Some(Ok(())), None)], vec![listed("9.9.9.9:8191", Transport::Tcp)]);
        assert!(advice(&elsewhere).contains("other servers at the same address: 9.9.9.9:8191"));
        let other = Diagnosis { transport: Some(Transport::Udp), ..elsewhere };
        let other = Diagnosis { port: Some(8191), ..other };
        assert!(other.listed_over_other_transport().is_some_and(|(transport, _)| transport == Transport::Tcp));
        assert!(
            advice(&other).starts_with("Run doctor again with --transport tcp, or without it."),
            "{}",
            advice(&other)
        );
        let another_list =
            Diagnosis { is_in_another_list: true, ..diagnosis(vec![address(public, Some(Ok(())), None)], vec![]) };
        assert!(advice(&another_list).contains("requests: doctor --lobby HOST/LIST reads one list"));
        let mut far = address(public, None, None);
        far.no_route = Some("no IPv4".into());
        assert!(advice(&diagnosis(vec![far], vec![])).contains("on another machine"));
    }

    #[test]
    fn a_test_entry_narrows_down_the_problem() {
        let tested = |test| Diagnosis { test, ..diagnosis(vec![address("9.9.9.9", Some(Ok(())), None)], vec![]) };
        assert!(
            advice(&tested(Some(true)))
                .ends_with("rallypoint announce --name NAME --port 8190 --lobby lobby.example.org")
        );
        let list = Diagnosis { lobby: "lobby.example.org/rooms".into(), ..tested(Some(true)) };
        assert!(advice(&list).ends_with("--lobby lobby.example.org --list rooms"), "{}", advice(&list));
        assert!(advice(&tested(Some(false))).contains("may refuse this address"));
        let refused = Diagnosis { is_test_refused: true, ..tested(Some(false)) };
        assert!(advice(&refused).ends_with("correct what it reports above, and try again."));
    }
}
