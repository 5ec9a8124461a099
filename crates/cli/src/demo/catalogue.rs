//! Names, games and maps of the pretend servers.

use rallypoint_query_proto::Protocol;
use rallypoint_wire::lobby::Transport;

/// A game that pretend servers run.
#[derive(Debug)]
pub struct Game {
    pub name: &'static str,
    pub short: &'static str,
    pub version: &'static str,
    /// The list of the game, as a UUID.
    pub list: &'static str,
    pub transport: Transport,
    /// The protocol in which its servers answer queries.
    pub protocol: Option<Protocol>,
    /// Its index in [`MAPS`].
    pub maps: usize,
}

/// What stays the same about a pretend server.
#[derive(Debug)]
pub struct Profile {
    pub name: &'static str,
    pub game: &'static Game,
    pub slots: u16,
    pub bots: u16,
    /// Percentage of the slots that are usually taken.
    pub popularity: u8,
    pub password: bool,
}

const GANG_GARRISON_2: Game = Game {
    name: "Gang Garrison 2",
    short: "gg2",
    version: "2.9.2",
    list: "1ccf16b1-436d-856f-504d-cc1af306aaa7",
    transport: Transport::Tcp,
    protocol: None,
    maps: 0,
};

const VANGUARD: Game = Game {
    name: "Vanguard",
    short: "vanguard",
    version: "0.4",
    list: "4fd0319b-5868-4f24-8b77-568cbb18fde9",
    transport: Transport::Tcp,
    protocol: None,
    maps: 1,
};

const BLOODMASTERS: Game = Game {
    name: "Bloodmasters",
    short: "bloodmasters",
    version: "1.5",
    list: "c3c4f9d0-7f63-4d0b-8a0e-2b1d5e6f7a90",
    transport: Transport::Udp,
    protocol: Some(Protocol::Bloodmasters),
    maps: 2,
};

/// A game that exists only here.
const TAG: Game = Game {
    name: "Tag",
    short: "tag",
    version: "1.0",
    list: "5d3a8f1e-92c4-4b6f-a0e7-3c81d2f4967b",
    transport: Transport::Udp,
    protocol: Some(Protocol::Session),
    maps: 3,
};

pub const MAPS: [&[&str]; 4] = [
    &["ctf_truefort", "ctf_2dfort", "koth_harvest", "cp_dirtbowl", "arena_lumberyard", "gen_destroy", "dkoth_sixties"],
    &["Frostline", "Iron Harbour", "The Narrows", "Dustbowl Nine"],
    &["Vaultage", "Facility", "Toxic Sewers", "Deep Blue"],
    &["Playground", "Rooftops", "Warehouse"],
];

const fn server(name: &'static str, game: &'static Game, slots: u16, popularity: u8) -> Profile {
    Profile { name, game, slots, bots: 0, popularity, password: false }
}

pub const SERVERS: &[Profile] = &[
    server("Bacon Town 24/7", &GANG_GARRISON_2, 24, 80),
    server("Friday night arena", &GANG_GARRISON_2, 16, 60),
    server("EU · Capture the flag", &GANG_GARRISON_2, 24, 45),
    server("[US-West] King of the hill", &GANG_GARRISON_2, 20, 30),
    server("東京サーバー", &GANG_GARRISON_2, 16, 25),
    server("Клуб любителей", &GANG_GARRISON_2, 12, 20),
    Profile { bots: 6, ..server("Bots and beginners", &GANG_GARRISON_2, 12, 15) },
    Profile { password: true, ..server("Clan practice", &GANG_GARRISON_2, 12, 40) },
    server("Classic maps only", &GANG_GARRISON_2, 16, 10),
    server("Duel me", &GANG_GARRISON_2, 2, 50),
    server("Australia, low ping", &GANG_GARRISON_2, 16, 5),
    server("Late night chill", &GANG_GARRISON_2, 20, 0),
    server("Vanguard · Frontier", &VANGUARD, 32, 50),
    server("Vanguard · Europe", &VANGUARD, 32, 35),
    Profile { bots: 8, ..server("Vanguard co-op", &VANGUARD, 8, 40) },
    server("Vanguard testing grounds", &VANGUARD, 16, 5),
    server("Instagib, no lag", &BLOODMASTERS, 12, 55),
    server("Team deathmatch", &BLOODMASTERS, 16, 45),
    server("Gore House", &BLOODMASTERS, 10, 30),
    server("Scavenger hunt", &BLOODMASTERS, 12, 20),
    server("Old school Bloodmasters", &BLOODMASTERS, 16, 10),
    server("Rookie arena", &BLOODMASTERS, 8, 15),
    server("Tag around the clock", &TAG, 16, 65),
    server("Freeze tag", &TAG, 12, 40),
    server("Tag for two", &TAG, 2, 60),
    server("Lunch break tag", &TAG, 8, 20),
    server("Rooftop runners", &TAG, 10, 30),
    server("Tag Brasil", &TAG, 16, 25),
    server("Quiet corner", &TAG, 6, 5),
    server("Playground heroes", &TAG, 12, 35),
];

pub const PLAYERS: &[&str] = &[
    "ada",
    "bruno",
    "Cloudberry",
    "dot",
    "ElGato",
    "fern",
    "Gizmo",
    "hollow",
    "ines",
    "Jolt",
    "kestrel",
    "lumen",
    "Mango",
    "nyx",
    "orbit",
    "Pepper",
    "quill",
    "rook",
    "Saffron",
    "tundra",
    "umbra",
    "Vesper",
    "wren",
    "xeno",
    "Yarrow",
    "zephyr",
    "mía",
    "Øystein",
    "さくら",
    "Łukasz",
    "naïve",
    "Tofu",
    "Brick",
    "marzipan",
    "otter",
    "Pixel",
    "Domino",
    "Biscuit",
];
