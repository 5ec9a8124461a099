//! The path at which a proxy publishes the pages.

use std::{fmt, str::FromStr};
use thiserror::Error;

/// The path of the pages behind a proxy, such as `/servers`: it is put before every address on a page. It is empty for pages at
/// the root of a host.
///
/// ```
/// use rallypoint_web::BasePath;
///
/// let base: BasePath = "/servers/".parse()?;
/// assert_eq!((base.as_str(), base.strip("/servers/why")), ("/servers", Some("/why")));
/// # Ok::<(), rallypoint_web::InvalidBasePath>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// A text is not a valid [`BasePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a path such as \"/servers\": letters, digits, and . _ - ~ between slashes")]
pub struct InvalidBasePath;

impl BasePath {
    /// The path without a slash at its end; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The rest of a path below this one. `None` if it is elsewhere, or if this is the root: then there is nothing to strip.
    #[must_use]
    pub fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        match path.strip_prefix(&self.0)? {
            "" => Some("/"),
            rest => rest.starts_with('/').then_some(rest),
        }
    }
}

impl FromStr for BasePath {
    type Err = InvalidBasePath;

    fn from_str(text: &str) -> Result<Self, InvalidBasePath> {
        let path = text.trim_end_matches('/');
        let is_part = |part: &str| {
            let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte));
            is_plain && !["", ".", ".."].contains(&part)
        };
        let is_valid = path.is_empty() || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part));
        is_valid.then(|| Self(path.to_owned())).ok_or(InvalidBasePath)
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_parts_of_a_path_are_stripped() {
        let base: BasePath = "/games/servers".parse().unwrap();
        assert_eq!(base.strip("/games/servers"), Some("/"));
        assert_eq!(base.strip("/games/servers/"), Some("/"));
        assert_eq!(base.strip("/games/servers/api/v1"), Some("/api/v1"));
        assert_eq!(base.strip("/games/serversx"), None);
        assert_eq!(base.strip("/why"), None);
        let root: BasePath = "/".parse().unwrap();
        assert_eq!((root.as_str(), root.strip("/why")), ("", None));
        for invalid in ["servers", "//x", "/a//b", "/..", "/a/./b", "/a b", "/\"", "/ä"] {
            assert_eq!(invalid.parse::<BasePath>(), Err(InvalidBasePath), "{invalid}");
        }
    }
}
