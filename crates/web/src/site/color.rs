//! The operator's colour, in shades that can be read in light and dark.

use std::{fmt, str::FromStr};
use thiserror::Error;

/// Minimum contrast of text to its background (WCAG AA).
const MIN_CONTRAST: f64 = 4.5;

/// The darkest background of links in the light scheme, and the lightest one in the dark scheme, as in style.css.
const LIGHT_GROUND: [u8; 3] = [0xee, 0xf1, 0xf4];
const DARK_GROUND: [u8; 3] = [0x26, 0x31, 0x3d];

/// The colour of buttons and links.
///
/// ```
/// use rallypoint_web::AccentColor;
///
/// let color: AccentColor = "#C0FFEE".parse()?;
/// assert_eq!(color.to_string(), "#c0ffee");
/// # Ok::<(), rallypoint_web::InvalidColor>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccentColor([u8; 3]);

/// A text is not a valid [`AccentColor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a colour such as \"#0b6478\"")]
pub struct InvalidColor;

impl AccentColor {
    /// A style sheet with the colour: darkened for the light scheme and lightened for the dark one until it can be read.
    pub(crate) fn style_sheet(self) -> String {
        let light = Self(readable(self.0, LIGHT_GROUND, [0; 3]));
        let dark = Self(readable(self.0, DARK_GROUND, [255; 3]));
        let rule = |color: Self| format!(":root{{--accent:{color};--on-accent:{}}}", color.text());
        format!("{}@media (prefers-color-scheme:dark){{{}}}\n", rule(light), rule(dark))
    }

    /// Black or white, whichever can be read better on this colour.
    fn text(self) -> Self {
        let by_contrast = |text: &[u8; 3]| contrast(self.0, *text);
        let [black, white] = [[0; 3], [255; 3]];
        Self(if by_contrast(&black) > by_contrast(&white) { black } else { white })
    }
}

/// The colour mixed with as little of `towards` as is needed for text on this background.
fn readable(color: [u8; 3], background: [u8; 3], towards: [u8; 3]) -> [u8; 3] {
    let mix = |share: u16| -> [u8; 3] {
        let part = |index: usize| {
            (u16::from(color[index]) * (100 - share) + u16::from(towards[index]) * share).div_ceil(100) as u8
        };
        [part(0), part(1), part(2)]
    };
    (0..=100).map(mix).find(|mixed| contrast(*mixed, background) >= MIN_CONTRAST).unwrap_or(towards)
}

/// The contrast of two colours: from 1 to 21 (WCAG).
fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(color: [u8; 3]) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let [red, green, blue] = color.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

impl FromStr for AccentColor {
    type Err = InvalidColor;

    fn from_str(text: &str) -> Result<Self, InvalidColor> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6).ok_or(InvalidColor)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or(InvalidColor)?;
        let [_, red, green, blue] = value.to_be_bytes();
        Ok(Self([red, green, blue]))
    }
}

impl fmt::Display for AccentColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_can_be_read_in_both_schemes() {
        for text in ["#000000", "#ffffff", "#ffff00", "#0000ff", "#ff0000", "#808080", "#0b6478", "#c0ffee"] {
            let AccentColor(color) = text.parse().unwrap();
            for (ground, towards) in [(LIGHT_GROUND, [0; 3]), (DARK_GROUND, [255; 3])] {
                let shade = readable(color, ground, towards);
                assert!(contrast(shade, ground) >= MIN_CONTRAST, "{text}");
                assert!(contrast(shade, AccentColor(shade).text().0) >= MIN_CONTRAST, "{text}");
            }
        }
        assert_eq!(
            readable([0x0b, 0x64, 0x78], LIGHT_GROUND, [0; 3]),
            [0x0b, 0x64, 0x78],
            "no change if it can be read"
        );
    }

    #[test]
    fn other_texts_are_invalid() {
        for invalid in ["", "red", "#fff", "#12345g", "0b6478", "#+b6478"] {
            assert_eq!(invalid.parse::<AccentColor>(), Err(InvalidColor), "{invalid}");
        }
    }
}
