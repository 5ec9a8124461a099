//! Untrusted text: links that are safe to follow, and case folding.
//!
//! Every text that a server sends goes through [`rallypoint_wire::text::display`] (L5) before it is shown anywhere, and
//! code that writes HTML or JSON escapes it. Links need the additional check that is made here.

/// Returns a link that is safe to click: http or https, without characters that could end an attribute or a header.
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
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && text.len() <= MAX_LINK && text.chars().all(is_plain)).then_some(text)
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
        for good in ["http://a", "HTTPS://Example.org/x?y=z#f", " https://[::1]:8080/ ", "https://münchen.example/"] {
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
        ];
        for bad in bad {
            assert_eq!(link(bad), None, "{bad}");
        }
        assert_eq!(link(&format!("https://a/{}", "x".repeat(2_000))), None);
    }
}
