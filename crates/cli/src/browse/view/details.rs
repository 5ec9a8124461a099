//! Details of the selected server.

use super::text::{columns, fit, plain, wrap};
use crate::browse::{
    model::{Mode, Model, Row},
    theme::Theme,
};
use rallypoint_query::proto::{Player, ServerInfo};
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

pub fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: Theme) {
    let beside = area.y == 1 && area.x > 0;
    let inner = if model.mode == Mode::Details {
        area
    } else if beside {
        let line = Rect { width: 1.min(area.width), ..area };
        for y in line.y..line.bottom() {
            frame.buffer_mut().set_string(line.x, y, theme.bar(), theme.dim());
        }
        Rect { x: area.x + 2.min(area.width), width: area.width.saturating_sub(2), ..area }
    } else {
        let line = theme.line().repeat(area.width.into());
        frame.buffer_mut().set_string(area.x, area.y, line, theme.dim());
        Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(1), ..area }
    };
    let lines = match model.selected() {
        Some((_, row)) => lines(model, row, theme, inner.width.into()),
        None => Vec::new(),
    };
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(inner.height);
    model.scroll = model.scroll.min(most);
    for (line, y) in lines.iter().skip(model.scroll.into()).zip(inner.y..inner.bottom()) {
        frame.buffer_mut().set_line(inner.x, y, line, inner.width);
    }
}

fn lines(model: &Model, row: &Row, theme: Theme, wide: usize) -> Vec<Line<'static>> {
    let record = &row.server;
    let info = &record.info;
    let mut lines = Vec::new();
    for name in wrap(record.name(), wide) {
        lines.push(Line::styled(name, theme.title()));
    }
    if let Some(text) = info.description.as_deref().filter(|text| !text.is_empty()) {
        lines.extend(wrap(text, wide).into_iter().map(Line::raw));
    }
    if !row.is_listed {
        lines.extend(wrap("Currently not in any list.", wide).into_iter().map(|line| Line::styled(line, theme.fair())));
    }
    if let Some(error) = &record.error {
        let text = wrap(&format!("No ping: {error}"), wide);
        lines.extend(text.into_iter().map(|line| Line::styled(line, theme.bad())));
    }
    let mut add = |name: &str, text: Option<String>, style: Style| {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let label = format!("{name:<9}");
        for (n, part) in wrap(&text, wide.saturating_sub(label.len())).into_iter().enumerate() {
            let label = if n == 0 { label.clone() } else { " ".repeat(label.len()) };
            lines.push(Line::from(vec![Span::styled(label, theme.dim()), Span::styled(part, style)]));
        }
    };
    let none = Style::new();
    add("Address", Some(super::table::address(model, record)), theme.heading());
    add("Game", game(info), none);
    add("Mode", info.mode.clone(), none);
    add("Map", info.map.clone(), none);
    add("Players", players(info), none);
    add("Password", info.password.filter(|is_required| *is_required).map(|_| "required".into()), theme.fair());
    let ping = record.ping_ms();
    let style = ping.map_or(none, |ping| theme.ping(ping));
    add("Ping", ping.map(|ping| format!("{ping:.1} ms")), style);
    let missing = record.reply.iter().flat_map(|reply| &reply.missing).map(ToString::to_string);
    add("Missing", Some(missing.collect::<Vec<_>>().join(", ")), theme.fair());
    add("Web", info.website.clone(), none);
    add("Tags", Some(info.tags.join(", ")), none);
    let mods = info.mods.iter().filter_map(|it| it.name.clone().or_else(|| it.id.clone()));
    add("Mods", Some(mods.collect::<Vec<_>>().join(", ")), none);
    add("Lobby", model.lists.get(record.target_index).map(|list| list.name.clone()).filter(|_| row.is_listed), none);
    lines.extend(player_lines(info, theme, wide));
    lines
}

fn game(info: &ServerInfo) -> Option<String> {
    let name = info.game_name.clone().filter(|name| !name.is_empty()).or_else(|| info.game.clone());
    match (name, info.version.as_deref().filter(|version| !version.is_empty())) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, _) => name,
    }
}

fn players(info: &ServerInfo) -> Option<String> {
    let mut text = info.players?.to_string();
    if let Some(most) = info.max_players.filter(|most| *most > 0) {
        text += &format!(" of {most}");
    }
    if let Some(bots) = info.bots.filter(|bots| *bots > 0) {
        text += &format!(", {bots} bots");
    }
    if let Some(watching) = info.spectators.filter(|watching| *watching > 0) {
        text += &format!(", {watching} watching");
    }
    Some(text)
}

/// The players, grouped by team, spectators last.
fn player_lines(info: &ServerInfo, theme: Theme, wide: usize) -> Vec<Line<'static>> {
    let mut list: Vec<&Player> = info.player_list.iter().flatten().collect();
    if list.is_empty() {
        return Vec::new();
    }
    list.sort_by_key(|player| (player.spectator, player.team, player.name.to_lowercase()));
    let ping_wide = 6;
    let team_wide = if info.teams.is_empty() || wide < 30 { 0 } else { 10 };
    let name_wide = wide.saturating_sub(ping_wide + team_wide + 1).max(4);
    let mut lines = vec![Line::raw("")];
    let heading = fit("Player", name_wide, false) + &fit("Team", team_wide, false) + &fit("Ping", ping_wide, true);
    lines.push(Line::styled(heading, theme.heading()));
    for player in list {
        let team = info.teams.iter().find(|team| Some(team.id) == player.team);
        let style = match team {
            _ if player.spectator => theme.dim(),
            Some(team) => theme.team(team.color),
            None => Style::new(),
        };
        let team =
            if player.spectator { "watching".into() } else { team.map_or(String::new(), |team| plain(&team.name)) };
        let ping = player.ping_ms.map_or(String::new(), |ping| ping.to_string());
        let ping_style = player.ping_ms.map_or(Style::new(), |ping| theme.ping(ping.into()));
        lines.push(Line::from(vec![
            Span::styled(fit(&player.name, name_wide, false), style),
            Span::styled(fit(&team, team_wide, false), style),
            Span::styled(fit(&ping, ping_wide, true), ping_style),
        ]));
    }
    debug_assert!(lines.iter().all(|line| columns(&line.to_string()) <= wide.max(10 + ping_wide)));
    lines
}
