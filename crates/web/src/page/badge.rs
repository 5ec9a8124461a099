//! `GET /servers/{id}/badge.svg`: a server in one line, for other people's pages.

use super::line::Line;
use crate::{id::Id, problem::Problem, shared::Web};
use askama::Template;
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

/// The longest name on a badge, in characters.
const LONGEST: usize = 32;

/// How wide a character is thought to be; wide ones (CJK and the like) take two.
const CHARACTER: usize = 7;

#[derive(Template)]
#[template(path = "badge.svg")]
struct Badge {
    name: String,
    state: String,
    is_online: bool,
    left: usize,
    right: usize,
}

pub(super) async fn show(State(web): State<Web>, Id(id): Id) -> Result<Response, Problem> {
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    // A picture on somebody's page should say that a server is not there, not be broken.
    let badge = match snapshot.record(id) {
        Some(row) => {
            let line = Line::new(row, &settings, 0);
            Badge::new(line.name(), line.players(), true)
        }
        None => Badge::new("server", "offline".into(), false),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=30")),
    ];
    let svg = badge.render().unwrap_or_default();
    Ok((headers, svg).into_response())
}

impl Badge {
    fn new(name: &str, state: String, is_online: bool) -> Self {
        let mut short: String = name.chars().take(LONGEST).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        let (left, right) = (width(&short), width(&state));
        Self { name: short, state, is_online, left, right }
    }
}

/// About how wide a text is, with some room beside it.
fn width(text: &str) -> usize {
    let wide = |c: char| if (c as u32) < 0x1100 { CHARACTER } else { 2 * CHARACTER };
    text.chars().map(wide).sum::<usize>() + 12
}
