//! Live changes: nothing is missed, also over a dropped connection.

mod common;

use common::{LOBBY, Listener, Server, Site, connect, read_answer, until};
use rallypoint_web::{WebLimits, WebOptions};
use rallypoint_wire::lobby::LobbyId;
use std::io::{BufReader, Write};

const EVENTS: &str = "/api/v1/events";

#[test]
fn what_happens_is_told() {
    let site = Site::start();
    let mut listener = Listener::new(site.addr(), EVENTS, &[]);
    assert_eq!(listener.next().unwrap().name, "hello");
    site.register(&Server::new(1, "Bacon Town"));
    let listed = listener.next().unwrap();
    assert_eq!((&*listed.name, &listed.data["name"]), ("listed", &"Bacon Town".into()));
    assert_eq!(listed.data, site.json("/api/v1/servers")["servers"][0], "the same as in the list");
    site.register(&Server::new(1, "Bacon City"));
    let changed = listener.next().unwrap();
    assert_eq!((&*changed.name, &changed.data["name"]), ("changed", &"Bacon City".into()));
    site.unregister(1);
    let gone = listener.next().unwrap();
    assert_eq!((&*gone.name, &gone.data["why"]), ("unlisted", &"unregistered".into()));
    assert_eq!(gone.data["id"], listed.data["id"]);
    let ids = [&listed, &changed, &gone].map(|event| event.id.clone());
    let cursor = site.json("/api/v1/servers")["cursor"].clone();
    assert_eq!(cursor, *ids[2]);
}

#[test]
fn whoever_comes_back_gets_what_was_missed() {
    let site = Site::start();
    let mut listener = Listener::new(site.addr(), EVENTS, &[]);
    let hello = listener.next().unwrap();
    site.register(&Server::new(1, "one"));
    let seen = listener.next().unwrap();
    drop(listener);
    for (number, name) in [(2, "two"), (3, "three"), (4, "four")] {
        site.register(&Server::new(number, name));
        site.wait_for("/api/v1/servers", |list| list["total"] == number);
    }
    let names = |listener: &mut Listener, count: usize| -> Vec<_> {
        (0..count).map(|_| listener.next().unwrap().data["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut again = Listener::new(site.addr(), EVENTS, &[("last-event-id", &seen.id)]);
    assert_eq!(names(&mut again, 3), ["two", "three", "four"]);
    let after = format!("{EVENTS}?after={}", hello.id);
    let mut all = Listener::new(site.addr(), &after, &[]);
    assert_eq!(names(&mut all, 4), ["one", "two", "three", "four"]);
    let mut both = Listener::new(site.addr(), &after, &[("last-event-id", &seen.id)]);
    assert_eq!(names(&mut both, 3), ["two", "three", "four"], "what a browser has seen since counts");
    site.register(&Server::new(5, "five"));
    for listener in [&mut again, &mut all, &mut both] {
        assert_eq!(names(listener, 1), ["five"]);
    }
}

#[test]
fn a_list_goes_on_with_events() {
    let site = Site::start();
    let list = site.fill(&[Server::new(1, "one"), Server::new(2, "two")]);
    let path = format!("{EVENTS}?after={}", list["cursor"].as_str().unwrap());
    let mut listener = Listener::new(site.addr(), &path, &[]);
    site.register(&Server::new(3, "three"));
    assert_eq!(listener.next().unwrap().data["name"], "three", "nothing that the list has");
}

#[test]
fn what_nobody_remembers_is_a_reset() {
    let site = Site::start();
    site.fill(&[Server::new(1, "one")]);
    let cursor = site.json("/api/v1/servers")["cursor"].as_str().unwrap().to_owned();
    let (epoch, number) = cursor.split_once('-').unwrap();
    let other = format!("{:08x}-{number}", !u32::from_str_radix(epoch, 16).unwrap());
    for id in [&*other, "nonsense", &format!("{epoch}-99999")] {
        let reset = Listener::new(site.addr(), EVENTS, &[("last-event-id", id)]).next().unwrap();
        assert_eq!((&*reset.name, &*reset.id), ("reset", &*cursor), "{id}");
        assert_eq!(reset.data["cursor"], cursor);
    }
}

#[test]
fn one_lobby_can_be_listened_to() {
    let site = Site::start();
    let other = LobbyId::from_bytes([9; 16]);
    let path = format!("{EVENTS}?lobby={other}");
    let mut listener = Listener::new(site.addr(), &path, &[]);
    listener.next().unwrap();
    site.fill(&[Server::new(1, "elsewhere"), Server { lobby: other, ..Server::new(2, "here") }]);
    assert_eq!(listener.next().unwrap().data["name"], "here");
    site.register(&Server { lobby: LOBBY, ..Server::new(2, "here") });
    let gone = listener.next().unwrap();
    assert_eq!((&*gone.name, &gone.data["why"]), ("unlisted", &"moved".into()));
}

#[test]
fn all_who_listen_are_told() {
    let mut options = WebOptions::default();
    options.limits = WebLimits { listeners: 300, ..options.limits };
    let site = Site::with(options);
    let mut listeners: Vec<_> = (0..200).map(|_| Listener::new(site.addr(), EVENTS, &[])).collect();
    for listener in &mut listeners {
        listener.next().unwrap();
    }
    site.register(&Server::new(1, "one"));
    for listener in &mut listeners {
        assert_eq!(listener.next().unwrap().data["name"], "one");
    }
}

#[test]
fn there_are_only_so_many_who_listen() {
    let mut options = WebOptions::default();
    options.limits = WebLimits { listeners: 2, ..options.limits };
    let site = Site::with(options);
    let mut first = Listener::new(site.addr(), EVENTS, &[]);
    first.next().unwrap();
    let _second = Listener::new(site.addr(), EVENTS, &[]);
    let refused = site.get(EVENTS);
    assert_eq!((refused.status, refused.header("content-type")), (503, Some("application/problem+json")));
    drop(first);
    until("there is a place again", || {
        let mut tcp = connect(site.addr());
        write!(tcp, "GET {EVENTS} HTTP/1.1\r\nhost: lobby\r\n\r\n").unwrap();
        read_answer(&mut BufReader::new(tcp), false).filter(|answer| answer.status == 200)
    });
}

#[test]
fn streams_end_when_the_server_does() {
    let site = Site::start();
    let mut listener = Listener::new(site.addr(), EVENTS, &[]);
    listener.next().unwrap();
    site.runtime.block_on(site.web.shutdown());
    assert_eq!(listener.next(), None);
    assert!(std::net::TcpStream::connect(site.addr()).is_err(), "nobody is served any more");
}
