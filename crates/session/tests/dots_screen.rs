//! What the terminal client of the dots draws.

#[path = "../examples/dots/canvas.rs"]
mod canvas;
#[path = "../examples/dots/protocol.rs"]
mod protocol;
#[path = "../examples/dots/world.rs"]
mod world;

use canvas::Canvas;
use protocol::{Dot, HEIGHT, MAP_BYTES, WIDTH};

/// A frame without its escape sequences.
fn text(frame: &str) -> String {
    let parts = frame.split('\x1b').map(|part| {
        let after = part.trim_start_matches(|c: char| "[;?".contains(c) || c.is_ascii_digit());
        if part.starts_with('[') { &after[1..] } else { after }
    });
    parts.collect::<String>().replace("\r\n", "\n")
}

#[test]
fn a_frame_shows_map_dots_chat_and_status() {
    let mut canvas = Canvas::new();
    canvas.chat = (1..=5).map(|n| format!("bob: line {n}")).collect();
    canvas.input = "hi".into();
    let dot = |x: f32, y: f32, player| Dot { x: x * WIDTH as f32, y: y * HEIGHT as f32, player };
    // Two dots in one cell: that of a player is drawn.
    let dots = [dot(0.05, 0.1, 255), dot(0.5, 0.5, 255), dot(0.5, 0.5, 3)];
    let frame = canvas.frame(&dots, "alice · 3 dots", 16, 10);
    let expected = "\
        ●▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n\
        ▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n\
        ▀▀▀▀▀▀▀▀◉▀▀▀▀▀▀▀\n\
        ▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n\
        bob: line 2\nbob: line 3\nbob: line 4\nbob: line 5\n\
        > hi▏\nalice · 3 dots";
    assert_eq!(text(&frame), expected);
}

#[test]
fn the_map_appears_strip_by_strip_in_any_order() {
    let mut canvas = Canvas::new();
    let strips = world::strips();
    let colors = |canvas: &Canvas| {
        let frame = canvas.frame(&[], "", 60, 46);
        frame.split("\x1b[38;2;").skip(1).map(|cell| cell[..cell.find('m').unwrap()].to_owned()).collect::<Vec<_>>()
    };
    let unknown = "12;12;12;48;2;12;12;12";
    assert!(colors(&canvas).iter().all(|color| color == unknown));
    strips.iter().rev().take(strips.len() / 2).for_each(|strip| canvas.add_strip(strip));
    let is_known: Vec<bool> = colors(&canvas).iter().map(|color| color != unknown).collect();
    let (upper, lower) = is_known.split_at(is_known.len() / 2);
    assert!(upper.iter().all(|known| !known) && lower.iter().all(|known| *known));
    strips.iter().take(strips.len() / 2).for_each(|strip| canvas.add_strip(strip));
    assert_eq!(canvas.map_bytes, MAP_BYTES);
    let different: std::collections::BTreeSet<String> = colors(&canvas).into_iter().collect();
    assert!(different.len() > 12, "water, sand, grass, forest, rock and snow: {different:?}");
    // Whatever a server sends, and however small the terminal is.
    [&[][..], &[255; 7], &[0], &[19; 100_000]].iter().for_each(|strip| canvas.add_strip(strip));
    for (columns, rows) in [(0, 0), (1, 1), (1, 7), (300, 200)] {
        canvas.frame(&[Dot { x: 255.9, y: 255.9, player: 0 }], "", columns, rows);
    }
}

#[test]
fn dots_stay_on_the_islands() {
    let (mut dots, mut velocities) = world::start();
    let first = dots.clone();
    for _ in 0..1_000 {
        world::advance(&mut dots, &mut velocities);
    }
    assert_eq!(dots.len(), protocol::DOTS);
    assert!(dots.iter().all(|dot| dot.x > 1.0 && dot.y > 1.0 && dot.x < WIDTH as f32 && dot.y < HEIGHT as f32));
    let moved = dots.iter().zip(&first).filter(|(dot, first)| (dot.x - first.x).abs() + (dot.y - first.y).abs() > 3.0);
    assert!(moved.count() > 20);
}
