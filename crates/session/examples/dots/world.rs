//! The islands on which the dots move, and how they move. Only the server knows them; clients get a picture.

use super::protocol::{DOTS, Dot, HEIGHT, STRIP_ROWS, WIDTH};

/// Heights from which on the ground has a color: water, sand, grass, forest, rock, snow.
const GROUND: [(f32, [u8; 3]); 8] = [
    (-9.0, [16, 42, 84]),
    (-0.5, [24, 66, 120]),
    (-0.15, [44, 104, 156]),
    (0.0, [206, 188, 128]),
    (0.12, [106, 158, 72]),
    (0.55, [58, 112, 58]),
    (1.0, [116, 110, 106]),
    (1.3, [232, 236, 240]),
];

/// Height of the ground: hills of several sizes, and sea at the edges.
fn height(x: f32, y: f32) -> f32 {
    let hills = (x / 19.0 + (y / 31.0).sin() * 2.0).sin() * (y / 14.0 + (x / 37.0).cos() * 1.5).cos();
    let details = ((x / 5.3 + y / 7.1).sin() + (x / 3.7 - y / 4.9).cos()) * 0.16;
    let [east, south] = [x / WIDTH as f32, y / HEIGHT as f32].map(|share| (2.0 * share - 1.0).abs().powi(6));
    0.35 + hills + details - 1.6 * east.max(south)
}

/// Dots go around mountains and deep water.
fn is_wall(x: f32, y: f32) -> bool {
    let is_outside = x < 1.0 || y < 1.0 || x > WIDTH as f32 - 1.0 || y > HEIGHT as f32 - 1.0;
    is_outside || !(-0.5..1.0).contains(&height(x, y))
}

/// The strips of the map, each with its number.
pub fn strips() -> Vec<Vec<u8>> {
    let color = |x: usize, y: usize| {
        let height = height(x as f32, y as f32);
        GROUND.iter().rev().find(|(from, _)| height >= *from).map_or([0; 3], |(_, color)| *color)
    };
    let strip = |rows: usize| {
        let pixels = (rows * STRIP_ROWS..(rows + 1) * STRIP_ROWS).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        [rows as u8].into_iter().chain(pixels.flat_map(|(x, y)| color(x, y))).collect()
    };
    (0..HEIGHT / STRIP_ROWS).map(strip).collect()
}

/// Free positions, spread over the islands, with a velocity each.
pub fn start() -> (Vec<Dot>, Vec<[f32; 2]>) {
    let pixels = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| [x as f32 + 0.5, y as f32 + 0.5]));
    let free: Vec<[f32; 2]> = pixels.filter(|[x, y]| height(*x, *y) > 0.1 && !is_wall(*x, *y)).collect();
    let dot = |n: usize| Dot { x: free[n * free.len() / DOTS][0], y: free[n * free.len() / DOTS][1], player: 255 };
    let velocity = |n: usize| [(n as f32 * 1.7).sin(), (n as f32 * 2.9).cos()];
    ((0..DOTS).map(dot).collect(), (0..DOTS).map(velocity).collect())
}

/// Moves the dots by one frame; they bounce off walls.
pub fn advance(dots: &mut [Dot], velocities: &mut [[f32; 2]]) {
    for (dot, velocity) in dots.iter_mut().zip(velocities) {
        velocity[0] *= if is_wall(dot.x + velocity[0], dot.y) { -1.0 } else { 1.0 };
        velocity[1] *= if is_wall(dot.x, dot.y + velocity[1]) { -1.0 } else { 1.0 };
        if !is_wall(dot.x + velocity[0], dot.y + velocity[1]) {
            *dot = Dot { x: dot.x + velocity[0], y: dot.y + velocity[1], ..*dot };
        }
    }
}
