//! Untrusted text: links that are safe to follow, and case folding.
//!
//! Every text that a server sends goes through [`rallypoint_wire::text::display`] (L5) before it is shown anywhere, and
//! code that writes HTML or JSON escapes it. Links need the additional check that is made here.

/// Returns a link that is safe to click: http or https, without characters that could end an attribute or a header, and with a
/// host that is what it looks like.
///
/// The host is ASCII, because letters of other scripts can imitate it (`аpple.com` with a Cyrillic а), and there is no user name
/// or password, which can imitate a host (`https://example.org@evil.example/`).
///
/// ```
/// use rallypoint_lobby::text::link;
///
/// assert_eq!(link("https://example.org/clan"), Some("https://example.org/clan"));
/// assert_eq!(link("javascript:alert(1)"), None);
/// ```
#[must_use]
pub fn link(text: &str) -> Option<&str> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'<>\\`".contains(c);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    (is_web && is_authority(authority) && text.len() <= MAX_LINK && text.chars().all(is_plain)).then_some(text)
}

/// Whether a text is an ASCII host name or address, with or without a port.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (text, ""),
    };
    let is_name = |host: &str| {
        host.starts_with(|c: char| c.is_ascii_alphanumeric())
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    let is_ipv6 = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok())
    };
    (is_name(host) || is_ipv6(host)) && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Maximum length of a clickable link in bytes: what browsers can be expected to accept.
const MAX_LINK: usize = 2_000;

/// Folds a text to lower case, for comparisons that ignore case.
#[must_use]
pub fn fold(text: &str) -> String {
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_and_https_urls_are_links() {
        for good in [
            "http://a",
            "HTTPS://Example.org/x?y=z#f",
            " https://[::1]:8080/ ",
            "https://[::1]",
            "http://a_b-c.example:80?x",
        ] {
            assert_eq!(link(good), Some(good.trim()), "{good}");
        }
        let bad = [
            "",
            "example.org",
            "ftp://example.org",
            "javascript://example.org/%0aalert(1)",
            "data:text/html,x",
            "https://",
            "https:///x",
            "http://a\"onclick=x",
            "http://a b",
            "http://a\u{7}",
            "vbscript:x",
            "http://@evil",
            "https://example.org@evil.example/",
            "https://user:password@example.org/",
            "https://example.org:443@evil.example/",
            "https://example.org%40evil.example/",
            "https://münchen.example/",
            "https://\u{430}pple.com/",
            "https://example.org\u{2215}.evil.example/",
            "https://example.org\u{3002}evil.example/",
            "https://-example.org/",
            "https://example.org:port/",
            "https://example.org:123456/",
            "https://[::1/",
            "https://[fe80::1%25eth0]/",
            "https://[example.org]/",
        ];
        for bad in bad {
            assert_eq!(link(bad), None, "{bad}");
        }
        assert_eq!(link(&format!("https://a/{}", "x".repeat(2_000))), None);
    }
}
