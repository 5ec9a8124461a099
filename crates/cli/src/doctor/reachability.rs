//! Resolves the name of a server, connects to its addresses and queries them.

use super::{Args, Doctor, address_scope::AddressScope, diagnosis::Address, report::Severity};
use crate::{error::CommandError, output::details};
use rallypoint_query::{
    Host, ProbeError, ScannedServer, ServerAddress, connect_tcp, local_address_for, proto::Detail, resolve,
};
use rallypoint_wire::lobby::Transport;
use std::{
    net::{SocketAddr, UdpSocket},
    num::NonZeroU16,
};

impl Doctor<'_> {
    pub(super) async fn resolve(&mut self) -> Result<bool, CommandError> {
        let host = &self.args.server.host;
        let addrs = match resolve(host, 0, self.args.scan.config(None).only_family()).await {
            Ok(addrs) => addrs,
            Err(error) => {
                self.report.push("name", Severity::Problem, format!("{host}: {error}"))?;
                return Ok(false);
            }
        };
        self.diagnosis.is_found = true;
        let ips: Vec<_> = addrs.iter().map(SocketAddr::ip).collect();
        let shown: Vec<_> = ips.iter().map(ToString::to_string).collect();
        let text = match host {
            Host::Ip(ip) => format!("{ip} is an address: no name to resolve"),
            Host::Name(_) => format!("{host} resolves to {}", shown.join(", ")),
        };
        self.report.push("name", Severity::Ok, text)?;
        for &ip in &ips {
            let scope = match AddressScope::of(ip) {
                AddressScope::Public => continue,
                AddressScope::Private => "is a private address, not reachable from the internet",
                AddressScope::Documentation => "is an address for examples in documentation, which no machine has",
                AddressScope::Loopback => "is a loopback address, reachable from this machine only",
            };
            self.report.push("name", Severity::Note, format!("{ip} {scope}"))?;
        }
        for ip in ips {
            let no_route = local_address_for(SocketAddr::new(ip, 9)).err().map(|_| {
                let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
                format!("{ip} was not tried: this machine has no {family} connection")
            });
            let is_here = !ip.is_loopback() && UdpSocket::bind((ip, 0)).is_ok();
            if let Some(why) = &no_route {
                self.report.push("name", Severity::Note, why.clone())?;
            } else if is_here {
                let text = format!(
                    "{ip} is this machine: only a test from elsewhere shows whether firewall and router let players in"
                );
                self.report.push("name", Severity::Note, text)?;
            }
            self.diagnosis.addresses.push(Address { ip, no_route, tcp: None, queries: Vec::new() });
        }
        Ok(true)
    }

    /// Connects to and queries all addresses at once.
    pub(super) async fn reach(&mut self) -> Result<(), CommandError> {
        let Args { server, scan, .. } = self.args;
        let server = &ServerAddress { port: self.diagnosis.port.and_then(NonZeroU16::new), ..server.clone() };
        // Both transports are tried even if one is given: it may be the wrong one.
        let port = self.diagnosis.port.filter(|_| server.protocol.is_none());
        let mut engine = scan.engine(Detail::Info)?;
        let mut connects = tokio::task::JoinSet::new();
        let mut probes = Vec::new();
        for (index, address) in self.diagnosis.addresses.iter().enumerate().filter(|(_, it)| it.no_route.is_none()) {
            if let Some(port) = port {
                let addr = SocketAddr::new(address.ip, port);
                let config = scan.config(None);
                connects.spawn(async move { (index, connect_tcp(&[addr], &config).await.map(drop)) });
            }
            for probe in server.probes(&[SocketAddr::new(address.ip, 0)], Detail::Players) {
                engine.probe(probes.len() as u64, vec![probe]);
                probes.push((index, probe));
            }
        }
        while let Some(group) = engine.next().await {
            let Some(&(index, probe)) = usize::try_from(group.key).ok().and_then(|key| probes.get(key)) else {
                continue;
            };
            let result = match group.result {
                Ok(reply) => {
                    let address = ServerAddress { host: Host::Ip(probe.address.ip()), port: None, protocol: None };
                    let mut record = ScannedServer::named(&address, 0);
                    record.apply_reply(reply);
                    Ok(summary(&record))
                }
                Err(failed) => Err(failed.error),
            };
            self.diagnosis.addresses[index].queries.push((probe.query.protocol, probe.address, result));
        }
        while let Some(Ok((index, result))) = connects.join_next().await {
            self.diagnosis.addresses[index].tcp = Some(result);
        }
        Ok(())
    }

    /// Reports which addresses answered. Which failures matter depends on the transport protocol.
    pub(super) fn report_reachability(&mut self) -> Result<(), CommandError> {
        let transport = self.diagnosis.transport();
        let mut results = Vec::new();
        let answers = |address: &Address| match transport {
            Some(Transport::Tcp) => address.is_open(),
            _ => address.answers_query(),
        };
        let any_answers = self.diagnosis.addresses.iter().any(answers);
        for address in &self.diagnosis.addresses {
            if let Some(tcp) = &address.tcp {
                let at = SocketAddr::new(address.ip, self.diagnosis.port.unwrap_or(0));
                match tcp {
                    Ok(()) => results.push(("tcp", Severity::Ok, format!("{at} accepts connections"))),
                    // A server that answers queries need not accept connections.
                    Err(_) if transport == Some(Transport::Udp) => {}
                    // One family is enough, but players who have only the other one cannot connect.
                    Err(error) => {
                        let severity = if any_answers { Severity::Note } else { Severity::Problem };
                        results.push(("tcp", severity, format!("{at}: {error}")));
                    }
                }
            }
            for (protocol, at, result) in &address.queries {
                match result {
                    Ok(text) => {
                        results.push(("query", Severity::Ok, format!("{at} answers {protocol} queries: {text}")));
                    }
                    Err(_) if address.answers_query() || transport == Some(Transport::Tcp) => {}
                    Err(ProbeError::Refused) => {
                        let severity = if self.diagnosis.is_down() { Severity::Problem } else { Severity::Note };
                        let refused = ("query", severity, format!("{at}: {}", ProbeError::Refused));
                        // A refused port is refused for all protocols.
                        if !results.contains(&refused) {
                            results.push(refused);
                        }
                    }
                    Err(error) => {
                        results.push(("query", Severity::Note, format!("{at} ({protocol} query): {error}")));
                    }
                }
            }
        }
        let is_tried =
            self.diagnosis.addresses.iter().any(|address| address.tcp.is_some() || !address.queries.is_empty());
        let nothing = is_tried
            && !any_answers
            && transport != Some(Transport::Udp)
            && !results.iter().any(|(_, severity, _)| *severity == Severity::Problem);
        for (step, severity, text) in results {
            self.report.push(step, severity, text)?;
        }
        if nothing && transport.is_none() {
            self.report.push("tcp", Severity::Problem, "no answer, neither to a connection nor to a query")?;
        }
        Ok(())
    }

    /// Reports that the server is reached over the other transport than the one that it is given, listed or registered with.
    pub(super) fn report_transport(&mut self) -> Result<(), CommandError> {
        let Some(mismatch) = self.diagnosis.wrong_transport() else { return Ok(()) };
        let severity = if mismatch.is_certain { Severity::Problem } else { Severity::Note };
        self.report.push("transport", severity, mismatch.to_string())
    }
}

fn summary(record: &ScannedServer) -> String {
    let info = &record.info;
    let players = match (info.players, info.max_players) {
        (Some(players), Some(most)) => format!(", {players}/{most} players"),
        _ => String::new(),
    };
    let ping = record.ping_ms().map_or_else(String::new, |ping| format!(", {}", details::ping(ping)));
    format!("\"{}\"{players}{ping}", record.name())
}
