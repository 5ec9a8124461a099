//! All details of one server, for people.

use super::{
    table::{Cell, Column, Table},
    terminal::{Style, Terminal, clip, wrap},
};
use rallypoint_query::{
    ScannedServer,
    proto::{RttMethod, ServerInfo},
};

/// Width of the labels, in columns.
const LABEL: usize = 13;

const PLAYERS: [Column; 7] = [
    Column { title: "PLAYER", right: false, least: 8, preferred: 8, drop: 0, if_different: false },
    Column { title: "TEAM", right: false, least: 4, preferred: 4, drop: 1, if_different: false },
    Column { title: "SCORE", right: true, least: 5, preferred: 5, drop: 2, if_different: false },
    Column { title: "RANK", right: true, least: 4, preferred: 4, drop: 3, if_different: false },
    Column { title: "PING", right: true, least: 4, preferred: 4, drop: 2, if_different: false },
    Column { title: "TIME", right: true, least: 4, preferred: 4, drop: 4, if_different: false },
    Column { title: "", right: false, least: 8, preferred: 8, drop: 4, if_different: false },
];

/// A block of lines about a server, each terminated.
pub fn server(record: &ScannedServer, terminal: Terminal) -> String {
    let info = &record.info;
    let most = terminal.width.unwrap_or(usize::MAX);
    let mut text = terminal.paint(Style::Bold, &clip(record.name(), most)) + "\n";
    let mut line = |label: &str, value: Option<&str>, style| {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            push(&mut text, (label, LABEL), value, style, terminal);
        }
    };
    line("description", info.description.as_deref(), Style::Plain);
    line("address", Some(&address(record)), Style::Plain);
    if let (Some(reply), Some(milliseconds)) = (&record.reply, record.ping_ms()) {
        let accuracy = match reply.round_trip.method {
            RttMethod::UpperBound => " at most",
            RttMethod::Connect => " (TCP connection)",
            RttMethod::Echo | RttMethod::FirstReply => "",
        };
        let retries = match reply.retries {
            0 => String::new(),
            1 => ", 1 retry".into(),
            retries => format!(", {retries} retries"),
        };
        line("ping", Some(&format!("{}{accuracy}{retries}", ping(milliseconds))), Style::of_ping(milliseconds));
    }
    line("game", Some(&game(info)), Style::Plain);
    line("mode", info.mode.as_deref(), Style::Plain);
    line("map", info.map.as_deref(), Style::Plain);
    line("version", info.version.as_deref(), Style::Plain);
    line("players", Some(&people(info)), Style::Plain);
    line("password", info.password.map(|needed| if needed { "required" } else { "none" }), Style::Plain);
    line("website", info.website.as_deref(), Style::Plain);
    let mods: Vec<_> = info.mods.iter().filter_map(|it| it.name.as_deref().or(it.id.as_deref())).collect();
    line("mods", Some(&mods.join(", ")), Style::Plain);
    line("tags", Some(&info.tags.join(", ")), Style::Plain);
    if let Some(reply) = record.reply.as_ref().filter(|reply| !reply.missing.is_empty()) {
        let missing: Vec<_> = reply.missing.iter().map(ToString::to_string).collect();
        line("missing", Some(&missing.join(", ")), Style::Fair);
    }
    if let Some(error) = &record.error {
        line("error", Some(&error.to_string()), Style::Bad);
    }
    let width = info.rules.keys().map(|name| name.chars().count() + 1).max().unwrap_or(0).max(LABEL);
    for (name, value) in info.rules.iter().filter(|(_, value)| !value.is_empty()) {
        push(&mut text, (name, width), value, Style::Plain, terminal);
    }
    text + &players(info, terminal)
}

/// A round-trip time with as many digits as are meaningful.
pub fn ping(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Players and maximum: `3/24`. A maximum of 0 means that the server does not report one.
pub fn occupancy(info: &ServerInfo) -> String {
    match (info.players, info.max_players) {
        (Some(players), Some(0) | None) => players.to_string(),
        (Some(players), Some(most)) => format!("{players}/{most}"),
        (None, Some(most)) => format!("?/{most}"),
        (None, None) => String::new(),
    }
}

fn people(info: &ServerInfo) -> String {
    let mut text = occupancy(info);
    let more = [(info.bots, "bot"), (info.spectators, "spectator")];
    let more = more.iter().filter_map(|(count, what)| count.filter(|count| *count > 0).map(|count| (count, what)));
    for (count, what) in more {
        text += &format!(", {count} {what}{}", if count == 1 { "" } else { "s" });
    }
    text
}

fn game(info: &ServerInfo) -> String {
    let known = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    match (known(&info.game_name), known(&info.game)) {
        (Some(long), Some(short)) if !long.eq_ignore_ascii_case(&short) => format!("{long} ({short})"),
        (Some(long), _) => long,
        (None, short) => short.unwrap_or_default(),
    }
}

fn address(record: &ScannedServer) -> String {
    let address = record.address.map(|address| address.to_string()).unwrap_or_default();
    record.protocol.map_or(address.clone(), |protocol| format!("{address} ({protocol})"))
}

/// A time in the game: `1:02:03` or `2:03`.
fn duration(seconds: u32) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn players(info: &ServerInfo, terminal: Terminal) -> String {
    let mut table = Table::new(&PLAYERS);
    for player in info.player_list.iter().flatten() {
        let team = player.team.map(|team| info.team_name(team).map_or_else(|| team.to_string(), str::to_owned));
        let team = team.filter(|_| player.team != Some(0) || info.team_name(0).is_some());
        let rank = player.rank.filter(|rank| *rank > 0).map(|rank| rank.to_string());
        table.push(vec![
            player.name.as_str().into(),
            team.unwrap_or_default().into(),
            player.score.map(|score| score.to_string()).unwrap_or_default().into(),
            rank.unwrap_or_default().into(),
            player
                .ping_ms
                .map(|ping| Cell { text: ping.to_string(), style: Style::of_ping(ping.into()) })
                .unwrap_or_default(),
            player.duration_s.map(duration).unwrap_or_default().into(),
            if player.spectator { "spectator" } else { "" }.into(),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let narrower = Terminal { width: terminal.width.map(|width| width.saturating_sub(2)), ..terminal };
    let lines = table.render(narrower);
    "\n".to_owned() + &lines.lines().map(|line| format!("  {line}\n")).collect::<String>()
}

/// Appends a label of this width and its value, wrapped if it is long.
fn push(text: &mut String, (label, label_width): (&str, usize), value: &str, style: Style, terminal: Terminal) {
    let room = terminal.width.map_or(usize::MAX, |width| width.saturating_sub(label_width + 2)).max(8);
    for (n, line) in wrap(value, room).iter().enumerate() {
        let label = terminal.paint(Style::Dim, &format!("{:<label_width$}", if n == 0 { label } else { "" }));
        text.push_str(format!("  {label}{}", terminal.paint(style, line)).trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_have_as_many_digits_as_are_meaningful() {
        assert_eq!([0.1234, 12.34, 123.4].map(ping), ["0.12 ms", "12.3 ms", "123 ms"]);
    }
}
