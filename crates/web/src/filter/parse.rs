//! Parses the parameters of a list.

use super::{Filter, ListQuery, Sort};
use crate::{ListNames, problem::Problem};
use rallypoint_lobby::Verification;
use rallypoint_wire::text;

/// Maximum length in characters of a text to search for: names are hardly longer.
const MAX_TEXT: usize = 200;

/// Maximum number of parameters: each is compared with those before it.
const MAX_PARAMETERS: usize = 100;

/// Maximum number of IDs in a query.
const MAX_IDS: usize = 500;

/// Maximum number of servers in one response, even a prebuilt one.
pub const MAX_ROWS: usize = 20_000;

/// Maximum number of servers to skip: the largest 64-bit integer of the OpenAPI document.
const MAX_OFFSET: usize = i64::MAX as usize;

/// Defaults and limits of the parameters, which differ between the page and the API.
#[derive(Clone, Copy, Debug)]
pub struct QueryDefaults {
    /// The default order.
    pub sort: Sort,
    /// The default number of servers.
    pub limit: usize,
    /// Maximum number of servers that can be requested, which bounds the cost of a request.
    pub max_limit: usize,
    /// Whether the range is given by `page` and `per_page`, instead of `offset` and `limit`.
    pub by_page: bool,
    /// Whether an unknown parameter is an error. Addresses of pages are shared, and get all kinds of parameters on the way.
    pub is_strict: bool,
}

/// An invalid parameter of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidParameter {
    /// The name of the parameter.
    pub name: String,
    /// The problem with it, or the expected form.
    pub expected: String,
    /// Whether its form is valid, but what it names does not exist: status 404 instead of 400.
    pub is_not_found: bool,
}

impl ListQuery {
    /// The query without parameters.
    #[must_use]
    pub fn defaults(defaults: &QueryDefaults) -> Self {
        Self { filter: Filter::default(), sort: defaults.sort, offset: 0, limit: defaults.limit }
    }

    /// Parses a query string. Lists can be given by their names.
    pub fn parse(text: &str, defaults: &QueryDefaults, names: &ListNames) -> Result<Self, InvalidParameter> {
        let mut query = Self::defaults(defaults);
        let mut page = 1;
        let mut given = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if given.contains(&name) {
                return Err(InvalidParameter::repeated(&name));
            }
            if given.len() >= MAX_PARAMETERS {
                return Err(InvalidParameter::new(&name, &format!("expected at most {MAX_PARAMETERS} parameters")));
            }
            query.set_parameter(&name, &value, defaults, names, &mut page)?;
            given.push(name);
        }
        if defaults.by_page {
            query.offset = (page - 1usize).saturating_mul(query.limit);
        }
        Ok(query)
    }

    fn set_parameter(
        &mut self,
        name: &str,
        value: &str,
        defaults: &QueryDefaults,
        names: &ListNames,
        page: &mut usize,
    ) -> Result<(), InvalidParameter> {
        let invalid = |expected: &str| InvalidParameter::new(name, expected);
        let number = |min: usize, max: usize| match value.parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(invalid(&format!("expected a number from {min} to {max}"))),
        };
        let filter = &mut self.filter;
        // The form of the page submits its empty fields, too.
        if value.is_empty() && !defaults.is_strict && !SWITCHES.contains(&name) {
            return Ok(());
        }
        match name {
            "q" => filter.q = words(name, value)?.filter(|words| !words.trim().is_empty()),
            "game" => filter.game = words(name, value)?.filter(|words| !words.is_empty()),
            "map" => filter.map = words(name, value)?.filter(|words| !words.is_empty()),
            "version" => filter.version = words(name, value)?.filter(|words| !words.is_empty()),
            "list" => filter.list = Some(names.find(value).ok_or_else(|| InvalidParameter::no_list(name))?),
            "not_empty" => filter.not_empty = switch(name, value)?,
            "not_full" => filter.not_full = switch(name, value)?,
            "no_password" => filter.no_password = switch(name, value)?,
            "both_families" => filter.both_families = switch(name, value)?,
            "verified" => {
                let known = Verification::ALL.into_iter().find(|verified| verified.code() == value);
                filter.verified = Some(known.ok_or_else(|| {
                    invalid(&format!("expected one of {}", Verification::ALL.map(Verification::code).join(", ")))
                })?);
            }
            "ids" => {
                let ids: Result<Vec<_>, _> = value.split(',').take(MAX_IDS + 1).map(str::parse).collect();
                let ids = ids.map_err(|_| invalid("expected public IDs of servers, separated by commas"))?;
                if ids.len() > MAX_IDS {
                    return Err(invalid(&format!("expected at most {MAX_IDS} IDs")));
                }
                filter.ids = Some(ids);
            }
            "sort" => self.sort = value.parse().map_err(|expected: String| invalid(&expected))?,
            "page" if defaults.by_page => *page = number(1, 1_000_000)?,
            "per_page" if defaults.by_page => self.limit = number(1, defaults.max_limit)?,
            "offset" if !defaults.by_page => self.offset = number(0, MAX_OFFSET)?,
            "limit" if !defaults.by_page => self.limit = number(1, defaults.max_limit)?,
            _ if defaults.is_strict => return Err(InvalidParameter::unknown(name, &KNOWN)),
            _ => {}
        }
        Ok(())
    }
}

/// Parameters that are on if they have no value, as in `?not_empty`, on the page.
const SWITCHES: [&str; 4] = ["not_empty", "not_full", "no_password", "both_families"];

/// The parameters of the API.
const KNOWN: [&str; 14] = [
    "q",
    "list",
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

impl InvalidParameter {
    pub(crate) fn new(name: &str, expected: &str) -> Self {
        // The name comes from the client and goes into the response: its beginning is enough to recognise it.
        let name = text::sanitize(name).chars().take(40).collect();
        Self { name, expected: expected.to_owned(), is_not_found: false }
    }

    /// A list that does not exist. Its name can be any text.
    pub(crate) fn no_list(name: &str) -> Self {
        let expected = "no list has this UUID or name; /api/v1/lists lists those that exist";
        Self { is_not_found: true, ..Self::new(name, expected) }
    }

    /// A parameter that an address does not have.
    pub(crate) fn unknown(name: &str, known: &[&str]) -> Self {
        Self::new(name, &format!("unknown parameter; known parameters: {}", known.join(", ")))
    }

    /// A parameter that occurs more than once.
    pub(crate) fn repeated(name: &str) -> Self {
        Self::new(name, "the parameter occurs more than once")
    }
}

impl From<InvalidParameter> for Problem {
    fn from(invalid: InvalidParameter) -> Self {
        let detail = format!("{}: {}", invalid.name, invalid.expected);
        let problem = if invalid.is_not_found { Self::not_found(detail) } else { Self::parameter("", detail) };
        problem.with_parameter(invalid.name)
    }
}

fn words(name: &str, value: &str) -> Result<Option<String>, InvalidParameter> {
    if value.chars().count() > MAX_TEXT {
        return Err(InvalidParameter::new(name, &format!("expected at most {MAX_TEXT} characters")));
    }
    // Shown texts are sanitized (L5), so a search text has to be, too.
    Ok(Some(text::sanitize(value).into_owned()))
}

fn switch(name: &str, value: &str) -> Result<bool, InvalidParameter> {
    match value {
        // `on` is what browsers send for a checked box without a value.
        "1" | "true" | "on" | "" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(InvalidParameter::new(name, "expected 1 or 0")),
    }
}
