//! Links that start a game and connect it to a server.

use std::{fmt, net::SocketAddr, str::FromStr};
use thiserror::Error;

/// A link template with placeholders for the address of a server: `game://{address}`, `steam://connect/{ip}:{port}`.
///
/// ```
/// use rallypoint_web::JoinLink;
///
/// let link: JoinLink = "game://join?at={address}".parse()?;
/// assert_eq!(link.fill("192.0.2.7:8190".parse()?), "game://join?at=192.0.2.7:8190");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinLink(String);

/// A text is not a valid [`JoinLink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a link that contains {{address}}, or {{ip}} and {{port}}, such as \"game://{{address}}\"")]
pub struct InvalidJoinLink;

impl JoinLink {
    /// The link for a server, with its address filled in.
    #[must_use]
    pub fn fill(&self, addr: SocketAddr) -> String {
        let ip = if addr.is_ipv6() { format!("[{}]", addr.ip()) } else { addr.ip().to_string() };
        let link = self.0.replace("{address}", &format!("{ip}:{}", addr.port()));
        link.replace("{ip}", &ip).replace("{port}", &addr.port().to_string())
    }
}

impl FromStr for JoinLink {
    type Err = InvalidJoinLink;

    fn from_str(text: &str) -> Result<Self, InvalidJoinLink> {
        let (scheme, _) = text.split_once(':').ok_or(InvalidJoinLink)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        // Links of these schemes would run as scripts of the page itself.
        let is_script = ["javascript", "data", "vbscript", "blob"].iter().any(|bad| scheme.eq_ignore_ascii_case(bad));
        let has_placeholder = text.contains("{address}") || (text.contains("{ip}") && text.contains("{port}"));
        let is_plain = text.chars().all(|c| !c.is_whitespace() && !c.is_control());
        (is_scheme && !is_script && has_placeholder && is_plain).then(|| Self(text.to_owned())).ok_or(InvalidJoinLink)
    }
}

impl fmt::Display for JoinLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_harmless_scheme_and_a_placeholder_for_the_address() {
        let link: JoinLink = "steam://connect/{ip}:{port}".parse().unwrap();
        assert_eq!(link.fill("[2001:db8::1]:9".parse().unwrap()), "steam://connect/[2001:db8::1]:9");
        let bad = [
            "",
            "{address}",
            "game://join",
            "javascript:{address}",
            "DATA:{address}",
            "g ame://{address}",
            "game://{ip}",
        ];
        for bad in bad {
            assert_eq!(bad.parse::<JoinLink>(), Err(InvalidJoinLink), "{bad}");
        }
    }
}
