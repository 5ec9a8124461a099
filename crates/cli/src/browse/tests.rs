//! The browser on an in-memory terminal: snapshots of what it shows, and the effects of keys.
//!
//! Accept changed snapshots with `INSTA_UPDATE=always` or `cargo insta review`.

use super::{
    favourites::Favourites,
    model::{Action, JoinCommands, Mode, Model},
    theme::Theme,
    view,
};
use crate::output::terminal::columns;
use insta::assert_snapshot;
use proptest::prelude::*;
use rallypoint_query::{
    ListSummary, ProbeError, ReplyStats, ScanEvent, ScannedServer,
    mirror::{CopyError, MirrorError, MirrorEvent, MirroredList},
    proto::{LobbyInfo, Player, RoundTrip, RttMethod, ServerInfo, Team},
};
use rallypoint_wire::lobby::Transport;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};
use std::time::Duration;

const COLORS: Theme = Theme { colors: true, unicode: true };
const PLAIN: Theme = Theme { colors: false, unicode: false };

fn server(number: u8, name: &str, players: u16, ping_ms: Option<f64>) -> ScannedServer {
    let address: std::net::SocketAddr = format!("192.0.2.{number}:8190").parse().unwrap();
    let info = ServerInfo {
        name: Some(name.into()),
        map: Some(["ctf_truefort", "koth_harvest", "dm_desert"][usize::from(number % 3)].into()),
        game: Some(["gg2", "bloodmasters"][usize::from(number % 2)].into()),
        password: Some(number == 3),
        players: Some(players),
        max_players: Some(24),
        ..ServerInfo::default()
    };
    let reply = ping_ms.map(|ping_ms| ReplyStats {
        round_trip: RoundTrip { time: Duration::from_secs_f64(ping_ms / 1e3), method: RttMethod::Echo },
        retries: 0,
        missing: vec![],
    });
    let endpoints = vec![address];
    ScannedServer {
        id: format!("udp://{address}"),
        target_index: 0,
        target: address.to_string(),
        address: Some(address),
        protocol: None,
        info,
        reply,
        error: None,
        endpoints,
        list: None,
        list_name: None,
    }
}

/// A browser that has found six servers.
fn model() -> Model {
    let joins =
        JoinCommands { any: Some("mygame --connect {host} {port}".parse().unwrap()), ..JoinCommands::default() };
    let targets = ["lobby://lobby.example.org".parse().unwrap()];
    let mut model = Model::new(&targets, Favourites::default(), joins, |_| true);
    model.start_scan();
    let mut first = server(1, "Bacon Town 24/7", 7, Some(23.4));
    first.info.description = Some("Friendly people, fresh maps".into());
    first.info.tags = vec!["beginners".into(), "europe".into()];
    first.info.teams = vec![
        Team { id: 1, name: "RED".into(), ranked: false, color: [200, 30, 30] },
        Team { id: 2, name: "BLU".into(), ranked: false, color: [30, 30, 200] },
    ];
    let player = |name: &str, team, ping| Player {
        name: name.into(),
        team: Some(team),
        ping_ms: Some(ping),
        ..Player::default()
    };
    first.info.player_list = Some(vec![
        player("Grace", 2, 61),
        player("Ada", 1, 35),
        player("七人", 1, 250),
        Player { spectator: true, ..player("Watcher", 0, 90) },
    ]);
    let mut silent = server(5, "Silent Hill", 0, None);
    silent.error = Some(ProbeError::TimedOut(Duration::from_secs(4)));
    for server in [
        first,
        server(2, "七人の侍 Samurai", 24, Some(112.0)),
        server(3, "Private Party", 3, Some(310.0)),
        server(4, "Over TCP", 1, None),
        silent,
        server(
            6,
            "evil \u{fffd}[2J\u{fffd} z\u{301}\u{301}\u{301}\u{301}algo 👩\u{200d}👩\u{200d}👧 name",
            2,
            Some(0.4),
        ),
    ] {
        model.handle_event(ScanEvent::Listed { server, is_probed: true });
    }
    model.finish_scan();
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Action> {
    let press = |c| {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            '\t' => KeyCode::Tab,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            c => KeyCode::Char(c),
        };
        let wish = model.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
        model.prepare_frame();
        wish
    };
    keys.chars().filter_map(press).collect()
}

fn draw(model: &mut Model, theme: Theme, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, model, theme)).unwrap();
    terminal
}

fn picture(model: &mut Model, theme: Theme, width: u16, height: u16) -> String {
    let terminal = draw(model, theme, width, height);
    let buffer = terminal.backend().buffer();
    let mut picture = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line += symbol;
            // The cell behind a wide character is hidden.
            x += u16::try_from(columns(symbol)).unwrap().max(1);
        }
        picture += line.trim_end();
        picture += "\n";
    }
    picture
}

fn names(model: &mut Model) -> Vec<String> {
    model.prepare_frame();
    model.shown().map(|row| row.server.name().to_owned()).collect()
}

#[test]
fn snapshots() {
    assert_snapshot!("wide", picture(&mut model(), COLORS, 120, 24));
    assert_snapshot!("80x24", picture(&mut model(), COLORS, 80, 24));
    assert_snapshot!("40x10", picture(&mut model(), COLORS, 40, 10));
    assert_snapshot!("ascii", picture(&mut model(), PLAIN, 80, 24));
    let mut helping = model();
    press(&mut helping, "?");
    assert_snapshot!("help", picture(&mut helping, COLORS, 80, 24));
    assert_snapshot!("help_40x10", picture(&mut helping, COLORS, 40, 10));
    let mut joining = model();
    press(&mut joining, "↓\n");
    assert_snapshot!("join", picture(&mut joining, COLORS, 80, 24));
    let mut filtering = model();
    press(&mut filtering, "/ada");
    assert_snapshot!("filter", picture(&mut filtering, COLORS, 80, 24));
    let mut details = model();
    press(&mut details, "↓\t");
    assert_snapshot!("details_40x10", picture(&mut details, COLORS, 40, 10));
}

#[test]
fn errors_are_shown_on_the_screen() {
    let targets = ["lobby://nowhere.example.org".parse().unwrap()];
    let mut model = Model::new(&targets, Favourites::default(), JoinCommands::default(), |_| true);
    model.start_scan();
    assert!(picture(&mut model, COLORS, 80, 24).contains("Scanning..."));
    model.handle_event(ScanEvent::ListFailed(0, ProbeError::NotFound));
    model.finish_scan();
    let shown = picture(&mut model, COLORS, 80, 24);
    assert!(shown.contains("nowhere.example.org: the name cannot be resolved"), "{shown}");
    assert!(shown.contains("no list!"), "{shown}");
}

#[test]
fn w121_a_copy_is_shown_with_its_age_until_the_lobby_answers() {
    let targets = ["lobby://lobby.example.org".parse().unwrap()];
    let mut model = Model::new(&targets, Favourites::default(), JoinCommands::default(), |_| true);
    let copied = || MirroredList {
        lobby: "lobby.example.org".into(),
        url: "https://m.example/".parse().unwrap(),
        age: Duration::from_secs(190),
        cause: ProbeError::Refused,
        older_by: None,
        new_key: None,
    };
    let listed = || ScanEvent::Listed { server: server(1, "Bacon Town", 7, None), is_probed: false };
    let summary = ListSummary {
        from: "127.0.0.1:7".parse().unwrap(),
        connect_time: Duration::ZERO,
        servers: 1,
        malformed: 0,
        has_players: true,
    };
    model.start_scan();
    model.handle_event(ScanEvent::Mirror(0, Box::new(MirrorEvent::Used(copied()))));
    model.handle_event(listed());
    model.handle_event(ScanEvent::ListComplete(0, summary));
    model.finish_scan();
    let shown = picture(&mut model, COLORS, 100, 24);
    let expected = "lobby.example.org does not answer; showing its list of 3 minutes ago, from https://m.example/";
    assert!(shown.contains(expected) && shown.contains("Bacon Town") && !shown.contains("no list!"), "{shown}");
    model.start_scan();
    model.handle_event(listed());
    model.handle_event(ScanEvent::ListComplete(0, summary));
    model.finish_scan();
    assert!(!picture(&mut model, COLORS, 100, 24).contains("ago"), "the lobby is back");
    model.start_scan();
    let error = MirrorError::Copy(CopyError::NotAList);
    let url = "https://m.example/".parse().unwrap();
    model.handle_event(ScanEvent::Mirror(0, Box::new(MirrorEvent::Failed { url, error })));
    model.handle_event(ScanEvent::ListFailed(0, ProbeError::Refused));
    model.finish_scan();
    let shown = picture(&mut model, COLORS, 100, 24);
    assert!(shown.contains("https://m.example/: the copy is not used") && shown.contains("no list!"), "{shown}");
}

#[test]
fn w121_the_whole_reason_against_a_copy_is_shown_if_there_is_no_other_list() {
    let targets = ["lobby://lobby.example.org".parse().unwrap()];
    let mut model = Model::new(&targets, Favourites::default(), JoinCommands::default(), |_| true);
    model.start_scan();
    let error = MirrorError::NoKey("a reason whose last words are beyond the end of a line".into());
    let url = "https://m.example/".parse().unwrap();
    model.handle_event(ScanEvent::Mirror(0, Box::new(MirrorEvent::Failed { url, error })));
    model.handle_event(ScanEvent::ListFailed(0, ProbeError::Refused));
    model.finish_scan();
    let shown = picture(&mut model, COLORS, 80, 24);
    assert!(shown.contains("end of a line"), "{shown}");
}

#[test]
fn every_column_sorts_both_ways() {
    let mut model = model();
    assert_eq!(names(&mut model)[0], "七人の侍 Samurai");
    press(&mut model, "o");
    assert_eq!(names(&mut model)[0], "Silent Hill", "fewest players first");
    press(&mut model, "s");
    let by_ping = names(&mut model);
    assert!(by_ping[0].starts_with("evil") && by_ping[1] == "Bacon Town 24/7", "{by_ping:?}");
    press(&mut model, "o");
    assert_eq!(names(&mut model)[0], "Private Party");
    let last = &names(&mut model)[4..];
    assert!(last.contains(&"Over TCP".into()) && last.contains(&"Silent Hill".into()), "the unknown stays at the end");
    press(&mut model, "sss");
    assert_eq!(model.column.title(), "", "favourites");
    press(&mut model, "s");
    assert_eq!(names(&mut model)[0], "Bacon Town 24/7");
    press(&mut model, "So");
    assert_eq!(names(&mut model).len(), 6);
}

#[test]
fn the_filter_is_applied_while_it_is_typed() {
    let mut model = model();
    press(&mut model, "/town");
    assert_eq!(names(&mut model), ["Bacon Town 24/7"]);
    press(&mut model, "\x08\x08\x08\x08GRACE");
    assert_eq!(names(&mut model), ["Bacon Town 24/7"], "players are found, too");
    press(&mut model, " nobody");
    assert!(names(&mut model).is_empty(), "every word has to fit");
    assert!(picture(&mut model, COLORS, 80, 24).contains("No server matches"));
    press(&mut model, "\x1b");
    assert_eq!((names(&mut model).len(), model.mode), (6, Mode::Table));
    press(&mut model, "/192.0.2.4:81\n");
    assert_eq!(names(&mut model), ["Over TCP"]);
    press(&mut model, "q\x1b");
    press(&mut model, "eup");
    assert!(
        !names(&mut model).iter().any(|name| ["Silent Hill", "七人の侍 Samurai", "Private Party"].contains(&&**name))
    );
    press(&mut model, "\x1b");
    assert_eq!(names(&mut model).len(), 6);
}

#[test]
fn the_selected_server_stays_selected() {
    let mut model = model();
    press(&mut model, "↓");
    let chosen = |model: &Model| model.selected().unwrap().1.server.name().to_owned();
    assert_eq!(chosen(&model), "Bacon Town 24/7");
    press(&mut model, "ss");
    assert_eq!(chosen(&model), "Bacon Town 24/7", "in another order");
    model.start_scan();
    model.handle_event(ScanEvent::Listed { server: server(9, "Newcomer", 23, None), is_probed: true });
    model.handle_event(ScanEvent::Listed { server: server(1, "Bacon Town 24/7", 8, None), is_probed: true });
    model.prepare_frame();
    assert_eq!(chosen(&model), "Bacon Town 24/7", "with others around it");
    let (_, row) = model.selected().unwrap();
    assert!(row.server.reply.is_some(), "the last reply is kept until the next one");
    model.finish_scan();
    model.prepare_frame();
    assert_eq!(names(&mut model).len(), 2, "a server that is no longer listed is gone");
}

#[test]
fn favourites_stay_when_they_are_not_listed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("favourites");
    let mut first = model();
    first.favourites = Favourites::load(&file).unwrap();
    press(&mut first, "↓f");
    assert!(first.message.as_ref().unwrap().text.contains("Bacon Town 24/7 was added to the favourites"));
    assert!(picture(&mut first, COLORS, 80, 24).contains("★  Bacon Town"));

    let targets = ["lobby://lobby.example.org".parse().unwrap()];
    let mut again = Model::new(&targets, Favourites::load(&file).unwrap(), JoinCommands::default(), |_| true);
    let Action::Scan(targets) = again.start_scan() else { panic!("not a scan") };
    assert_eq!(targets.len(), 1, "it is probed although no list has it");
    again.finish_scan();
    assert_eq!(names(&mut again), ["Bacon Town 24/7"]);
    assert!(picture(&mut again, COLORS, 80, 24).contains("Currently not in any list"));
    press(&mut again, "f");
    again.start_scan();
    again.finish_scan();
    assert!(names(&mut again).is_empty());
}

#[test]
fn joining_shows_the_address_and_runs_the_command() {
    let mut model = model();
    assert_eq!(press(&mut model, "↓\n"), []);
    let shown = picture(&mut model, COLORS, 80, 24);
    assert!(shown.contains("192.0.2.1:8190") && shown.contains("mygame --connect 192.0.2.1 8190"), "{shown}");
    let [Action::Join(command, address)] = &press(&mut model, "\n")[..] else { panic!("it is not run") };
    assert_eq!(command.arguments(*address), ["mygame", "--connect", "192.0.2.1", "8190"]);
    model.handle_joined(Err("mygame ended with exit status: 1".into()));
    assert!(picture(&mut model, COLORS, 80, 24).contains("mygame ended with"));
    assert_eq!(press(&mut model, "\n\x1b"), [], "Esc does not run it");
    assert_eq!(press(&mut model, "r").len(), 1);
    assert_eq!(press(&mut model, "r"), [], "one look at a time");
    assert_eq!(press(&mut model, "q"), [Action::Quit]);
}

#[test]
fn a_room_is_joined_with_its_key() {
    let key = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    let join = |game: &str, key: &str| {
        let mut model = Model::new(&[], Favourites::default(), JoinCommands::default(), |_| true);
        let mut server = server(1, "A room", 0, None);
        server.info.game = None;
        server.info.game_name = Some(game.into());
        let entries = vec![(b"x-session-key".to_vec(), key.into())];
        let endpoints = server.endpoints.clone();
        server.info.lobby = Some(LobbyInfo { transport: Transport::Udp, endpoints, protocol_id: None, entries });
        model.handle_event(ScanEvent::Listed { server, is_probed: false });
        press(&mut model, "\n\n").pop()
    };
    let Some(Action::Join(command, address)) = join("Rallypoint room", key) else { panic!("there is no command") };
    assert_eq!(command.arguments(address), ["rallypoint", "join", "192.0.2.1:8190", "--key", key]);
    assert_eq!(join("gg2", key), None, "another game that has keys");
    assert_eq!(join("Rallypoint room", "--plain"), None, "only a key is a key");
}

#[test]
fn pings_are_coloured_if_colours_are_enabled() {
    let mut model = model();
    let color_of = |model: &mut Model, theme, text: &str| {
        let terminal = draw(model, theme, 120, 24);
        let buffer = terminal.backend().buffer();
        let row = (0..24).find(|&y| (0..70).map(|x| buffer[(x, y)].symbol()).collect::<String>().contains(text));
        let y = row.unwrap();
        let x = (50..64).rev().find(|&x| buffer[(x, y)].symbol().parse::<u8>().is_ok()).unwrap();
        buffer[(x, y)].fg
    };
    assert_eq!(color_of(&mut model, COLORS, "Bacon"), Color::Green);
    assert_eq!(color_of(&mut model, COLORS, "Private"), Color::Red);
    assert_eq!(color_of(&mut model, PLAIN, "Private"), Color::Reset);
    let terminal = draw(&mut model, PLAIN, 120, 24);
    assert!(
        terminal.backend().buffer().content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever servers say, whatever is pressed, however large the terminal: nothing breaks, nothing reaches the terminal
    /// that could move its cursor.
    #[test]
    fn no_input_breaks_the_screen(
        servers in proptest::collection::vec((any::<u8>(), "\\PC{0,40}|[\u{0}-\u{2ff}]{0,20}", any::<u16>()), 0..12),
        keys in "[a-zA-Z0-9/?\n\t\x08 ↓↑]{0,24}",
        (width, height) in (0u16..130, 0u16..40),
    ) {
        let mut model = model();
        model.start_scan();
        for (number, name, players) in servers {
            let mut server = server(number, &name, players, Some(f64::from(players)));
            server.info.description = Some(name.clone());
            server.info.player_list = Some(vec![Player { name, ..Player::default() }]);
            model.handle_event(ScanEvent::Answered(server));
        }
        press(&mut model, &keys);
        model.finish_scan();
        let terminal = draw(&mut model, COLORS, width, height);
        for cell in terminal.backend().buffer().content() {
            prop_assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
            prop_assert!(cell.symbol().chars().count() <= 4, "{:?}", cell.symbol());
        }
    }
}

#[test]
fn a_popup_does_not_split_wide_characters() {
    for width in 40..60 {
        let mut model = model();
        model.start_scan();
        (1..9).for_each(|n| {
            model.handle_event(ScanEvent::Listed { server: server(n, &"七".repeat(40), 1, None), is_probed: false });
        });
        model.handle_key(KeyEvent::new(KeyCode::Char('?'), KeyModifiers::NONE));
        let mut terminal = Terminal::new(TestBackend::new(width, 14)).unwrap();
        terminal.draw(|frame| view::draw(frame, &mut model, COLORS)).unwrap();
        let buffer = terminal.backend().buffer();
        for y in 0..14 {
            let border = (1..width).find(|x| matches!(buffer[(*x, y)].symbol(), "│" | "╭" | "╰"));
            if let Some(x) = border {
                assert!(columns(buffer[(x - 1, y)].symbol()) < 2, "{width} columns, line {y}");
            }
        }
    }
}

#[test]
fn the_key_that_quits_is_shown_at_any_width() {
    for width in 20..120 {
        let mut model = model();
        let mut terminal = Terminal::new(TestBackend::new(width, 10)).unwrap();
        terminal.draw(|frame| view::draw(frame, &mut model, COLORS)).unwrap();
        let last: String = (0..width).map(|x| terminal.backend().buffer()[(x, 9)].symbol().to_owned()).collect();
        assert!(last.contains("q quit"), "{width} columns: {last}");
    }
}

#[test]
fn a_lobby_or_a_list_is_shown_alone_and_the_counts_follow() {
    let targets = ["lobby://a.example.org".parse().unwrap(), "lobby://b.example.org".parse().unwrap()];
    let mut model = Model::new(&targets, Favourites::default(), JoinCommands::default(), |_| true);
    model.start_scan();
    let lists = ["gg2", "rooms", "gg2"].map(|name| rallypoint_query::list_names::find(name).unwrap());
    for (number, (list, target_index)) in (1..).zip(lists.into_iter().zip([0, 0, 1])) {
        let server = server(number, &format!("server {number}"), number.into(), None);
        let server = ScannedServer { list: Some(list), target_index, ..server };
        model.handle_event(ScanEvent::Listed { server, is_probed: false });
    }
    model.finish_scan();
    let header = |model: &mut Model| picture(model, COLORS, 80, 24).lines().next().unwrap().to_owned();
    let mut steps = Vec::new();
    for _ in 0..6 {
        let words: Vec<_> = header(&mut model).split_whitespace().map(str::to_owned).collect();
        steps.push(words[1..].join(" "));
        press(&mut model, "l");
    }
    assert_eq!(
        steps,
        [
            "a.example.org, b.example.org 3 servers, 6 players",
            "a.example.org 2 servers, 3 players",
            "a.example.org/gg2 1 server, 1 player",
            "a.example.org/rooms 1 server, 2 players",
            "b.example.org 1 server, 3 players",
            "a.example.org, b.example.org 3 servers, 6 players",
        ]
    );
    press(&mut model, "L");
    assert_eq!(names(&mut model), ["server 3", "server 2", "server 1"]);
    press(&mut model, "L");
    assert_eq!(names(&mut model), ["server 3"]);
}
