//! Without the name of a list, all lists of a lobby are shown, also by the address of its page.

use rallypoint_harness::{GameServer, Lobby, MockServer, QueryProtocol, eventually, run, sample_info, stderr, stdout};
use rallypoint_query::list_names;
use rallypoint_query_proto::ServerInfo;
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

fn lobby_with_two_lists() -> Lobby {
    let lobby = Lobby::start();
    let rooms = list_names::find("rooms").unwrap();
    lobby.register(&GameServer::named("Bacon Town").port(9_001));
    lobby.register(&GameServer::named("Tea room").port(9_002).in_lobby(rooms));
    eventually("both are listed", || lobby.names() == ["Bacon Town"] && lobby.servers_in(rooms).len() == 1);
    lobby
}

#[test]
fn list_shows_the_servers_of_all_lists_and_names_the_list() {
    let lobby = lobby_with_two_lists();
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["list", &lobby.v4().to_string(), "--sort", "name"]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let expected = "\
NAME        PLAYERS  LIST   ADDRESS         PROTO
Bacon Town     7/24  gg2    127.0.0.1:9001  udp
Tea room       7/24  rooms  127.0.0.1:9002  udp
";
    assert_eq!(stdout(&output), expected);
    let output = run(home.path(), ["list", &format!("{}/rooms", lobby.v4())]);
    assert!(!stdout(&output).contains("LIST") && stdout(&output).contains("Tea room"), "{}", stdout(&output));
    let output = run(home.path(), ["list", &lobby.v4().to_string(), "--list", "gg2", "--csv"]);
    assert!(!stdout(&output).contains("Tea room"), "{}", stdout(&output));
}

#[test]
fn doctor_and_check_find_a_server_in_any_list() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start();
    let room = MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &sample_info());
    let rooms = list_names::find("rooms").unwrap();
    lobby.register(&GameServer::named("Tea room").port(room.port()).in_lobby(rooms));
    eventually("it is listed", || lobby.servers_in(rooms).len() == 1);
    let server = format!("session://127.0.0.1:{}", room.port());
    let output = run(home.path(), ["doctor", &server, "--lobby", &lobby.v4().to_string(), "--api", &lobby.url()]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let output = run(home.path(), ["check", &format!("lobby://{}", lobby.v4()), "--crit-servers", "1:"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn the_address_of_the_page_lists_its_servers() {
    let lobby = lobby_with_two_lists();
    let home = tempfile::tempdir().unwrap();
    let list = |page: &str| {
        let output = run(home.path(), ["list", &format!("{}{page}", lobby.url()), "--sort", "name"]);
        assert_eq!(output.status.code(), Some(0), "{page}: {}", stderr(&output));
        stdout(&output)
    };
    let has_both = |text: &str| text.contains("Bacon Town") && text.contains("Tea room") && text.contains("rooms");
    // The page follows the list with a delay.
    eventually("the page has both", || has_both(&list("/")));
    for page in ["", "/api/v1/servers", "/why"] {
        let text = list(page);
        assert!(has_both(&text), "{page}: {text}");
    }
    // Only what the page shows.
    for page in ["/lists/rooms", "/?q=tea", "/?list=rooms&page=1"] {
        let text = list(page);
        assert!(text.contains("Tea room") && !text.contains("Bacon Town"), "{page}: {text}");
    }
    for page in ["/nothing", "/nothing/", "/nothing?q=tea"] {
        let output = run(home.path(), ["list", &format!("{}{page}", lobby.url())]);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(3), ""), "{page}");
        assert!(stderr(&output).contains("the page answers with status 404"), "{page}: {}", stderr(&output));
    }
}

#[test]
fn a_lobby_that_is_named_twice_is_listed_once() {
    let lobby = lobby_with_two_lists();
    let home = tempfile::tempdir().unwrap();
    let (host, scheme) = (lobby.v4().to_string(), format!("lobby://{}", lobby.v4()));
    let output = run(home.path(), ["list", &host, &scheme]);
    assert_eq!(stdout(&output).matches("Tea room").count(), 1, "{}", stdout(&output));
}

#[test]
fn a_list_that_only_the_api_names_is_shown_by_that_name() {
    const LIST: &str = "5d3a8f1e-92c4-4b6f-a0e7-3c81d2f4967b";
    let lobby = Lobby::builder().config(&format!("[lists.names]\n\"{LIST}\" = \"Tag\"\n")).start();
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &sample_info());
    lobby.register(&GameServer::named("Freeze tag").port(server.port()).in_lobby(LIST.parse().unwrap()));
    lobby.register(&GameServer::named("Bacon Town").port(9_001));
    let page = lobby.url() + "/";
    let list = || stdout(&run(home.path(), ["list", &page]));
    eventually("the page has both", || list().contains("Freeze tag") && list().contains("Bacon Town"));
    assert!(list().contains("  Tag   ") && !list().contains(LIST), "{}", list());
    let address = format!("session://127.0.0.1:{}", server.port());
    // The page leads to every list. The lobby alone does not name this one, but reports that it lists the server.
    for (args, expected) in [
        (vec!["--lobby", &page], "ok       listed    listed as \"Freeze tag\""),
        (vec!["--lobby", &lobby.v4().to_string(), "--api", &page], "but in none of the lists that were read"),
    ] {
        let output = run(home.path(), [&["doctor", &address], &args[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    }
    let gg2 = format!("{}/gg2", lobby.v4());
    let output = run(home.path(), ["doctor", &address, "--lobby", &gg2, "--api", &page]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("but not in the list gg2"), "{}", stdout(&output));
}

#[test]
fn an_unknown_page_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let _ = client.read(&mut request);
            let page = "<!doctype html>\n<title>Shop</title>\n<p>Welcome\n";
            let _ = write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["list", &url]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(3), ""));
    assert!(stderr(&output).contains("neither the page of a lobby nor a list of servers"), "{}", stderr(&output));
}

#[test]
fn a_name_that_a_reply_cannot_express_is_shown_as_the_lobby_lists_it() {
    let lobby = Lobby::start();
    let home = tempfile::tempdir().unwrap();
    let own = ServerInfo { name: Some("??????".into()), ..sample_info() };
    let server = MockServer::with_info("127.0.0.1:0", QueryProtocol::Bloodmasters, &own);
    lobby.register(&GameServer::named("東京サーバー").port(server.port()).key("x-query", "bloodmasters"));
    lobby.wait_until_listed(&["東京サーバー"]);
    let output = run(home.path(), ["list", &lobby.v4().to_string(), "--query"]);
    assert!(stdout(&output).contains("東京サーバー"), "{}", stdout(&output));
}
