//! Reading parameters.

use super::{Filter, Query, Sort};
use crate::{book::Verified, problem::Problem};
use rallypoint_wire::text;

/// The longest text to look for, in characters: a name has hardly more.
const LONGEST_TEXT: usize = 200;

/// So many servers can be named at once.
const MOST_IDS: usize = 500;

/// The most servers in one answer, even if it is made for everybody together.
pub const MOST_ROWS: usize = 20_000;

/// What counts if nothing is said.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The order.
    pub sort: Sort,
    /// How many servers.
    pub limit: usize,
    /// How many servers can be asked for: a bound on what one request can cost.
    pub most: usize,
    /// How the part is told: `page` and `per_page`, or `offset` and `limit`.
    pub pages: bool,
    /// Whether a parameter that nobody knows is a mistake. People share addresses with all sorts of things in them.
    pub strict: bool,
}

/// A parameter that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    /// Which.
    pub name: String,
    /// What was expected.
    pub expected: String,
}

impl Query {
    /// Reads the part of an address behind the question mark.
    pub fn parse(text: &str, defaults: &Defaults) -> Result<Self, BadParameter> {
        let mut query = Self { filter: Filter::default(), sort: defaults.sort, offset: 0, limit: defaults.limit };
        let (mut page, mut seen) = (1, Vec::new());
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if seen.contains(&name) {
                return Err(BadParameter::new(&name, "it is there twice: give it once"));
            }
            query.take(&name, &value, defaults, &mut page)?;
            seen.push(name);
        }
        if defaults.pages {
            query.offset = (page - 1usize).saturating_mul(query.limit);
        }
        Ok(query)
    }

    fn take(&mut self, name: &str, value: &str, defaults: &Defaults, page: &mut usize) -> Result<(), BadParameter> {
        let wrong = |expected: &str| BadParameter::new(name, expected);
        let number = |least: usize, most: usize| match value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(wrong(&format!("expected a number from {least} to {most}"))),
        };
        let filter = &mut self.filter;
        // A form sends its empty fields, too.
        if value.is_empty() && !matches!(name, "not_empty" | "not_full" | "no_password" | "both_families") {
            return if KNOWN.contains(&name) || !defaults.strict { Ok(()) } else { Err(unknown(name)) };
        }
        match name {
            "q" => filter.q = words(name, value)?.filter(|words| !words.trim().is_empty()),
            "game" => filter.game = words(name, value)?,
            "map" => filter.map = words(name, value)?,
            "version" => filter.version = words(name, value)?,
            "lobby" => {
                let id = value.parse().map_err(|_| wrong("expected the UUID of a lobby"))?;
                filter.lobby = Some(id);
            }
            "not_empty" => filter.not_empty = switch(name, value)?,
            "not_full" => filter.not_full = switch(name, value)?,
            "no_password" => filter.no_password = switch(name, value)?,
            "both_families" => filter.both_families = switch(name, value)?,
            "verified" => {
                let known = Verified::ALL.into_iter().find(|verified| verified.code() == value);
                filter.verified = Some(known.ok_or_else(|| {
                    wrong(&format!("expected one of {}", Verified::ALL.map(Verified::code).join(", ")))
                })?);
            }
            "ids" => {
                let ids: Result<Vec<_>, _> = value.split(',').take(MOST_IDS + 1).map(str::parse).collect();
                let ids = ids.map_err(|_| wrong("expected public IDs of servers with commas between them"))?;
                if ids.len() > MOST_IDS {
                    return Err(wrong(&format!("expected at most {MOST_IDS} IDs")));
                }
                filter.ids = Some(ids);
            }
            "sort" => self.sort = value.parse().map_err(|expected: String| wrong(&expected))?,
            "page" if defaults.pages => *page = number(1, 1_000_000)?,
            "per_page" if defaults.pages => self.limit = number(1, defaults.most)?,
            "offset" if !defaults.pages => self.offset = number(0, usize::MAX)?,
            "limit" if !defaults.pages => self.limit = number(1, defaults.most)?,
            _ if defaults.strict => return Err(unknown(name)),
            _ => {}
        }
        Ok(())
    }
}

/// All parameters, for messages and documents.
pub(crate) const KNOWN: [&str; 14] = [
    "q",
    "lobby",
    "game",
    "map",
    "version",
    "not_empty",
    "not_full",
    "no_password",
    "both_families",
    "verified",
    "ids",
    "sort",
    "offset",
    "limit",
];

impl BadParameter {
    pub(crate) fn new(name: &str, expected: &str) -> Self {
        // It comes from a stranger and goes into an answer: a part of it is enough to recognise it.
        let name = text::sanitize(name).chars().take(40).collect();
        Self { name, expected: expected.to_owned() }
    }
}

impl From<BadParameter> for Problem {
    fn from(bad: BadParameter) -> Self {
        let detail = format!("{}: {}", bad.name, bad.expected);
        Self::parameter(bad.name, detail)
    }
}

/// A parameter that nobody knows.
pub(crate) fn unknown(name: &str) -> BadParameter {
    BadParameter::new(name, &format!("there is no such parameter; there are {}", KNOWN.join(", ")))
}

fn words(name: &str, value: &str) -> Result<Option<String>, BadParameter> {
    if value.chars().count() > LONGEST_TEXT {
        return Err(BadParameter::new(name, &format!("expected at most {LONGEST_TEXT} characters")));
    }
    // What is shown is harmless, so only that can be looked for.
    Ok(Some(text::sanitize(value).into_owned()))
}

fn switch(name: &str, value: &str) -> Result<bool, BadParameter> {
    match value {
        // What browsers make of a box that is ticked is `on`.
        "1" | "true" | "on" | "" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(BadParameter::new(name, "expected 1 or 0")),
    }
}
