//! A lobby with simulated servers that change all the time, for a look at the pages: run `cargo run -p rallypoint-web --example
//! demo` and open http://127.0.0.1:29950/. The first argument is the number of servers, the second is the port.
// xtask: not run

use rallypoint_history::{History, HistoryOptions, Observation, ObservedServer, ServerSource};
use rallypoint_lobby::{Differences, LobbyOptions, LobbyService, ServerRecord, Verification, VerificationResult};
use rallypoint_query_proto::{Player, ServerInfo};
use rallypoint_web::{LobbyNames, WebOptions, WebService, WebSources};
use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    error::Error,
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Ordinary and hostile names.
const NAMES: [&str; 16] = [
    "Friday night arena",
    "EU · Capture the flag 24/7",
    "<script>alert(1)</script>",
    "noobs welcome!",
    "\u{202e}desrever \u{2066}bidi",
    "Клуб любителей",
    "مرحبا بالعالم",
    "[US-West] Instagib, no lag",
    "東京サーバー",
    "\"><img src=x onerror=alert(1)>",
    "",
    "King of the hill",
    "🔥🔥🔥 FREE SKINS 🔥🔥🔥",
    "Gang Garrison 2 classic",
    "test server please ignore",
    "Duel only",
];
const MAPS: [&str; 6] =
    ["ctf_dirtbowl", "koth_harvest", "cp_egypt", "arena_lumberyard", "<b>bold</b>", "dkoth_sixties"];
const GAMES: [(&str, &str, &str); 3] =
    [("gg2", "Gang Garrison 2", "2.9.2"), ("gg2", "Gang Garrison 2", "2.8"), ("vanguard", "Vanguard", "0.4-beta")];
const LOBBIES: [&str; 2] = ["1ccf16b1-436d-856f-504d-cc1af306aaa7", "4fd0319b-5868-4f24-8b77-568cbb18fde9"];

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |index| std::env::args().nth(index).map(|text| text.parse::<u16>()).transpose();
    let servers = argument(1)?.unwrap_or(60);
    let port = argument(2)?.unwrap_or(29_950);
    let dir = std::env::temp_dir().join(format!("rallypoint-demo-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let history = History::start(HistoryOptions::new(dir.join("history.sqlite")))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (lobby, web) = runtime.block_on(async {
        let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let lobby = LobbyOptions { listen, legacy: Vec::new(), ..LobbyOptions::default() };
        let lobby = LobbyService::start(lobby, &tokio::runtime::Handle::current())?;
        let mut options =
            WebOptions { listen: vec![SocketAddr::from(([127, 0, 0, 1], port))], ..WebOptions::default() };
        let names = LOBBIES.iter().zip(["Gang Garrison 2", "Vanguard"]);
        let names = names.filter_map(|(id, name)| Some((id.parse().ok()?, name.to_owned())));
        options.settings.names = LobbyNames(names.collect());
        options.settings.joins.insert(LOBBIES[0].parse()?, "gg2://{address}".parse()?);
        let sources = WebSources { history: Some(history.reader()), ..WebSources::new(lobby.clone()) };
        Ok::<_, Box<dyn Error>>((lobby, WebService::start(options, sources)?))
    })?;
    println!("browse http://{}/", web.local_addrs()[0]);
    let lobby_addr = lobby.local_addrs().lobby[0];
    let sockets: Vec<_> = (0..servers).filter_map(|number| Some((number, socket(number).ok()?))).collect();
    for second in 0_u64.. {
        for (number, socket) in &sockets {
            // Most servers only refresh their registration; every seventh changes its number of players.
            if second % 20 == u64::from(*number % 20) || (number.is_multiple_of(7) && second.is_multiple_of(3)) {
                socket.send_to(&registration(*number, second)?, lobby_addr)?;
            }
        }
        std::thread::sleep(Duration::from_secs(if second < 20 { 0 } else { 1 }));
        if second == 25 {
            record_past_day(&history, &lobby);
            runtime.block_on(report_verification(&lobby));
        }
    }
    Ok(())
}

/// A socket with a separate loopback address for each server.
fn socket(number: u16) -> std::io::Result<UdpSocket> {
    let [high, low] = number.to_be_bytes();
    UdpSocket::bind(SocketAddr::from(([127, 1, high, low], 0)))
}

fn registration(number: u16, second: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let index = usize::from(number);
    let (short, game, version) = GAMES[index % 5 % 3];
    let changes = if number.is_multiple_of(7) { second / 3 } else { second / 600 };
    let slots = [10, 16, 24, 32][index % 4];
    let players = ((u64::from(number) * 7 + changes) % (u64::from(slots) + 1)) as u16;
    let players = if number % 3 == 1 { 0 } else { players };
    let bots = if number % 5 == 2 { (slots - players).min(4) } else { 0 };
    let wide = "寬".repeat(85);
    let mut table = TableBuf::new();
    let name = if number == 20 { wide.clone() } else { NAMES[index % NAMES.len()].to_owned() };
    let name = if index >= NAMES.len() && number != 20 { format!("{name} #{number}") } else { name };
    table.push(b"name", name.as_bytes())?;
    table.push(b"map", MAPS[(index + (changes / 20) as usize) % MAPS.len()].as_bytes())?;
    table.push(b"game", game.as_bytes())?;
    table.push(b"game_short", short.as_bytes())?;
    table.push(b"game_ver", version.as_bytes())?;
    let website = if number.is_multiple_of(2) { "https://example.org/clan?a=1&b=2" } else { "javascript:alert(1)" };
    table.push(b"game_url", website.as_bytes())?;
    table.push(b"x-motd", "Be nice. <i>No</i> cheating.".as_bytes())?;
    let mut id = [0xd0; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    let lobby: LobbyId = LOBBIES[usize::from(short != "gg2")].parse()?;
    let occupancy = Occupancy { players, bots, slots, password: number % 6 == 5 };
    let port = (8_190 + number % 1_000).try_into()?;
    let registration =
        Registration::new(ServerId::from_bytes(id), lobby, Transport::Udp, port, occupancy, table.as_table())?;
    let mut datagram = Vec::new();
    registration.emit(&mut datagram);
    Ok(datagram)
}

/// The current servers with the simulated players of another time.
#[derive(Debug)]
struct PastServers(Vec<Arc<ServerRecord>>, i64);

impl ServerSource for PastServers {
    fn for_each(&self, show: &mut dyn FnMut(ObservedServer<'_>)) {
        for row in &self.0 {
            let hour = (self.1 % 86_400) as f64 / 3_600.0;
            let day = ((hour - 7.0) / 24.0 * std::f64::consts::TAU).sin().mul_add(-0.45, 0.5);
            let noise = f64::from((self.1 / 60 * 7 + i64::from(row.slots)) as u8 % 16) / 40.0;
            let players = ((day + noise).clamp(0.0, 1.0) * f64::from(row.slots)) as u16;
            let (id, lobby, name, map) = (row.id, row.lobby, &*row.name, &*row.map);
            show(ObservedServer { id, lobby, players, bots: 0, slots: row.slots, name, map });
        }
    }
}

/// Records a simulated history of the last day, with a gap of two hours.
fn record_past_day(history: &History, lobby: &LobbyService) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    let rows: Vec<_> = lobby.servers().snapshot().records().take(80).cloned().collect();
    for minute in (1..30 * 60).rev().filter(|minute| !(300..420).contains(minute)) {
        let time = now - minute * 60;
        history.record(Observation { time, servers: Arc::new(PastServers(rows.clone(), time)), changes: Vec::new() });
        if minute % 10 == 0 {
            history.flush();
        }
    }
    history.flush();
    println!("recorded a simulated history of the last day");
}

/// Reports simulated results of verification.
async fn report_verification(lobby: &LobbyService) {
    for row in lobby.servers().snapshot().records() {
        let verification = Verification::ALL[usize::from(row.id.as_bytes()[0] % 4)];
        let player = |number| Player { name: format!("player {number}"), ping_ms: Some(35), ..Player::default() };
        let player_list = Some((0..row.players).map(player).collect());
        let info = (verification != Verification::NotProbed).then(|| ServerInfo {
            player_list,
            players: Some(1),
            ..ServerInfo::default()
        });
        let differences = Differences { players: verification == Verification::Differs, ..Differences::default() };
        let info = info.map(Arc::new);
        lobby
            .servers()
            .report(VerificationResult { differences, info, ..VerificationResult::new(row.id, verification) })
            .await;
    }
}
