//! `cargo xtask bench session`: messages over good and bad networks, compared with libraries that games use today.
//!
//! Networks are simulated on virtual time: the same seeds give the same figures on any machine. The cost of a message is
//! measured on loopback, and counted in instructions.
#![forbid(unsafe_code)]

mod cipher;
mod crowd;
mod crowded_link;
mod enet;
mod exchange;
mod goals;
mod layer_cost;
mod library;
mod loopback;
mod modes;
mod ops;
mod peers;
mod quinn;
mod rallypoint;
mod rallypoint_channels;
mod real_sockets;
mod renet;
mod shaper;
mod traffic;

use crowded_link::{Disturbance, PERIOD, Period, RECOVERY};
use enet::Enet;
use library::{Library, ms};
use quinn::{Quinn, QuinnBbr};
use rallypoint::{Rallypoint, RallypointWide};
use rallypoint_bench::{
    Goals, Table, cores,
    loopback::{self as messages, Cost},
    machine, pin_this_thread, portable, rate, ratio,
};
use rallypoint_netsim::Link;
use rallypoint_session_proto::Encryption;
use renet::Renet;
use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};
use traffic::{Bulk, Game};

const RTT: [u64; 3] = [10, 50, 150];
const LOSS: [f64; 5] = [0.0, 0.01, 0.05, 0.1, 0.2];
const NAMES: [&str; 4] = [Rallypoint::NAME, Enet::NAME, Renet::NAME, Quinn::NAME];

/// Players who share a link, and the share of it that they use.
const PLAYERS: [u32; 3] = [10, 30, 100];
const LOADS: [f64; 4] = [0.3, 0.6, 0.8, 0.9];

/// Number of seeds, so that no figure depends on a single message.
const SEEDS: u64 = 5;
const LENGTH: Duration = Duration::from_secs(60);

/// Number of rounds on loopback, of which the best counts: other load can only slow it down.
const ROUNDS: usize = 11;
const MESSAGES: u32 = 200_000;
const PACKED_MESSAGES: u32 = 1_000_000;

/// Bytes that a datagram of document 003 has beside its message.
const HEADER: usize = 12;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            print!("{}", goals());
            print!("{}{}{}{}{}{}", game(), bulk(""), crowd(""), modes::tables(), real_sockets(), loopback());
        }
        ["goals"] => print!("{}", goals()),
        ["game"] => print!("{}", game()),
        ["bulk"] => print!("{}", bulk("")),
        ["bulk", rows] => print!("{}", bulk(rows)),
        ["crowd"] => print!("{}", crowd("")),
        ["crowd", rows] => print!("{}", crowd(rows)),
        ["channels"] => print!("{}", modes::tables()),
        ["sockets"] => print!("{}", real_sockets()),
        ["loopback"] => print!("{}", loopback()),
        // Not in the document: every mode, size, direction and protection.
        ["instructions"] => print!("{}", layer_cost::table()),
        ["--op", name, "--iterations", count] if count.parse().is_ok_and(|count| ops::run(name, count)) => {}
        _ => {
            eprintln!(
                "expected no argument, or one of goals, game, bulk, crowd, channels, sockets, loopback, instructions"
            );
            eprintln!("bulk and crowd take a part of the name of rows, such as '150 ms' or '90 %, dip'");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn goals() -> String {
    eprintln!("goals");
    format!(
        "{}\nOn {}. All figures except instructions are on virtual time.\n\n{}\n",
        goals::table(),
        machine(),
        layer_cost::others()
    )
}

fn game() -> String {
    let mut times = Table::new(&["RTT, loss", NAMES[0], NAMES[1], NAMES[2], NAMES[3], "rallypoint to the best other"]);
    let mut wire = Table::new(&["RTT, loss", NAMES[0], NAMES[1], NAMES[2], NAMES[3]]);
    for rtt in RTT {
        for loss in LOSS {
            let path = format!("{rtt} ms, {} %", loss * 100.0);
            eprintln!("game {path}");
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let games = [
                traffic::game::<Rallypoint>(SEEDS, link, LENGTH),
                traffic::game::<Enet>(SEEDS, link, LENGTH),
                traffic::game::<Renet>(SEEDS, link, LENGTH),
                traffic::game::<Quinn>(SEEDS, link, LENGTH),
            ];
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| {
                let others = games[1..].iter().map(|game| game.at(share));
                games[0].at(share) / others.fold(f64::INFINITY, f64::min)
            });
            let cell = |game: &Game| format!("{:.0} / {:.0} / {:.0}", game.at(0.5), game.at(0.99), game.at(1.0));
            let [a, b, c, d] = games.each_ref().map(cell);
            times.row([path.clone(), a, b, c, d, format!("{p50:.2} / {p99:.2} / {most:.2}")]);
            let [a, b, c, d] = games.each_ref().map(|game| format!("{:.2}×", game.overhead()));
            wire.row([path, a, b, c, d]);
        }
    }
    format!(
        "### Game traffic\n\nMilliseconds to in-order delivery: median / 99 % / slowest.\n\n{times}\n\
         60 messages of 100 bytes per second in each direction, {SEEDS} seeds of {LENGTH:?}, both directions together.\n\n\
         Wire bytes per payload byte, with 28 bytes for IP and UDP in every datagram:\n\n{wire}\n\
         rallypoint sends more than the others under loss because it duplicates the messages of a thin stream (S25): one copy of \
         each message while losses occur, at most 16 kB/s, and none without loss. Without the copies it would be 2.05× at 10 ms \
         and 5 %, but 99 % of the messages would take 32 ms instead of 6.\n\n\
         renet sends once per frame, acknowledges in separate datagrams, and retransmits after 100 ms. ENet is serviced every \
         millisecond and whenever a datagram arrives. quinn has its default settings and one stream. rallypoint and ENet are not \
         encrypted; renet and quinn are.\n\n"
    )
}

/// The rows whose name contains this text.
fn bulk(rows: &str) -> String {
    let names = [RallypointWide::NAME, NAMES[1], NAMES[2], NAMES[3], QuinnBbr::NAME];
    let ratios = ["to the better of ENet, renet", "to quinn", "the wider one to BBR"];
    let mut table = Table::new(&[&["RTT, loss", NAMES[0]][..], &names, &ratios].concat());
    for rtt in RTT {
        for loss in LOSS {
            let path = format!("{rtt} ms, {} %", loss * 100.0);
            if !path.contains(rows) {
                continue;
            }
            eprintln!("bulk {path}");
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let bulks = [
                middle::<Rallypoint>(link),
                middle::<RallypointWide>(link),
                middle::<Enet>(link),
                middle::<Renet>(link),
                middle::<Quinn>(link),
                middle::<QuinnBbr>(link),
            ];
            let [ours, wide, enet, renet, quinn, bbr] = bulks.each_ref().map(|bulk| bulk.goodput);
            let cell = |bulk: &Bulk| format!("{:.2} ({:.2}×)", bulk.goodput / 1e6, bulk.overhead);
            let ratios = [ratio(ours, enet.max(renet)), ratio(ours, quinn), ratio(wide, bbr)];
            table.row([path].into_iter().chain(bulks.each_ref().map(cell)).chain(ratios));
        }
    }
    format!(
        "### Bulk\n\n8 MB in messages of 400 bytes: goodput in MB/s (wire bytes per payload byte, with 28 for IP and UDP in \
         every datagram), median of {SEEDS} seeds.\n\n{table}\nrenet sends 60,000 bytes per frame, its default. The further \
         columns of rallypoint and quinn are tuned for bulk: a window of 16,384 messages on both sides, and BBR with windows of \
         8 MB.\n\n"
    )
}

/// The rows whose name, with that of the disturbance, contains this text.
fn crowd(rows: &str) -> String {
    let mut text = String::new();
    let mut best = [0; 2];
    let mut cells = 0;
    for disturbance in Disturbance::ALL {
        let headings = ["players, load", NAMES[0], NAMES[1], NAMES[2], NAMES[3], "rallypoint to the best other, after"];
        let mut table = Table::new(&headings);
        for players in PLAYERS {
            for load in LOADS {
                let name = format!("{players}, {:.0} %", load * 100.0);
                let full_name = format!("{name}, {}", disturbance.name());
                if !full_name.contains(rows) {
                    continue;
                }
                eprintln!("crowd {full_name}");
                let periods = [
                    crowded_link::measure::<Rallypoint>(players, load, disturbance),
                    crowded_link::measure::<Enet>(players, load, disturbance),
                    crowded_link::measure::<Renet>(players, load, disturbance),
                    crowded_link::measure::<Quinn>(players, load, disturbance),
                ];
                let to_best = |of: fn(&Period) -> f64| {
                    let others = periods[1..].iter().map(|[_, after]| of(after));
                    of(&periods[0][1]) / others.fold(f64::INFINITY, f64::min)
                };
                let ratios = [to_best(|period| period.p99.as_secs_f64()), to_best(|period| period.bytes)];
                for (best, ratio) in best.iter_mut().zip(ratios) {
                    *best += u32::from(ratio < 1.005);
                }
                cells += 1;
                let cell = |[before, after]: &[Period; 2]| {
                    let [first, second] = [before, after].map(|period| period.p99.as_secs_f64() * 1e3);
                    format!("{first:.0} / {second:.0} ({:.0} / {:.0})", before.bytes, after.bytes)
                };
                let [a, b, c, d] = periods.each_ref().map(cell);
                table.row([name, a, b, c, d, format!("{:.2} ({:.2})", ratios[0], ratios[1])]);
            }
        }
        text += &format!("{}:\n\n{table}\n", disturbance.description());
    }
    format!(
        "### Crowded link\n\n99 % of the messages of a period arrive within this many milliseconds, before / after the \
         disturbance (wire bytes per message, with those of acks and 28 for IP and UDP in every datagram).\n\n{text}\
         Players who send 60 messages of 200 bytes per second each, in turn, through one bottleneck with a queue of 100 ms; RTT \
         50 ms. The rate of the bottleneck follows from the load, which datagrams of 224 bytes would cause: those of \
         rallypoint without IP and UDP headers. A period takes {PERIOD:?}; the second begins {RECOVERY:?} after the end of the \
         disturbance. Every player has a server of its own, and acks do not pass the bottleneck. In {} of {cells} rows \
         rallypoint's messages arrive as soon as the best other's or sooner, and in {} it sends no more bytes.\n\n",
        best[0], best[1],
    )
}

/// The run with the median goodput: under loss, a single seed is not significant.
fn middle<C: Library>(link: Link) -> Bulk {
    let mut bulks: Vec<Bulk> = (1..=SEEDS).map(|seed| traffic::bulk::<C>(seed, link, 8_000_000)).collect();
    bulks.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
    bulks.swap_remove(bulks.len() / 2)
}

fn real_sockets() -> String {
    eprintln!("real sockets");
    format!(
        "### Real sockets\n\n{}\nThe slow link is a thread that forwards datagrams: 30 players send 60 messages of 200 bytes per \
         second each through 5 Mbit/s with a queue of 64 kB, and 1.5 Mbit/s for 2 s; RTT 50 ms. Forged logins come from 2^24 \
         addresses; the 60 honest players log in within a second.\n\n",
        real_sockets::table()
    )
}

fn loopback() -> String {
    let _ = cores().first().map(|core| pin_this_thread(*core));
    let headings =
        ["messages", "library", "per CPU second of the sender", "plain, encrypted to this", "of the receiver"];
    let mut table = Table::new(&[&headings[..], &["plain, encrypted to this"]].concat());
    let mut goals = Goals::new();
    let frame = Duration::from_nanos(1_000_000_000 / 60);
    for (size, kind) in [(400, "400 bytes"), (32, "32 bytes, packed")] {
        eprintln!("loopback {kind}");
        let packed = size == 32;
        let count = if packed { PACKED_MESSAGES } else { MESSAGES };
        let [plain, encrypted, enet, renet, quinn] = best_of([
            &|| messages::rallypoint(Encryption::Plain, size, packed, count),
            &|| messages::rallypoint(Encryption::Encrypted, size, packed, count),
            &|| loopback::other::<Enet>(size, ms(1), count),
            &|| loopback::other::<Renet>(size, frame, count),
            &|| loopback::quinn(size, packed, count),
        ]);
        let ours = |of: fn(&Cost) -> f64, this: &Cost| {
            format!("{}, {}", ratio(of(&plain), of(this)), ratio(of(&encrypted), of(this)))
        };
        let names = [Rallypoint::NAME, "rallypoint, encrypted", Enet::NAME, Renet::NAME, Quinn::NAME];
        let mut costs: Vec<(&str, Cost)> = names.into_iter().zip([plain, encrypted, enet, renet, quinn]).collect();
        if let Some(program) = portable("portable") {
            let [portable, sealed] = best_of([&|| portable_cost(&program, size, packed, "plain", count), &|| {
                portable_cost(&program, size, packed, "encrypted", count)
            }]);
            costs.splice(2..2, [("rallypoint, portable", portable), ("rallypoint, portable, encrypted", sealed)]);
            // renet encrypts, and ENet does not.
            add_portable_goals(&mut goals, kind, &[(Enet::NAME, portable, enet), (Renet::NAME, sealed, renet)]);
        }
        if !packed {
            let [alone] = best_of([&|| messages::system_calls(size + HEADER, count)]);
            costs.push(("system calls alone, one per message", alone));
        }
        for (name, cost) in &costs {
            let sender = rate(cost.sender, "");
            let receiver = rate(cost.receiver, "");
            let [first, second] = [ours(|cost| cost.sender, cost), ours(|cost| cost.receiver, cost)];
            table.row([kind.to_owned(), (*name).to_owned(), sender, first, receiver, second]);
        }
        if packed {
            let ratio = plain.sender / quinn.sender;
            let figure = "packed messages of the sender, plain, relative to quinn";
            goals.add(figure, format!("{ratio:.2}×"), "at least 1×", ratio >= 1.0);
        } else {
            let [plain, encrypted, cipher, channel, encrypted_channel] = best_of([
                &|| messages::rallypoint(Encryption::Plain, size, packed, count),
                &|| messages::rallypoint(Encryption::Encrypted, size, packed, count),
                &|| loopback::cipher(count),
                &|| messages::channel(Encryption::Plain, size, count),
                &|| messages::channel(Encryption::Encrypted, size, count),
            ]);
            add_cipher_goals(&mut goals, plain, encrypted, cipher);
            add_channel_goals(&mut goals, size, [plain, encrypted], [channel, encrypted_channel]);
        }
    }
    let crowd = 100.0 * loopback::crowd(255);
    format!(
        "### Loopback\n\n{goals}\n{table}\n255 players that send and receive 60 messages of 100 bytes per second each take {crowd:.0} % of one \
         core of the server, including system calls.\n\n{MESSAGES} messages over real sockets ({PACKED_MESSAGES} packed ones), after half as many that are not \
         measured, best of {ROUNDS} rounds; CPU time, including the kernel. Both sides alternate on one core. rallypoint and quinn send and receive many datagrams per \
         system call (GSO, GRO); ENet and renet one, like their own transports, as does rallypoint with the portable sockets that \
         it uses outside Linux. ENet and renet put three messages of 400 bytes into a datagram, and rallypoint one, because \
         document 003 limits datagrams to 508 bytes: the last row is what the system alone takes for that. quinn encrypts with AES-128-GCM, and rallypoint \
         with {} (W84); quinn's datagrams have up to 1,452 bytes, rallypoint's at most 508. \
         Packed messages are collected by the program and written to quinn's stream up to 256 kB at a time; rallypoint packs \
         them itself.\n",
        cipher::name()
    )
}

/// Runs the program that was built with the portable sockets.
fn portable_cost(program: &Path, size: usize, packed: bool, encryption: &str, count: u32) -> Cost {
    let packing = if packed { "packed" } else { "single" };
    let output = Command::new(program).args([&size.to_string(), packing, encryption, &count.to_string()]).output();
    let output = output.expect("the program was built for this suite");
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    let [sender, receiver] = figures[..] else { panic!("{}", String::from_utf8_lossy(&output.stderr)) };
    Cost { sender, receiver }
}

/// Messages per CPU second with the portable sockets, compared with libraries that use the same system calls.
fn add_portable_goals(goals: &mut Goals, kind: &str, pairs: &[(&str, Cost, Cost)]) {
    for (name, ours, other) in pairs {
        let [sender, receiver] = [ours.sender / other.sender, ours.receiver / other.receiver];
        goals.add(
            &format!("messages per CPU second with portable sockets, {kind}, relative to {name}: sender, receiver"),
            format!("{sender:.2}×, {receiver:.2}×"),
            "at least 1×",
            sender.min(receiver) >= 1.0,
        );
    }
}

/// The cost of encryption, beside that of the cipher alone.
fn add_cipher_goals(goals: &mut Goals, plain: Cost, encrypted: Cost, cipher: Cost) {
    for side in ["sender", "receiver"] {
        let [plain, encrypted, cipher] =
            [plain, encrypted, cipher].map(|cost| 1e9 / if side == "sender" { cost.sender } else { cost.receiver });
        if side == "sender" {
            goals.add(
                "an encrypted message of 400 bytes relative to a plain one, sender (plain + cipher alone)",
                format!("{:.2}× ({:.2}×)", encrypted / plain, (plain + cipher) / plain),
                "at most 1.3×",
                encrypted <= 1.3 * plain,
            );
        }
        goals.add(
            &format!("an encrypted message of 400 bytes, {side} (plain, cipher alone)"),
            format!("{encrypted:.0} ns ({plain:.0} ns, {cipher:.0} ns)"),
            format!("at most {:.0} ns, plain + 1.1 × cipher", plain + 1.1 * cipher),
            encrypted <= plain + 1.1 * cipher,
        );
    }
}

/// The cost that the channel layer adds to a message, plain and encrypted.
fn add_channel_goals(goals: &mut Goals, size: usize, without: [Cost; 2], with: [Cost; 2]) {
    for ((kind, without), with) in ["plain", "encrypted"].into_iter().zip(without).zip(with) {
        let added = |time: fn(&Cost) -> f64| 100.0 * (time(&with) / time(&without) - 1.0);
        let (sender, receiver) = (added(|cost| 1.0 / cost.sender), added(|cost| 1.0 / cost.receiver));
        let both = added(|cost| 1.0 / cost.sender + 1.0 / cost.receiver);
        goals.add(
            &format!("CPU time of one {kind} message of {size} bytes in a channel, relative to one without channels: sender, receiver, both"),
            format!("{sender:+.1} %, {receiver:+.1} %, {both:+.1} %"),
            "both at most +5 %",
            both <= 5.0,
        );
    }
}

/// The best of several rounds for each of these. They take turns, so that a machine that becomes slower or faster meanwhile does
/// not change how they compare.
fn best_of<const N: usize>(measures: [&dyn Fn() -> Cost; N]) -> [Cost; N] {
    let mut best = [Cost { sender: 0.0, receiver: 0.0 }; N];
    for _ in 0..ROUNDS {
        for (best, measure) in best.iter_mut().zip(measures) {
            let cost = measure();
            best.sender = best.sender.max(cost.sender);
            best.receiver = best.receiver.max(cost.receiver);
        }
    }
    best
}
