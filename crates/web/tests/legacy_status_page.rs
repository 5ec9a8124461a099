//! `/status` has the structure of the Faucet lobby's status page, on which programs that parse it rely.

use crate::common;

use common::{LOBBY, Server, Site};
use rallypoint_web::{ListNames, WebOptions};
use rallypoint_wire::lobby::{ListId, Occupancy};

/// The texts of all cells of a row, as such a program extracts them.
fn cells(row: &str) -> Vec<String> {
    row.split("<td").skip(1).map(|cell| text(cell.split_once('>').unwrap().1.split("</td>").next().unwrap())).collect()
}

/// A fragment of HTML without its tags.
fn text(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
    }
    text
}

/// Every table: its heading, the heads of its columns, its rows.
fn tables(html: &str) -> Vec<(String, Vec<String>, Vec<Vec<String>>)> {
    let tables = html.split("<h2>").skip(1).map(|part| {
        let (heading, rest) = part.split_once("</h2>").unwrap();
        let (head, body) = rest.split_once("<table class=\"serverlist\">").unwrap().1.split_once("<tbody>").unwrap();
        let heads =
            head.split("<th ").skip(1).map(|th| text(th.split_once('>').unwrap().1.split("</th>").next().unwrap()));
        let rows = body.split("</tbody>").next().unwrap().split("<tr>").skip(1).map(cells);
        (text(heading), heads.collect(), rows.collect())
    });
    tables.collect()
}

#[test]
fn one_table_per_lobby_with_the_columns_of_the_faucet_lobby() {
    let mut options = WebOptions::default();
    options.settings.names = ListNames([(LOBBY, "Gang Garrison 2".to_owned())].into());
    let site = Site::with_options(options);
    let keys: &[(&[u8], &[u8])] = &[
        (b"map", b"ctf_dirtbowl"),
        (b"game", b"Gang Garrison 2"),
        (b"game_short", b"gg2"),
        (b"game_ver", b"v2.9"),
        (b"game_url", b"http://example.org/"),
    ];
    let occupancy = Occupancy { players: 5, bots: 2, slots: 16, password: true };
    let other = ListId::from_bytes([0xee; 16]);
    site.register_all(&[
        Server { keys, occupancy, ..Server::new(1, "A & <b>") },
        Server { list: other, ..Server::new(2, "Elsewhere").players(3) },
    ]);
    let html = site.get("/status").text();
    let row = |cells: [&str; 6]| vec![cells.map(String::from).to_vec()];
    let heads: Vec<_> = ["PW", "Name", "Map", "Players", "Game", "Address"].map(String::from).into();
    let game = "Gang Garrison 2 v2.9";
    assert_eq!(
        tables(&html),
        [
            (
                "Active servers in the Gang Garrison 2 lobby".into(),
                heads.clone(),
                row(["X", "A &#38; &#60;b&#62;", "ctf_dirtbowl", "5+2/16", game, "127.0.0.1:8001"])
            ),
            (
                format!("Active servers in the unknown lobby &#34;{other}&#34;"),
                heads,
                row(["", "Elsewhere", "", "3/10", "", "127.0.0.1:8002"])
            ),
        ]
    );
    assert!(html.contains("<title>Lobby status page"), "{html}");
    assert!(!html.contains("example.org") && !html.contains("<script"), "links of servers lead through a warning");
}
