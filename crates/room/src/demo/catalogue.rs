//! Names, games and maps of the pretend servers.

use rallypoint_query_proto::Protocol;
use rallypoint_wire::{bloodmasters::GameType, lobby::Transport};

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

/// The fixed properties of a pretend server.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    pub game: &'static Game,
    pub slots: u16,
    pub bots: u16,
    /// Percentage of the slots that are usually taken.
    pub popularity: u8,
    pub password: bool,
    /// The beginning of the names of its maps, if it has not all of its game.
    pub maps: &'static str,
    pub reply: Reply,
    /// The game type of a Bloodmasters server.
    pub game_type: GameType,
    /// Further keys of its registration.
    pub keys: &'static [(&'static str, &'static str)],
}

/// How a pretend server reacts to queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Honest,
    /// It answers with fewer players than it has registered.
    FewerPlayers,
    /// It answers at first, and then no longer.
    Ends,
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

/// As many servers as a look at a long list needs. They only register.
const CROWD: Game = Game { protocol: None, ..TAG };

/// A game with texts that a page or a terminal must not interpret, in a list without a name.
const HOSTILE: Game = Game {
    name: "<i>Game</i> & \"more\"",
    short: "hostile",
    version: "0.4-<beta>",
    list: "9f1d6a52-3c0e-4a77-8d55-6be2f0c4a913",
    transport: Transport::Udp,
    protocol: Some(Protocol::Session),
    maps: 4,
};

pub const MAPS: [&[&str]; 5] = [
    &[
        "ctf_truefort",
        "ctf_2dfort",
        "koth_harvest",
        "koth_valley",
        "cp_dirtbowl",
        "arena_lumberyard",
        "arena_montane",
        "gen_destroy",
        "dkoth_sixties",
    ],
    &["Frostline", "Iron Harbour", "The Narrows", "Dustbowl Nine"],
    &["Vaultage", "Facility", "Toxic Sewers", "Deep Blue"],
    &["Playground", "Rooftops", "Warehouse"],
    &["<b>bold</b>", "../../etc/passwd", "map_with_a_name_that_is_much_longer_than_any_column_could_ever_be", ""],
];

const fn server(name: &'static str, game: &'static Game, slots: u16, popularity: u8) -> Profile {
    let game_type = GameType::DEATHMATCH;
    let (maps, reply, keys) = ("", Reply::Honest, &[]);
    Profile { name, game, slots, bots: 0, popularity, password: false, maps, reply, game_type, keys }
}

pub const SERVERS: &[Profile] = &[
    server("Bacon Town 24/7", &GANG_GARRISON_2, 24, 80),
    Profile { maps: "arena", ..server("Friday night arena", &GANG_GARRISON_2, 16, 60) },
    Profile { maps: "ctf", ..server("EU · Capture the flag", &GANG_GARRISON_2, 24, 45) },
    Profile { maps: "koth", ..server("[US-West] King of the hill", &GANG_GARRISON_2, 20, 30) },
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
    Profile { game_type: GameType::TEAM_DEATHMATCH, ..server("Team deathmatch", &BLOODMASTERS, 16, 45) },
    server("Gore House", &BLOODMASTERS, 10, 30),
    Profile { game_type: GameType::SCAVENGER, ..server("Scavenger hunt", &BLOODMASTERS, 12, 20) },
    server("Old school Bloodmasters", &BLOODMASTERS, 16, 10),
    server("Rookie arena", &BLOODMASTERS, 8, 15),
    server("Tag around the clock", &TAG, 16, 65),
    server("Freeze tag", &TAG, 12, 40),
    server("Tag for two", &TAG, 2, 60),
    server("Lunch break tag", &TAG, 8, 20),
    Profile { maps: "Rooftops", ..server("Rooftop runners", &TAG, 10, 30) },
    server("Tag Brasil", &TAG, 16, 25),
    server("Quiet corner", &TAG, 6, 5),
    Profile { maps: "Playground", ..server("Playground heroes", &TAG, 12, 35) },
];

/// Names and texts that try to break out of their place, and servers whose answers do not agree with what they register.
pub const HOSTILE_SERVERS: &[Profile] = &[
    Profile {
        keys: &[("game_url", "javascript:alert(1)"), ("x-motd", "Be nice. <i>No</i> cheating.")],
        ..server("<script>alert(1)</script>", &HOSTILE, 16, 40)
    },
    Profile {
        keys: &[("game_url", "https://example.org/clan?a=1&b=2")],
        ..server("\"><img src=x onerror=alert(1)>", &HOSTILE, 12, 30)
    },
    server("\u{202e}desrever \u{2066}bidi", &HOSTILE, 8, 20),
    server("مرحبا بالعالم", &HOSTILE, 24, 50),
    server("zero\u{200b}width\u{200d}joined\u{feff}", &HOSTILE, 8, 20),
    server("\u{1b}[31mred\u{1b}[0m\r\nsecond line\ttab\u{7}", &HOSTILE, 8, 20),
    server("🔥🔥🔥 FREE SKINS 🔥🔥🔥 👩‍👩‍👧‍👦 🏳️‍🌈", &HOSTILE, 32, 60),
    server("Z̸̡̛͙̺̱͉̈́̋a̷̡͓̻͗̄̕l̶̢̛̰̪͑̎g̵̨̛̱̻̎͒o̷̢̡̱̎̎", &HOSTILE, 8, 20),
    server("", &HOSTILE, 4, 10),
    server(" \u{3000}\u{a0} ", &HOSTILE, 4, 10),
    server(
        "寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬寬",
        &HOSTILE,
        65_535,
        0,
    ),
    server(
        "AVeryLongNameWithoutAnySpaceInItThatNoBrowserCanBreakAnywhereAVeryLongNameWithoutAnySpaceInItThatNoBrowserCanBreakAnywhere",
        &HOSTILE,
        32,
        50,
    ),
    Profile { reply: Reply::FewerPlayers, ..server("Promises more than it has", &HOSTILE, 24, 60) },
    Profile { reply: Reply::Ends, ..server("Does not answer any more", &HOSTILE, 12, 50) },
    Profile { bots: 65_535, ..server("Bots, bots, bots", &HOSTILE, 65_535, 0) },
];

/// A server of a long list, without a name of its own.
pub fn crowd_profile(number: u16) -> Profile {
    Profile { game: &CROWD, maps: "", ..SERVERS[usize::from(number) % SERVERS.len()] }
}

/// Endings of player names: each server has its own, so that no player is in two places at once.
pub const SUFFIXES: &[&str] = &[
    "", "7", "_", "42", "2k", "99", "_x", "11", "64", "3", "_tv", "23", "8", "_br", "77", "12", "_jp", "5", "31",
    "_au", "19", "101", "_de", "6", "55", "13", "_se", "90", "4", "27",
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
