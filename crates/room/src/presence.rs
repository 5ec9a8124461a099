//! The guests of a room, as its host reports them (docs/room.md).

use rallypoint_wire::text;

/// Maximum number of guests whose names are shown.
const MAX_NAMES: usize = 2;

/// The guests of a room.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Presence {
    guests: usize,
    /// Names of the guests that are typing.
    typing: Vec<String>,
}

impl Presence {
    /// Reads a report; what cannot be read is left out.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let guests = lines.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let typing = |line: &str| {
            let mut fields = line.split(' ');
            let name = fields.next()?;
            (fields.nth(2)? == "typing").then(|| text::sanitize(name).into_owned())
        };
        Self { guests, typing: lines.filter_map(typing).collect() }
    }

    /// The prompt for the guest with this name: the number of guests, and which of the others are typing.
    pub fn prompt(&self, own_name: &str) -> String {
        let typing: Vec<_> = self.typing.iter().map(|name| &**name).filter(|name| *name != own_name).collect();
        let typing = match &typing[..] {
            [] => return format!("({}) > ", self.guests),
            [one] => format!("{one} is typing"),
            names if names.len() <= MAX_NAMES => format!("{} are typing", names.join(" and ")),
            names => format!("{} are typing", names.len()),
        };
        format!("({}; {typing}) > ", self.guests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_shows_the_number_of_guests_and_others_that_are_typing() {
        let prompt = |report: &str| Presence::parse(report.as_bytes()).prompt("eve");
        assert_eq!(prompt("1\nalice red 20 idle\n"), "(1) > ");
        assert_eq!(prompt("1\neve red 20 typing\n"), "(1) > ", "a guest sees that it is typing");
        assert_eq!(prompt("2\nalice - - typing\nbob red 20 idle\n"), "(2; alice is typing) > ");
        assert_eq!(
            prompt("2\nalice - - typing\nbob red 20 typing\neve - - typing\n"),
            "(2; alice and bob are typing) > "
        );
        assert_eq!(prompt("9\na - - typing\nb - - typing\nc - - typing\n"), "(9; 3 are typing) > ");
    }

    #[test]
    fn what_a_hostile_host_reports_is_harmless() {
        assert_eq!(Presence::parse(b"").prompt(""), "(0) > ");
        assert_eq!(Presence::parse(b"many\n\x1b[2Jx - - typing").guests, 0);
        assert!(!Presence::parse(b"1\n\x1b[2Jx - - typing").prompt("").contains('\x1b'));
        assert_eq!(Presence::parse(&[0xff; 100]), Presence::default());
    }
}
