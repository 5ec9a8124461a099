//! The event stream: no change is lost, not even across reconnects.

use crate::common;

use common::{EventStream, LOBBY, Server, Site, connect, read_response, wait_until};
use rallypoint_web::{WebLimits, WebOptions};
use rallypoint_wire::lobby::ListId;
use std::io::{BufReader, Write};

const EVENTS: &str = "/api/v1/events";

#[test]
fn listed_changed_and_unlisted_servers_are_events() {
    let site = Site::start();
    let mut stream = EventStream::new(site.addr(), EVENTS, &[]);
    assert_eq!(stream.next().unwrap().name, "hello");
    site.register(&Server::new(1, "Bacon Town"));
    let listed = stream.next().unwrap();
    assert_eq!((&*listed.name, &listed.data["name"]), ("listed", &"Bacon Town".into()));
    assert_eq!(listed.data, site.json("/api/v1/servers")["servers"][0], "the event has the JSON of the list");
    site.register(&Server::new(1, "Bacon City"));
    let changed = stream.next().unwrap();
    assert_eq!((&*changed.name, &changed.data["name"]), ("changed", &"Bacon City".into()));
    site.unregister(1);
    let gone = stream.next().unwrap();
    assert_eq!((&*gone.name, &gone.data["why"]), ("unlisted", &"unregistered".into()));
    assert_eq!(gone.data["id"], listed.data["id"]);
    let ids = [&listed, &changed, &gone].map(|event| event.id.clone());
    let cursor = site.json("/api/v1/servers")["cursor"].clone();
    assert_eq!(cursor, *ids[2]);
}

#[test]
fn a_reconnecting_client_receives_the_missed_events() {
    let site = Site::start();
    let mut stream = EventStream::new(site.addr(), EVENTS, &[]);
    let hello = stream.next().unwrap();
    site.register(&Server::new(1, "one"));
    let last = stream.next().unwrap();
    drop(stream);
    for (number, name) in [(2, "two"), (3, "three"), (4, "four")] {
        site.register(&Server::new(number, name));
        site.wait_for("/api/v1/servers", |list| list["total"] == number);
    }
    let names = |stream: &mut EventStream, count: usize| -> Vec<_> {
        (0..count).map(|_| stream.next().unwrap().data["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut again = EventStream::new(site.addr(), EVENTS, &[("last-event-id", &last.id)]);
    assert_eq!(names(&mut again, 3), ["two", "three", "four"]);
    let after = format!("{EVENTS}?after={}", hello.id);
    let mut all = EventStream::new(site.addr(), &after, &[]);
    assert_eq!(names(&mut all, 4), ["one", "two", "three", "four"]);
    let mut both = EventStream::new(site.addr(), &after, &[("last-event-id", &last.id)]);
    assert_eq!(names(&mut both, 3), ["two", "three", "four"], "Last-Event-ID takes precedence over `after`");
    site.register(&Server::new(5, "five"));
    for stream in [&mut again, &mut all, &mut both] {
        assert_eq!(names(stream, 1), ["five"]);
    }
}

#[test]
fn events_continue_from_the_cursor_of_a_list() {
    let site = Site::start();
    let list = site.register_all(&[Server::new(1, "one"), Server::new(2, "two")]);
    let path = format!("{EVENTS}?after={}", list["cursor"].as_str().unwrap());
    let mut stream = EventStream::new(site.addr(), &path, &[]);
    site.register(&Server::new(3, "three"));
    assert_eq!(stream.next().unwrap().data["name"], "three", "no event that the list already includes");
}

#[test]
fn an_unknown_event_id_is_answered_with_reset() {
    let site = Site::start();
    site.register_all(&[Server::new(1, "one")]);
    let cursor = site.json("/api/v1/servers")["cursor"].as_str().unwrap().to_owned();
    let (epoch, number) = cursor.split_once('-').unwrap();
    let other = format!("{:08x}-{number}", !u32::from_str_radix(epoch, 16).unwrap());
    for id in [&*other, "nonsense", &format!("{epoch}-99999")] {
        let reset = EventStream::new(site.addr(), EVENTS, &[("last-event-id", id)]).next().unwrap();
        assert_eq!((&*reset.name, &*reset.id), ("reset", &*cursor), "{id}");
        assert_eq!(reset.data["cursor"], cursor);
    }
}

#[test]
fn events_can_be_limited_to_one_lobby() {
    let site = Site::start();
    let other = ListId::from_bytes([9; 16]);
    let path = format!("{EVENTS}?list={other}");
    let mut stream = EventStream::new(site.addr(), &path, &[]);
    stream.next().unwrap();
    site.register_all(&[Server::new(1, "elsewhere"), Server { list: other, ..Server::new(2, "here") }]);
    assert_eq!(stream.next().unwrap().data["name"], "here");
    site.register(&Server { list: LOBBY, ..Server::new(2, "here") });
    let gone = stream.next().unwrap();
    assert_eq!((&*gone.name, &gone.data["why"]), ("unlisted", &"moved".into()));
}

#[test]
fn every_stream_receives_every_event() {
    let mut options = WebOptions::default();
    options.limits = WebLimits { listeners: 300, ..options.limits };
    let site = Site::with_options(options);
    let mut streams: Vec<_> = (0..200).map(|_| EventStream::new(site.addr(), EVENTS, &[])).collect();
    for stream in &mut streams {
        stream.next().unwrap();
    }
    site.register(&Server::new(1, "one"));
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().data["name"], "one");
    }
}

#[test]
fn the_number_of_streams_is_limited() {
    let mut options = WebOptions::default();
    options.limits = WebLimits { listeners: 2, ..options.limits };
    let site = Site::with_options(options);
    let mut first = EventStream::new(site.addr(), EVENTS, &[]);
    first.next().unwrap();
    let _second = EventStream::new(site.addr(), EVENTS, &[]);
    let refused = site.get(EVENTS);
    assert_eq!((refused.status, refused.header("content-type")), (503, Some("application/problem+json")));
    drop(first);
    wait_until("a stream is accepted again", || {
        let mut tcp = connect(site.addr());
        write!(tcp, "GET {EVENTS} HTTP/1.1\r\nhost: lobby\r\n\r\n").unwrap();
        read_response(&mut BufReader::new(tcp), false).filter(|response| response.status == 200)
    });
}

#[test]
fn streams_end_on_shutdown() {
    let site = Site::start();
    let mut stream = EventStream::new(site.addr(), EVENTS, &[]);
    stream.next().unwrap();
    site.runtime.block_on(site.web.shutdown());
    assert_eq!(stream.next(), None);
    assert!(std::net::TcpStream::connect(site.addr()).is_err(), "no connection is accepted");
}

#[test]
fn a_stream_of_some_servers_has_their_events_and_totals() {
    let site = Site::start();
    let list = site.register_all(&[Server::new(1, "one"), Server::new(2, "two")]);
    let servers = list["servers"].as_array().unwrap();
    let id = |name: &str| servers.iter().find(|server| server["name"] == name).unwrap()["id"].as_str().unwrap();
    let cursor = list["cursor"].as_str().unwrap();
    let path = format!("{EVENTS}?ids={}&after={cursor}", &id("two")[..8]);
    let mut stream = EventStream::new(site.addr(), &path, &[]);
    let totals = stream.next().unwrap();
    assert_eq!((&*totals.name, &totals.data["servers"], &totals.data["listed"]), ("totals", &2.into(), &2.into()));
    assert_eq!(totals.id, "", "totals do not move the position of a client");
    site.register(&Server::new(1, "one").players(7));
    site.wait_for("/api/v1/servers?not_empty=1", |list| list["total"] == 1);
    site.register(&Server::new(2, "two").players(3));
    let mut next_but =
        |skipped: &str| std::iter::from_fn(|| stream.next()).find(|event| event.name != skipped).unwrap();
    let changed = next_but("totals");
    let expected = serde_json::json!({ "id": id("two"), "list": LOBBY.to_string(), "numplayers": 3 });
    assert_eq!((&*changed.name, changed.data), ("changed", expected), "only what has changed, and only of this server");
    site.register(&Server::new(3, "three"));
    site.unregister(2);
    assert_eq!(next_but("totals").name, "unlisted");
    let last = std::iter::from_fn(|| stream.next()).find(|event| event.data["listed"] == 3).unwrap();
    assert_eq!(last.name, "totals");
    for invalid in ["x", "0123456", "01234567,"] {
        assert_eq!(site.get(&format!("{EVENTS}?ids={invalid}")).status, 400, "{invalid}");
    }
}
