//! `/why`: the page that explains why a server is not listed.

use crate::common;

use common::{Server, Site, wait_until};
use rallypoint_lobby::LobbyOptions;
use rallypoint_web::WebOptions;
use std::{net::UdpSocket, time::Duration};

#[test]
fn recent_registration_outcomes_are_shown() {
    let site = Site::start();
    assert!(site.get("/why").text().contains("No recent registrations from 127.0.0.1."));
    site.register_all(&[Server::new(1, "Alpha")]);
    let html = site.get("/why").text();
    assert!(html.contains("the server is now in the list") && html.contains("8001"), "{html}");
    let mut broken = Server::new(2, "Beta").datagram();
    broken.truncate(40);
    site.send(&broken);
    let html =
        wait_until("the refusal is shown", || Some(site.get("/why").text()).filter(|html| html.contains("malformed")));
    assert!(html.contains("class=\"notice bad\""), "{html}");
}

#[test]
fn every_port_of_an_address_has_its_own_explanation() {
    let mut lobby = LobbyOptions::default();
    lobby.registry.caps.per_address = 2;
    let site = Site::with_lobby(lobby, WebOptions::default(), |_| {});
    site.register_all(&[Server::new(1, "Alpha"), Server::new(2, "Beta")]);
    site.unregister(1);
    site.wait_for("/api/v1/servers", |list| list["total"] == 1);
    site.register(&Server::new(3, "Gamma"));
    site.register(&Server::new(4, "Delta"));
    let html = wait_until("the refusal is shown", || {
        Some(site.get("/why").text()).filter(|html| html.contains("<code>address_full</code>"))
    });
    let notices: Vec<_> =
        html.split("<p class=\"notice ").skip(1).map(|part| part.split(':').next().unwrap()).collect();
    assert_eq!(notices, ["bad\">Port 8004", "good\">Ports 8003, 8002", "calm\">Port 8001"]);
}

#[test]
fn a_closed_port_is_told_apart_from_silence() {
    let mut lobby = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    lobby.registry.checks.timeout = Duration::from_millis(500);
    let site = Site::with_lobby(lobby, WebOptions::default(), |_| {});
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Bound and closed again, so that nothing else is likely to have it.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let [silent_query, closed_query] =
        [silent.local_addr().unwrap(), closed].map(|addr| format!("session:{}", addr.port()));
    let silent_keys: &[(&[u8], &[u8])] = &[(b"x-query", silent_query.as_bytes())];
    let closed_keys: &[(&[u8], &[u8])] = &[(b"x-query", closed_query.as_bytes())];
    let servers = [
        Server { keys: silent_keys, ..Server::new(1, "Silent") },
        Server { keys: closed_keys, ..Server::new(2, "Closed") },
    ];
    let expected = [(8_001, "unreachable"), (8_002, "port_closed")];
    let html = wait_until("the API has the outcomes of both", || {
        servers.iter().for_each(|server| site.register(server));
        let outcomes = site.json("/api/v1/outcomes")["outcomes"].clone();
        let has = |port: u16, code: &str| {
            outcomes.as_array().unwrap().iter().any(|outcome| outcome["port"] == port && outcome["code"] == code)
        };
        expected.iter().all(|(port, code)| has(*port, code)).then(|| site.get("/why").text())
    });
    let notices = || html.split("<p class=\"notice bad\">").skip(1).map(|part| part.split("</p>").next().unwrap());
    for (port, code) in expected {
        let is_told =
            |notice: &str| notice.contains(&port.to_string()) && notice.contains(&format!("<code>{code}</code>"));
        assert!(notices().any(is_told), "{port} {code}: {html}");
    }
}

#[test]
fn an_unregistration_is_not_shown_as_a_failure() {
    let site = Site::start();
    site.register_all(&[Server::new(1, "Alpha")]);
    // Servers repeat it because datagrams can be lost.
    site.unregister(1);
    site.unregister(1);
    let is_shown = |html: &String| html.contains("<code>not_registered</code>");
    let html = wait_until("both unregistrations are shown", || Some(site.get("/why").text()).filter(is_shown));
    let notice = "<p class=\"notice calm\">Port 8001: the owner unregistered the server";
    assert!(html.contains(notice), "{html}");
}

#[test]
fn an_invalid_address_is_refused_and_kept_in_the_field() {
    let site = Site::start();
    let response = site.get("/why?address=%3Cb%3E");
    assert_eq!(response.status, 400);
    let html = response.text();
    assert!(html.contains("value=\"&#60;b&#62;\"") && html.contains("this is not an IP address"), "{html}");
    for valid in ["192.0.2.1", "[2001:db8::1]:29944", "192.0.2.1:80"] {
        assert_eq!(
            site.get(&format!("/why?address={valid}")).status,
            200,
            "a local client may query any address: {valid}"
        );
    }
}
