//! What a player sees, as text with escape sequences: the map and the dots, chat, a line for input, and a line of statistics.

use super::protocol::{Dot, HEIGHT, STRIP_ROWS, WIDTH};

const CHAT_LINES: usize = 4;
const GREY: &str = "\x1b[38;5;245m";
const COLORS: [[u8; 3]; 6] =
    [[255, 95, 95], [255, 215, 95], [175, 255, 95], [95, 255, 215], [135, 175, 255], [255, 135, 255]];

/// The state of a player's screen.
pub struct Canvas {
    map: Vec<[u8; 3]>,
    /// Number of bytes of the map that have arrived.
    pub map_bytes: usize,
    pub chat: Vec<String>,
    pub input: String,
}

impl Canvas {
    pub fn new() -> Self {
        Self { map: vec![[12; 3]; WIDTH * HEIGHT], map_bytes: 0, chat: Vec::new(), input: String::new() }
    }

    /// Adds a strip of the map.
    pub fn add_strip(&mut self, message: &[u8]) {
        let Some((number, pixels)) = message.split_first() else { return };
        let strip = self.map.iter_mut().skip(usize::from(*number) * STRIP_ROWS * WIDTH);
        strip.zip(pixels.chunks_exact(3)).for_each(|(pixel, color)| pixel.copy_from_slice(color));
        self.map_bytes += pixels.len();
    }

    /// A frame for a terminal of this size. A cell of the map shows two pixels, one above the other.
    pub fn frame(&self, dots: &[Dot], status: &str, columns: usize, rows: usize) -> String {
        let map_rows = rows.saturating_sub(CHAT_LINES + 2);
        let cell = |dot: &Dot| (dot.x as usize * columns / WIDTH, dot.y as usize * map_rows / HEIGHT);
        let mut out = String::from("\x1b[H");
        for row in 0..map_rows {
            for column in 0..columns {
                let pixel = |half: usize| self.map[half * HEIGHT / (2 * map_rows) * WIDTH + column * WIDTH / columns];
                let [top, bottom] = [pixel(2 * row), pixel(2 * row + 1)];
                // Dots of players are drawn above the others.
                let here = (0..dots.len()).filter(|dot| cell(&dots[*dot]) == (column, row));
                match here.min_by_key(|dot| dots[*dot].player) {
                    Some(dot) if dots[dot].player != 255 => paint(&mut out, [255; 3], top, "\x1b[1m◉\x1b[22m"),
                    Some(dot) => paint(&mut out, COLORS[dot % COLORS.len()], top, "●"),
                    None => paint(&mut out, top, bottom, "▀"),
                }
            }
            out += "\x1b[0m\r\n";
        }
        for row in 0..CHAT_LINES {
            let line = self.chat.get((self.chat.len() + row).wrapping_sub(CHAT_LINES)).map_or("", String::as_str);
            let color = if line.starts_with("--") { GREY } else { "" };
            out += &format!("{color}{line:.columns$}\x1b[0m\x1b[K\r\n");
        }
        out + &format!("> {}▏\x1b[K\r\n{GREY}{status:.columns$}\x1b[0m\x1b[K", self.input)
    }
}

fn paint(out: &mut String, [r, g, b]: [u8; 3], [r2, g2, b2]: [u8; 3], glyph: &str) {
    *out += &format!("\x1b[38;2;{r};{g};{b};48;2;{r2};{g2};{b2}m{glyph}");
}
